"""Products: lists with filters, counts for the filters, brands and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, LiteralString

import psycopg
from msgspec import Raw, Struct

from menuwatch.catalog.model import Special, StockStatus, Variant
from menuwatch.catalog.shapes import (
    BatchOnSale,
    BrandId,
    Cannabinoids,
    CanonicalProductId,
    Capped,
    Cbd,
    LocationId,
    Price,
    PriceMed,
    PriceMedSpecial,
    PriceRec,
    PriceRecSpecial,
    Quantity,
    QuantitySold,
    Terpenes,
    Thc,
)
from menuwatch.core.errors import NotFound
from menuwatch.core.shapes import Instant, JsonObject, doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_struct, fetch_structs, like_pattern
from menuwatch.geo.circle import Circle, circle_values

_q = sql.load(__package__, "service.sql")


class Order(StrEnum):
    """How a list of products is sorted. `updated` is the newest change first; a product without a price comes last."""

    NAME = "name"
    PRICE = "price"
    PRICE_DESCENDING = "-price"
    UPDATED = "updated"


_BY_ORDER = {
    Order.NAME: _q.products_by_name,
    Order.PRICE: _q.products_by_price,
    Order.PRICE_DESCENDING: _q.products_by_price_descending,
    Order.UPDATED: _q.products_by_updated,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFilter:
    """Which products; None takes all. `q` is text that the name contains, in any case; prices are those of the cheapest
    option, specials included. `*_canon` are canonical, the rest as the platform names it. `present`: in its store's
    last crawl; `special`: cheaper than its list price; `states`: those of the stores."""

    stores: Sequence[int] | None = None
    brands: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    strain_types: Sequence[str] | None = None
    categories_canon: Sequence[str] | None = None
    subcategories_canon: Sequence[str] | None = None
    strains_canon: Sequence[str] | None = None
    stock: Sequence[str] | None = None
    present: bool | None = None
    states: Sequence[str] | None = None
    special: bool | None = None
    q: str | None = None
    price_min: Decimal | None = None
    price_max: Decimal | None = None
    new_since: datetime | None = None
    """Seen for the first time at or after this time, but not with the first crawl of the store."""
    gone_since: datetime | None = None
    """No longer on the menu, and last changed at or after this time."""
    updated_since: datetime | None = None
    """Anything of it changed at or after this time."""
    canonical_products: Sequence[int] | None = None
    """Listings of these canonical products; numbers that were merged away are followed, as for brands and locations."""
    brand_ids: Sequence[int] | None = None
    locations: Sequence[int] | None = None
    circle: Circle | None = None
    """Of stores in this circle; those without a position are left out."""
    listings: Sequence[int] | None = None
    """Set by `resolve`: the listings of `canonical_products` and `brand_ids`."""

    @property
    def by_identity(self) -> bool:
        """Whether it names canonical products, brands, locations or a circle that are not resolved."""
        given = (self.canonical_products, self.brand_ids, self.locations, self.circle)
        return any(one is not None for one in given)

    def values(self) -> dict[str, Any]:
        """The filter as query parameters, once it is resolved."""
        assert not self.by_identity, "resolve it first"
        values = {name: getattr(self, name) for name in self.__slots__ if name != "circle"}
        return values | {"q": None if self.q is None else like_pattern(self.q)}


async def listings_and_menus(
    conn: Connection,
    canonical_products: Any,
    brand_ids: Any,
    locations: Any,
    circle: Circle | None,
    stores: Sequence[int] | None,
) -> tuple[list[int] | None, Sequence[int] | None]:
    """The listings of these canonical products and brands (None: all), and those of `stores` that are menus of these locations and lie
    in the circle."""
    values = {"canonical_products": canonical_products, "brand_ids": brand_ids, "locations": locations}
    (found,) = await fetch_all(conn, _q.listings_and_menus, values | circle_values(circle))
    for some in (found["menus"], found["near"]):
        if some is not None:
            stores = some if stores is None else [store for store in stores if store in some]
    return found["listings"], stores


async def resolve(conn: Connection, where: ProductFilter) -> ProductFilter:
    """The filter with the listings of its canonical products and brands, and with the menus of its locations and in its circle as
    stores."""
    if not where.by_identity:
        return where
    given = where.canonical_products, where.brand_ids, where.locations, where.circle
    listings, stores = await listings_and_menus(conn, *given, where.stores)
    resolved = {"canonical_products": None, "brand_ids": None, "locations": None, "circle": None}
    return replace(where, listings=listings, stores=stores, **resolved)


class Product(Struct, kw_only=True, frozen=True):
    """One product at one store, as of its last crawl."""

    id: int
    dispensary_id: Annotated[int, doc("Id of the store.")]
    store: Annotated[str, doc("Name of the store.")]
    provider: Annotated[str, doc("Platform of the store.")]
    provider_product_id: Annotated[str, doc("Id of the product on the platform.")]
    name: str
    brand_name: str | None
    category: Annotated[str | None, doc("Category as the platform names it; null if it has none.")]
    subcategory: Annotated[str | None, doc("Subcategory as the platform names it; null if it has none.")]
    strain_type: Annotated[str | None, doc("Strain type as the platform names it; null if it has none.")]
    category_canon: Annotated[str | None, doc("Canonical category; null if unknown.")]
    subcategory_canon: Annotated[str | None, doc("Canonical subcategory; null if unknown.")]
    strain_canon: Annotated[str | None, doc("Canonical strain type; null if unknown.")]
    currency: Annotated[str, doc("Currency of the prices: USD, or CAD at stores in Canada.")]
    price: Price
    price_rec: PriceRec
    price_rec_special: PriceRecSpecial
    price_med: PriceMed
    price_med_special: PriceMedSpecial
    stock_status: Annotated[StockStatus, doc("`unknown` if the menu has no stock information.")]
    is_in_stock: Annotated[bool | None, doc("Null if unknown.")]
    quantity: Quantity
    quantity_capped: Capped
    variants: Annotated[Raw, json_of(list[Variant]), doc("Sizes and packages of the product.")]
    thc: Thc
    cbd: Cbd
    image_url: Annotated[str | None, doc("URL of the image on the platform; null if it has none.")]
    local_image_path: Annotated[str | None, doc("Path of the stored image, for `/img/`; null if none is stored.")]
    consecutive_misses: Annotated[
        int, doc("Consecutive crawls without the product, at most 3; the third sets it out of stock.")
    ]
    first_seen_at: Annotated[Instant, doc("Time of the first crawl with the product.")]
    last_seen_at: Annotated[
        Instant | None, doc("Time of the last crawl with the product; null while it is on the menu.")
    ]
    updated_at: Annotated[Instant, doc("Time of the last crawl that changed the product.")]
    canonical_product_id: CanonicalProductId
    brand_id: BrandId
    location_id: LocationId


class ProductDetail(Product, kw_only=True, frozen=True):
    """A product with all its details."""

    name_raw: Annotated[str, doc("Name as reported by the platform.")]
    brand_name_raw: Annotated[str | None, doc("Brand as reported by the platform; null if there is none.")]
    status_raw: Annotated[str | None, doc("Status as reported by the platform; null if there is none.")]
    description: Annotated[str | None, doc("Description by the store; null if there is none.")]
    cannabinoids: Cannabinoids
    terpenes: Terpenes
    batch: BatchOnSale
    quantity_sold: QuantitySold
    specials: Annotated[Raw, json_of(list[Special]), doc("Promotions for the product.")]
    images: Annotated[Raw, json_of(list[str]), doc("URLs of all its images.")]
    platform_created_at: Annotated[Instant | None, doc("When the platform says it was created; null if unknown.")]
    platform_updated_at: Annotated[Instant | None, doc("When the platform says it was changed; null if unknown.")]
    extra: Annotated[JsonObject, doc("Other fields of the platform, unchanged.")]


class NameCount(Struct, kw_only=True, frozen=True):
    """A brand or category with its number of products."""

    name: str
    products: Annotated[int, doc("Number of products, in or out of stock.")]
    in_stock: Annotated[int, doc("Number of products in stock.")]
    stores: Annotated[int, doc("Number of stores with such products.")]


class Span(Struct, frozen=True, kw_only=True):
    """A time span: from `since`, before `until`."""

    since: datetime | None = None
    until: datetime | None = None


Key = str | Decimal | datetime
"""The value that a list of products is sorted by: of the type that its order has."""


class ProductPage(Struct, frozen=True, kw_only=True):
    """Products, and the key of the next page (None at the end)."""

    items: list[Product]
    next: tuple[Key, int] | None


async def list_products(
    conn: Connection,
    where: ProductFilter,
    *,
    order: Order = Order.NAME,
    after: tuple[Key, int] | None = None,
    limit: int = 50,
) -> ProductPage:
    """Products in that order, after the one whose (key, id) is `after`."""
    keys = await _keys(conn, await resolve(conn, where), order, after, limit + 1)
    shown = keys[:limit]
    ids = {"ids": [row["id"] for row in shown]}
    items = await fetch_structs(conn, Product, _q.products_in_brief, ids) if shown else []
    return ProductPage(items=items, next=(shown[-1]["key"], shown[-1]["id"]) if len(keys) > limit else None)


async def _keys(
    conn: Connection, where: ProductFilter, order: Order, after: tuple[Key, int] | None, limit: int
) -> list[Row]:
    """Keys and ids in that order. Planned per filter, because the best index depends on it."""
    key, product_id = after if after is not None else (None, None)
    names = await _names_with(conn, where, _NAMES_IN_ORDER if order is Order.NAME else _NAMES)
    if names == []:
        return []
    values = {
        **where.values(),
        "names": names,
        "after_key": key,
        "after_id": product_id,
        "limit": limit,
        "priced": True,
    }
    if order not in (Order.PRICE, Order.PRICE_DESCENDING):
        return await fetch_all(conn, _BY_ORDER[order], values, prepare=False)
    # Products without a price get a key that no price has.
    after_priced = isinstance(key, Decimal) and not key.is_finite()
    keys = [] if after_priced else await fetch_all(conn, _BY_ORDER[order], values, prepare=False)
    if len(keys) < limit:
        rest = {**values, "priced": False, "limit": limit - len(keys), "after_id": product_id if after_priced else None}
        keys += await fetch_all(conn, _BY_ORDER[order], rest, prepare=False)
    return keys


def select_keys(where: ProductFilter) -> tuple[LiteralString, dict[str, Any]]:
    """A statement that gives the `id` of every product that the resolved filter selects, and its parameters."""
    every = {"names": None, "after_key": None, "after_id": None, "limit": None, "priced": True}
    return _q.products_by_name, {**where.values(), **every}


_NAMES = 1000
"""Maximum matching names that are looked up individually; if there are more, a scan in any order finds matches soon."""
_NAMES_IN_ORDER = 10_000
"""The same for lists by name, which look up one name after the other until the page is full."""


async def _names_with(conn: Connection, where: ProductFilter, most: int = _NAMES) -> list[str] | None:
    """Lower-case names that contain `q`; None if the lookup does not pay: more names than `most`, or few stores."""
    if where.q is None or len(where.q) < 3 or where.stores is not None:
        return None
    values = {"text": where.q, "pattern": like_pattern(where.q), "limit": most + 1}
    rows = await fetch_all(conn, _q.names_with, values, prepare=False)
    return None if len(rows) > most else [row["name"] for row in rows]


async def get_product(conn: Connection, product_id: int) -> ProductDetail:
    """One product; raises NotFound."""
    product = await fetch_struct(conn, ProductDetail, _q.get_product, {"id": product_id})
    if product is None:
        raise NotFound(f"product {product_id} does not exist")
    return product


async def _list_names(
    conn: Connection,
    kind: str,
    query: Any,
    stores: Sequence[int] | None,
    q: str | None,
    after: str | None,
    limit: int,
) -> list[NameCount]:
    values = {
        "kind": kind,
        "stores": stores,
        "q": None if q is None else like_pattern(q),
        "after": after,
        "limit": limit,
    }
    if stores is None:
        (totals,) = await fetch_all(conn, _q.has_totals, values)
        if totals["found"]:
            query = _q.totals
    return await fetch_structs(conn, NameCount, query, values, prepare=False)


async def list_brands(
    conn: Connection,
    *,
    stores: Sequence[int] | None = None,
    q: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> list[NameCount]:
    """Brand names after `after`, with how many products and stores have them; of a large catalog as last counted."""
    return await _list_names(conn, "brand", _q.list_brands, stores, q, after, limit)


async def brand_spellings(conn: Connection, names: Sequence[str]) -> list[str]:
    """Brand names that are equal to one of these in any case."""
    rows = await fetch_all(conn, _q.brand_spellings, {"names": [name.lower() for name in names]})
    return [row["name"] for row in rows]


async def list_categories(
    conn: Connection,
    *,
    stores: Sequence[int] | None = None,
    q: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> list[NameCount]:
    """Category names after `after`, with how many products and stores have them; of a large catalog as last counted."""
    return await _list_names(conn, "category", _q.list_categories, stores, q, after, limit)


MOST_COUNTED = 2_000
"""Maximum number of products counted for the filters."""
_FACETS_TIMEOUT_MS = 60
"""Time limit of the counts, in milliseconds; without them the page is still shown."""


class Facets(Struct, frozen=True, kw_only=True):
    """`values` by facet (category, strain, stock, brand), each with how many products it has among what the other facets leave.
    `total` is what the whole filter selects. `whole` False: more than MOST_COUNTED were there, so that all figures are at least that.
    `counted` False: counting took too long, and there are none."""

    values: Mapping[str, Mapping[str, int]] = {}
    total: int = 0
    whole: bool = True
    counted: bool = True

    def of(self, facet: str) -> Mapping[str, int]:
        """The values of one facet, the most frequent first."""
        return self.values.get(facet, {})


async def count_facets(conn: Connection, where: ProductFilter) -> Facets:
    """Counts a filter's products by facet. The caller has no open transaction, or one that may be aborted."""
    where = await resolve(conn, where)
    names = await _names_with(conn, where)
    if names == []:
        return Facets()
    lower = None if where.brands is None else [brand.lower() for brand in where.brands]
    values = {**where.values(), "names": names, "brands_lower": lower, "most": MOST_COUNTED + 1}
    try:
        async with conn.transaction():
            await conn.execute(_q.set_timeout, {"timeout": f"{_FACETS_TIMEOUT_MS}ms"})
            rows = await fetch_all(conn, _q.facets, values, prepare=False)
    except psycopg.errors.QueryCanceled:
        return Facets(counted=False)
    by: dict[str, dict[str, int]] = {}
    total = looked = 0
    for row in rows:
        if row["facet"] == "all":
            total, looked = row["n"], row["looked"]
        elif row["value"] is not None and row["n"]:
            by.setdefault(row["facet"], {})[row["value"]] = row["n"]
    return Facets(values=by, total=min(total, MOST_COUNTED), whole=looked <= MOST_COUNTED)
