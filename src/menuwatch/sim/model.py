"""Data model of the simulated market, independent of how a platform encodes it.

Money is in whole cents. `SimProduct` is the constant part of a product, `ProductState` its state at one tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

POS_CAP = 25
"""A point of sale shows no more than this many packages."""

Counting = Literal["pos", "manual", "none"]
"""Where a store's stock is written: by its point of sale, by hand, or nowhere."""

MenuType = Literal["both", "recreational", "medical"]


@dataclass(frozen=True, slots=True)
class SimStore:
    """One shop. `reserve` packages of each option are kept back; `old` shops answer with the key set of 2023."""

    index: int
    id: str
    slug: str
    name: str
    chain: str
    street: str
    city: str
    state: str
    country: str
    zipcode: str
    latitude: float
    longitude: float
    timezone: str
    phone: str
    recreational: bool
    medical: bool
    enterprise_id: str
    status: str
    counting: Counting
    reserve: int
    threshold: int
    medical_percent: int
    old: bool
    platform: str = "dutchie"
    """Where its menu is served."""


@dataclass(frozen=True, slots=True)
class Brand:
    """`name` is in the brand's record, `label` on the product; the two may differ."""

    id: str
    name: str
    label: str
    parent_id: str | None
    logo: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Offer:
    """One promotion. `value` is percent, or cents off, or the price reached in cents; for a bogo the percentage off the reward;
    for a bundle its price in cents. `needs` and `gets` are numbers of items."""

    id: str
    name: str
    kind: Literal["percent", "dollar", "target", "bogo", "bundle"]
    value: int
    menu: MenuType = "both"
    from_pos: bool = False
    needs: int = 1
    gets: int = 1
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """A potency as printed: its unit in the platform's words, and no, one or two numbers."""

    unit: Literal["PERCENTAGE", "MILLIGRAMS", "MILLIGRAMS_PER_GRAM"]
    range: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Cannabinoid:
    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Lab:
    """What the laboratory found in a batch. None where the field itself is null."""

    thc: Content | None
    cbd: Content | None
    rows: tuple[Cannabinoid, ...] | None


@dataclass(frozen=True, slots=True)
class Picture:
    url: str
    description: str | None
    active: bool


@dataclass(frozen=True, slots=True)
class SimProduct:
    """What never changes of one product at one store.

    `counting` is how this product's stock is written; `childless` options have no entry at the point of sale, `strays` are
    entries there for options that the menu does not offer. `crooked` products have special price lists that are one
    shorter than their options.
    """

    id: str
    serial: int
    category: str
    subcategory: str | None
    name: str
    slug: str
    past_slugs: tuple[str | None, ...]
    brand: Brand | None
    strain: str | None
    options: tuple[str, ...]
    raw_options: tuple[str, ...] | None
    net_weight: tuple[int, ...]
    image: str
    images: tuple[Picture, ...] | None
    created_ms: int
    rank: int
    featured_ms: int | None
    description: str
    effects: tuple[tuple[str, int], ...]
    counting: Counting
    childless: frozenset[int]
    strays: tuple[str, ...]
    crooked: bool
    library_id: str | None
    enterprise_id: str | None
    duplicated_id: str | None
    pos_number: str


@dataclass(frozen=True, slots=True)
class ProductState:
    """One product at one tick. `stock` is the true stock per option; `away_until` is the tick of its return while it is absent
    (-1: never), None while it is on the menu."""

    product: SimProduct
    prices: tuple[int, ...]
    offers: tuple[Offer, ...]
    stock: tuple[int, ...]
    active: bool
    lab: Lab
    updated_ms: int
    away_until: int | None = None
    listed: tuple[int, ...] = ()
    """Initial price of each option; prices vary around it."""
    sold: int = 0
    """Packages sold so far, of all options."""


def special_prices(state: ProductState, regular: tuple[int, ...], menu: MenuType) -> tuple[int, ...]:
    """What each option costs with the best of the sales that hold for that menu, in cents; empty where none holds."""
    sales = [o for o in state.offers if o.kind in ("percent", "dollar", "target") and o.menu in ("both", menu)]
    if not sales:
        return ()
    return tuple(min(_reduced(price, sale) for sale in sales) for price in regular)


def _reduced(price: int, sale: Offer) -> int:
    if sale.kind == "percent":
        return (price * (100 - sale.value) + 50) // 100
    if sale.kind == "dollar":
        return max(price - sale.value, (price + 1) // 2)
    # Of an eighth and an ounce a target price is meant for the eighth: options that it would more than halve are not in the sale.
    return price if price > 2 * sale.value else min(price, sale.value)


def percent_off(state: ProductState, store: SimStore) -> int | None:
    """The best percentage off that holds for a shop with one kind of menu, in percent; None where none does."""
    menu: MenuType = "recreational" if store.recreational else "medical"
    return max((o.value for o in state.offers if o.kind == "percent" and o.menu in ("both", menu)), default=None)


def medical_prices(state: ProductState, store: SimStore) -> tuple[int, ...]:
    """Regular medical prices, in cents: the recreational ones, unless the store gives patients a discount."""
    if not store.medical_percent:
        return state.prices
    return tuple((price * (100 - store.medical_percent) + 50) // 100 for price in state.prices)


def available(raw: int, reserve: int) -> int:
    """What a point of sale shows of `raw` packages: less the reserve, and never more than its cap."""
    return min(POS_CAP, max(0, raw - reserve))


def below_threshold(state: ProductState, store: SimStore) -> tuple[int, ...]:
    """Places of the options that the store holds to be too few to sell online. Counts by hand know no threshold."""
    product = state.product
    if product.counting != "pos":
        return ()
    return tuple(
        i
        for i, raw in enumerate(state.stock)
        if i not in product.childless and available(raw, store.reserve) <= store.threshold
    )
