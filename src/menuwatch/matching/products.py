"""Canonical products with their listings at all stores."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Raw, Struct

from menuwatch.core.errors import NotFound
from menuwatch.core.shapes import Instant, doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_one, fetch_struct, fetch_structs
from menuwatch.matching.review import Reasons

_q = sql.load(__package__, "products.sql")


class MatchedProduct(Struct, kw_only=True, frozen=True):
    """One product of one brand in all sizes, across stores and platforms."""

    id: int
    name: str
    brand_id: Annotated[int | None, doc("Null if the menus name no brand.")]
    brand: str | None
    category: str | None
    form: str | None
    strain: str | None
    sizes: Annotated[Raw, json_of(list[str]), doc("Sizes that at least one store has offered.")]
    listings: int
    stores: int
    merged_into: Annotated[int | None, doc("Product that it became part of; null if it did not.")]
    merged: Annotated[Raw, json_of(list[int]), doc("Products that became part of it.")]
    created_at: Instant
    changed_at: Instant


class ProductListing(Struct, kw_only=True, frozen=True):
    """One listing of a canonical product."""

    product_id: int
    store_id: int | None
    store: str | None
    platform: str
    name: Annotated[str, doc("As on the menu.")]
    brand: Annotated[str | None, doc("As on the menu; null if it has none.")]
    currency: Annotated[str, doc("Currency of the prices: USD, or CAD at stores in Canada.")]
    price: Annotated[Decimal | None, doc("Of its cheapest option, specials included; null if unknown.")]
    price_rec: Decimal | None
    price_med: Decimal | None
    sizes: Annotated[Raw, json_of(list[str])]
    stock_status: str
    on_menu: Annotated[bool, doc("Whether the last crawl of the store has it.")]
    image_url: str | None
    local_image_path: str | None
    signature_id: int
    linked_to: Annotated[int | None, doc("Signature that it joined the product by; null for the first, or one alone.")]
    confidence: Annotated[float | None, doc("Probability that it belongs to the product, 0 to 1.")]
    reasons: Reasons
    other_product_id: Annotated[
        int | None, doc("Listing of the product that it would be split from; null if all are written alike.")
    ]
    key: Annotated[Decimal, doc("Position in the list: the price, infinite without one.")]


class ProductEvent(Struct, kw_only=True, frozen=True):
    """What became of a canonical product's number."""

    id: int
    at: Instant
    kind: Literal["merged", "split"]
    from_id: int
    to_id: int
    listings: Annotated[int, doc("Number of listings that moved.")]
    cause: Annotated[
        Literal["menu", "correction", "rules"], doc("A changed menu, a person, or new rules of the matcher.")
    ]


Key = tuple[bool, Decimal, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPage:
    """Listings, and the key of the next page (None at the end)."""

    items: list[ProductListing]
    next: Key | None


async def get_canonical_product(conn: Connection, canonical_id: int) -> MatchedProduct:
    """One canonical product, also one that was merged; raises NotFound."""
    product = await fetch_struct(conn, MatchedProduct, _q.get_product, {"id": canonical_id})
    if product is None:
        raise NotFound(f"canonical product {canonical_id} does not exist")
    return product


async def list_listings(
    conn: Connection, canonical_id: int, *, but: int | None = None, after: Key | None = None, limit: int = 50
) -> ListingPage:
    """Listings of a canonical product except `but`: those on a menu first, then by price."""
    on_menu, key, product_id = after if after is not None else (None, None, None)
    values = {
        "id": canonical_id,
        "but": but,
        "after_on_menu": on_menu,
        "after_key": key,
        "after_id": product_id,
        "limit": limit + 1,
    }
    rows = await fetch_structs(conn, ProductListing, _q.list_listings, values, prepare=False)
    shown = rows[:limit]
    last = shown[-1] if len(rows) > limit else None
    return ListingPage(items=shown, next=None if last is None else (last.on_menu, last.key, last.product_id))


async def list_events(
    conn: Connection, canonical_id: int, *, after: int | None = None, limit: int = 50
) -> list[ProductEvent]:
    """Merges and splits of a canonical product, newest first, before the one with the id `after`."""
    return await fetch_structs(conn, ProductEvent, _q.list_events, {"id": canonical_id, "after": after, "limit": limit})


async def canonical_id_of(conn: Connection, product_id: int) -> int | None:
    """The canonical product of a listing; None until it is matched."""
    row = await fetch_one(conn, _q.canonical_of, {"id": product_id})
    return None if row is None else row["canonical_product_id"]
