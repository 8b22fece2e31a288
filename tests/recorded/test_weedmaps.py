"""Recorded Weedmaps answers beside the menus of New Mexico: a live menu, and listings as discovery stores them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from psycopg.rows import dict_row

from menuwatch.db.pool import Pool
from menuwatch.pipeline.context import HandlerContext, store_details
from menuwatch.pipeline.replay import replay
from menuwatch.platforms.weedmaps.adapter import found_store, read_stores
from menuwatch.stores import store as stores
from tests.recorded import stored, weedmaps_live
from tests.recorded.plain import read
from tests.recorded.test_recorded_menus import recording


async def test_the_live_menu(parts: HandlerContext, recorded: Path) -> None:
    path = recording(recorded, "weedmaps/ca_discovery_v1_menu_2021.json")
    raw = read(path.read_bytes())["data"]["menu_items"]
    (done,) = (await replay(parts, None, [path], store="a-delivery", state="CA")).menus
    assert (done.counts["new"], done.part, done.warnings) == (24, "24 of 40 products", ())
    (products,) = (await stored.products(parts.pool)).values()
    assert products.keys() == {str(item["id"]) for item in raw}
    for item in raw:
        assert stored.differences(weedmaps_live.product(item), products[str(item["id"])]) == {}, item["id"]
    (again,) = (await replay(parts, None, [path], store="a-delivery")).menus
    assert again.counts["unchanged"] == 24


async def test_all_listings_of_new_mexico_become_stores(pool: Pool, recorded: Path) -> None:
    lines = recording(recorded, "market/nm_weedmaps_listings.jsonl").read_bytes().splitlines()
    listings = {str(one["id"]): one for one in map(json.loads, lines)}
    assert len(listings) == 311
    body = b'{"meta":{"total_listings":311},"data":{"listings":[%b]}}' % b",".join(lines)
    found = [found_store(record) for record in read_stores(body)]
    async with pool.connection() as conn:
        for store in found:
            assert store.problem is None
            await stores.promote(conn, "weedmaps", store_details(store))
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute("SELECT * FROM dispensaries")
            rows = {row["platform_dispensary_id"]: row for row in await cursor.fetchall()}
    assert rows.keys() == listings.keys()
    for number, row in rows.items():
        listing = listings[number]
        assert (row["state"], row["slug"], row["name_raw"], row["name"]) == (
            "NM", listing["slug"], listing["name"], " ".join(listing["name"].split()),
        )  # fmt: skip
        assert (row["latitude"], row["longitude"], row["timezone"]) == (
            listing["latitude"], listing["longitude"], listing["timezone"],
        )  # fmt: skip
        for column, field in (
            ("address", "address"),
            ("city", "city"),
            ("zipcode", "zip_code"),
            ("phone", "phone_number"),
        ):
            assert (row[column] or "") == " ".join(listing[field].split()), (number, column)
        assert row["menu_url"] == listing["web_url"]
        sold_to = {"hybrid": (True, True), "recreational": (True, False), "medical": (False, True)}
        assert (row["is_recreational"], row["is_medical"]) == sold_to[listing["license_type"]]
    kept = found_store(msgspec.Raw(lines[0])).raw
    assert (kept["wmid"], kept["menu_id"]) == (190303269, 190303269)
