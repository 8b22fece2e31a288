"""Tools about products: listings, canonical products, offers near a place, history, changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Raw, Struct
from pydantic import Field

from menuwatch.analytics import products as canonical
from menuwatch.analytics.products import CanonicalFilter, CanonicalOffer, CanonicalProductDetail, CanonicalProductRow
from menuwatch.catalog import changes, history, service
from menuwatch.catalog.changes import Change, ChangeFilter, Kind
from menuwatch.catalog.history import Gap, ProductState
from menuwatch.catalog.match_changes import MatchChange
from menuwatch.catalog.service import Order, Product, ProductDetail, ProductFilter, Span
from menuwatch.catalog.taxonomy.categories import Category
from menuwatch.core.errors import InvalidField
from menuwatch.core.shapes import doc
from menuwatch.geo.units import METERS_PER_MILE, meters_between
from menuwatch.mcp.answer import Page, as_brief, either, encode, in_brief
from menuwatch.mcp.inputs import (
    BRAND,
    CANONICAL,
    CATEGORY,
    STATE,
    STORE,
    TEXT,
    WHEN,
    Moment,
    NearInput,
    PastMoment,
    day_of,
)
from menuwatch.mcp.tool import Call, ListInput, Tool, state_name, tool
from menuwatch.stores.service import StoreFilter, explain_no_stores_near, list_stores
from menuwatch.web.inputs import BigId, Input, Search, State, StoreId, Text

_KEPT_OFF_LISTS = (
    "provider_product_id", "category", "subcategory", "strain_type", "price_rec", "price_rec_special", "price_med",
    "price_med_special", "image_url", "local_image_path", "consecutive_misses", "quantity_capped",
)  # fmt: skip
Listing = in_brief(Product, "Listing", *_KEPT_OFF_LISTS)
ListingDetail = in_brief(ProductDetail, "ListingDetail", "image_url", "local_image_path", "images", "extra")
_KEYS: dict[Order, Any] = {
    Order.NAME: tuple[str, int],
    Order.PRICE: tuple[Decimal, int],
    Order.PRICE_DESCENDING: tuple[Decimal, int],
    Order.UPDATED: tuple[datetime, int],
}


class ProductsInput(ListInput):
    """Which listings."""

    q: Search | None = TEXT
    brand: Text | None = BRAND
    category: Category | None = CATEGORY
    state: State | None = STATE
    store_id: StoreId | None = STORE
    canonical_product_id: BigId | None = CANONICAL
    on_menu: bool | None = Field(
        True, description="`true`: on the last menu of their store; `false`: no longer; null: both."
    )
    in_stock: bool | None = Field(None, description="Only those in stock (`true`) or out of stock (`false`).")
    price_min: float | None = Field(
        None, ge=0, le=1e7, allow_inf_nan=False, description="Lowest price of the cheapest option."
    )
    price_max: float | None = Field(
        None, ge=0, le=1e7, allow_inf_nan=False, description="Highest price of the cheapest option."
    )
    new_since: PastMoment | None = Field(None, description=f"Only those first seen on a menu since then: {WHEN}.")
    order: Literal["name", "price", "-price", "updated"] = Field(
        "name", description="`price`: cheapest first; `updated`: most recently changed first."
    )


async def _brands(call: Call, brand: str | None) -> list[str] | None:
    """The spellings of a brand name, as filters of listings take them."""
    return None if brand is None else await service.brand_spellings(call.conn, [brand]) or [brand]


def _money(price: float | None) -> Decimal | None:
    return None if price is None else Decimal(str(price))


def _stock(in_stock: bool | None) -> list[str] | None:
    return None if in_stock is None else ["in_stock"] if in_stock else ["oos"]


@tool("Search products", ProductsInput, row=Listing)
async def search_products(call: Call, query: ProductsInput) -> Page:
    """Listings: items as individual stores list them, with price, sizes (`variants`), stock and potency, as of the last crawl of each
    store."""
    order = Order(query.order)
    where = ProductFilter(
        q=query.q,
        brands=await _brands(call, query.brand),
        categories_canon=None if query.category is None else [query.category],
        states=None if query.state is None else [query.state],
        stores=None if query.store_id is None else [query.store_id],
        canonical_products=None if query.canonical_product_id is None else [query.canonical_product_id],
        present=query.on_menu,
        stock=_stock(query.in_stock),
        price_min=_money(query.price_min),
        price_max=_money(query.price_max),
        new_since=day_of("new_since", query.new_since),
    )
    found = await service.list_products(call.conn, where, order=order, after=call.after(_KEYS[order]), limit=call.limit)
    scope = state_name(query.state) if query.store_id is None else f"store {query.store_id}"
    observed = await call.observed(
        scope,
        StoreFilter(states=where.states),
        where.stores,
        shown=[row.dispensary_id for row in found.items] or None,
    )
    return Page(rows=[as_brief(Listing, row) for row in found.items], next=found.next, **observed)


class ProductInput(Input):
    """Which listing."""

    product_id: BigId = Field(description="Id of the listing, as from search_products.")


@tool("Get a product", ProductInput, product=ListingDetail)
async def get_product(call: Call, query: ProductInput) -> Page:
    """One listing with all its sizes and their prices (`variants`), potency, terpenes, batch and promotions."""
    found = await service.get_product(call.conn, query.product_id)
    observed = await call.observed(f"store {found.store}", StoreFilter(), [found.dispensary_id])
    return Page(members={"product": as_brief(ListingDetail, found)}, **observed)


class CanonicalsInput(ListInput):
    """Which canonical products."""

    q: Search | None = Field(None, description="Only those whose name or brand contains this text, in any case.")
    brand_id: StoreId | None = Field(None, description="Only this brand (id).")
    category: Category | None = CATEGORY


@tool("Search canonical products", CanonicalsInput, row=CanonicalProductRow)
async def search_canonical_products(call: Call, query: CanonicalsInput) -> Page:
    """Canonical products: the same item across all stores and sizes, with the prices of each size. Those in the most stores come
    first."""
    where = CanonicalFilter(q=query.q, brand_id=query.brand_id, category=query.category)
    found = await canonical.list_canonical_products(
        call.conn, where, after=call.after(tuple[int, int]), limit=call.limit
    )
    return Page(rows=found.items, next=found.next, **await call.observed("all stores", StoreFilter()))


CanonicalDetail = in_brief(CanonicalProductDetail, "CanonicalDetail", "offers")


class CanonicalInput(ListInput):
    """Which canonical product."""

    canonical_product_id: BigId = Field(
        description="Id, as from search_canonical_products; merged ones lead to their successor."
    )
    state: State | None = STATE


@tool("Get a canonical product with its offers", CanonicalInput, row=CanonicalOffer, product=CanonicalDetail)
async def get_canonical_product(call: Call, query: CanonicalInput) -> Page:
    """One canonical product with every store's current price for each size, cheapest first."""
    found = await canonical.get_canonical_product(call.conn, query.canonical_product_id, state=query.state)
    rows, following = call.part_of(found.offers)
    where = StoreFilter(states=None if query.state is None else [query.state])
    observed = await call.observed(
        state_name(query.state), where, shown=[offer.dispensary_id for offer in found.offers] or None
    )
    return Page(rows=rows, next=following, members={"product": as_brief(CanonicalDetail, found)}, **observed)


