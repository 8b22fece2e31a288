"""`menuwatch history show`, `products` and `changes` as a person runs them, on the story of one store."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from tests.api.shop import START, Shop, at, item
from tests.commands import menuwatch

Run = Callable[..., Awaitable[subprocess.CompletedProcess[str]]]
MONTH = 24 * 31
"""Hours."""


CHANGE_HEADER = (
    "changed_at,product_id,dispensary_id,store,state,provider,provider_product_id,name,brand_name,category_canon,price_changed,"
    "stock_changed,present,price_rec_before,price_rec_after,price_rec_special_before,price_rec_special_after,price_med_before,"
    "price_med_after,price_med_special_before,price_med_special_after,stock_status_before,stock_status_after,quantity_before,"
    "quantity_after,prices_before,prices_after,stock_before,stock_after,canonical_product_id,brand_id,location_id"
)
"""Of every CSV file of changes, whatever makes it."""
MATCH_EVENT_HEADER = "id,at,kind,from_canonical_product_id,from_name,canonical_product_id,name,listings,cause"


@pytest.fixture
def run(database_url: str, tmp_path: Path) -> Run:
    env = {
        **os.environ,
        "DATABASE_URL": database_url,
        "MENUWATCH_HOME": str(tmp_path),
        "STORAGE_PATH": str(tmp_path / "storage"),
    }

    async def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = await asyncio.to_thread(menuwatch, *words, env=env)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    return run


async def _story(shop: Shop) -> None:
    """`a` costs 10, 8 and 12, an hour and then a month apart; `b` is sold out at last."""
    store = await shop.store(state="AZ")
    await shop.store("empty", state="NV")
    for hours, price, left in ((0, 10, 5), (1, 8, 5), (MONTH, 12, 0)):
        await shop.execute("SELECT ensure_product_history_partition(%s)", [at(hours)])
        await shop.crawl(store, hours, [
            item("a", "Aye", options=[("1g", price, 7)]),
            item("b", "Bee", options=[("1g", 20, left)], brandName="Other", type="Edible"),
        ])  # fmt: skip


async def test_a_product_from_its_number_to_its_history(shop: Shop, run: Run, tmp_path: Path) -> None:
    await _story(shop)
    listed = json.loads((await run("products", "--format", "json")).stdout)
    (number,) = [row["id"] for row in listed if row["name"] == "Aye"]
    assert {row["local_image_path"] for row in listed} == {None}
    assert next(csv.reader((await run("products", "--format", "csv")).stdout.splitlines()))[0] == "id"
    assert (await run("products")).stdout.split()[0] == "#"
    shown = json.loads((await run("history", "show", str(number), "--json")).stdout)
    assert (shown["product"]["id"], shown["product"]["name"]) == (number, "Aye")
    assert [state["price"] for state in shown["items"]] == [12, 8, 10]
    assert shown["items"][0]["to"] is None
    assert "unobserved" in {gap["reason"] for gap in shown["gaps"]}, "nobody looked for a month"
    async with shop.pool.connection() as conn:
        april = START.replace(month=4, day=1, hour=0)
        packed = await packing.pack(conn, ParquetPartitions(tmp_path / "storage"), april, now=at(3 * MONTH))
    assert sum(month.states for month in packed) > 0
    assert json.loads((await run("history", "show", str(number), "--json")).stdout)["items"] == shown["items"]
    rows = list(csv.DictReader((await run("history", "show", str(number), "--format", "csv")).stdout.splitlines()))
    assert [row["price"].rstrip("0").rstrip(".") for row in rows if row["what"] == "state"] == ["12", "8", "1"]
    assert [row["from"] for row in rows] == sorted((row["from"] for row in rows), reverse=True)
    table = (await run("history", "show", str(number), "--limit", "1")).stdout
    assert [text in table for text in ("Aye", "12.00", "8.00")] == [True, True, False]
    since = json.loads((await run("history", "show", str(number), "--since", "2026-03-20", "--json")).stdout)
    assert [state["price"] for state in since["items"]] == [12, 8], "8 was in force until the next crawl"
    assert "product 999 does not exist" in (await run("history", "show", "999", code=2)).stderr


async def test_lists_are_narrowed(shop: Shop, run: Run) -> None:
    await _story(shop)

    async def names(*words: str) -> list[str]:
        return [row["name"] for row in json.loads((await run(*words, "--format", "json")).stdout)]

    assert await names("products", "--state", "az", "--platform", "dutchie") == ["Aye", "Bee"]
    assert await names("products", "--state", "NV") == []
    assert await names("products", "--platform", "weedmaps") == []
    assert await names("products", "--brand", "ACME") == ["Aye"]
    assert await names("products", "--stock", "oos") == ["Bee"]
    assert "--platform nowhere: unknown platform" in (await run("products", "--platform", "nowhere", code=2)).stderr
    assert sorted(await names("changes")) == ["Aye", "Aye", "Bee"]
    assert await names("changes", "--kind", "price_drop") == ["Aye"]
    assert await names("changes", "--kind", "out_of_stock", "--state", "AZ") == ["Bee"]
    assert await names("changes", "--brand", "other") == ["Bee"]
    assert await names("changes", "--category-canon", "flower") == ["Aye", "Aye"]
    assert await names("changes", "--state", "NV") == []
    for words in (
        ("changes", "--since"), ("products", "--new-since"), ("products", "--gone-since"), ("products", "--updated-since"),
        ("stores", "list", "--updated-since"), ("export", "changes", "-", "--since"), ("visitors", "days", "--since"),
    ):  # fmt: skip
        refused = await run(*words, "2130-01-01", code=2)
        assert f"{words[-1]} '2130-01-01' is in the future: give a time no later than now, 20" in refused.stderr, words


async def test_changes_have_one_form_as_csv(shop: Shop, run: Run) -> None:
    await _story(shop)
    header, *listed = (await run("changes", "--csv")).stdout.splitlines()
    exported = (await run("export", "changes", "-", "--format", "csv")).stdout.splitlines()
    assert exported[0] == header == CHANGE_HEADER
    assert sorted(exported[1:]) == sorted(listed)
    names = (
        "name",
        "changed_at",
        "price_rec_before",
        "price_rec_after",
        "quantity_before",
        "quantity_after",
        "stock_status_after",
    )
    rows = [[row[name] for name in names] for row in csv.DictReader([header, *listed])]
    first, last = (f"{at(hours):%Y-%m-%dT%H:%M:%S.000000Z}" for hours in (1, MONTH))
    assert rows == [
        ["Bee", last, "20", "20", "5", "0", "oos"],
        ["Aye", last, "8", "12", "7", "7", "in_stock"],
        ["Aye", first, "10", "8", "7", "7", "in_stock"],
    ]
    assert (await run("changes", "--csv", "--limit", "2")).stdout.splitlines() == [header, *listed[:2]]
    assert (await run("changes", "--format", "csv", "--kind", "price_drop")).stdout.splitlines() == [header, listed[2]]
    assert (await run("changes", "--csv", "--limit", "2")).stderr == ""
    for words, heading, note in (
        (("--state", "NV"), header, "No changes yet: a store must be crawled twice first."),
        (("--state", "TX"), header, "No known stores: Texas."),
        (("--brand", "nobody"), header, "No matching changes."),
        (("--kind", "merged"), MATCH_EVENT_HEADER, "No matching changes."),
    ):
        empty = await run("changes", "--csv", *words)
        assert (empty.stdout.splitlines(), empty.stderr.splitlines()) == ([heading], [note])
        assert (await run("changes", *words)).stderr.splitlines() == [note], "the table says the same"


async def test_changes_before_a_second_crawl_say_why_there_are_none(shop: Shop, run: Run) -> None:
    await shop.crawl(await shop.store(state="AZ"), 0, [item("a", options=[("1g", 10, 7)])])
    empty = await run("changes", "--csv")
    assert empty.stdout.splitlines() == [CHANGE_HEADER]
    assert empty.stderr.splitlines() == ["No changes yet: a store must be crawled twice first."]
