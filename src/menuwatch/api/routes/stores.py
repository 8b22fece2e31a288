"""Stores: list, get, add, change, and their menus."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from msgspec import Struct
from pydantic import Field, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import (
    INTEGER_MAX,
    Input,
    Instant,
    LongPageQuery,
    NearQuery,
    Search,
    StorePath,
    Text,
)
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import IfMatch, answer, check_if_match, returns, returns_page, tag_of
from menuwatch.api.routes.job_queue import ALREADY_PENDING, enqueued
from menuwatch.api.routes.products import StoreProductQuery, answer_products
from menuwatch.catalog import history
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import Menu
from menuwatch.catalog.service import Product
from menuwatch.core.shapes import doc
from menuwatch.pipeline import store_changes, store_merge
from menuwatch.pipeline.store_changes import RemovedStore
from menuwatch.pipeline.store_discovery import add_store as add_store_by_url
from menuwatch.pipeline.store_merge import MergedStore
from menuwatch.queue.enqueue import EnqueuedTask
from menuwatch.stores import editing
from menuwatch.stores import service as stores
from menuwatch.stores.service import Freshness, StoreDetail, StoreFilter
from menuwatch.stores.store import Store
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

router = APIRouter(prefix="/api/stores", tags=["stores"], dependencies=[require_by_method(Permission.STORES)])


class StoreQuery(LongPageQuery, NearQuery):
    """Which stores."""

    platform: Text | None = Field(None, description="Only stores on this platform.")
    state: list[Text] | None = Field(None, description="Only stores in these states or provinces (repeatable).")
    crawl_enabled: bool | None = Field(
        None, description="Only stores with crawling enabled (`true`) or disabled (`false`)."
    )
    freshness: list[Freshness] | None = Field(
        None,
        description="Only stores with a menu of this age (repeatable). `late`: overdue by a quarter of the crawl interval; "
        "`stale`: twice as old as the interval; `off`: crawling disabled.",
    )
    q: Search | None = Field(
        None, description="Only stores whose name, city or slug contains this text, case-insensitive."
    )
    updated_since: Instant | None = Field(
        None, description="Only stores that were crawled or changed at or after this time (ISO 8601 with offset)."
    )


class NewStore(Input):
    """A store to add."""

    menu_url: Text = Field(
        min_length=1,
        max_length=2000,
        description="URL of the menu.",
        examples=["https://dutchie.com/dispensary/green-leaf"],
    )
    platform: Text | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Platform of the menu; needed only for menus on shops' own sites.",
        examples=["dutchie"],
    )


class StoreChange(Input):
    """Changes to a store; omitted fields keep their value."""

    crawl_enabled: bool | None = Field(None, strict=True, description="Whether crawling is enabled.")
    crawl_interval_hours: Decimal | None = Field(
        None,
        ge=stores.SHORTEST_HOURS,
        le=stores.LONGEST_HOURS,
        description="Crawl interval in hours, rounded to hundredths.",
    )
    menu_url: Text | None = Field(
        None,
        min_length=1,
        max_length=2000,
        description="URL of the menu, on the same platform. A store that is not resolved yet takes its slug and is resolved again.",
    )
    shown: bool | None = Field(
        None, strict=True, description="Whether the public site shows the store. Null: only while crawling is enabled."
    )
    name: Text | None = Field(
        None, max_length=2000, description="Name. Null in this field or those below: use the platform's value."
    )
    address: Text | None = Field(None, max_length=2000, description="Street and number.")
    city: Text | None = Field(None, max_length=2000, description="City.")
    state: Text | None = Field(None, max_length=2000, description="State or province, for example CO or ON.")
    zipcode: Text | None = Field(None, max_length=2000, description="ZIP or postal code.")
    latitude: float | None = Field(None, strict=True, description="Latitude in degrees; requires the longitude.")
    longitude: float | None = Field(None, strict=True, description="Longitude in degrees; requires the latitude.")
    timezone: Text | None = Field(None, max_length=2000, description="IANA time zone, for example America/Denver.")

    @model_validator(mode="after")
    def _not_empty(self) -> StoreChange:
        given = [
            name for name in ("crawl_enabled", "crawl_interval_hours", "menu_url") if getattr(self, name) is not None
        ]
        if not given and not self.model_fields_set.intersection(("shown", *editing.DETAILS)):
            raise ValueError(
                "nothing to change: give crawl_enabled, crawl_interval_hours, menu_url, shown, "
                + ", ".join(editing.DETAILS)
            )
        return self

    @property
    def details(self) -> dict[str, str | float | None]:
        """Details present in the request, by field name."""
        return {name: getattr(self, name) for name in editing.DETAILS if name in self.model_fields_set}


class RemovalQuery(Input):
    """How to remove a store."""

    dry_run: bool = Field(False, description="Only count what would be removed.")


class StoreMerge(Input):
    """Which store a store is merged into."""

    into: int = Field(ge=1, le=INTEGER_MAX, strict=True, description="Id of the store that stays.")
    dry_run: bool = Field(False, strict=True, description="Only count what would be moved and removed.")


class MenuQuery(Input):
    """Which moment."""

    at: Instant | None = Field(None, description="Point in time (ISO 8601 with offset); now if omitted.")


class AddedStore(Struct, frozen=True):
    """A store that was added."""

    store: Annotated[StoreDetail, doc("The store; its details follow after the platform was requested.")]
    task_id: Annotated[int, doc("The `entry_point_discovery` task that resolves the store.")]


@router.get("", **returns_page(Store), summary="List stores")
async def list_stores(request: Request, conn: ReadConn, query: Annotated[StoreQuery, Query()]) -> Response:
    """Lists all known stores by id."""
    where = StoreFilter(
        platform=query.platform,
        states=query.state,
        crawl_enabled=query.crawl_enabled,
        freshness=query.freshness,
        q=query.q,
        circle=query.circle,
        updated_since=query.updated_since,
    )
    keys = Keyset(query, int, "stores", where)
    rows = await stores.list_stores(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda store: store.id)


@router.post("", **returns(AddedStore, 201), summary="Add a store by its menu URL")
async def add_store(request: Request, app: AppDep, conn: WriteConn, new: NewStore) -> Response:
    """Creates the store immediately; a worker then resolves it on the platform and starts its first crawl."""
    added, task_id = await add_store_by_url(conn, app.platforms, new.menu_url, new.platform)
    store = await stores.get_store(conn, added.id)
    headers = {"Location": f"/api/stores/{added.id}"}
    return answer(request, AddedStore(store, task_id), status=201, headers=headers)


@router.get("/{store_id}", **returns(StoreDetail), summary="Get a store")
async def get_store(request: Request, conn: ReadConn, store_id: StorePath) -> Response:
    """Returns one store with the changes of its last crawl."""
    return answer(request, await stores.get_store(conn, store_id))


@router.patch("/{store_id}", **returns(StoreDetail), summary="Change a store")
async def change_store(
    request: Request, app: AppDep, conn: WriteConn, store_id: StorePath, change: StoreChange, if_match: IfMatch = None
) -> Response:
    """Changes crawling, crawl interval, menu URL, visibility on the public site, name, address, coordinates or time zone. A store with
    crawling disabled is never contacted. Name, address, coordinates and time zone set here override the platform's."""
    await stores.lock_store(conn, store_id)
    check_if_match(if_match, await stores.get_store(conn, store_id), f"store {store_id}")
    await stores.change_crawl_settings(
        conn, store_id, enabled=change.crawl_enabled, interval_hours=change.crawl_interval_hours
    )
    if change.menu_url is not None:
        await store_changes.set_menu_url(conn, app.platforms, store_id, change.menu_url)
    if "shown" in change.model_fields_set:
        await editing.set_shown(conn, store_id, change.shown)
    await editing.set_details(conn, store_id, change.details)
    now = await stores.get_store(conn, store_id)
    return answer(request, now, headers={"ETag": tag_of(now)})


