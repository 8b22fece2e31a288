"""Amounts of stores in two countries: each figure is of one currency, and all states together have a row for each."""

from __future__ import annotations

import asyncio
import csv
import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from menuwatch.analytics.refresh import refresh
from tests.api.shop import Shop, at, item
from tests.commands import run_here
from tests.matching_rows import add_brand, add_product, listing, match

PRICES = {"AZ": (10, 14, 12), "ON": (30, 20, 21)}
"""What one gram costs at three stores of each state."""
NEVER_CRAWLED = ("NM", "QC", "BC")


@pytest.fixture
async def kush(shop: Shop) -> int:
    """A product at three stores in Arizona and three in Ontario; of three further stores no menu is known."""
    stores = {}
    for state, prices in PRICES.items():
        for n, price in enumerate(prices):
            store = stores[state, n] = await shop.store(f"{state.lower()}-{n}", state=state)
            await shop.crawl(store, 1, [item("k", "Kush", options=[("1g", price, 5)], type="Flower")])
    for state in NEVER_CRAWLED:
        await shop.store(f"none-{state.lower()}", state=state)
    async with shop.pool.connection() as conn:
        number = await add_product(conn, "Kush", await add_brand(conn, "Acme"))
        await match(conn, number, *[await listing(conn, store, "k") for store in stores.values()])
    await refresh(shop.pool, window=timedelta(days=1), now=at(2))
    return number


def _parts(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


async def test_price_per_gram_of_all_states(shop: Shop, kush: int) -> None:
    american, canadian = await shop.walk("/api/analytics/price-per-gram", state="all", category="flower")
    # Of 10, 12 and 14 the 10th percentile is a fifth of the way from 10 to 12, and the 90th four fifths of that from 12 to 14.
    paid = {"n": 3, "p10": 10.4, "median": 12, "p90": 13.6, "mean": 12}
    assert (american["currency"], american["effective"], american["products"]) == ("USD", paid, 3)
    # 20, 21 and 30: 20 + 0.2 x 1, and 21 + 0.8 x 9.
    paid = {"n": 3, "p10": 20.2, "median": 21, "p90": 28.2, "mean": 23.6667}
    assert (canadian["currency"], canadian["effective"], canadian["products"]) == ("CAD", paid, 3)
    # Of each currency there are three stores with a menu; one store without in New Mexico, and two in Canada.
    counts = [_parts(row["coverage"], "stores", "known_stores") for row in (american, canadian)]
    assert counts == [(3, 4), (3, 5)]
    rows = await shop.walk("/api/analytics/price-per-gram", category="flower")
    assert [_parts(row, "all_states", "state", "currency") for row in rows] == [
        (True, None, "USD"), (True, None, "CAD"), (False, "AZ", "USD"), (False, "ON", "CAD"),
    ]  # fmt: skip
    async with shop.pool.connection() as conn:
        view = await conn.execute(
            "SELECT currency, effective_median::float8 FROM analyst.report_price_per_gram WHERE all_states AND category = 'flower'"
        )
        assert set(await view.fetchall()) == {("USD", 12.0), ("CAD", 21.0)}


async def test_dispersion_and_gaps_of_all_states(shop: Shop, kush: int) -> None:
    names = ("currency", "locations", "min", "median", "max", "cheapest_store", "dearest_store")
    canadian = ("CAD", 3, 20, 21, 30, "On-1", "On-0")
    american = ("USD", 3, 10, 12, 14, "Az-0", "Az-1")
    spread = await shop.walk("/api/analytics/price-dispersion", state="all", limit=1)
    assert [_parts(row, *names) for row in spread] == [american, canadian]
    # 30 is one and a half times 20; 14 is 1.4 times 10.
    gaps = await shop.walk("/api/analytics/widest-gaps", state="all", limit=1)
    assert [_parts(row, *names, "ratio") for row in gaps] == [(*canadian, 1.5), (*american, 1.4)]


async def test_sizes_of_a_canonical_product(shop: Shop, kush: int) -> None:
    found = await shop.ask(f"/api/canonical-products/{kush}")
    sizes = {row["currency"]: _parts(row, "size", "locations", "min", "median", "max") for row in found["sizes"]}
    assert sizes == {"USD": ("1 g", 3, 10, 12, 14), "CAD": ("1 g", 3, 20, 21, 30)}
    # The first quartiles are 11 and 20.50.
    cheap = [(row["currency"], row["price"]) for row in found["offers"] if row["cheapest_quarter"]]
    assert cheap == [("USD", 10), ("CAD", 20)]


async def test_commands_say_the_currency(
    shop: Shop, kush: int, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))

    async def run(*words: str) -> str:
        shown = await asyncio.to_thread(lambda: run_here(["analytics", *words]))
        return shown.stdout

    prices = [line.split() for line in (await run("price-per-gram", "--state", "all")).splitlines()[1:]]
    assert [line[:2] + line[5:10] for line in prices] == [
        ["all", "flower", "$12.00", "$10.40", "$12.00", "$13.60", "$12.00"],
        ["all", "flower", "CA$21.00", "CA$20.20", "CA$21.00", "CA$28.20", "CA$23.67"],
    ]
    gaps = (await run("widest-gaps", "--state", "all")).splitlines()
    assert ("CA$20.00" in gaps[1], "CA$10.00" in gaps[1]) == (True, True), "the lowest price and the gap"
    assert ("$10.00" in gaps[2], "$4.00" in gaps[2], "CA$" in gaps[2]) == (True, True, False)
    lowest = await run("lowest-prices", "--canonical-product", str(kush))
    assert ("$10.00" in lowest, "CA$20.00" in lowest) == (True, True)
    rows = csv.DictReader(io.StringIO(await run("price-per-gram", "--state", "all", "--csv")))
    assert [(row["currency"], row["effective_median"]) for row in rows] == [
        ("USD", "12.0000"),
        ("CAD", "21.0000"),
    ]