NearbyOffer = in_brief(
    Product,
    "NearbyOffer",
    *_KEPT_OFF_LISTS,
    miles=Annotated[Decimal, doc("Distance of the store from the place, in miles.")],
)


class OffersNearInput(ListInput, NearInput):
    """Which offers near which place."""

    q: Search | None = TEXT
    brand: Text | None = BRAND
    category: Category | None = CATEGORY
    canonical_product_id: BigId | None = CANONICAL
    price_max: float | None = Field(
        None, ge=0, le=1e7, allow_inf_nan=False, description="Highest price of the cheapest option."
    )


@tool("List offers near a place", OffersNearInput, row=NearbyOffer)
async def list_offers_near(call: Call, query: OffersNearInput) -> Page:
    """Listings on the menus of stores near a place and not out of stock, cheapest first, with the distance of the store. For the price
    of one size across stores use get_canonical_product."""
    circle, label = query.area
    stores = {store.id: store for store in await list_stores(call.conn, StoreFilter(circle=circle), limit=None)}
    where = ProductFilter(
        stores=list(stores),
        q=query.q,
        brands=await _brands(call, query.brand),
        categories_canon=None if query.category is None else [query.category],
        canonical_products=None if query.canonical_product_id is None else [query.canonical_product_id],
        price_max=_money(query.price_max),
        present=True,
        stock=["in_stock", "unknown"],
    )
    after = call.after(_KEYS[Order.PRICE])
    found = await service.list_products(call.conn, where, order=Order.PRICE, after=after, limit=call.limit)
    rows = []
    for row in found.items:
        store = stores[row.dispensary_id]
        meters = meters_between((circle.latitude, circle.longitude), (store.latitude or 0, store.longitude or 0))
        rows.append(as_brief(NearbyOffer, row, miles=Decimal(f"{meters / METERS_PER_MILE:.1f}")))
    observed = await call.observed(
        label, StoreFilter(circle=circle), shown=[row.dispensary_id for row in found.items] or None
    )
    notice = None if stores else await explain_no_stores_near(call.conn)
    return Page(rows=rows, next=found.next, notice=notice, **observed)


