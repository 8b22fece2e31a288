"""Compares the offers of one product size by size: prices of different sizes never stand beside each other. Pure.

A location with several menus has one row for each size, from the menu that was fetched last; what its other menus ask is beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from menuwatch.catalog.model import Batch
from menuwatch.catalog.taxonomy.text import words
from menuwatch.site import format as text
from menuwatch.storefront.options import MenuOption, decode_variants, read_options
from menuwatch.storefront.page_queries import Offer, OfferedSize

_MOST_VALUES = 12


class Option(MenuOption, frozen=True, kw_only=True):
    """One size on one menu; `saved` is the struck price if it is a saving (storefront/deals.py), `previous_price` what it cost
    before it fell."""

    saved: int | None
    previous_price: int | None

    @property
    def special(self) -> bool:
        return self.regular is not None


class OtherPrice(NamedTuple):
    """What another menu of the location asks for the size."""

    menu: str
    price: int
    seen_at: datetime


class LabTable(Struct, frozen=True, kw_only=True):
    """Lab values, the largest first; `more` others are left out."""

    rows: Sequence[dict[str, Any]]
    more: int


class ShownOffer(Offer, frozen=True, kw_only=True):
    """An offer with its options, lab results by heading, batch and promotions, and its own name if that differs from the item's."""

    options: list[Option]
    own_name: str | None
    lab_tables: dict[str, LabTable]
    batch_shown: Batch | None
    promotions: list[dict[str, Any]]


class Line(Struct, frozen=True, kw_only=True):
    """One location's price for one size; `menu` names the menu if the location has several."""

    offer: ShownOffer
    option: Option
    menu: str | None
    others: Sequence[OtherPrice]


class SizeTable(Struct, frozen=True, kw_only=True):
    """The stores that list one size, the best first, and how many there are in all."""

    size: str | None
    price: int | None
    state: str | None
    """State of the store with that price."""
    stores: int
    lines: Sequence[Line]

    @property
    def from_name(self) -> bool:
        """Whether no menu gives the size."""
        return all(line.option.from_name for line in self.lines)


def to_shown(offer: Offer, item_name: str, saved: Collection[tuple[int, int]] = ()) -> ShownOffer:
    """The offer as the page shows it; `saved` are (price, struck price) of its sizes that are savings."""
    return ShownOffer(
        **msgspec.structs.asdict(offer),
        options=_options(offer, saved),
        own_name=offer.written if words(offer.written) != words(item_name) else None,
        lab_tables={
            heading: table
            for heading, values in (("Cannabinoids", offer.cannabinoids), ("Terpenes", offer.terpenes))
            if (table := _lab_table(values)).rows
        },
        batch_shown=None if offer.batch is None else msgspec.json.decode(offer.batch, type=Batch),
        promotions=[s for s in _decoded(offer.specials) if s.get("name")],
    )


def by_size(offers: Sequence[ShownOffer], sizes: Sequence[OfferedSize], *, by_distance: bool) -> list[SizeTable]:
    """A table for each of the sizes that is offered."""
    found: dict[str | None, dict[int, dict[int, tuple[ShownOffer, Option]]]] = {}
    for offer in offers:
        for option in offer.options:
            menus = found.setdefault(option.size, {}).setdefault(offer.location_key, {})
            known = menus.get(offer.store_id)
            if known is None or option.rank < known[1].rank:
                menus[offer.store_id] = (offer, option)
    order = _nearest_first if by_distance else _cheapest_first
    tables = []
    for size in sizes:
        lines = sorted((_line(list(menus.values())) for menus in found.get(size.size, {}).values()), key=order)
        if lines:
            tables.append(
                SizeTable(size=size.size, price=size.price, state=size.state, stores=size.stores, lines=lines)
            )
    return tables


def choose(tables: Sequence[SizeTable], *, store_id: int | None, by_distance: bool) -> Line | None:
    """The line that the page's headline is about: the cheapest, or the nearest near a place; with `store_id` that store's."""
    lines = [line for table in tables for line in table.lines]
    own = [line for line in lines if line.offer.store_id == store_id]
    return min(own or lines, key=_nearest_first if by_distance else _cheapest_first, default=None)


def _line(menus: Sequence[tuple[ShownOffer, Option]]) -> Line:
    offer, option = max(menus, key=lambda menu: (menu[0].seen_at, menu[0].store_id))
    platforms = {other.platform for other, _ in menus}
    name: Callable[[Offer], str] = (
        (lambda other: text.platform(other.platform)) if len(platforms) == len(menus) else (lambda other: other.store)
    )
    others = [
        OtherPrice(name(other), priced.price, other.seen_at)
        for other, priced in menus
        if other is not offer and priced.price is not None and priced.price != option.price
    ]
    return Line(offer=offer, option=option, menu=name(offer) if len(menus) > 1 else None, others=others)


def _cheapest_first(line: Line) -> tuple[Any, ...]:
    return *line.option.rank, line.offer.product_id


def _nearest_first(line: Line) -> tuple[Any, ...]:
    meters = line.offer.meters
    return line.option.in_stock is False, meters is None, meters or 0, _cheapest_first(line)


def _options(offer: Offer, saved: Collection[tuple[int, int]]) -> list[Option]:
    read = read_options(
        decode_variants(offer.variants),
        name=offer.written,
        category=offer.category,
        in_stock=offer.in_stock,
        usual_per_gram=offer.usual_per_gram,
    )
    before: dict[str, int] = msgspec.json.decode(offer.previous_prices or b"{}")
    return [
        Option(
            **msgspec.structs.asdict(one),
            saved=one.regular if (one.price, one.regular) in saved else None,
            previous_price=before.get(one.size or ""),
        )
        for one in read
    ]


def _decoded(raw: Any) -> list[dict[str, Any]]:
    return [] if raw is None else msgspec.json.decode(raw, type=list[dict[str, Any]])


def _lab_table(values: Any) -> LabTable:
    rows = [row for row in _decoded(values) if row.get("value") and not row.get("is_total")]
    rows.sort(key=lambda row: row["value"], reverse=True)
    return LabTable(rows=rows[:_MOST_VALUES], more=len(rows) - len(rows[:_MOST_VALUES]))
