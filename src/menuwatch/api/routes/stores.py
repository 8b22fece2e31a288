"""Stores: list, look at, add, switch on and off."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging, versions
from menuwatch.api.answers import answer, page, tag_of
from menuwatch.api.routes.products import listing
from menuwatch.api.schemas.common import StorePath
from menuwatch.api.schemas.products import ProductPage, StoreProductQuery
from menuwatch.api.schemas.stores import (
    AddedStore,
    Menu,
    MenuQuery,
    NewStore,
    StoreChange,
    StoreDetail,
    StorePage,
    StoreQuery,
)
from menuwatch.api.versions import IfMatch
from menuwatch.exports.packs import Packs
from menuwatch.operations import history, stores
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/stores", tags=["stores"], dependencies=[allowed_by_method(Permission.STORES)])


@router.get("", response_model=StorePage, summary="List stores")
async def list_stores(request: Request, conn: Reading, query: Annotated[StoreQuery, Query()]) -> Response:
    """Every store that is watched or could be, by number."""
    mark = paging.mark("stores", query.platform, query.state, query.crawl_enabled, query.q)
    after = paging.decode(query.cursor, mark, tuple[int])[0] if query.cursor is not None else None
    found = await stores.page(
        conn,
        platform=query.platform,
        states=query.state,
        crawl_enabled=query.crawl_enabled,
        q=query.q,
        after=after,
        limit=query.limit + 1,
    )
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["id"]) if len(found) > query.limit else None)


@router.post("", response_model=AddedStore, status_code=201, summary="Add a store by the address of its menu")
async def add_store(request: Request, system: Sys, conn: Writing, new: NewStore) -> Response:
    """The store is there at once; a worker then asks the platform which store it is, and makes its first crawl."""
    store_id, task_id = await stores.add_by_url(conn, system.platforms, new.menu_url)
    store = await stores.one(conn, store_id)
    headers = {"Location": f"/api/stores/{store_id}"}
    return answer(request, {"store": store, "task_id": task_id}, status=201, headers=headers)


@router.get("/{store_id}", response_model=StoreDetail, summary="One store")
async def get_store(request: Request, conn: Reading, store_id: StorePath) -> Response:
    """One store with what its last crawl changed."""
    return answer(request, await stores.one(conn, store_id))


@router.patch("/{store_id}", response_model=StoreDetail, summary="Change a store")
async def change_store(
    request: Request,
    conn: Writing,
    store_id: StorePath,
    change: StoreChange,
    if_match: IfMatch = None,
) -> Response:
    """Switches crawling on or off. A store that is off is never contacted."""
    await stores.lock(conn, store_id)
    versions.check(if_match, await stores.one(conn, store_id), f"store {store_id}")
    await stores.set_crawl_enabled(conn, store_id, change.crawl_enabled)
    now = await stores.one(conn, store_id)
    return answer(request, now, headers={"ETag": tag_of(now)})


@router.get("/{store_id}/products", response_model=ProductPage, summary="One store's products")
async def list_store_products(
    request: Request, conn: Reading, store_id: StorePath, query: Annotated[StoreProductQuery, Query()]
) -> Response:
    """The menu of one store, with what was on it before."""
    await stores.one(conn, store_id)
    return await listing(request, conn, query, [store_id])


@router.get("/{store_id}/menu", response_model=Menu, summary="One store's menu at a moment")
async def get_menu(
    request: Request, system: Sys, conn: Reading, store_id: StorePath, query: Annotated[MenuQuery, Query()]
) -> Response:
    """Every product that the newest crawl before the moment saw, at the prices and stock it had then."""
    await stores.one(conn, store_id)
    at = query.at or datetime.now(UTC)
    found = await history.menu_at(conn, store_id, at, packs=Packs(system.archive.root))
    crawl = found.crawl or {"crawled_at": None, "payload_id": None}
    told = {"crawled_at": crawl["crawled_at"], "payload_id": crawl["payload_id"]}
    return answer(request, {"store_id": store_id, "at": at, **told, "items": found.items})
