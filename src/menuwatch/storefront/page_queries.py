"""Reads what the public pages show beside search results: items, offers, stores, brands, totals, sitemaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Raw, Struct
from psycopg import AsyncConnection

from menuwatch.catalog.taxonomy.sizes import size_order
from menuwatch.catalog.taxonomy.text import slug, words
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_struct, fetch_structs

_q = sql.load(__package__, "search.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class NearbyStores:
    """Stores in range, with the distance of each in meters."""

    stores: tuple[int, ...]
    meters: tuple[int, ...]
    cut: bool = False
    """More stores are within the requested distance."""
    locations: int = 1
    """How many locations the stores are: a location may have several menus."""
    zipcodes: Mapping[int, str] = field(default_factory=dict)
    """By store: the postcodes of those whose position is the middle of its area, as no better one is known."""

    def meters_of(self, store_id: int) -> int | None:
        """The distance of a store; None if it is out of range."""
        return next((m for store, m in zip(self.stores, self.meters, strict=True) if store == store_id), None)


class ItemCard(Struct, frozen=True):
    """An item as lists show it, with one offer: prices, size, stock and store are of that. Prices in cents, per gram and per 10 mg
    (`per_dose`) in hundredths of a cent. `stores` offer the item in that size, `in_stock` of them say that they have it."""

    id: int
    name: str
    brand: str | None
    brand_slug: str | None
    category: str
    subcategory: str | None
    strain: str | None
    sizes: list[str]
    stores: int
    in_stock: int
    product_id: int
    store_id: int
    store: str
    city: str | None
    state: str | None
    price: int | None
    size: Annotated[str | None, doc("The size that costs `price`; null if it is not known.")]
    from_name: Annotated[bool, doc("The size was read from the product's name, as the menu gives none.")]
    regular: Annotated[int | None, doc("The struck price of that size, if it is a saving.")]
    special: Annotated[bool, doc("Whether that size is on special.")]
    previous_price: int | None
    per_gram: int | None
    per_dose: int | None
    best_in_stock: bool | None
    changed_at: datetime
    thc_lo: Decimal | None
    thc_hi: Decimal | None
    thc_unit: str | None
    medical: bool
    picture: str | None
    seen_at: datetime
    nearby: bool


class Item(Struct, frozen=True):
    """An item with the aggregates of its offers. Units as in ItemCard, `thc` in hundredths of a percent."""

    id: int
    name: str
    brand: str | None
    brand_slug: str | None
    brand_id: int | None
    category: str
    subcategory: str | None
    strain: str | None
    sizes: list[str]
    stores: int
    in_stock: int
    price: int | None
    per_gram: int | None
    thc: int | None
    on_special: bool
    changed_at: datetime


class Offer(Struct, frozen=True):
    """A store's listing of an item, in all its sizes; `price` is that of the cheapest. `meters` is the distance of the store, None
    without a location; `usual_per_gram` the median of the category."""

    product_id: int
    store_id: int
    location_key: Annotated[int, doc("Equal for the menus of one location.")]
    store: str
    platform: str
    city: str | None
    state: str | None
    timezone: str | None
    price: int | None
    previous_prices: Annotated[Raw | None, doc("What sizes cost before they fell in price.")]
    in_stock: bool | None
    changed_at: datetime
    written: Annotated[str, doc("Its name on the store's menu.")]
    category: str | None
    variants: Raw
    thc_lo: Decimal | None
    thc_hi: Decimal | None
    thc_unit: str | None
    cbd_lo: Decimal | None
    cbd_hi: Decimal | None
    cbd_unit: str | None
    cannabinoids: Raw | None
    terpenes: Raw | None
    batch: Raw | None
    quantity_sold: int | None
    quantity: int | None
    quantity_capped: bool
    specials: Raw | None
    description: str | None
    brand_description: str | None
    local_image_path: str | None
    medical: bool
    seen_at: datetime
    menu_url: str | None
    meters: int | None
    usual_per_gram: int | None
    item_url: Annotated[str | None, doc("Its address on the store's menu, if the menu gives it.")]
    item_slug: Annotated[str | None, doc("Its name in addresses of the platform.")]
    address: str | None
    zipcode: str | None
    latitude: float | None
    longitude: float | None
    hours: Annotated[Raw | None, doc("Opening hours as the platform writes them.")]


class OfferedSize(Struct, frozen=True):
    """A size of an item, with the number of locations that list it and the lowest price of those not out of stock, in cents, and
    the state of a store that has it."""

    size: str | None
    stores: int
    price: int | None
    state: str | None
    from_name: bool = False


class OtherMenu(Struct, frozen=True):
    """Another menu of a store's location."""

    id: int
    name: str
    platform: str
    seen_at: datetime
    fresher: bool


