"""History: states, gaps and snapshots of one product, its price over time, and past menus of a store. All of it includes archived
months (`cold_storage`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Raw, Struct
from msgspec.json import Decoder

from menuwatch.catalog.cold_storage import ParquetPartitions, merge_with_archived
from menuwatch.catalog.model import StockStatus
from menuwatch.catalog.service import Span, get_product
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
    PricesByOption,
    Quantity,
    QuantitySold,
    StockByOption,
    Terpenes,
    Thc,
)
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_one, fetch_structs

_q = sql.load(__package__, "history.sql")
_prices = Decoder(list[tuple[str, Decimal | None, Decimal | None, Decimal | None, Decimal | None]], float_hook=Decimal)
_texts = Decoder(list[str])

From = Annotated[Instant, doc("Time of the first crawl with this state.")]
To = Annotated[Instant | None, doc("Time of the last crawl with this state; null if it is current.")]


class ProductState(Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A period in which a product did not change: one row per change, however many crawls confirmed it."""

    from_: From
    to: To
    present: Annotated[bool, doc("False from the third consecutive crawl without the product until it returns.")]
    price: Price
    price_rec: PriceRec
    price_rec_special: PriceRecSpecial
    price_med: PriceMed
    price_med_special: PriceMedSpecial
    prices: PricesByOption
    stock_status: Annotated[StockStatus, doc("Stock of the product as a whole.")]
    quantity: Quantity
    quantity_capped: Capped
    stock: StockByOption
    thc: Thc
    cbd: Cbd


