"""The recorded market of New Mexico: prices per gram and brands against the recording itself, read by hand."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from menuwatch.analytics import service as analytics
from menuwatch.analytics.refresh import refresh
from menuwatch.analytics.service import Report, ReportFilter
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import replay
from tests.analytics.reference_stats import plausible, spread
from tests.recorded import weedmaps
from tests.recorded.conftest import parts
from tests.recorded.plain import read
from tests.recorded.test_recorded_menus import menus_in, recording

__all__ = ["parts"]


def _offered(product: dict[str, Any]) -> list[dict[str, Any]]:
    if product["stock_status"] == "oos":
        return []
    return [one for one in product["variants"] if one["stock_status"] != "oos"]


def _price(option: dict[str, Any], *names: str) -> Decimal | None:
    return next((option[name] for name in names if option[name] is not None), None)


@pytest.mark.slow
async def test_prices_per_gram_and_brands(parts: HandlerContext, recorded: Path) -> None:
    """It takes its seconds: 84 menus are taken in first."""
    path = recording(recorded, "weedmaps/nm_menus_2024-05.tar.gz")
    await replay(parts, None, [path])
    await refresh(parts.pool, window=timedelta(days=1))

    goods: dict[tuple[str, str], dict[str, Any]] = {}
    partial: set[str] = set()
    for menu in menus_in(path).values():
        for item in menu["data"]:
            goods[str(item["relationships"]["listing"]["data"]["id"]), str(item["id"])] = weedmaps.product(item)
            if len(menu["data"]) < menu["meta"]["total"]:
                partial.add(str(item["relationships"]["listing"]["data"]["id"]))
    assert len(goods) == 7117
    priced: dict[Any, list[tuple[Fraction, Fraction, str]]] = defaultdict(list)
    stores: dict[Any, set[str]] = defaultdict(set)
    brands: dict[Any, int] = defaultdict(int)
    having: dict[Any, set[str]] = defaultdict(set)
    categories: dict[Any, int] = defaultdict(int)
    selling: dict[Any, set[str]] = defaultdict(set)
    for (store, _), product in goods.items():
        brand = product["brand_name"].lower() if product["brand_name"] else None
        brands[brand] += 1
        having[brand].add(store)
        categories[product["category_canon"]] += 1
        selling[product["category_canon"]].add(store)
        for option in _offered(product):
            whole, pay = (
                _price(option, "price_rec", "price_med"),
                _price(option, "special_rec", "price_rec", "special_med", "price_med"),
            )
            if option["weight_g"] and pay:
                assert whole, "whatever is reduced has a regular price"
                grams = Fraction(option["weight_g"])
                priced[product["category_canon"]].append((Fraction(whole) / grams, Fraction(pay) / grams, store))
    regular: dict[Any, list[Fraction]] = defaultdict(list)
    paid: dict[Any, list[Fraction]] = defaultdict(list)
    for category, values in priced.items():
        by_weight = category in ("flower", "preroll", "vaporizer", "concentrate")
        fits = plausible([pay for _, pay, _ in values] if by_weight else [])
        for whole, pay, store in values:
            if fits(pay):
                regular[category].append(whole)
                paid[category].append(pay)
                stores[category].add(store)

    async with parts.pool.connection() as conn:
        prices = await analytics.read_report(conn, Report.PRICES, ReportFilter(state="all"), limit=200)
        kinds = await analytics.read_report(conn, Report.CATEGORIES, ReportFilter(state="all"), limit=200)
        shares = await analytics.read_report(conn, Report.BRANDS, ReportFilter(state="all"), limit=100_000)
        (whole,) = (await analytics.read_report(conn, Report.COVERAGE, ReportFilter(state="all"))).rows
        found = {
            row.category: {name: read(bytes(getattr(row, name))) for name in ("regular", "effective", "coverage")}
            for row in prices.rows
        }
    assert paid.keys() <= found.keys()
    left_out = {row.category: row.implausible for row in prices.rows}
    assert left_out == {one: len(priced[one]) - len(paid[one]) for one in found}
    assert sum(len(values) for values in paid.values()) > 2000
    for category, row in found.items():
        for name, values in (("regular", regular[category]), ("effective", paid[category])):
            told = {key: None if one is None else float(one) for key, one in row[name].items()}
            assert told == spread(values), (category, name)
        assert (row["coverage"]["stores"], row["coverage"]["known_stores"]) == (len(stores[category]), 84)
        assert row["coverage"]["share"] is None, "nobody schedules a recording"
        assert row["coverage"]["partial"] == len(stores[category] & partial), category
    covered = read(bytes(whole.coverage))
    assert (covered["stores"], covered["partial"], covered["scheduled"]) == (84, len(partial), 0)
    assert len(partial) == 63
    listed = {row.brand.lower() if row.brand else None: row for row in shares.rows}
    assert {brand: row.products for brand, row in listed.items()} == brands
    for brand, row in listed.items():
        assert float(row.share) == pytest.approx(brands[brand] / 7117, abs=1e-6)
        assert float(row.store_share) == pytest.approx(len(having[brand]) / 84, abs=1e-6)
    assert {row.category: row.products for row in kinds.rows} == categories
    assert sum(row.share for row in kinds.rows) == pytest.approx(1, abs=1e-4)
    for row in kinds.rows:
        assert float(row.share) == pytest.approx(categories[row.category] / 7117, abs=1e-6)
        assert float(row.store_share) == pytest.approx(len(selling[row.category]) / 84, abs=1e-6)
