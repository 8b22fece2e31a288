"""The expected state of the market: an independent reference for figures and catalogs.

Computed from the market's own state, never from rendered responses, by the documented rules:

- stock of an option: what a point of sale shows as available, else the manual count, else unknown (which is not zero);
- an option is out of stock when its product is not active, when its text is among those below the threshold, or when none is
  available; a product is in stock if any option is, out of stock if all are, else unknown;
- a special price list whose length differs from the options' is ignored;
- platforms besides Dutchie say in their module what their menus show;
- a product that is absent from three crawls of its store in a row is out of stock, with none of any option, from the third on;
  the next crawl that shows it is compared with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from decimal import Decimal
from operator import add
from typing import Literal

from menuwatch.sim.dutchie import package_tag
from menuwatch.sim.market import Market
from menuwatch.sim.model import (
    Content,
    MenuType,
    ProductState,
    SimStore,
    available,
    below_threshold,
    medical_prices,
    special_prices,
)
from menuwatch.sim.platform import sim_platform

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
        """Key for comparing prices; another option is another price."""
        return self.option, self.price_rec, self.special_rec, self.price_med, self.special_med

    @property
    def level(self) -> tuple[str, Stock, int | None]:
        """Key for comparing stock."""
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
    terpenes: tuple[tuple[str, Decimal, str], ...] = ()
    """Name, value and unit of each."""
    batch: Mapping[str, str] | None = None
    """The fields of the batch that the menu shows, by the names of the catalog."""
    sold: int | None = None
    """Packages sold since the product was made, where the menu shows it."""


def dollars(cents: int) -> Decimal:
    """Whole cents as dollars."""
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


def _specials(state: ProductState, regular: tuple[int, ...], menu: MenuType) -> list[Decimal | None]:
    cents = special_prices(state, regular, menu)
    if not cents or state.product.crooked:
        return [None] * len(regular)
    return [dollars(c) for c in cents]


def row_of(state: ProductState, store: SimStore) -> Row:
    """The expected row of one product that is on the menu."""
    product = state.product
    platform = sim_platform(store.platform) if store.platform != "dutchie" else None
    options = tuple(platform.options(state, store) if platform is not None else _dutchie_options(state, store))
    thc, cbd = _strength(state.lab.thc), _strength(state.lab.cbd)
    row = Row(
        product_id=product.id,
        name_raw=product.name,
        brand_raw=product.brand.label if product.brand is not None else None,
        category=product.category,
        options=options,
        stock=_product_stock({option.stock for option in options}),
        thc=thc,
        cbd=cbd,
    )
    return platform.row(row, state, store) if platform is not None else replace(row, batch=_dutchie_batch(state, store))


def _dutchie_batch(state: ProductState, store: SimStore) -> Mapping[str, str] | None:
    """The tag of the package, which shops with a point of sale show since 2024."""
    if store.counting != "pos" or store.old:
        return None
    return {"package_tag": package_tag(state.product)}


def _dutchie_options(state: ProductState, store: SimStore) -> Iterator[OptionRow]:
    product = state.product
    medical = medical_prices(state, store)
    special_rec = _specials(state, state.prices, "recreational")
    special_med = _specials(state, medical, "medical")
    below = {product.options[i] for i in below_threshold(state, store)}
    for i, option in enumerate(product.options):
        quantity: int | None = None
        if product.counting == "manual":
            quantity = state.stock[i]
        elif product.counting == "pos" and i not in product.childless:
            quantity = available(state.stock[i], store.reserve)
        yield OptionRow(
            option=option,
            price_rec=dollars(state.prices[i]),
            special_rec=special_rec[i],
            price_med=dollars(medical[i]),
            special_med=special_med[i],
            quantity=quantity,
            stock=option_stock(quantity) if state.active and option not in below else "oos",
        )


def option_stock(quantity: int | None) -> Stock:
    """Stock of an option that shows this quantity."""
    return "unknown" if quantity is None else "in_stock" if quantity > 0 else "oos"


def _product_stock(options: set[Stock]) -> Stock:
    if "in_stock" in options:
        return "in_stock"
    return "oos" if options == {"oos"} else "unknown"


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
        return Counts(*map(add, astuple(self), astuple(other)))


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


class ExpectedState:
    """The expected state of a whole market."""

    def __init__(self, market: Market) -> None:
        self._market = market

    def rows(self, store: str, tick: int) -> dict[str, Row]:
        """What that store (id or slug) shows at that tick, by product id. Raises KeyError for an unknown store."""
        sim_store = self._market.find(store)
        if sim_store is None:
            raise KeyError(store)
        return {state.product.id: row_of(state, sim_store) for state in self._market.menu(sim_store, tick)}

    def follow(self, store: str, ticks: Sequence[int]) -> tuple[dict[str, Known], Counts]:
        """How that store's products stand after crawls at these ticks, and what the crawls amount to."""
        return follow([self.rows(store, tick) for tick in ticks])

    def expect(self, crawls: Mapping[str, Sequence[int]]) -> Counts:
        """What crawls of several stores amount to together."""
        total = Counts()
        for store, ticks in crawls.items():
            total += self.follow(store, ticks)[1]
        return total
