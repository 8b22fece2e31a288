"""Two rows of one shop become one, and nothing that either of them had is lost: expected is what one row would have had all along."""

from __future__ import annotations

from typing import Any

import pytest

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Conflict
from menuwatch.pipeline.rebuild import rebuild
from menuwatch.pipeline.store_merge import MergeContents, MergedStore, merge_stores
from tests.api.shop import START, Shop, at, item, menu
from tests.rebuild.test_rebuild import _all, _parts, _story, _table


async def _merge(shop: Shop, store: int, into: int, *, dry_run: bool = False) -> MergedStore:
    return await merge_stores(shop.pool, shop.archive, shop.platforms, store, into, dry_run=dry_run)


async def _history(shop: Shop, store: int) -> list[Any]:
    """Crawls, states, changes and crawl times of a store, without ids of rows."""
    return [
        await _table(shop, query.format(store))
        for query in (
            (
                "SELECT crawled_at, products, new_products, changed, unchanged, returned, missing, out_of_stock, price_changes,"
                " stock_changes, warnings FROM store_crawls WHERE dispensary_id = {} ORDER BY crawled_at"
            ),
            (
                "SELECT p.provider_product_id, p.name, p.consecutive_misses, p.first_seen_at, p.last_seen_at, s.seen_from, s.seen_to,"
                " s.present, s.stock_status, s.quantity, s.price_rec, s.prices, s.stock FROM product_states s"
                " JOIN catalog_products p ON p.id = s.product_id WHERE p.dispensary_id = {} ORDER BY 1, s.seen_from"
            ),
            (
                "SELECT provider_product_id, changed_at, price_rec_before, price_rec_after, stock_status_before, stock_status_after"
                " FROM product_changes WHERE dispensary_id = {} ORDER BY 2, 1"
            ),
            "SELECT provider_product_id, crawled_at, price_rec FROM store_product_snapshots WHERE dispensary_id = {} ORDER BY 2, 1",
            "SELECT first_crawled_at, last_crawled_at, product_count FROM dispensaries WHERE id = {}",
        )
    ]


async def _rule(shop: Shop, name: str, *, store: int | None = None, product: int | None = None) -> None:
    await shop.execute(
        "INSERT INTO alert_rules (name, condition, reach, dispensary_id, product_id, amount, armed_at, created_at, updated_at)"
        " VALUES (%s, 'price_below', %s, %s, %s, 5, now(), now(), now())",
        [name, "store" if store else "product", store, product],
    )


async def _ids(shop: Shop, store: int) -> dict[str, int]:
    return dict(
        await _table(shop, f"SELECT provider_product_id, id FROM catalog_products WHERE dispensary_id = {store}")
    )


async def test_a_history_moves_as_it_is_to_a_store_that_was_never_crawled(shop: Shop) -> None:
    store, into = await _story(shop), await shop.store("two")
    late = await shop.archived(store, 20, menu([item("a")]), count=1)
    ids = await _ids(shop, store)
    await _rule(shop, "store", store=store)
    await _rule(shop, "product", product=ids["a"])
    await shop.execute(
        "INSERT INTO task_history (id, role, dispensary_id, platform, status, attempt, retry_count, max_retries, postpone_count,"
        " priority, created_at, completed_at, error_message, payload)"
        " VALUES (7, 'payload_fetch', %s, 'dutchie', 'failed', 1, 0, 3, 0, 0, now(), now(), 'x', '{}')",
        [store],
    )
    before = await _history(shop, store)
    ((payloads, crawls, states),) = await _table(
        shop,
        "SELECT (SELECT count(*) FROM raw_crawl_payloads), (SELECT count(*) FROM store_crawls),"
        " (SELECT count(*) FROM product_history)",
    )
    applied = "SELECT id, applied_at, path FROM raw_crawl_payloads WHERE dispensary_id = {} ORDER BY id"
    payload_rows = await _table(shop, applied.format(store))
    untouched = await _all(shop)
    expected = MergeContents(
        payloads=payloads, crawls=crawls, products=len(ids), shared_products=0, past_states=states, alert_rules=2,
        finished_tasks=1, unfinished_tasks=0, rebuilt_from=0,
    )  # fmt: skip
    assert (await _merge(shop, store, into, dry_run=True)).contents == expected
    assert await _all(shop) == untouched, "a preview changes nothing"

    assert (await _merge(shop, store, into)).contents == expected
    assert await _history(shop, into) == before
    assert await _table(shop, applied.format(into)) == payload_rows
    assert await _ids(shop, into) == ids
    assert await _table(shop, "SELECT name, dispensary_id, product_id FROM alert_rules ORDER BY id") == [
        ("store", into, None),
        ("product", None, ids["a"]),
    ]
    assert await _table(shop, f"SELECT id FROM task_history WHERE dispensary_id = {into}") == [(7,)]
    assert await _table(shop, f"SELECT count(*) FROM crawl_feed WHERE dispensary_id = {into}") == [(crawls,)]
    assert await _table(shop, f"SELECT id FROM dispensaries WHERE id = {store}") == []
    pending = "SELECT role, dispensary_id, payload ->> 'payload_id' FROM task_live"
    assert await _table(shop, pending) == [("product_refresh", into, str(late))], "what was not applied yet will be"
    again = await rebuild(_parts(shop), into)
    assert (again.payloads, again.same) == (crawls, True)


