"""What changed, as a feed that misses nothing, and as a list with filters."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import psycopg

from tests.api.shop import Shop, at, item


async def _follow(shop: Shop, cursor: str | None = None, **params: Any) -> tuple[list[dict[str, Any]], str]:
    """Everything behind the cursor, and where it ended."""
    found: list[dict[str, Any]] = []
    while True:
        page = await shop.ask("/api/changes/feed", params={**params, **({"cursor": cursor} if cursor else {})})
        found += page["items"]
        cursor = page["next"]
        assert cursor is not None
        if not page["more"]:
            return found, cursor


def _keys(changes: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(change["product_id"], change["changed_at"]) for change in changes]


async def test_everything_once_and_in_order(shop: Shop) -> None:
    """The feed has the changes of the list, in the order of crawls, in pages of any size, with one cursor to go on with."""
    rng = random.Random(4)
    stores = [await shop.store(f"s{n}", state=state) for n, state in enumerate(("AZ", "NM", "NM"))]
    cursor: str | None = None
    followed: list[dict[str, Any]] = []
    hour = 0.0
    for _ in range(12):
        store = rng.choice(stores)
        hour += 4
        menu = [
            item(f"{store}-{n}", options=[("1g", rng.choice((10, 12)), rng.choice((0, 5)))], type=kind)
            for n, kind in enumerate(("Flower", "Edible", "Flower", "Concentrate"))
        ]
        await shop.crawl(store, hour, menu)
        more, cursor = await _follow(shop, cursor, limit=rng.choice((1, 2, 5)))
        followed += more
    listed = await shop.walk("/api/changes", limit=7)
    assert len(followed) == len(listed) > 20
    assert sorted(_keys(followed)) == sorted(_keys(listed))
    whole, _ = await _follow(shop, limit=3)
    assert _keys(whole) == _keys(followed), "the same from the start"
    assert [c["changed_at"] for c in whole] == sorted(c["changed_at"] for c in whole)
    assert await _follow(shop, cursor) == ([], cursor), "nothing is new"
    for change in listed:
        assert change["before"] != change["after"]


async def test_a_crawl_that_is_committed_late_is_not_missed(shop: Shop, database_url: str) -> None:
    early, late = await shop.store("early"), await shop.store("late")
    for store in (early, late):
        await shop.crawl(store, 1, [item(f"p{store}", options=[("1g", 10, 5)])])
    _, cursor = await _follow(shop)
    # A crawl with the earlier date has done everything but commit when one with a later date is taken in.
    await shop.execute(
        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NULL; END $$"
    )
    await shop.execute(
        "CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON store_crawls DEFERRABLE INITIALLY DEFERRED"
        f" FOR EACH ROW WHEN (NEW.dispensary_id = {early}) EXECUTE FUNCTION linger()"
    )
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
        await other.execute("SELECT pg_advisory_lock(77)")
        lingering = asyncio.create_task(shop.crawl(early, 5, [item(f"p{early}", options=[("1g", 12, 5)])]))
        async with asyncio.timeout(20):
            while not await (
                await other.execute("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            ).fetchall():
                await asyncio.sleep(0.01)
        await shop.crawl(late, 6, [item(f"p{late}", options=[("1g", 12, 5)])])
        seen, cursor = await _follow(shop, cursor)
        assert [change["dispensary_id"] for change in seen] == [late]
        await other.execute("SELECT pg_advisory_unlock(77)")
        await lingering
    missed, cursor = await _follow(shop, cursor)
    assert [change["dispensary_id"] for change in missed] == [early]
    assert missed[0]["changed_at"] < seen[0]["changed_at"], "older by its date, later in the feed"
    assert (await _follow(shop, cursor))[0] == []


async def test_many_who_number_at_once(shop: Shop) -> None:
    """Positions are given once, whoever asks, without a gap in what somebody has seen."""
    store = await shop.store()
    for n in range(6):
        await shop.crawl(store, n, [item("a", options=[("1g", 10 + n, 5)])])
    answers = await asyncio.gather(*(_follow(shop) for _ in range(6)))
    longest = max((_keys(found) for found, _ in answers), key=len)
    for found, _ in answers:
        assert _keys(found) == longest[: len(found)]
    async with shop.pool.connection() as conn:
        rows = await (await conn.execute("SELECT position FROM crawl_feed ORDER BY crawled_at")).fetchall()
    positions = [row[0] for row in rows]
    assert positions == sorted(set(positions))


async def test_filters_of_list_and_feed(shop: Shop) -> None:
    one, two = await shop.store("one", state="NM"), await shop.store("two", state="AZ")
    first = [
        item("cheaper", options=[("1g", 20, 5)], brandName="Acme", type="Flower"),
        item("dearer", options=[("1g", 20, 5)], brandName="ACME", type="Edible"),
        item("out", options=[("1g", 20, 5)], brandName="Other", type="Flower"),
        item("back", options=[("1g", 20, 0)], brandName=None, type="Flower"),
        item("fewer", options=[("1g", 20, 5)], brandName="Other", type="Concentrate"),
    ]
    then = [
        item("cheaper", options=[("1g", 15, 5)], brandName="Acme", type="Flower"),
        item("dearer", options=[("1g", 25, 5)], brandName="ACME", type="Edible"),
        item("out", options=[("1g", 20, 0)], brandName="Other", type="Flower"),
        item("back", options=[("1g", 20, 5)], brandName=None, type="Flower"),
        item("fewer", options=[("1g", 20, 4)], brandName="Other", type="Concentrate"),
    ]
    for store, hour in ((one, 1), (two, 2)):
        await shop.crawl(store, hour, first)
        await shop.crawl(store, hour + 4, then)
    expected: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"cheaper", "dearer", "out", "back", "fewer"}),
        ({"kind": "price"}, {"cheaper", "dearer"}),
        ({"kind": "price_drop"}, {"cheaper"}),
        ({"kind": "price_rise"}, {"dearer"}),
        ({"kind": "stock"}, {"out", "back", "fewer"}),
        ({"kind": "out_of_stock"}, {"out"}),
        ({"kind": "back_in_stock"}, {"back"}),
        ({"brand": "aCMe"}, {"cheaper", "dearer"}),
        ({"brand": ["acme", "other"]}, {"cheaper", "dearer", "out", "fewer"}),
        ({"category_canon": "flower"}, {"cheaper", "out", "back"}),
        ({"category_canon": ["edible", "concentrate"], "kind": "price"}, {"dearer"}),
        ({"brand": "nobody"}, set()),
        ({"since": at(7).isoformat()}, set()),
    ]
    for params, names in expected:
        for more, count in (
            ({}, 2),
            ({"state": "nm"}, 1),
            ({"state": ["NM", "AZ"]}, 2),
            ({"store": two}, 1),
            ({"state": "TX"}, 0),
        ):
            wanted = Counter({name: count for name in names if count})
            listed = await shop.walk("/api/changes", **params, **more, limit=2)
            assert Counter(c["provider_product_id"] for c in listed) == wanted, (params, more)
            fed, _ = await _follow(shop, **params, **more, limit=2)
            assert Counter(c["provider_product_id"] for c in fed) == wanted, (params, more)
    (change,) = await shop.walk("/api/changes", kind="price_drop", state="NM")
    assert (change["state"], change["category_canon"], change["before"]["price"], change["after"]["price"]) == (
        "NM",
        "flower",
        20,
        15,
    )
    late = await shop.walk("/api/changes", since=at(5.5).isoformat(), until=at(7).isoformat())
    assert {c["dispensary_id"] for c in late} == {two}


async def test_an_empty_list_of_changes_says_why(shop: Shop) -> None:
    async def notice(**params: Any) -> str | None:
        page = await shop.ask("/api/changes", params=params)
        assert (page["items"], page["next"]) == ([], None)
        return page["notice"]

    store = await shop.store("only", state="NM")
    await shop.crawl(store, 1, [item("a", options=[("1g", 10, 5)])])
    assert await notice() == "No changes yet: a store must be crawled twice first."
    assert await notice(state="NM") == "No changes yet: a store must be crawled twice first."
    assert await notice(state=["AZ", "ON"]) == "No known stores: Arizona, Ontario."
    assert await notice(kind="merged") is None, "no crawl merges what no second one changes"
    await shop.crawl(store, 5, [item("a", options=[("1g", 12, 5)])])
    assert await notice(state="NM", brand="nobody") is None
    full = await shop.ask("/api/changes", params={"state": ["NM", "AZ"]})
    assert (len(full["items"]), full["notice"]) == (1, None)
