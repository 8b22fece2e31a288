"""Searches that shoppers type, on the recorded menus of New Mexico.

What a search means is a condition in SQL on what menus write, made by reading them and not by the search. A search succeeds if at
least three of its first five products are meant and at least 70 % of what is meant is found; of fewer than three, all of them.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from menuwatch.db.pool import open_pool
from menuwatch.site.search_query import SearchQuery
from menuwatch.storefront.indexer import index_all_stores
from menuwatch.storefront.search import find_city, find_stores_named, search
from menuwatch.storefront.search_text import cities
from tests.recorded.matching_truth import DATA
from tests.recorded.new_mexico import Market

LEAST = 37
LEAST_FURTHER = 98
"""Searches that succeed. Raise them with the search, never lower them."""
FURTHER = Path(__file__).with_name("shopper_queries.tsv")
"""A hundred further searches, with what they mean."""

_EIGHTH = "o.size = '3.5 g' AND p.category_canon = 'flower'"
_OUNCE = "o.size = '28 g'"
_GUMMIES = r"t ~ '\mgumm(y|ies)'"
_CARTS = r"t ~ '\mcart(ridge)?s?\M' AND t !~ '\m(battery|batteries|case|holder|empty)\M'"

MEANT = {
    "wyld": r"t ~ '\mwyld\M'",
    "stiiizy": "t ~ 'stiiizy'",
    "ghost 2g vape": r"t ~ '\mghost\M' AND p.category_canon = 'vaporizer' AND o.size = '2 g'",
    "elevated rx": r"t ~ '\melevated rx\M'",
    "wana": r"t ~ '\mwana\M'",
    "blue dream": r"t ~ '\mblue dream\M'",
    "wedding cake": r"t ~ '\mwedding cake\M'",
    "runtz": r"t ~ '\mruntz\M'",
    "og kush": r"t ~ '\mog kush\M'",
    "sour diesel": r"t ~ '\msour diesel\M'",
    "gorilla glue": r"t ~ '\m(gorilla glue|gg ?#?4)\M'",
    "gsc": r"t ~ '\m(gsc|girl scout cookies)\M'",
    "gdp": r"t ~ '\m(gdp|grand ?daddy purple?)\M'",
    "jack herrer": r"t ~ '\mjack herer\M'",
    "gelatto": r"t ~ '\mgelato'",
    "stizzy": "t ~ 'stiiizy'",
    "wld gummies": rf"t ~ '\mwyld\M' AND {_GUMMIES}",
    "bluedream": r"t ~ '\mblue ?dream\M'",
    "chem dawg": r"t ~ '\mchem ?dawg'",
    "edibles": "p.category_canon = 'edible'",
    "prerolls": "p.category_canon = 'preroll'",
    "vapes": "p.category_canon = 'vaporizer'",
    "carts": _CARTS,
    "gummy": _GUMMIES,
    "tinctures": "p.category_canon = 'tincture'",
    "3.5g flower": _EIGHTH,
    "half ounce": "o.size = '14 g'",
    "eighth": "o.size = '3.5 g'",
    "ounce of flower": f"{_OUNCE} AND p.category_canon = 'flower'",
    "28g": _OUNCE,
    "gummies 100mg": rf"{_GUMMIES} AND o.size = '100 mg'",
    "100 mg gummies": rf"{_GUMMIES} AND o.size = '100 mg'",
    "sativa vape": "p.category_canon = 'vaporizer' AND p.strain_canon IN ('sativa', 'sativa_hybrid')",
    "sleep gummies": rf"{_GUMMIES} AND t ~ '\m(sleep|cbn)\M'",
    "cbd tincture": r"p.category_canon = 'tincture' AND t ~ '\mcbd\M'",
    "cheap live resin": r"t ~ '\m(live resin|lr|llr)\M'",
    "edible under $10": "p.category_canon = 'edible' AND o.price <= 1000",
}
"""The searches of the review that are for products."""

_ITEMS = """
SELECT DISTINCT o.item_id FROM storefront_offers o JOIN catalog_products p ON p.id = o.product_id,
       lower(concat_ws(' ', p.brand_name_raw, p.name_raw)) t WHERE """


async def _succeeds(conn: AsyncConnection[Any], typed: str, meant: str) -> tuple[bool, str]:
    rows = await (await conn.execute(_ITEMS + meant)).fetchall()
    truth = {row[0] for row in rows}
    asked = SearchQuery(q=typed).understood()
    results = await search(conn, asked.request(), order=asked.sort, limit=4_000)
    found = [item.id for item in results.items]
    first = len(truth & set(found[:5]))
    share = len(truth & set(found)) / len(truth) if truth else 0.0
    success = bool(truth) and (first >= 3 if len(truth) >= 3 else truth <= set(found)) and share >= 0.7
    return success, f"{typed}: {first} of the first five, {share:.0%} of {len(truth)}, {len(found)} found"


@pytest.mark.slow
async def test_searches_find_what_they_mean(new_mexico: Market) -> None:
    with (DATA / "market" / "nm_weedmaps_listings.jsonl").open(encoding="utf-8") as lines:
        listings = [json.loads(line) for line in lines]
    async with open_pool(new_mexico.url) as pool, pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET crawl_enabled = true")
        for one in listings:
            await conn.execute("UPDATE dispensaries SET city = %s WHERE slug = %s", [one["city"], one["slug"]])
        await conn.commit()
        await index_all_stores(pool)
        judged = {typed: await _succeeds(conn, typed, meant) for typed, meant in MEANT.items()}
        for typed, rest in (("albuquerque", ""), ("gummies las cruces", "gummies"), ("Hobbs", "")):
            rests = dict(cities(typed))
            city = await find_city(conn, list(rests))
            assert city is not None, typed
            assert rests[city["name"]] == rest
        assert all("purlife" in row["name"] for row in await find_stores_named(conn, "purlife"))
        assert await find_stores_named(conn, "purlife")
        with FURTHER.open(encoding="utf-8", newline="") as file:
            further = [
                await _succeeds(conn, row["query"], row["meant"]) for row in csv.DictReader(file, delimiter="\t")
            ]
    for found, least in ((list(judged.values()), LEAST), (further, LEAST_FURTHER)):
        failed = [said for success, said in found if not success]
        assert len(found) - len(failed) >= least, failed
