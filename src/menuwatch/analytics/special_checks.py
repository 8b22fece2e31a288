"""Checks specials: whether the store really charged the regular price, and how much of the stated saving is real.

- **Special.** The cheapest option of a size on offer, if it costs less than its regular price.
- **Observed.** The time of the last 90 days in which the size could be bought and the store was observed.
- **Usual price.** The median price over the observed time, specials included: for half of it the size cost this or less. Not stated if
  observed for less than LEAST_DAYS.
- **Score.** How much of the stated saving is real, measured against the usual price: 100 x (usual - price) / (regular - price), from 0
  to 100. A special that lasts for more than half of the time is the usual price and has 0. Null without a usual price.
- **Verdict.** `genuine`: the regular price, or more, was charged within 90 days (catalog/asked_prices.py: the rule of the public
  site). `doubtful`: the same, with a score below DOUBTFUL. `never_asked`: it was not charged. `unknown`: it was not charged, and the
  size was observed for less than LEAST_DAYS.

Stores are checked before the reports of a refresh, those whose check is oldest first, a few in each transaction. A large
installation may take several refreshes for all stores; `checked_at` says when a row was checked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from menuwatch.catalog.asked_prices import (
    WINDOW,
    Asked,
    SpecialPast,
    asked_prices,
    past_of_special,
    usual_price,
    while_observed,
)
from menuwatch.catalog.history import (
    OptionPrice,
    PriceSpan,
    Unobserved,
    list_price_spans,
    list_unobserved,
    read_option_prices,
)
from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all

_q = sql.load(__package__, "special_checks.sql")
_variants = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode

LEAST_DAYS = 30
"""Observed days below which nothing is said of a price that was not asked."""
DOUBTFUL = 50
"""Score below which a special is doubtful."""
_SECONDS = 60.0
"""Time after which a refresh begins no further store."""
_STORES_AT_ONCE = 10
"""Stores of one transaction."""
_PRODUCTS_AT_ONCE = 2_000
"""Products whose history is read at once."""


class SpecialVerdict(StrEnum):
    """What the history says of a special."""

    GENUINE = "genuine"
    DOUBTFUL = "doubtful"
    NEVER_ASKED = "never_asked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSpecial:
    """The result for one special. Prices in cents."""

    verdict: SpecialVerdict
    score: int | None
    usual: int | None
    observed_days: float
    past: SpecialPast


def judge(asked: Sequence[Asked], price: int, regular: int, now: datetime) -> CheckedSpecial:
    """The check of a special, from the prices charged in the last 90 days while the store was observed. Pure."""
    usual, observed = usual_price(asked)
    days = observed.total_seconds() / 86_400
    past = past_of_special(asked, price, regular, now)
    if days < LEAST_DAYS:
        usual = None
    score = None if usual is None else min(100, max(0, round(100 * (usual - price) / (regular - price))))
    if past.regular_until is not None and past.regular_until > now - WINDOW:
        verdict = SpecialVerdict.DOUBTFUL if score is not None and score < DOUBTFUL else SpecialVerdict.GENUINE
    else:
        verdict = SpecialVerdict.NEVER_ASKED if days >= LEAST_DAYS else SpecialVerdict.UNKNOWN
    return CheckedSpecial(verdict=verdict, score=score, usual=usual, observed_days=days, past=past)


async def check_specials(conn: Connection, now: datetime, *, seconds: float = _SECONDS) -> int:
    """Checks the specials of stores for about that long; returns how many specials were checked. The caller holds the lock of the
    refresh."""
    began, checked = time.monotonic(), 0
    await conn.execute(_q.remove_gone)
    stores = [row["id"] for row in await fetch_all(conn, _q.stores, {})]
    for start in range(0, len(stores), _STORES_AT_ONCE):
        if time.monotonic() - began > seconds:
            break
        async with conn.transaction():
            checked += await _check_stores(conn, stores[start : start + _STORES_AT_ONCE], now)
    return checked


async def _check_stores(conn: Connection, stores: Sequence[int], now: datetime) -> int:
    products = await fetch_all(conn, _q.products, {"stores": stores})
    gaps: dict[int, list[Unobserved]] = {}
    for gap in await list_unobserved(conn, stores, now - WINDOW, now):
        gaps.setdefault(gap.store_id, []).append(gap)
    rows: list[dict[str, Any]] = []
    for start in range(0, len(products), _PRODUCTS_AT_ONCE):
        rows += await _check_products(conn, products[start : start + _PRODUCTS_AT_ONCE], gaps, now)
    await conn.execute(_q.put, {"stores": stores, "now": now, "rows": _encode(rows).decode()})
    return len(rows)


async def _check_products(
    conn: Connection, products: Sequence[Row], gaps: Mapping[int, Sequence[Unobserved]], now: datetime
) -> list[dict[str, Any]]:
    variants = {product["id"]: _variants(product["variants"]) for product in products}
    found = {product["id"]: find_specials(variants[product["id"]], product["prices"]) for product in products}
    spans: dict[int, list[PriceSpan]] = {}
    for span in await list_price_spans(
        conn, [number for number, specials in found.items() if specials], now - WINDOW, now
    ):
        spans.setdefault(span.product_id, []).append(span)
    rows = []
    for product in products:
        store_id = product["dispensary_id"]
        sizes = {str(one.get("option", "")): size_of(one) or "" for one in variants[product["id"]]}
        for size, special in found[product["id"]].items():
            asked = asked_prices(spans.get(product["id"], ()), sizes, size)
            observed = list(while_observed(asked, gaps.get(store_id, ()), now - WINDOW, now))
            rows.append({"dispensary_id": store_id, **_row(product["id"], size, special, observed, now)})
    return rows


def find_specials(variants: Iterable[Mapping[str, Any]], prices: msgspec.Raw) -> dict[str, OptionPrice]:
    """The cheapest option of each size that can be bought, if it is on special. Pure."""
    sizes: dict[str, str] = {}
    stock: dict[str, str] = {}
    for one in variants:
        name = str(one.get("option", ""))
        sizes[name], stock[name] = size_of(one) or "", one.get("stock_status", "unknown")
    best: dict[str, OptionPrice] = {}
    for option in read_option_prices(prices, stock):
        if option.price and option.in_stock is not False:
            size = sizes.get(option.option, "")
            if size not in best or option.price < (best[size].price or 0):
                best[size] = option
    return {size: option for size, option in best.items() if option.regular is not None}


def _row(product_id: int, size: str, special: OptionPrice, asked: Sequence[Asked], now: datetime) -> dict[str, Any]:
    assert special.price is not None, "a special has both prices"
    assert special.regular is not None, "a special has both prices"
    found = judge(asked, round(special.price * 100), round(special.regular * 100), now)
    return {
        "product_id": product_id,
        "size": size,
        "price": special.price,
        "regular": special.regular,
        "verdict": found.verdict,
        "score": found.score,
        "usual": None if found.usual is None else Decimal(found.usual) / 100,
        "observed_days": round(found.observed_days, 2),
        "began_at": found.past.began,
        "observed_from": found.past.observed_from,
        "regular_until": found.past.regular_until,
    }
