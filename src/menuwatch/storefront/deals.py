"""Deals: what stores offer below a struck price, and promotions for much of a menu. A struck price counts as saved only if the store
really asked it within three months, as observed; otherwise a deal is a special without a percentage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import msgspec
from psycopg import AsyncConnection

from menuwatch.catalog.asked_prices import WINDOW, Asked, asked_prices, past_of_special
from menuwatch.catalog.history import PriceSpan, list_price_spans
from menuwatch.catalog.model import Special
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.query import Row, fetch_all, fetch_structs
from menuwatch.storefront.options import MenuOption, best_of_sizes, decode_variants, read_options
from menuwatch.storefront.page_queries import NearbyStores, nearby_values

_q = sql.load(__package__, "deals.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode
_specials = msgspec.json.Decoder(list[Special], float_hook=Decimal)

_FARTHEST = timedelta(days=366)
"""Menus give specials that do not end an end in decades."""
MOST_OFF = 95
"""Highest plausible discount in percent; above it the price is a cent, or wrong."""
_MOST = 3_000
"""Deals that a list is chosen from, the first ones of its order."""
_FEWEST_PRODUCTS, _SHARE = 5, 0.3
"""Products, and share of the menu, that a promotion for much of a menu names at least."""


class DealOrder(StrEnum):
    """Sort order of deals."""

    OFF = "off"
    ENDING = "ending"
    NEWEST = "newest"


class Deal(msgspec.Struct, frozen=True, kw_only=True):
    """A size of a product at the store where it costs least of all that have it on special. Prices in cents."""

    product_id: int
    item_id: int
    name: str
    brand: str | None
    brand_slug: str | None
    category: str
    strain: str | None
    size: str | None
    price: int
    regular: Annotated[int, doc("The struck price of the menu.")]
    saved: Annotated[
        int | None, doc("Percent below the struck price; null unless the store asked that within 90 days, as observed.")
    ]
    lowest: Annotated[bool, doc("The store did not ask less within 90 days, and was observed that long.")]
    special: str | None
    ends_at: datetime | None
    began_at: datetime
    medical: bool
    store_id: int
    store: str
    city: str | None
    state: str | None
    timezone: str | None
    seen_at: datetime
    meters: int | None
    stores: Annotated[int, doc("Stores that have it on special.")]
    picture: str | None


class Promotion(msgspec.Struct, frozen=True, kw_only=True):
    """A special for much of a store's menu, or one without a price of a single product; `stores` run it."""

    name: str
    kind: str
    value: Decimal | None
    required_quantity: int | None
    reward_quantity: int | None
    ends_at: datetime | None
    products: int
    of_products: int
    store_id: int
    store: str
    city: str | None
    state: str | None
    timezone: str | None
    meters: int | None
    stores: int

    @property
    def for_much(self) -> bool:
        """Whether it is for much of the menu."""
        return self.products >= _FEWEST_PRODUCTS and self.products >= _SHARE * self.of_products


async def list_deals(
    conn: AsyncConnection[Any],
    *,
    order: DealOrder = DealOrder.OFF,
    category: str | None = None,
    nearby: NearbyStores | None = None,
    limit: int = 24,
    offset: int = 0,
) -> list[Deal]:
    """Deals in the requested order, each product and size once. By percentage only those that are savings, by end only those whose end
    is known."""
    values = {
        **await _filter(conn, nearby),
        "order": order.value,
        "category": category,
        "most": _MOST,
        "limit": limit,
        "offset": offset,
    }
    return await fetch_structs(conn, Deal, _q.deals, values, prepare=False)


async def count_categories(
    conn: AsyncConnection[Any], order: DealOrder = DealOrder.OFF, nearby: NearbyStores | None = None
) -> dict[str, int]:
    """How many products `list_deals` has in that order, by category."""
    values = {**await _filter(conn, nearby), "order": order.value}
    rows = await fetch_all(conn, _q.categories, values, prepare=False)
    return {row["category"]: row["items"] for row in rows}


async def list_promotions(
    conn: AsyncConnection[Any], nearby: NearbyStores | None = None, limit: int = 12
) -> list[Promotion]:
    """Promotions for much of a menu first, the nearest first."""
    values = {**await _filter(conn, nearby), "fewest": _FEWEST_PRODUCTS, "share": _SHARE, "limit": limit}
    return await fetch_structs(conn, Promotion, _q.promotions, values, prepare=False)


async def list_savings(conn: AsyncConnection[Any], product_ids: Sequence[int]) -> dict[int, set[tuple[int, int]]]:
    """(price, struck price) of the sizes of each listing whose struck price was really asked."""
    values = {"products": list(product_ids), "now": await database_now(conn)}
    found: dict[int, set[tuple[int, int]]] = {}
    for row in await fetch_all(conn, _q.savings, values):
        found.setdefault(row["product_id"], set()).add((row["price"], row["regular"]))
    return found


async def _filter(conn: AsyncConnection[Any], nearby: NearbyStores | None) -> dict[str, Any]:
    return {**nearby_values(nearby), "now": await database_now(conn), "most_off": MOST_OFF}


class _Key(NamedTuple):
    product_id: int
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSpecial:
    """A size on special. Prices in cents, `ends` in seconds since 1970."""

    price: int
    regular: int
    medical: bool
    special: str | None
    ends: int | None