class ListedStore(Struct, frozen=True):
    """A visible store with the number of its offers; `meters` as in Offer."""

    id: int
    name: str
    address: str | None
    city: str | None
    state: str | None
    zipcode: str | None
    timezone: str | None
    seen_at: datetime
    offers: int
    is_recreational: bool | None
    is_medical: bool | None
    country: str | None = None
    phone: str | None = None
    menu_url: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    meters: int | None = None
    hours: Raw | None = None


def nearby_values(nearby: NearbyStores | None) -> dict[str, list[int] | None]:
    """The stores in range as query parameters; null without a location."""
    if nearby is None:
        return {"stores": None, "meters": None}
    return {"stores": list(nearby.stores), "meters": list(nearby.meters)}


_ANY_OFFER: Mapping[str, Any] = {
    "sizes": None,
    "in_stock": False,
    "special": False,
    "price_min": None,
    "price_max": None,
    "per_gram_max": None,
    "dropped_since": None,
    "order": "price",
}


async def list_item_cards(
    conn: AsyncConnection[Any],
    ids: Sequence[int],
    nearby: NearbyStores | None = None,
    wanted: Mapping[str, Any] | None = None,
) -> list[ItemCard]:
    """Items as lists show them, in the order of the ids, each with the best offer that is `wanted`, or else with its best one."""
    if not ids:
        return []
    values = {"ids": list(ids), **_ANY_OFFER, **(wanted or {}), **nearby_values(nearby)}
    return await fetch_structs(conn, ItemCard, _q.item_cards, values, prepare=False)


async def _cards_of(
    conn: AsyncConnection[Any],
    query: Any,
    values: dict[str, Any],
    nearby: NearbyStores | None = None,
    wanted: Mapping[str, Any] | None = None,
) -> list[ItemCard]:
    rows = await fetch_all(conn, query, {**values, **nearby_values(nearby)}, prepare=False)
    return await list_item_cards(conn, [row["id"] for row in rows], nearby, wanted)


async def list_drops(
    conn: AsyncConnection[Any], since: datetime, *, nearby: NearbyStores | None = None, limit: int = 8
) -> list[ItemCard]:
    """Items of which a size fell in price since then, largest share first, each with an offer that fell."""
    return await _cards_of(conn, _q.drops, {"since": since, "limit": limit}, nearby, {"dropped_since": since})


async def list_similar(conn: AsyncConnection[Any], item: Item, limit: int = 6) -> list[ItemCard]:
    """Other items of the same brand, those in stock at most stores first."""
    if item.brand_id is None:
        return []
    return await _cards_of(conn, _q.similar, {"brand_id": item.brand_id, "id": item.id, "limit": limit})


async def list_totals(conn: AsyncConnection[Any], kind: str, limit: int = 100) -> list[Row]:
    """Totals for each `category` or `brand`, or for `all`; some minutes old."""
    return await fetch_all(conn, _q.totals, {"kind": kind, "limit": limit})


async def get_item(conn: AsyncConnection[Any], item_id: int) -> Item | None:
    """One item, including one that no store offers at the moment; None if it does not exist."""
    return await fetch_struct(conn, Item, _q.item, {"id": item_id})


async def get_present_item(conn: AsyncConnection[Any], item_id: int) -> Item | None:
    """The item that an address with this number leads to: that of the present product, if it was merged into another one
    or all its listings were matched to another one."""
    item = await get_item(conn, item_id)
    if item is not None and item.stores:
        return item
    row = await fetch_one(conn, _q.moved_to, {"id": item_id})
    moved = await get_item(conn, row["id"]) if row is not None and row["id"] is not None else None
    return moved or item


