"""What a perfect observer would know: the independent truth that figures and catalogues are compared with.

It is worked out from the market's own state, never from rendered answers, and follows the documented rules:

- stock of an option: what a point of sale shows as available, else the count by hand, else unknown (which is not zero);
- an option is out of stock when its product is not active, when its text is among those below the threshold, or when none is
  available; a product is in stock if any option is, out of stock if all are, else unknown;
- a special price list that is not as long as the options says nothing;
- on Weedmaps an option has one price, that of the shop's licence, and a percentage off makes its special one; what is not published
  is out of stock, what nobody counts is unknown; a potency of zero is none;
- a product that is absent from three crawls of its store in a row is out of stock, with none of any option, from the third on;
  the next crawl that shows it is compared with that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from menuwatch.sim.market import Market
from menuwatch.sim.model import (
    Content,
    MenuType,
    Shelf,
    SimStore,
    available,
    below_threshold,
    medical_prices,
    percent_off,
    special_prices,
)

Stock = Literal["in_stock", "oos", "unknown"]

MISSES_UNTIL_OOS = 3


@dataclass(frozen=True, slots=True)
class OptionRow:
    """One option as served. Prices in dollars; `quantity` in packages as shown, None where nothing is shown."""

    option: str
    price_rec: Decimal | None
    special_rec: Decimal | None
    price_med: Decimal | None
    special_med: Decimal | None
    quantity: int | None
    stock: Stock

    @property
    def prices(self) -> tuple[str, Decimal | None, Decimal | None, Decimal | None, Decimal | None]:
        """What tells whether prices differ; another option is another price."""
        return self.option, self.price_rec, self.special_rec, self.price_med, self.special_med

    @property
    def level(self) -> tuple[str, Stock, int | None]:
        """What tells whether stock differs."""
        return self.option, self.stock, self.quantity


@dataclass(frozen=True, slots=True)
class Strength:
    """A potency in `%` or `mg` (of the whole package)."""

    lo: Decimal
    hi: Decimal
    unit: Literal["%", "mg"]


@dataclass(frozen=True, slots=True)
class Row:
    """One product as served."""

    product_id: str
    name_raw: str
    brand_raw: str | None
    category: str
    options: tuple[OptionRow, ...]
    stock: Stock
    thc: Strength | None = None
    cbd: Strength | None = None


def _dollars(cents: int) -> Decimal:
    return Decimal(cents) / 100


def _strength(content: Content | None) -> Strength | None:
    if content is None or content.range is None:
        return None
    lo, hi = Decimal(str(content.range[0])), Decimal(str(content.range[-1]))
    if content.unit == "MILLIGRAMS":
        return Strength(lo, hi, "mg")
    if content.unit == "MILLIGRAMS_PER_GRAM":
        lo, hi = lo / 10, hi / 10
    return Strength(lo, hi, "%")


def _specials(shelf: Shelf, regular: tuple[int, ...], menu: MenuType) -> list[Decimal | None]:
    cents = special_prices(shelf, regular, menu)
    if not cents or shelf.good.crooked:
        return [None] * len(regular)
    return [_dollars(c) for c in cents]


def row_of(shelf: Shelf, store: SimStore) -> Row:
    """The truth about one product that is on the menu."""
    if store.platform == "weedmaps":
        return _weedmaps_row(shelf, store)
    good = shelf.good
    medical = medical_prices(shelf, store)
    special_rec = _specials(shelf, shelf.prices, "recreational")
    special_med = _specials(shelf, medical, "medical")
    below = {good.options[i] for i in below_threshold(shelf, store)}
    options = []
    for i, option in enumerate(good.options):
        quantity: int | None = None
        if good.counting == "manual":
            quantity = shelf.stock[i]
        elif good.counting == "pos" and i not in good.childless:
            quantity = available(shelf.stock[i], store.reserve)
        stock: Stock = "unknown" if quantity is None else "in_stock" if quantity > 0 else "oos"
        if not shelf.active or option in below:
            stock = "oos"
        options.append(
            OptionRow(
                option=option,
                price_rec=_dollars(shelf.prices[i]),
                special_rec=special_rec[i],
                price_med=_dollars(medical[i]),
                special_med=special_med[i],
                quantity=quantity,
                stock=stock,
            )
        )
    return Row(
        product_id=good.id,
        name_raw=good.name,
        brand_raw=good.brand.label if good.brand is not None else None,
        category=good.category,
        options=tuple(options),
        stock=_of_product([o.stock for o in options]),
        thc=_strength(shelf.lab.thc),
        cbd=_strength(shelf.lab.cbd),
    )


def _weedmaps_row(shelf: Shelf, store: SimStore) -> Row:
    good = shelf.good
    off = percent_off(shelf, store)
    options = []
    for i, option in enumerate(good.options):
        price = _dollars(shelf.prices[i])
        special = None if off is None else _dollars((shelf.prices[i] * (100 - off) + 50) // 100)
        quantity = None if good.counting == "none" else shelf.stock[i]
        stock: Stock = "unknown" if quantity is None else "in_stock" if quantity > 0 else "oos"
        rec = store.recreational
        options.append(
            OptionRow(
                option=option,
                price_rec=price if rec else None,
                special_rec=special if rec else None,
                price_med=None if rec else price,
                special_med=None if rec else special,
                quantity=quantity,
                stock=stock if shelf.active else "oos",
            )
        )
    return Row(
        product_id=good.id,
        name_raw=good.name,
        brand_raw=good.brand.label if good.brand is not None else None,
        category=good.category,
        options=tuple(options),
        stock=_of_product([o.stock for o in options]),
        thc=_some(_strength(shelf.lab.thc)),
        cbd=_some(_strength(shelf.lab.cbd)),
    )


def _some(strength: Strength | None) -> Strength | None:
    return strength if strength is not None and strength.hi > 0 else None


def _of_product(options: Iterable[Stock]) -> Stock:
    found = set(options)
    if "in_stock" in found:
        return "in_stock"
    return "oos" if found == {"oos"} else "unknown"


@dataclass(frozen=True, slots=True)
class Known:
    """How one product stands after a sequence of crawls. `first` and `last` number the crawls (from 0) that first and last
    showed it; `row` is what is known of it now, which after the third miss is that there is none."""

    row: Row
    misses: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What a sequence of crawls amounts to.

    `products`: distinct ever seen. `snapshots`: products, summed over crawls. `price_changes`, `stock_changes`: differences between
    what was known and what a crawl shows, the third miss included among the latter. `out_of_stock`: times that a product
    was not out of stock and then was. The last two divide these: `third_misses` counts products that reached it,
    `seen_stock_changes` only differences between two sightings.
    """

    products: int = 0
    snapshots: int = 0
    price_changes: int = 0
    stock_changes: int = 0
    out_of_stock: int = 0
    third_misses: int = 0
    seen_stock_changes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.products + other.products,
            self.snapshots + other.snapshots,
            self.price_changes + other.price_changes,
            self.stock_changes + other.stock_changes,
            self.out_of_stock + other.out_of_stock,
            self.third_misses + other.third_misses,
            self.seen_stock_changes + other.seen_stock_changes,
        )