async def update_store(conn: AsyncConnection[Any], store_id: int, *, visible: bool) -> None:
    """Writes the deals and promotions of a store as its menu is now; those whose prices stayed keep what was worked out."""
    now = await database_now(conn)
    products = await fetch_all(conn, _q.on_special, {"store_id": store_id}) if visible else []
    found: dict[_Key, OnSpecial] = {}
    specials: list[Special] = []
    for product in products:
        own = [_with_end(one, now) for one in _specials.decode(product["specials"])]
        specials += {(one.name, one.kind): one for one in own if one.name}.values()
        if product["is_in_stock"] is not False:
            for size, deal in find_specials(_options(product), own).items():
                found[_Key(product["id"], size)] = deal
    values = {"store_id": store_id, "products": sorted({key.product_id for key in found})}
    rows = await fetch_all(conn, _q.known, values)
    known = {_Key(row["product_id"], row["size"]): row for row in rows}
    if gone := [key for key in known if key not in found]:
        await conn.execute(
            _q.remove, {"products": [key.product_id for key in gone], "sizes": [key.size for key in gone]}
        )
    stayed = {key for key, deal in found.items() if key in known and _prices(known[key]) == (deal.price, deal.regular)}
    if changed := [_said(key, found[key]) for key in stayed if _differs(known[key], found[key], store_id)]:
        await conn.execute(_q.rename, {"store_id": store_id, "rows": _encode(changed).decode()})
    await _write_new(conn, store_id, now, {key: deal for key, deal in found.items() if key not in stayed}, products)
    promotions = _encode(list(_promotions(specials))).decode()
    await conn.execute(_q.replace_promotions, {"store_id": store_id, "rows": promotions})


def _options(product: Row) -> list[MenuOption]:
    return read_options(
        decode_variants(product["variants"]),
        name=product["name"],
        category=product["category_canon"],
        in_stock=product["is_in_stock"],
    )


def find_specials(options: Sequence[MenuOption], specials: Sequence[Special]) -> dict[str, OnSpecial]:
    """The cheapest option of each size that can be bought, if it is on special. Pure."""
    found = {}
    for size, option in best_of_sizes(options).items():
        if option.in_stock is False or not option.price or option.regular is None or option.regular >= 10_000_000:
            continue
        named = _named(specials, Decimal(option.price) / 100, Decimal(option.regular) / 100)
        found[size or ""] = OnSpecial(
            price=option.price,
            regular=option.regular,
            medical=option.medical,
            special=named.name if named else None,
            ends=_seconds(named.ends_at) if named and named.ends_at else None,
        )
    return found


def _with_end(special: Special, now: datetime) -> Special:
    """The special, without an end that is too far away to mean anything."""
    if special.ends_at is None or special.ends_at < now + _FARTHEST:
        return special
    return msgspec.structs.replace(special, ends_at=None)


def _named(specials: Sequence[Special], price: Decimal, regular: Decimal) -> Special | None:
    """The special that makes the price, or the only one that could; None if several could."""
    sales = [one for one in specials if one.name and one.kind not in ("bogo", "bundle")]
    for one in sales:
        if one.value is None:
            continue
        by = {"percent": regular * (1 - one.value / 100), "amount": regular - one.value, "target_price": one.value}
        if (made := by.get(one.kind)) is not None and abs(made - price) <= max(Decimal("0.05"), regular / 200):
            return one
    return sales[0] if len(sales) == 1 else None


def _prices(row: Row) -> tuple[int, int]:
    return row["price"], row["regular"]


def _differs(row: Row, deal: OnSpecial, store_id: int) -> bool:
    now = (store_id, deal.medical, deal.special, deal.ends)
    return (row["store_id"], row["medical"], row["special"], row["ends"]) != now


def _said(key: _Key, deal: OnSpecial) -> dict[str, Any]:
    return {
        "product_id": key.product_id,
        "size": key.size,
        "medical": deal.medical,
        "special": deal.special,
        "ends": deal.ends,
    }


async def _write_new(
    conn: AsyncConnection[Any], store_id: int, now: datetime, new: Mapping[_Key, OnSpecial], products: Sequence[Row]
) -> None:
    if not new:
        return
    ids = sorted({key.product_id for key in new})
    spans: dict[int, list[PriceSpan]] = {}
    for span in await list_price_spans(conn, ids, now - WINDOW, now):
        spans.setdefault(span.product_id, []).append(span)
    sizes = {
        product["id"]: {one.option: one.size or "" for one in _options(product)}
        for product in products
        if product["id"] in spans
    }
    rows = []
    for key, deal in new.items():
        past = list(asked_prices(spans.get(key.product_id, ()), sizes.get(key.product_id, {}), key.size))
        percent = round((deal.regular - deal.price) * 100 / deal.regular)
        rows.append(
            {
                **_said(key, deal),
                "price": deal.price,
                "regular": deal.regular,
                "percent": percent,
                **_past(past, deal, now),
            }
        )
    await conn.execute(_q.put, {"store_id": store_id, "rows": _encode(rows).decode()})


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _past(asked: Sequence[Asked], deal: OnSpecial, now: datetime) -> dict[str, Any]:
    past = past_of_special(asked, deal.price, deal.regular, now)
    return {
        "began": _seconds(past.began),
        "observed_from": past.observed_from or now,
        "offered_until": past.regular_until,
        "lower_until": past.lower_until,
    }


def _promotions(specials: Sequence[Special]) -> Iterator[dict[str, Any]]:
    """Each special of a menu with the number of products that it names."""
    grouped: dict[tuple[str, str], list[Special]] = {}
    for one in specials:
        grouped.setdefault((one.name, one.kind), []).append(one)
    for (name, kind), some in grouped.items():
        first = some[0]
        ends = {one.ends_at for one in some}
        yield {
            "name": name,
            "kind": kind,
            "products": len(some),
            "value": first.value if len({one.value for one in some}) == 1 else None,
            "required_quantity": first.required_quantity,
            "reward_quantity": first.reward_quantity,
            "ends_at": first.ends_at if len(ends) == 1 else None,
        }