@router.delete("/{store_id}", **returns(RemovedStore), summary="Remove a store")
async def remove_store(
    request: Request, app: AppDep, store_id: StorePath, query: Annotated[RemovalQuery, Query()]
) -> Response:
    """Removes the store with its payloads, products, history and alert rules, cancels its tasks, and returns what was removed.
    Finished tasks and the audit log stay."""
    async with app.pool.connection(timeout=10) as conn:
        return answer(request, await store_changes.remove_store(conn, app.archive, store_id, dry_run=query.dry_run))


@router.post("/{store_id}/merge", **returns(MergedStore), summary="Merge a store into another one")
async def merge_store(request: Request, app: AppDep, store_id: StorePath, merge: StoreMerge) -> Response:
    """For two rows of one shop: payloads, products, history, finished tasks and alert rules move to the store that stays, and this one
    is removed. If both have a catalog, it is rebuilt from the payloads of both. Refused (409) if history would be lost."""
    merged = await store_merge.merge_stores(
        app.pool, app.archive, app.platforms, store_id, merge.into, dry_run=merge.dry_run
    )
    return answer(request, merged)


@router.post("/{store_id}/crawl", **returns(EnqueuedTask, 201, ALREADY_PENDING), summary="Crawl a store now")
async def crawl_store(request: Request, app: AppDep, conn: WriteConn, store_id: StorePath) -> Response:
    """Enqueues a crawl ahead of scheduled work; a store that is not resolved yet is resolved first."""
    queued = await store_changes.crawl_now(conn, app.platforms, await stores.get_store(conn, store_id))
    return enqueued(request, queued)


@router.post("/{store_id}/pause", **returns(StoreDetail), summary="Pause a store")
async def pause_store(request: Request, conn: WriteConn, store_id: StorePath) -> Response:
    """Disables crawling: the store is not contacted until it is resumed. Idempotent."""
    await stores.change_crawl_settings(conn, store_id, enabled=False)
    return answer(request, await stores.get_store(conn, store_id))


@router.post("/{store_id}/resume", **returns(StoreDetail), summary="Resume a store")
async def resume_store(request: Request, conn: WriteConn, store_id: StorePath) -> Response:
    """Enables crawling again. Idempotent."""
    await stores.change_crawl_settings(conn, store_id, enabled=True)
    return answer(request, await stores.get_store(conn, store_id))


@router.get("/{store_id}/products", **returns_page(Product), summary="List a store's products")
async def list_store_products(
    request: Request, conn: ReadConn, store_id: StorePath, query: Annotated[StoreProductQuery, Query()]
) -> Response:
    """Lists the menu of one store, including products no longer on it."""
    await stores.get_store(conn, store_id)
    return await answer_products(request, conn, query, [store_id])


@router.get("/{store_id}/menu", **returns(Menu), summary="Get a store's menu at a point in time")
async def get_menu(
    request: Request, app: AppDep, conn: ReadConn, store_id: StorePath, query: Annotated[MenuQuery, Query()]
) -> Response:
    """Lists all products of the last crawl before that time, with their prices and stock."""
    await stores.get_store(conn, store_id)
    archived = ParquetPartitions(app.archive.storage)
    return answer(request, await history.get_menu(conn, store_id, query.at or datetime.now(UTC), archived=archived))