class HistoryInput(ListInput):
    """Which listing, and when."""

    product_id: BigId = Field(description="Id of the listing, as from search_products.")
    since: PastMoment | None = Field(None, description=f"Start: {WHEN}. The state in force then is included.")
    until: Moment | None = Field(None, description=f"End: {WHEN}.")


class HistoryOf(Struct, kw_only=True, frozen=True):
    """The listing of a history."""

    id: int
    name: str
    brand_name: str | None
    dispensary_id: int
    store: str
    currency: Annotated[str, doc("Currency of the prices: USD, or CAD at stores in Canada.")]


def _span(since: str | None, until: str | None) -> Span:
    span = Span(since=day_of("since", since), until=day_of("until", until))
    if span.since is not None and span.until is not None and span.since >= span.until:
        raise InvalidField("until", f"{until} is not after since, {since}")
    return span


@tool(
    "Get the history of a product",
    HistoryInput,
    row=ProductState,
    product=HistoryOf,
    gaps=Annotated[list[Gap], doc("Times of this page in which the store was not observed.")],
)
async def get_price_history(call: Call, query: HistoryInput) -> Page:
    """Prices, stock and potency of one listing over time: a row for each change, newest first."""
    listing = await service.get_product(call.conn, query.product_id)
    after = call.after(tuple[datetime])
    past = await history.get_history(
        call.conn,
        query.product_id,
        _span(query.since, query.until),
        after=after[0] if after else None,
        limit=call.limit,
        archived=call.archived,
    )
    observed = await call.observed(f"store {listing.store}", StoreFilter(), [listing.dispensary_id])
    return Page(
        rows=past.states,
        next=None if past.next is None else (past.next,),
        members={"product": as_brief(HistoryOf, listing), "gaps": past.gaps},
        **observed,
    )


class ChangesInput(ListInput):
    """Which changes."""

    since: PastMoment = Field("24h", description=f"Start: {WHEN}.")
    until: Moment | None = Field(None, description=f"End: {WHEN}.")
    kind: Kind | None = Field(
        None,
        description="`price_drop`, `price_rise`: of the cheapest option; `price`, `stock`: any such change; `out_of_stock`, "
        "`back_in_stock`; `merged`, `split`: canonical products.",
    )
    state: State | None = STATE
    store_id: StoreId | None = STORE
    category: Category | None = CATEGORY
    brand: Text | None = BRAND
    canonical_product_id: BigId | None = CANONICAL
    percent: float | None = Field(
        None,
        gt=0,
        le=10_000,
        allow_inf_nan=False,
        description="Only prices that changed by at least this many percent.",
    )


async def _list_changes(call: Call, query: Any, where: ChangeFilter) -> Page:
    where = replace(
        where,
        span=_span(query.since, query.until),
        states=None if query.state is None else [query.state],
        stores=None if query.store_id is None else [query.store_id],
        categories=None if query.category is None else [query.category],
        brands=None if query.brand is None else [query.brand],
        canonical_products=None if query.canonical_product_id is None else [query.canonical_product_id],
    )
    after = call.after(tuple[datetime, int])
    found = await changes.list_changes(call.conn, where, after=after, limit=call.limit)
    scope = state_name(query.state) if query.store_id is None else f"store {query.store_id}"
    observed = await call.observed(scope, StoreFilter(states=where.states), where.stores)
    notice = None if found.items or after is not None else await changes.why_empty(call.conn, where)
    return Page(rows=found.items, next=found.next, notice=notice, **observed)


@tool("List changes", ChangesInput, row=either(Change, MatchChange))
async def list_changes(call: Call, query: ChangesInput) -> Page:
    """Price and stock changes since a time (by default within 24 hours), newest first, with the listing before and after."""
    percent = None if query.percent is None else Decimal(str(query.percent))
    page = await _list_changes(call, query, ChangeFilter(kind=query.kind, percent=percent))
    return replace(page, rows=[Raw(encode(row)) for row in page.rows])


class StockOutsInput(ListInput):
    """Which stock-outs."""

    since: PastMoment = Field("7d", description=f"Start: {WHEN}.")
    until: Moment | None = Field(None, description=f"End: {WHEN}.")
    state: State | None = STATE
    store_id: StoreId | None = STORE
    category: Category | None = CATEGORY
    brand: Text | None = BRAND
    canonical_product_id: BigId | None = CANONICAL


@tool("List what went out of stock", StockOutsInput, row=Change)
async def list_stock_outs(call: Call, query: StockOutsInput) -> Page:
    """Listings that went out of stock, by default within 7 days, newest first: one row each time. `present` false: three crawls in a
    row missed it."""
    return await _list_changes(call, query, ChangeFilter(kind=Kind.OUT_OF_STOCK))


TOOLS: tuple[Tool[Any], ...] = (
    search_products,
    get_product,
    search_canonical_products,
    get_canonical_product,
    list_offers_near,
    get_price_history,
    list_changes,
    list_stock_outs,
)
