"""What changed: newest first, and as a feed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import page
from menuwatch.api.schemas.changes import ChangeFeed, ChangePage, ChangesQuery
from menuwatch.operations import changes
from menuwatch.operations.changes import ChangeFilter, Kind
from menuwatch.operations.products import Span
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading

router = APIRouter(prefix="/api/changes", tags=["catalogue"], dependencies=[allowed(Permission.READ)])


def _filter(query: ChangesQuery) -> ChangeFilter:
    return ChangeFilter(
        span=Span(since=query.since, until=query.until),
        kind=None if query.kind is None else Kind(query.kind),
        stores=query.store,
        states=query.state,
        categories=query.category_canon,
        brands=query.brand,
    )


@router.get("", response_model=ChangePage, summary="What changed, newest first")
async def list_changes(request: Request, conn: Reading, query: Annotated[ChangesQuery, Query()]) -> Response:
    """Each change of price or stock between two crawls of a store, with the product before and after it, by the later crawl's date.

    A crawl that is taken in late stands further down, where its date belongs. A program that must not miss anything reads the feed.
    A page of what is rare may be short, or empty, and have a `next`: there may be more further back."""
    where = _filter(query)
    mark = paging.mark("changes", where)
    after = paging.decode(query.cursor, mark, tuple[datetime, int]) if query.cursor is not None else None
    found = await changes.newest(conn, where, after=after, limit=query.limit)
    return page(request, found.rows, paging.encode(mark, *found.next) if found.next else None)


@router.get("/feed", response_model=ChangeFeed, summary="What changed, as a feed to follow")
async def follow_changes(request: Request, conn: Reading, query: Annotated[ChangesQuery, Query()]) -> Response:
    """The same changes in the order in which crawls were taken into the catalogue, and by product within a crawl. Keep `next` and ask
    with it again: everything that was taken in since follows, once, also from crawls with older dates. Without a cursor it begins with
    the first crawl that there is. A store that is rebuilt from its archive comes again: a change is known by its product and date."""
    where = _filter(query)
    mark = paging.mark("change feed", where)
    after = paging.decode(query.cursor, mark, tuple[int, int]) if query.cursor is not None else (0, 0)
    found = await changes.feed(conn, where, after=after, limit=query.limit)
    return page(request, found.rows, paging.encode(mark, *found.next), more=found.more)