async def test_payloads_of_a_store_without_a_catalog_leave_the_other_one_as_it_is(shop: Shop) -> None:
    into, store = await _story(shop), await shop.store("two")
    bad = await shop.archived(store, 3.5, b"<html>", status="rejected", reason="html: a page")
    before = await _history(shop, into)
    assert (await _merge(shop, store, into)).contents.rebuilt_from == 0
    assert await _history(shop, into) == before
    assert await _table(shop, f"SELECT dispensary_id FROM raw_crawl_payloads WHERE id = {bad}") == [(into,)]
    assert (await rebuild(_parts(shop), into)).same


def _menus() -> list[list[dict[str, Any]]]:
    def berry(price: int) -> dict[str, Any]:
        return item("b", "Berry", options=[("1/8oz", price, 5)])

    return [
        [item("a"), berry(40), item("x")],
        [item("a"), berry(38), item("y")],
        [item("a"), berry(38), item("x")],
        [berry(35), item("y")],
        [item("a", options=[("1/8oz", 44, 1)]), berry(35)],
        [item("a", options=[("1/8oz", 44, 1)]), berry(30), item("y")],
    ]


@pytest.mark.parametrize("first", ["even", "odd"])
async def test_two_histories_are_joined_in_order_of_time(shop: Shop, first: str) -> None:
    """Crawls of the two took turns. Either way round it is the history of a store that had every crawl."""
    whole, even, odd = [await shop.store(slug) for slug in ("whole", "even", "odd")]
    for hour, items in enumerate(_menus()):
        await shop.crawl(whole, hour, items)
        await shop.crawl((even, odd)[hour % 2], hour, items)
    store, into = (even, odd) if first == "even" else (odd, even)
    own, theirs = await _ids(shop, store), await _ids(shop, into)
    await _rule(shop, "shared", product=own["b"])
    contents = (await _merge(shop, store, into, dry_run=True)).contents
    assert (contents.shared_products, contents.products, contents.rebuilt_from) == (2, 1, 6)

    await _merge(shop, store, into)
    assert await _history(shop, into) == await _history(shop, whole)
    assert await _ids(shop, into) == {**own, **theirs}, "products keep their ids"
    assert await _table(shop, "SELECT product_id FROM alert_rules") == [(theirs["b"],)]
    assert await _table(shop, "SELECT count(*) FROM catalog_products WHERE dispensary_id < 0") == [(0,)]
    assert (await rebuild(_parts(shop), into)).same


async def test_a_shop_with_a_new_id_and_new_product_ids_keeps_both_histories(shop: Shop) -> None:
    """All products change at once where the new row begins: no quarantine, now or in a later rebuild."""
    old, new = await shop.store("old"), await shop.store("new")
    for hour in range(3):
        await shop.crawl(old, hour, [item(f"o{n}") for n in range(20)])
    for hour in range(4, 9):
        await shop.crawl(new, hour, [item(f"n{n}") for n in range(20)])
    await _merge(shop, old, new)
    crawled = await _table(shop, f"SELECT crawled_at FROM store_crawls WHERE dispensary_id = {new} ORDER BY 1")
    assert [when for (when,) in crawled] == [at(hour) for hour in (0, 1, 2, 4, 5, 6, 7, 8)]
    gone = "SELECT DISTINCT stock_status, present FROM catalog_products WHERE provider_product_id LIKE 'o%'"
    assert await _table(shop, gone) == [("oos", False)]
    assert await _table(shop, "SELECT count(*) FROM raw_crawl_payloads WHERE status <> 'ok'") == [(0,)]
    assert (await rebuild(_parts(shop), new)).same