class ProductDetails(Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A period in which a product's batch, lab values and sold count did not change."""

    from_: Annotated[Instant, doc("Time of the first crawl with these values.")]
    to: Annotated[Instant | None, doc("Time of the first crawl with others; null if they are current.")]
    batch: BatchOnSale
    cannabinoids: Cannabinoids
    terpenes: Terpenes
    quantity_sold: QuantitySold


class Gap(Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A period without observations."""

    from_: Annotated[Instant, doc("Time of the last crawl before the gap.")]
    to: Annotated[Instant | None, doc("Time of the first crawl after the gap; null if it is current.")]
    reason: Annotated[
        Literal["absent", "unobserved"],
        doc(
            "`absent`: crawls did not find the product; `unobserved`: the store was not crawled for more than twice its interval."
        ),
    ]


class Snapshot(Struct, kw_only=True, frozen=True):
    """A product as of one crawl."""

    crawled_at: Instant
    payload_id: int
    state_since: Annotated[Instant, doc("Time of the crawl since which the product is unchanged.")]
    price: Price
    price_rec: PriceRec
    price_rec_special: PriceRecSpecial
    price_med: PriceMed
    price_med_special: PriceMedSpecial
    prices: PricesByOption
    stock_status: Annotated[StockStatus, doc("Stock of the product as a whole.")]
    is_in_stock: Annotated[bool | None, doc("Null if unknown.")]
    quantity: Quantity
    quantity_capped: Capped
    stock: StockByOption
    thc: Thc
    cbd: Cbd


class ProductHistory(Struct, frozen=True, kw_only=True):
    """States of one product, newest first, the gaps between them, and where the next page starts (None at the end)."""

    states: list[ProductState]
    gaps: list[Gap]
    next: datetime | None


async def get_history(
    conn: Connection,
    product_id: int,
    span: Span,
    *,
    after: datetime | None = None,
    limit: int = 50,
    archived: ParquetPartitions | None = None,
) -> ProductHistory:
    """The product's states that were in force in `span`, those that began before `after`; raises NotFound.

    Gaps are those of the time that the page covers, so every gap is on some page.
    """
    await get_product(conn, product_id)

    async def read(archived_states: str) -> ProductHistory:
        product = {"packed": archived_states, "id": product_id}
        page = {"since": span.since, "until": span.until, "after": after, "limit": limit + 1}
        rows = await fetch_structs(conn, ProductState, _q.product_states, {**product, **page})
        states, more = rows[:limit], len(rows) > limit
        covered = {
            "since": states[-1].from_ if more else span.since,
            "until": after if after is not None else span.until,
        }
        gaps = await fetch_structs(conn, Gap, _q.product_gaps, {**product, **covered})
        return ProductHistory(states=states, gaps=gaps, next=states[-1].from_ if more else None)

    return await merge_with_archived(archived, lambda files: files.states_of(product_id), read)


class PriceSpan(Struct, kw_only=True, frozen=True):
    """A time in which a product's presence, prices and stock did not change, and what its options cost."""

    product_id: int
    store_id: int
    from_: datetime
    until: datetime
    present: bool
    prices: Raw
    """[option, price_rec, price_rec_special, price_med, price_med_special] of each option."""
    stock: Raw
    """Option and stock status of each option, one after the other."""

    def options(self) -> list[OptionPrice]:
        """What each option cost, specials included; the medical price only without another one."""
        stock = _texts.decode(self.stock)
        return read_option_prices(self.prices, dict(zip(stock[::2], stock[1::2], strict=True)))


class OptionPrice(Struct, kw_only=True, frozen=True):
    """What an option costs, specials included; `regular` is the higher price without them, if there is one."""

    option: str
    price: Decimal | None
    regular: Decimal | None
    in_stock: bool | None


def read_option_prices(prices: str | Raw, stock: Mapping[str, str] | None = None) -> list[OptionPrice]:
    """What each option of a state cost, from its `prices` and the stock status of its options."""
    known = stock or {}
    found = []
    for option, rec, rec_special, med, med_special in _prices.decode(prices):
        regular, special = (rec, rec_special) if (rec, rec_special) != (None, None) else (med, med_special)
        price = min((one for one in (regular, special) if one is not None), default=None)
        usual = regular if regular is not None and price is not None and regular > price else None
        in_stock = {"in_stock": True, "oos": False}.get(known.get(option, ""))
        found.append(OptionPrice(option=option, price=price, regular=usual, in_stock=in_stock))
    return found


class Unobserved(Struct, kw_only=True, frozen=True):
    """A time in which a store was not crawled for more than twice its interval; `to` is null while it lasts."""

    store_id: int
    from_: datetime
    to: datetime | None


async def list_price_spans(
    conn: Connection,
    product_ids: Sequence[int],
    since: datetime | None,
    now: datetime,
    *,
    archived: ParquetPartitions | None = None,
) -> list[PriceSpan]:
    """The spans of several products that touch the time since then, by product, oldest first."""
    if not product_ids:
        return []

    async def read(archived_states: str) -> list[PriceSpan]:
        values = {"ids": list(product_ids), "since": since, "now": now, "packed": archived_states}
        return await fetch_structs(conn, PriceSpan, _q.price_spans, values, prepare=False)

    return await merge_with_archived(archived, lambda files: files.states_of_products(product_ids, since), read)


async def list_unobserved(
    conn: Connection, store_ids: Sequence[int], since: datetime | None, now: datetime
) -> list[Unobserved]:
    """When the stores were not crawled, by store, oldest first."""
    return await fetch_structs(conn, Unobserved, _q.unobserved, {"stores": list(store_ids), "since": since, "now": now})


async def list_snapshots(
    conn: Connection,
    product_id: int,
    span: Span,
    *,
    after: datetime | None = None,
    limit: int = 50,
    archived: ParquetPartitions | None = None,
) -> list[Snapshot]:
    """Snapshots of the product at each crawl before `after`, newest first; raises NotFound."""
    await get_product(conn, product_id)
    values = {"id": product_id, "since": span.since, "until": span.until, "after": after, "limit": limit}

    async def read(archived_states: str) -> list[Snapshot]:
        return await fetch_structs(conn, Snapshot, _q.product_snapshots, {**values, "packed": archived_states})

    return await merge_with_archived(archived, lambda files: files.states_of(product_id), read)


async def list_details(
    conn: Connection, product_id: int, span: Span, *, after: datetime | None = None, limit: int = 50
) -> list[ProductDetails]:
    """Batches, lab values and sold counts of the product that were current in `span`, those that began before `after`, newest first;
    raises NotFound. Times in which the menu had none of them are left out. They are never packed."""
    await get_product(conn, product_id)
    values = {"id": product_id, "since": span.since, "until": span.until, "after": after, "limit": limit}
    return await fetch_structs(conn, ProductDetails, _q.product_details, values)


class MenuItem(Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A product on a past menu. Its name, brand and category are the current ones."""

    product_id: int
    provider_product_id: Annotated[str, doc("Id of the product on the platform.")]
    name: str
    brand_name: str | None
    category: Annotated[str | None, doc("Category as the platform names it; null if it has none.")]
    category_canon: Annotated[str | None, doc("Canonical category; null if unknown.")]
    from_: From
    to: To
    price: Price
    price_rec: PriceRec
    price_rec_special: PriceRecSpecial
    price_med: PriceMed
    price_med_special: PriceMedSpecial
    stock_status: Annotated[StockStatus, doc("Stock of the product as a whole.")]
    quantity: Quantity
    quantity_capped: Capped
    canonical_product_id: CanonicalProductId
    brand_id: BrandId
    location_id: LocationId


class Menu(Struct, kw_only=True, frozen=True):
    """The menu of a store at a point in time, as of the last crawl before it."""

    store_id: int
    at: Annotated[Instant, doc("Requested point in time.")]
    crawled_at: Annotated[
        Instant | None,
        doc("Time of the crawl that this menu is from; null if the store had not been crawled by then."),
    ]
    payload_id: Annotated[int | None, doc("Id of its payload; null if it is no longer archived.")]
    items: Annotated[list[MenuItem], doc("Products by name.")]


async def get_menu(conn: Connection, store_id: int, at: datetime, *, archived: ParquetPartitions | None = None) -> Menu:
    """A store's menu at an instant."""
    crawl = await fetch_one(conn, _q.crawl_at, {"dispensary_id": store_id, "instant": at})
    if crawl is None:
        return Menu(store_id=store_id, at=at, crawled_at=None, payload_id=None, items=[])
    items = await list_menu_items(conn, store_id, crawl["crawled_at"], archived=archived)
    return Menu(store_id=store_id, at=at, **crawl, items=items)


async def list_menu_items(
    conn: Connection, store_id: int, at: datetime, *, archived: ParquetPartitions | None = None
) -> list[MenuItem]:
    """The items of `get_menu`."""

    async def read(archived_states: str) -> list[MenuItem]:
        values = {"dispensary_id": store_id, "instant": at, "packed": archived_states}
        return await fetch_structs(conn, MenuItem, _q.store_at, values)

    return await merge_with_archived(archived, lambda files: files.states_of_store(store_id, at), read)


MOST_STEPS = 1000
"""Steps of one price chart: the newest ones."""


class PriceStep(Struct, frozen=True, kw_only=True):
    """The price from `start` to before `end` (None: it is current). `regular` is the list price of the cheapest option, `special` a
    lower price (None without one); both are None without a price. `in_stock` None: unknown; not `listed`: on no menu."""

    start: datetime
    end: datetime | None
    regular: Decimal | None
    special: Decimal | None
    in_stock: bool | None
    listed: bool

    @property
    def price(self) -> Decimal | None:
        """The price, special included."""
        return self.regular if self.special is None else self.special


class PriceSeries(Struct, frozen=True, kw_only=True):
    """Steps and gaps, oldest first. `cut`: there are older steps."""

    steps: Sequence[PriceStep]
    gaps: Sequence[Gap]
    cut: bool


def price_series(history: ProductHistory) -> PriceSeries:
    """The prices of a history. Pure."""
    return PriceSeries(
        steps=[price_step(state) for state in reversed(history.states)],
        gaps=history.gaps[::-1],
        cut=history.next is not None,
    )


def price_step(state: ProductState) -> PriceStep:
    """A state as a step; pure. Medical prices count only without a recreational one, as in every list."""
    regular, special = state.price_rec, state.price_rec_special
    if regular is None and special is None:
        regular, special = state.price_med, state.price_med_special
    return PriceStep(
        start=state.from_,
        end=state.to,
        regular=special if regular is None else regular,
        special=special if regular is not None and special is not None and special < regular else None,
        in_stock={"in_stock": True, "oos": False}.get(state.stock_status),
        listed=state.present,
    )
