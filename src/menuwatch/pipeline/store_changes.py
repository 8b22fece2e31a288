"""Crawling a store now, editing its menu URL, and removing it.

Each is one transaction. Files of a removed store are deleted after its rows are committed: a crash in between leaves files without a
row, which `menuwatch verify` reports. What happened stays: finished tasks, alert events and the audit log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct, structs

from menuwatch.accounts import audit
from menuwatch.archive.files import FileArchive
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_struct
from menuwatch.pipeline.store_discovery import parse_menu_url
from menuwatch.platforms.base import Platform
from menuwatch.queue import service as tasks
from menuwatch.queue.enqueue import EnqueuedTask, TaskRequest, enqueue
from menuwatch.queue.model import PRIORITY_CHAINED, PRIORITY_URGENT, Role
from menuwatch.queue.task_list import TaskFilter
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

_q = sql.load(__package__, "store_changes.sql")


async def crawl_now(conn: Connection, platforms: Mapping[str, Platform], store: Store) -> EnqueuedTask:
    """Enqueues a crawl of a store ahead of scheduled work; one that is not resolved yet is resolved first."""
    role = Role.PAYLOAD_FETCH if store.platform_dispensary_id else Role.ENTRY_POINT_DISCOVERY
    request = TaskRequest(role=role, dispensary_id=store.id, priority=PRIORITY_URGENT)
    return await enqueue(conn, request, platforms=list(platforms))


class StoreContents(Struct, kw_only=True, frozen=True):
    """What belongs to a store. Finished tasks stay when it is removed; all else goes."""

    payloads: int
    payload_bytes: Annotated[int, doc("Size of their files on disk.")]
    crawls: Annotated[int, doc("Crawls in the catalog.")]
    products: int
    past_states: Annotated[int, doc("Earlier states of its products, in the months that are not packed.")]
    alert_rules: Annotated[int, doc("Alert rules for this store alone.")]
    product_alert_rules: Annotated[int, doc("Alert rules for one of its products.")]
    unfinished_tasks: Annotated[int, doc("Pending and running tasks, which are cancelled.")]
    finished_tasks: Annotated[int, doc("Tasks in the history, which stay until they are cleaned up.")]


class RemovedStore(Struct, kw_only=True, frozen=True):
    """A store that was removed, or would be in a dry run."""

    id: int
    name: str
    slug: str | None
    contents: StoreContents


async def get_contents(conn: Connection, store_id: int) -> StoreContents:
    """What would be removed with a store; raises NotFound."""
    await _get(conn, store_id)
    found = await fetch_struct(conn, StoreContents, _q.contents, {"id": store_id})
    assert found is not None, "an aggregate returns one row"
    return found


async def remove_store(conn: Connection, archive: FileArchive, store_id: int, *, dry_run: bool = False) -> RemovedStore:
    """Removes a store with its payloads, products, history and alert rules; cancels its tasks. The connection has no open transaction.
    Raises NotFound.
    """
    async with conn.transaction():
        removed, store = await _begin(conn, store_id, dry_run=dry_run)
        if dry_run:
            return removed
        paths = [row["path"] for row in await fetch_all(conn, _q.delete_payloads, {"id": store_id})]
        unused = [row["path"] for row in await fetch_all(conn, _q.unreferenced, {"paths": paths})]
        await conn.execute(_q.delete_product_rules, {"id": store_id})
        await conn.execute(_q.delete_store, {"id": store_id})
        await audit.record(
            conn, "store_removed", ("store", store_id), name=store.name, slug=store.slug, **_numbers(removed)
        )
    await asyncio.to_thread(archive.remove, unused)
    return removed


async def set_menu_url(conn: Connection, platforms: Mapping[str, Platform], store_id: int, menu_url: str) -> Store:
    """Changes the menu URL in the caller's transaction. A store that is not resolved yet takes the slug of the new URL and is resolved
    again; a resolved one is crawled by its platform id and keeps its slug. Raises NotFound and InvalidField.
    """
    store = await stores.lock(conn, store_id)
    if store is None:
        raise NotFound(f"store {store_id} does not exist")
    if menu_url == store.menu_url:
        return store
    known = platforms.get(store.platform)
    platform, slug = parse_menu_url(
        platforms, menu_url, store.platform if known is not None and known.own_sites else None
    )
    if platform != store.platform:
        raise InvalidField(
            "menu_url", f"this is a menu of {platform}, and the store is on {store.platform}: add a new store"
        )
    resolved = store.platform_dispensary_id is not None
    if not resolved and slug != store.slug:
        other = await stores.find(conn, slug, platform, by_name=False)
        if other is not None and other.id != store_id:
            raise InvalidField(
                "menu_url", f"store {other.id} ({other.name}) has this URL already: merge the two instead"
            )
    new_slug = store.slug if resolved else slug
    values = {"id": store_id, "menu_url": menu_url, "slug": new_slug, "name": stores.name_from_slug(new_slug or slug)}
    await conn.execute(_q.set_menu_url, values)
    if not resolved and store.crawl_enabled:
        requested = TaskRequest(role=Role.ENTRY_POINT_DISCOVERY, dispensary_id=store_id, priority=PRIORITY_CHAINED)
        await enqueue(conn, requested, platforms=list(platforms))
    await audit.record(conn, "store_menu_url_set", ("store", store_id), before=store.menu_url, after=menu_url)
    return await _get(conn, store_id)


async def _get(conn: Connection, store_id: int) -> Store:
    store = await stores.get(conn, store_id)
    if store is None:
        raise NotFound(f"store {store_id} does not exist")
    return store


async def _begin(conn: Connection, store_id: int, *, dry_run: bool) -> tuple[RemovedStore, Store]:
    """Locks the store and cancels its tasks; workers lose those that they hold."""
    await fetch_all(conn, _q.lock_store, {"id": store_id})
    store = await _get(conn, store_id)
    contents = await get_contents(conn, store_id)
    if contents.unfinished_tasks and not dry_run:
        await tasks.bulk_cancel(conn, TaskFilter(dispensary_id=store_id), reason="the store was removed")
    return RemovedStore(id=store.id, name=store.name, slug=store.slug, contents=contents), store


def _numbers(removed: RemovedStore) -> dict[str, int]:
    return {name: n for name, n in structs.asdict(removed.contents).items() if n and name != "finished_tasks"}
