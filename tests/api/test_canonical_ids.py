"""Ids of canonical products, brands and locations on rows, filters by them, and merged and split products among changes."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest

from menuwatch.catalog import changes
from menuwatch.catalog.changes import ChangeFilter
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest
from tests.api.shop import Shop, at, item
from tests.matching_rows import add_brand, add_event, add_location, add_product, listing, match

WHO = ("canonical_product_id", "brand_id", "location_id")


@dataclass(frozen=True, kw_only=True)
class World:
    """Two shops (one on two menus), whose `dream` is one product; `haze` is matched to a brandless one, `new` waits."""

    north: int
    north_too: int
    south: int
    brand: int
    old_brand: int
    dream: int
    old_dream: int
    haze: int
    place: int
    old_place: int


@pytest.fixture
async def world(shop: Shop) -> World:
    north, too, south = [await shop.store(slug, state="NM") for slug in ("north", "north-too", "south")]
    for store in (north, too, south):
        for hours, price in ((1, 40), (2, 35)):
            menu = [
                item("dream", "Blue Dream", options=[("1/8oz", price, 5)]),
                item("haze", "Haze"),
                item("new", "New"),
            ]
            await shop.crawl(store, hours, menu)
    async with shop.pool.connection() as conn:
        brand = await add_brand(conn, "Acme")
        old_brand = await add_brand(conn, "Acme Co", merged_into=await add_brand(conn, "Acme LLC", merged_into=brand))
        # The product still names the brand that was merged away.
        dream = await add_product(conn, "Blue Dream", old_brand)
        old_dream = await add_product(conn, "Blu Dream", brand, merged_into=dream)
        haze = await add_product(conn, "Haze")
        place = await add_location(conn, "North", north)
        old_place = await add_location(conn, "North (other)", too, merged_into=place)
        await match(conn, dream, *[await listing(conn, store, "dream") for store in (north, too, south)])
        await match(conn, haze, await listing(conn, south, "haze"))
        await match(conn, None, await listing(conn, south, "new"))
    return World(
        north=north, north_too=too, south=south, brand=brand, old_brand=old_brand, dream=dream, old_dream=old_dream, haze=haze,
        place=place, old_place=old_place,
    )  # fmt: skip


def _expected(world: World, store: int, platform_id: str) -> tuple[int | None, ...]:
    place = world.place if store in (world.north, world.north_too) else None
    if platform_id == "dream":
        return world.dream, world.brand, place
    return (world.haze if (store, platform_id) == (world.south, "haze") else None), None, place


async def test_rows_name_what_they_are_matched_to(shop: Shop, world: World) -> None:
    rows = await shop.walk("/api/products", limit=4)
    assert len(rows) == 9
    for row in rows:
        want = _expected(world, row["dispensary_id"], row["provider_product_id"])
        assert tuple(row[name] for name in WHO) == want
        one = await shop.ask(f"/api/products/{row['id']}")
        assert tuple(one[name] for name in WHO) == want
    for row in await shop.walk("/api/changes"):
        assert tuple(row[name] for name in WHO) == _expected(world, row["dispensary_id"], row["provider_product_id"])
    menu = await shop.ask(f"/api/stores/{world.south}/menu", params={"at": at(2).isoformat()})
    for row in menu["items"]:
        assert tuple(row[name] for name in WHO) == _expected(world, world.south, row["provider_product_id"])


@pytest.mark.parametrize("order", ["name", "price", "-price", "updated"])
async def test_filters_follow_merged_numbers(shop: Shop, world: World, order: str) -> None:
    stores = {getattr(world, name): name for name in ("north", "north_too", "south")}
    cases: list[tuple[dict[str, str], set[tuple[str, str]]]] = [
        ({"canonical_product_id": "dream"}, {("north", "dream"), ("north_too", "dream"), ("south", "dream")}),
        ({"canonical_product_id": "old_dream"}, {("north", "dream"), ("north_too", "dream"), ("south", "dream")}),
        ({"brand_id": "brand"}, {("north", "dream"), ("north_too", "dream"), ("south", "dream")}),
        ({"brand_id": "old_brand", "location_id": "old_place"}, {("north", "dream"), ("north_too", "dream")}),
        ({"location_id": "place", "q": "Haze"}, {("north", "haze"), ("north_too", "haze")}),
        ({"canonical_product_id": "haze", "location_id": "place"}, set()),
    ]
    for params, want in cases:
        query = {name: getattr(world, value, value) for name, value in params.items()} | {"order": order}
        rows = await shop.walk("/api/products", limit=2, **query)
        assert {(stores[row["dispensary_id"]], row["provider_product_id"]) for row in rows} == want, params
        assert len(rows) == len(want), params


async def test_unknown_numbers_match_nothing_and_bad_ones_are_refused(shop: Shop, world: World) -> None:
    for path in ("/api/products", "/api/changes", f"/api/stores/{world.north}/products"):
        for name in WHO:
            assert (await shop.ask(path, params={name: 999_999}))["items"] == []
            assert (await shop.refused(path, 422, params={name: 0}))["errors"][0]["parameter"] == name


async def test_exports_have_the_ids_and_the_tables_they_join(shop: Shop, world: World) -> None:
    async def table(what: ExportTable, **more: Any) -> list[dict[str, Any]]:
        request = ExportRequest(what=what, fmt=Format.JSONL, **more)
        async with (
            shop.pool.connection() as conn,
            export.read_snapshot(conn, request, ParquetPartitions(shop.archive.storage)),
        ):
            text = b"".join([piece async for piece in export.stream(conn, request)])
        return [json.loads(line) for line in text.splitlines()]

    for what in (ExportTable.PRODUCTS, ExportTable.SNAPSHOTS, ExportTable.STATES, ExportTable.CHANGES):
        rows = await table(what)
        assert rows
        for row in rows:
            assert tuple(row[name] for name in WHO) == _expected(
                world, row["dispensary_id"], row["provider_product_id"]
            )
    products = {row["canonical_product_id"]: row for row in await table(ExportTable.CANONICAL_PRODUCTS)}
    assert products.keys() == {world.dream, world.old_dream, world.haze}
    assert products[world.dream]["brand_id"] == world.brand
    assert products[world.old_dream]["merged_into"] == world.dream
    assert (products[world.dream]["listings"], products[world.dream]["stores"]) == (3, 3)
    brands = {row["brand_id"]: row["merged_into"] for row in await table(ExportTable.BRANDS)}
    assert brands[world.brand] is None
    assert brands[world.old_brand] == world.brand
    assert len(brands) == 3
    places = {row["location_id"]: row["merged_into"] for row in await table(ExportTable.LOCATIONS)}
    assert places == {world.place: None, world.old_place: world.place}
    matches = await table(ExportTable.PRODUCT_MATCHES)
    assert len(matches) == 5
    for row in matches:
        assert row["confidence"] == 0.97
        assert row["reasons"] == [{"code": "same_words"}]
        assert row["canonical_product_id"] in products or row["canonical_product_id"] is None
    of_south = await table(ExportTable.CANONICAL_PRODUCTS, stores=[world.south])
    assert {row["canonical_product_id"] for row in of_south} == {world.dream, world.haze}
    assert await table(ExportTable.LOCATIONS, stores=[world.south]) == []


async def _events(shop: Shop, world: World) -> tuple[int, int]:
    """A merge between the crawls of the first and the second hour, and a split after all."""
    async with shop.pool.connection() as conn:
        merged = await add_event(conn, "merged", world.old_dream, world.dream, at=at(1.5))
        split = await add_event(conn, "split", world.dream, world.haze, listings=2, at=at(3))
    return merged, split


async def test_changes_tell_merges_and_splits_in_one_order(shop: Shop, world: World) -> None:
    merged, split = await _events(shop, world)
    every = await shop.walk("/api/changes", limit=100)
    assert [row["type"] for row in every] == ["canonical_product", *["product"] * 3, "canonical_product"]
    assert [row["id"] for row in every if row["type"] == "canonical_product"] == [split, merged]
    times = [row["changed_at"] for row in every]
    assert times == sorted(times, reverse=True)
    for limit in (1, 2, 3):
        assert await shop.walk("/api/changes", limit=limit) == every
    first = every[-1]
    assert {k: first[k] for k in ("kind", "from_name", "name", "brand_id", "brand_name", "listings", "cause")} == {
        "kind": "merged", "from_name": "Blu Dream", "name": "Blue Dream", "brand_id": world.brand, "brand_name": "Acme", "listings": 1,
        "cause": "menu",
    }  # fmt: skip
    assert (first["from_canonical_product_id"], first["canonical_product_id"]) == (world.old_dream, world.dream)


@pytest.mark.parametrize(
    ("params", "want"),
    [
        ({"kind": "merged"}, ["merged"]),
        ({"kind": "split"}, ["split"]),
        ({"kind": "split", "canonical_product_id": "haze"}, ["split"]),
        ({"kind": "merged", "canonical_product_id": "haze"}, []),
        ({"kind": "merged", "brand": "ACME"}, []),
        ({"kind": "merged", "brand": "acme co"}, ["merged"]),
        ({"kind": "merged", "brand_id": "old_brand"}, ["merged"]),
        ({"kind": "split", "category_canon": "edible"}, []),
        ({"kind": "merged", "state": "NM"}, []),
        ({"canonical_product_id": "old_dream"}, ["split", None, None, None, "merged"]),
        ({"canonical_product_id": "dream", "location_id": "old_place"}, [None, None]),
        ({"brand_id": "brand", "percent": 5}, [None, None, None]),
        ({"kind": "price"}, [None, None, None]),
    ],
)
async def test_changes_by_canonical_product(
    shop: Shop, world: World, params: dict[str, Any], want: list[str | None]
) -> None:
    await _events(shop, world)
    query = {name: getattr(world, value) if hasattr(world, str(value)) else value for name, value in params.items()}
    if "brand" in params:
        query["brand"] = params["brand"]
        async with shop.pool.connection() as conn:  # the brand of one name: that it has now, or had
            await conn.execute(
                "UPDATE canonical_products SET brand_id = %s WHERE id = %s", [world.old_brand, world.old_dream]
            )
    rows = await shop.walk("/api/changes", limit=2, **query)
    assert [row.get("kind") for row in rows] == want


async def test_feed_gives_each_event_once_whatever_the_page(shop: Shop, world: World) -> None:
    merged, split = await _events(shop, world)

    async def read(limit: int, cursor: str | None = None) -> tuple[list[Any], str]:
        rows: list[Any] = []
        for _ in itertools.count():
            params = {"limit": limit} | ({"cursor": cursor} if cursor else {})
            page = await shop.ask("/api/changes/feed", params=params)
            rows, cursor = rows + page["items"], page["next"]
            if not page["more"]:
                return rows, cursor
        raise AssertionError

    every, end = await read(100)
    assert sorted(row["id"] for row in every if row["type"] == "canonical_product") == [merged, split]
    assert len(every) == 5
    for limit in (1, 2, 4):
        assert (await read(limit))[0] == every
    # Behind it: a crawl and a merge that come later, in that order.
    await shop.crawl(world.south, 4, [item("dream", "Blue Dream", options=[("1/8oz", 20, 5)]), item("haze", "Haze")])
    async with shop.pool.connection() as conn:
        late = await add_event(conn, "merged", world.haze, world.dream, at=at(0))
    later, end = await read(1, end)
    assert [row.get("id", row.get("provider_product_id")) for row in later] == ["dream", late]
    assert (await read(1, end))[0] == []


async def test_brand_with_many_listings_reads_the_same_changes(
    shop: Shop, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a number of listings all changes are scanned instead of each listing's."""
    where = ChangeFilter(brand_ids=[world.brand])
    async with shop.pool.connection() as conn:
        few = await changes.list_changes(conn, where)
        monkeypatch.setattr(changes, "_FEW", 2)
        many = await changes.list_changes(conn, where)
    assert len(few.items) == 3
    assert many.items == few.items