def _levels(row: Row) -> tuple[Stock, tuple[tuple[str, Stock, int | None], ...]]:
    return row.stock, tuple(o.level for o in row.options)


def _prices(row: Row) -> tuple[object, ...]:
    return tuple(o.prices for o in row.options)


def follow(crawls: Sequence[Mapping[str, Row]]) -> tuple[dict[str, Known], Counts]:
    """Walks through one store's crawls, each given as the rows it showed."""
    known: dict[str, Known] = {}
    sighted: dict[str, Row] = {}
    total = Counts()
    for number, shown in enumerate(crawls):
        fresh = prices = stock = newly_out = third = between = 0
        for product_id, row in shown.items():
            before = known.get(product_id)
            if before is None:
                fresh += 1
                known[product_id] = Known(row, 0, number, number)
            else:
                prices += _prices(before.row) != _prices(row)
                stock += _levels(before.row) != _levels(row)
                between += _levels(sighted[product_id]) != _levels(row)
                newly_out += before.row.stock != "oos" and row.stock == "oos"
                known[product_id] = Known(row, 0, before.first, number)
            sighted[product_id] = row
        for product_id, before in list(known.items()):
            if product_id in shown or before.misses == MISSES_UNTIL_OOS:
                continue
            row = before.row
            if before.misses == MISSES_UNTIL_OOS - 1:
                row = replace(row, stock="oos", options=tuple(replace(o, stock="oos", quantity=0) for o in row.options))
                third += 1
                stock += _levels(before.row) != _levels(row)
                newly_out += before.row.stock != "oos"
            known[product_id] = replace(before, row=row, misses=before.misses + 1)
        total += Counts(fresh, len(shown), prices, stock, newly_out, third, between)
    return known, total


class Ledger:
    """The truth about a whole market."""

    def __init__(self, market: Market) -> None:
        self._market = market

    def rows(self, store: str, tick: int) -> dict[str, Row]:
        """What that store (id or slug) shows at that tick, by product id. Raises KeyError for an unknown store."""
        found = self._market.find(store)
        if found is None:
            raise KeyError(store)
        return {shelf.good.id: row_of(shelf, found) for shelf in self._market.menu(found, tick)}

    def follow(self, store: str, ticks: Sequence[int]) -> tuple[dict[str, Known], Counts]:
        """How that store's products stand after crawls at these ticks, and what the crawls amount to."""
        return follow([self.rows(store, tick) for tick in ticks])

    def expect(self, crawls: Mapping[str, Sequence[int]]) -> Counts:
        """What crawls of several stores amount to together."""
        total = Counts()
        for store, ticks in crawls.items():
            total += self.follow(store, ticks)[1]
        return total