async def _two(shop: Shop) -> tuple[int, int]:
    one, two = await shop.store("one"), await shop.store("two")
    for hour in range(3):
        await shop.crawl(one, hour, [item("a"), item("b")])
        await shop.crawl(two, hour + 0.5, [item("a"), item("c")])
    return one, two


async def _lose_payload(shop: Shop) -> None:
    await shop.execute("DELETE FROM raw_crawl_payloads WHERE fetched_at = %s", [at(1)])


async def _damage_file(shop: Shop) -> None:
    ((path,),) = await _table(shop, "SELECT path FROM raw_crawl_payloads ORDER BY id LIMIT 1")
    shop.storage.joinpath(path).unlink()


async def _pack(shop: Shop) -> None:
    # Prices that moved: without a past state there is nothing to pack.
    async with shop.pool.connection() as conn:
        archived = ParquetPartitions(shop.archive.storage)
        await packing.pack(conn, archived, START.replace(month=4, day=1, hour=0), now=START.replace(month=11))


@pytest.mark.parametrize(
    ("lose", "why"),
    [
        (_lose_payload, "the payloads of 1 crawl are no longer in the archive"),
        (_damage_file, "1 payload"),
        (_pack, "has packed months of history"),
    ],
)
async def test_what_would_lose_history_is_refused_and_changes_nothing(shop: Shop, lose: Any, why: str) -> None:
    one, two = await _two(shop)
    await shop.crawl(one, 4, [item("a", options=[("1/8oz", 30, 1)])])
    await lose(shop)
    before = await _all(shop)
    with pytest.raises(Conflict, match=why):
        await _merge(shop, one, two)
    assert await _all(shop) == before


async def test_packed_history_stays_where_it_is_and_takes_in_the_other_row(shop: Shop) -> None:
    store, empty = await _story(shop), await shop.store("two")
    await _pack(shop)
    with pytest.raises(Conflict, match="merge Two into it instead"):
        await _merge(shop, store, empty)
    before = await _history(shop, store)
    await _merge(shop, empty, store)
    assert await _history(shop, store) == before


async def test_crawl_pause_resume_and_merge_over_http(shop: Shop) -> None:
    one, two = await _two(shop)
    path = f"/api/stores/{one}"
    queued = await shop.ask(f"{path}/crawl", method="POST", status=201)
    assert (queued["created"], queued["task"]["role"], queued["task"]["dispensary_id"]) == (True, "payload_fetch", one)
    again = await shop.ask(f"{path}/crawl", method="POST")
    assert (again["created"], again["task"]["id"]) == (False, queued["task"]["id"])
    for part, enabled in (("pause", False), ("pause", False), ("resume", True)):
        assert (await shop.ask(f"{path}/{part}", method="POST"))["crawl_enabled"] is enabled
    unresolved = await shop.ask(
        "/api/stores", method="POST", status=201, json={"menu_url": "https://dutchie.com/dispensary/x"}
    )
    await shop.execute("DELETE FROM task_live WHERE id = %s", [unresolved["task_id"]])
    resolved = await shop.ask(f"/api/stores/{unresolved['store']['id']}/crawl", method="POST", status=201)
    assert resolved["task"]["role"] == "entry_point_discovery"
    for part in ("crawl", "pause", "resume"):
        await shop.refused(f"/api/stores/99/{part}", 404, method="POST")

    dry = await shop.ask(f"{path}/merge", method="POST", json={"into": two, "dry_run": True})
    assert (dry["into"], dry["contents"]["rebuilt_from"], dry["contents"]["unfinished_tasks"]) == (two, 6, 1)
    assert await shop.ask(f"{path}/merge", method="POST", json={"into": two}) == dry
    await shop.refused(path, 404)
    problem = await shop.refused(f"/api/stores/{two}/merge", 400, method="POST", json={"into": two})
    assert problem["errors"][0]["pointer"] == "#/into"