async def test_changes_of_a_kind_export_as_that_kind(shop: Shop, world: World) -> None:
    merged, split = await _events(shop, world)
    archived = ParquetPartitions(shop.archive.storage)

    async def rows(where: ChangeFilter) -> list[dict[str, Any]]:
        async with shop.pool.connection() as conn:
            request = export.changes_of(await changes.resolve(conn, where), Format.JSONL)
            async with export.read_snapshot(conn, request, archived):
                text = b"".join([piece async for piece in export.stream(conn, request)])
        return [json.loads(line) for line in text.splitlines()]

    assert [row["id"] for row in await rows(ChangeFilter(kind=changes.Kind.MERGED))] == [merged]
    assert [
        row["id"] for row in await rows(ChangeFilter(kind=changes.Kind.SPLIT, canonical_products=[world.haze]))
    ] == [split]
    assert await rows(ChangeFilter(kind=changes.Kind.SPLIT, stores=[world.south])) == []
    only = await rows(ChangeFilter(canonical_products=[world.old_dream], locations=[world.old_place]))
    assert {row["dispensary_id"] for row in only} == {world.north, world.north_too}
    assert len(only) == 2


async def test_newest_changes_export_in_the_order_of_the_list(shop: Shop, world: World) -> None:
    merged, split = await _events(shop, world)
    async with shop.pool.connection() as conn:
        listed = (await changes.list_changes(conn, ChangeFilter(), limit=100)).items
        for where, expected in (
            (ChangeFilter(), [one.product_id for one in listed if isinstance(one, changes.Change)]),
            (ChangeFilter(kind=changes.Kind.MERGED), [merged]),
            (ChangeFilter(kind=changes.Kind.SPLIT), [split]),
        ):
            for limit in (None, 1, 2):
                request = export.changes_of(where, Format.JSONL, newest_first=True, limit=limit)
                async with export.read_snapshot(conn, request, ParquetPartitions(shop.archive.storage)):
                    text = b"".join([piece async for piece in export.stream(conn, request)])
                rows = [json.loads(line) for line in text.splitlines()]
                assert [row["id"] if "id" in row else row["product_id"] for row in rows] == expected[:limit]
