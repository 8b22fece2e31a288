"""Price and stock changes, and merged and split products: newest first, and as a feed."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import (
    BRAND_IDS,
    CANONICAL_PRODUCTS,
    LOCATIONS,
    BigId,
    LongPageQuery,
    NearQuery,
    SpanQuery,
    State,
    StoreId,
    Text,
)
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import page, returns_page
from menuwatch.catalog import changes
from menuwatch.catalog.changes import Change, ChangeFilter, Kind
from menuwatch.catalog.match_changes import MatchChange
from menuwatch.catalog.service import Span
from menuwatch.catalog.taxonomy.categories import Category
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api/changes", tags=["catalog"], dependencies=[require(Permission.READ)])


class ChangesQuery(LongPageQuery, SpanQuery, NearQuery):
    """Filter of changes."""

    kind: Kind | None = Field(
        None,
        description="Only price or only stock changes; or price drops and rises of the cheapest option, or products "
        "that went out of stock or came back; or canonical products that were merged or split, which belong to no store: a "
        "filter by store, state, location, position or percentage excludes them.",
    )
    store: list[StoreId] | None = Field(None, description="Only these stores (repeatable).")
    state: list[State] | None = Field(None, description="Only stores in these states, for example NM (repeatable).")
    category_canon: list[Category] | None = Field(None, description="Only these canonical categories (repeatable).")
    brand: list[Text] | None = Field(None, description="Only these brands, case-insensitive (repeatable).")
    canonical_product_id: list[BigId] | None = CANONICAL_PRODUCTS
    brand_id: list[StoreId] | None = BRAND_IDS
    location_id: list[StoreId] | None = LOCATIONS
    percent: Decimal | None = Field(
        None,
        gt=0,
        le=10_000,
        description="Only prices that changed by at least this much, in percent of the price before.",
    )


def _filter(query: ChangesQuery) -> ChangeFilter:
    return ChangeFilter(
        span=Span(since=query.since, until=query.until),
        kind=query.kind,
        stores=query.store,
        states=query.state,
        categories=query.category_canon,
        brands=query.brand,
        percent=query.percent,
        canonical_products=query.canonical_product_id,
        brand_ids=query.brand_id,
        locations=query.location_id,
        circle=query.circle,
    )


_NOTICE = {
    "anyOf": [{"type": "string"}, {"type": "null"}],
    "description": "Reason why the list is empty; null if it is not empty, or if the reason is unknown.",
}


@router.get("", **returns_page(Change, MatchChange, notice=_NOTICE), summary="List changes, newest first")
async def list_changes(request: Request, conn: ReadConn, query: Annotated[ChangesQuery, Query()]) -> Response:
    """Lists each price or stock change between two crawls of a store, with the product before and after it, by the time of the
    later crawl. Canonical products that were merged or split are listed among them: `type` distinguishes them.

    A crawl that is accepted late appears further down, at its own time. A program that must not miss anything reads the feed.
    With rare matches a page may be short or empty and still have a `next`.
    """
    where = _filter(query)
    keys = Keyset(query, tuple[datetime, int], "changes", where)
    rows = await changes.list_changes(conn, where, after=keys.after, limit=query.limit)
    has_some = rows.items or rows.next is not None or keys.after is not None
    notice = None if has_some else await changes.why_empty(conn, where)
    return page(request, rows.items, keys.cursor(rows.next), notice=notice)


_NEXT = {"type": "string", "description": "Cursor for the next request. Always present: use it again later."}
_MORE = {
    "type": "boolean",
    "description": "Whether more changes are available now. A page may be short or empty and still have more behind it.",
}


@router.get("/feed", **returns_page(Change, MatchChange, next=_NEXT, more=_MORE), summary="Get the change feed")
async def follow_changes(request: Request, conn: ReadConn, query: Annotated[ChangesQuery, Query()]) -> Response:
    """Returns the same changes in the order in which crawls were accepted, and by product within a crawl. Store `next` and use it
    for the next request: it returns everything accepted since, once, including crawls with older times. Without a cursor the
    feed starts with the first crawl. A store that is rebuilt from its archive appears again: a change is identified by its
    product and time."""
    where = _filter(query)
    keys = Keyset(query, tuple[int, int], "change feed", where)
    rows = await changes.read_feed(conn, where, after=keys.after or (0, 0), limit=query.limit)
    return page(request, rows.items, keys.cursor(rows.next), more=rows.more)
