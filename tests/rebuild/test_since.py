"""History made anew from a time on: what came before is as it was, what came later is what a whole rebuilding makes of it."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from menuwatch.pipeline.rebuild import RowChanges, rebuild
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.model import Normalized
from tests.api.shop import START, Shop, at, item
from tests.rebuild.random_histories import lived, parts

NONE = RowChanges(added=0, removed=0, changed=0)
_LOOKED_AT = {
    "products": "SELECT * FROM catalog_products WHERE dispensary_id = %(id)s ORDER BY id",
    "states": "SELECT s.* FROM product_states s JOIN catalog_products p ON p.id = s.product_id"
    " WHERE p.dispensary_id = %(id)s ORDER BY 1, 2",
    "details": "SELECT s.* FROM product_details s JOIN catalog_products p ON p.id = s.product_id"
    " WHERE p.dispensary_id = %(id)s ORDER BY 1, 2",
    "past details": "SELECT h.* FROM product_detail_history h JOIN catalog_products p ON p.id = h.product_id"
    " WHERE p.dispensary_id = %(id)s ORDER BY 1, 3",
    "past": "SELECT * FROM product_history WHERE dispensary_id = %(id)s ORDER BY product_id, ended_at",
    "crawls": "SELECT * FROM store_crawls WHERE dispensary_id = %(id)s ORDER BY crawled_at",
    "payloads": "SELECT * FROM raw_crawl_payloads WHERE dispensary_id = %(id)s ORDER BY id",
    "store": "SELECT first_crawled_at, last_crawled_at, last_payload_id, product_count FROM dispensaries WHERE id = %(id)s",
    "feed": "SELECT count(*) FROM crawl_feed WHERE dispensary_id = %(id)s",
}


async def all_of(shop: Shop, store: int) -> dict[str, list[dict[str, Any]]]:
    """Everything that is known of a store."""
    found = {}
    async with shop.pool.connection() as conn:
        for what, query in _LOOKED_AT.items():
            cursor = await conn.execute(query, {"id": store})
            assert cursor.description is not None
            names = [column.name for column in cursor.description]
            found[what] = [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]
    return found


async def _lost(shop: Shop, store: int, hours: float, *, row: bool = True) -> None:
    """What was archived before that hour is gone: the files, or the rows as well."""
    for one in (await all_of(shop, store))["payloads"]:
        if one["fetched_at"] < at(hours):
            shop.storage.joinpath(one["path"]).unlink(missing_ok=True)
    if row:
        await shop.execute("DELETE FROM raw_crawl_payloads WHERE fetched_at < %s", [at(hours)])


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_differs_where_nothing_has_changed(shop: Shop, seed: int) -> None:
    random = Random(seed)
    store = await shop.store()
    pace = 40 if seed % 2 else 1  # products that were not seen for a week are treated otherwise
    await lived(shop, store, random, 13, pace=pace)
    before = await all_of(shop, store)
    for hour in sorted(random.sample(range(14), 4)):
        found = await rebuild(parts(shop), store, since=at(pace * (hour - random.choice([0, 0.5]))))
        assert (found.products, found.states, found.crawls, found.approximate) == (NONE, NONE, NONE, 0), (hour, found)
        assert await all_of(shop, store) == before, hour


@pytest.mark.parametrize("seed", range(3))
async def test_what_was_released_or_kept_out_meanwhile_comes_as_a_whole_rebuilding_has_it(
    shop: Shop, seed: int
) -> None:
    random = Random(1000 + seed)
    store = await shop.store()
    numbers = await lived(shop, store, random, 14)
    hour = random.randrange(2, 12)
    for number in random.sample(numbers[hour:], min(3, 14 - hour)):
        await shop.execute(
            "UPDATE raw_crawl_payloads SET status = CASE status WHEN 'ok' THEN 'quarantined' ELSE 'ok' END,"
            " reason = CASE status WHEN 'ok' THEN 'a person says so' END, applied_at = NULL,"
            " released_at = CASE status WHEN 'ok' THEN NULL ELSE now() END WHERE id = %s",
            [number],
        )
    before = await all_of(shop, store)
    await rebuild(parts(shop), store, since=at(hour))
    part = await all_of(shop, store)
    for what, moment in (("past", "ended_at"), ("crawls", "crawled_at")):
        kept = [[row for row in found[what] if row[moment] < at(hour)] for found in (before, part)]
        assert kept[0] == kept[1], "what was over stays as it is"
    assert (await rebuild(parts(shop), store)).same, hour
    whole = await all_of(shop, store)
    for row in (*part["payloads"], *whole["payloads"]):
        row["applied_at"] = row["applied_at"] is not None
    assert part == whole, hour


@pytest.mark.parametrize("seed", range(3))
async def test_what_came_before_need_not_be_in_the_archive(shop: Shop, seed: int) -> None:
    random = Random(2000 + seed)
    store = await shop.store()
    await lived(shop, store, random, 14)
    hour = random.randrange(2, 12)
    await _lost(shop, store, hour, row=seed % 2 == 0)
    before = await all_of(shop, store)
    with pytest.raises(Refused):
        await rebuild(parts(shop), store)
    found = await rebuild(parts(shop), store, since=at(hour))
    after = await all_of(shop, store)
    assert found.approximate > 0
    assert (found.products, found.states) == (NONE, NONE)
    for what in ("products", "crawls"):
        # A word that changed right then is not known to have, and an item that is read again says again what is odd of it.
        for row in (*before[what], *after[what]):
            for name in ("content_hash", "changed", "unchanged", "warnings"):
                row.pop(name, None)
    assert after == before


class _Other(Dutchie):
    """A normalizer that was changed: names in capitals, prices doubled."""

    normalizer_version = Dutchie.normalizer_version + 1

    def normalize(self, items: Any) -> Normalized:
        made = super().normalize(items)
        products = []
        for p in made.products:
            options = [{f: getattr(v, f) for f in v.__struct_fields__} for v in p.variants]
            variants = tuple(
                type(v)(**o | {"price_rec": v.price_rec * 2}) for v, o in zip(p.variants, options, strict=True)
            )
            known = {f: getattr(p, f) for f in p.__struct_fields__}
            products.append(
                type(p)(**known | {"name": p.name.upper(), "price_rec": p.price_rec * 2, "variants": variants})
            )
        return Normalized(products=tuple(products), warnings=made.warnings)


async def test_history_stays_what_it_was_before_a_normalizer_is_mended(shop: Shop) -> None:
    store = await shop.store()
    for hour in range(4):
        await shop.crawl(store, hour, [item("a"), item("b", "Berry", options=[("1g", 10, 1), ("1/8oz", 30, hour)])])
    mended = parts(shop, platforms={"dutchie": _Other()})
    found = await rebuild(mended, store, since=at(2))
    assert (found.products.changed, found.crawls.changed) == (2, 1), "at the first crawl since, prices seem to change"
    async with shop.pool.connection() as conn:
        rows = await (
            await conn.execute(
                "SELECT provider_product_id, crawled_at, price_rec::float8, prices -> 0 ->> 1"
                " FROM store_product_snapshots ORDER BY 1, 2"
            )
        ).fetchall()
    told = [(name, moment, price, float(first)) for name, moment, price, first in rows]
    before, after = {"a": (40, 40), "b": (10, 30)}, {"a": (80, 80), "b": (20, 60)}
    assert told == [(n, at(h), *(before if h < 2 else after)[n]) for n in "ab" for h in range(4)]
    names = [(row["name"], row["changed_at"]) for row in (await all_of(shop, store))["products"]]
    assert names == [("BLUE DREAM", at(2)), ("BERRY", at(3))]
    assert (await rebuild(mended, store, since=at(2))).same


async def test_a_last_change_that_is_undone_shows_the_one_before(shop: Shop) -> None:
    store = await shop.store()
    names = ["Apple", "Apple", "Pear", "Pear", "Pear", "Plum", "Plum"]
    numbers = [await shop.crawl(store, hour, [item("a", name), item("b")]) for hour, name in enumerate(names)]
    for number in numbers[5:]:
        await shop.execute(
            "UPDATE raw_crawl_payloads SET status = 'quarantined', reason = 'x', applied_at = NULL WHERE id = %s",
            [number],
        )
    await rebuild(parts(shop), store, since=at(4.5))
    (apple, _) = (await all_of(shop, store))["products"]
    assert (apple["name"], apple["state_from"], apple["changed_at"]) == ("Pear", at(0), at(2))


async def test_products_that_came_later_keep_their_numbers_and_pictures(shop: Shop) -> None:
    store = await shop.store()
    await shop.crawl(store, 0, [item("a")])
    await shop.crawl(store, 1, [item("a"), item("b")])
    gone = await shop.crawl(store, 2, [item("a"), item("b"), item("c")])
    await shop.crawl(store, 3, [item("a"), item("b")])
    await shop.execute("UPDATE catalog_products SET local_image_path = 'images/' || provider_product_id")
    before = (await all_of(shop, store))["products"]
    await shop.execute(
        "UPDATE raw_crawl_payloads SET status = 'quarantined', reason = 'x', applied_at = NULL WHERE id = %s", [gone]
    )
    dry = await rebuild(parts(shop), store, since=at(1), dry_run=True)
    assert dry.products == RowChanges(added=0, removed=1, changed=0)
    assert (await all_of(shop, store))["products"] == before
    await rebuild(parts(shop), store, since=at(1))
    assert (await all_of(shop, store))["products"] == before[:2]


async def test_packed_months_before_are_left_alone_and_later_ones_refused(shop: Shop) -> None:
    store = await shop.store()
    month = 24.0 * 31
    async with shop.pool.connection() as conn:
        for months in (1, 2):
            await conn.execute("SELECT ensure_product_history_partition(%s)", [START + timedelta(hours=months * month)])
    here, there = [item("a"), item("b")], [item("a")]
    for hours, items in (
        (0, here),
        (1, there),
        (2, there),
        (3, there),
        (4, there),
        (month, there),
        (month + 1, here),
        (2 * month, here),
    ):
        await shop.crawl(store, hours, items)
    async with shop.pool.connection() as conn:
        await packing.pack(
            conn,
            ParquetPartitions(shop.archive.storage),
            START.replace(month=4, day=1, hour=0),
            now=START.replace(month=11),
        )
    before = await all_of(shop, store)
    with pytest.raises(Refused, match="since 2026-03-01 14:00 UTC are packed, and packed"):
        await rebuild(parts(shop), store, since=at(2))
    assert await all_of(shop, store) == before
    found = await rebuild(parts(shop), store, since=at(4))
    assert (found.same, found.payloads) == (True, 4)
    assert await all_of(shop, store) == before, "b was gone then, and only the packed state tells since when"


async def test_what_cannot_be_is_refused(shop: Shop) -> None:
    store = await shop.store()
    numbers = [await shop.crawl(store, hour, [item("a")]) for hour in range(4)]
    before = await all_of(shop, store)
    with pytest.raises(Refused, match="UTC is in the future"):
        await rebuild(parts(shop), store, since=parts(shop).clock.now() + timedelta(hours=1))
    assert (await rebuild(parts(shop), store, since=at(3.5))).payloads == 0
    assert await all_of(shop, store) == before
    await shop.execute("UPDATE store_crawls SET payload_id = NULL WHERE payload_id = %s", [numbers[2]])
    with pytest.raises(Refused, match="the archive lacks the payloads of 1 crawls"):
        await rebuild(parts(shop), store, since=at(1))
    assert (await rebuild(parts(shop), store, since=at(3))).same


async def test_where_history_does_not_reach_back_any_more_nothing_is_changed(shop: Shop) -> None:
    store = await shop.store()
    for hour in range(4):
        await shop.crawl(store, hour, [item("a", options=[("1g", 10 + min(hour, 2), 1)]), item("b")])
    await shop.execute("DELETE FROM product_history")
    before = await all_of(shop, store)
    with pytest.raises(Refused, match="the history of 1 of its products does not reach back to 2026-03-01 13:00 UTC"):
        await rebuild(parts(shop), store, since=at(2))
    assert await all_of(shop, store) == before
    assert (await rebuild(parts(shop), store, since=at(3))).same