async def list_sizes(conn: AsyncConnection[Any], item_id: int) -> list[OfferedSize]:
    """The sizes of the item, by weight, then by content; options without a size last."""
    sizes = await fetch_structs(conn, OfferedSize, _q.item_sizes, {"id": item_id})
    return sorted(sizes, key=lambda size: size_order(size.size))


async def list_offers(
    conn: AsyncConnection[Any],
    item_id: int,
    nearby: NearbyStores | None = None,
    *,
    size: str | None = None,
    per_size: int = 60,
    limit: int = 100,
) -> list[Offer]:
    """Offers of the item at the first `per_size` locations of each size, or of one `size`, at most `limit` locations: those not out of
    stock first, nearest first if a location is given, else cheapest first."""
    values = {
        **nearby_values(nearby),
        "id": item_id,
        "by_distance": nearby is not None,
        "size": size,
        "per_size": per_size,
        "limit": limit,
    }
    return await fetch_structs(conn, Offer, _q.offers, values, prepare=False)


async def list_stores(
    conn: AsyncConnection[Any],
    *,
    state: str | None = None,
    nearby: NearbyStores | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[ListedStore]:
    """The freshest menu of each location after the store with that id: by distance if a location is given, else by city and name."""
    last = await get_store(conn, after) if after is not None else None
    values = {
        **nearby_values(nearby),
        "state": state,
        "after_city": (last.city or "") if last else None,
        "after_name": last.name if last else None,
        "after_id": last.id if last else None,
        "limit": limit,
    }
    return await fetch_structs(conn, ListedStore, _q.stores, values, prepare=False)


async def get_store(conn: AsyncConnection[Any], store_id: int) -> ListedStore | None:
    """One visible store; None if there is none."""
    return await fetch_struct(conn, ListedStore, _q.store, {"id": store_id}) if store_id < 2**31 else None


async def list_other_menus(conn: AsyncConnection[Any], store_id: int) -> list[OtherMenu]:
    """The other menus of the store's location, the freshest first."""
    return await fetch_structs(conn, OtherMenu, _q.other_menus, {"id": store_id})


async def list_states(conn: AsyncConnection[Any]) -> list[Row]:
    """States with their number of locations and their offers."""
    return await fetch_all(conn, _q.states, {})


async def list_store_categories(conn: AsyncConnection[Any], store_id: int) -> list[Row]:
    """Categories of a store's menu with their number of items, largest first."""
    return await fetch_all(conn, _q.store_categories, {"id": store_id})


async def list_store_menu(conn: AsyncConnection[Any], store_id: int, per_category: int) -> list[ItemCard]:
    """The first items of each category of a store's menu, with that store's offers."""
    rows = await fetch_all(conn, _q.store_menu, {"id": store_id, "per_category": per_category})
    return await list_item_cards(conn, [row["id"] for row in rows], NearbyStores(stores=(store_id,), meters=(0,)))


async def get_brand(conn: AsyncConnection[Any], name: str) -> Row | None:
    """A brand by its slug, or by another way to write it; the present one of a merged brand. None if there is none."""
    return await fetch_one(conn, _q.brand, {"slug": slug(name), "alias": " ".join(words(name))})


async def get_brand_totals(conn: AsyncConnection[Any], brand_id: int) -> Row:
    """A brand's number of items, lowest price and categories."""
    (totals,) = await fetch_all(conn, _q.brand_totals, {"id": brand_id})
    return totals | {"categories": await fetch_all(conn, _q.brand_categories, {"id": brand_id})}


async def last_item_id(conn: AsyncConnection[Any]) -> int:
    """The highest item id; 0 without items."""
    (row,) = await fetch_all(conn, _q.last_item_id, {})
    return int(row["last"] or 0)


async def list_sitemap_items(conn: AsyncConnection[Any], first: int, last: int) -> list[Row]:
    """Items on a menu with ids from `first` to below `last`."""
    return await fetch_all(conn, _q.sitemap_items, {"first": first, "last": last})


async def list_sitemap_stores(conn: AsyncConnection[Any]) -> list[Row]:
    """Every visible store."""
    return await fetch_all(conn, _q.sitemap_stores, {})


async def list_sitemap_brands(conn: AsyncConnection[Any], limit: int) -> list[Row]:
    """The first brands by id."""
    return await fetch_all(conn, _q.sitemap_brands, {"limit": limit})
