"""Stores as people look at them, and what people do to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, pattern, row, rows
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import PRIORITY_CHAINED, NewTask, Role

_q = sql.load(__package__)


async def page(
    conn: AsyncConnection[Any],
    *,
    platform: str | None = None,
    states: Sequence[str] | None = None,
    crawl_enabled: bool | None = None,
    q: str | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[Row]:
    """Stores by id, those after `after`. `q` is text in the name, city or slug."""
    return await rows(
        conn,
        _q.list_stores,
        {
            "platform": platform,
            "states": states,
            "crawl_enabled": crawl_enabled,
            "q": None if q is None else pattern(q),
            "after": after,
            "limit": limit,
        },
    )


async def one(conn: AsyncConnection[Any], store_id: int) -> Row:
    """One store with its last crawl (None before the first); raises NotFound."""
    found = await row(conn, _q.get_store, {"id": store_id})
    if found is None:
        raise NotFound(f"store {store_id} does not exist")
    return found | {"last_crawl": await row(conn, _q.last_crawl, {"id": store_id})}


async def lock(conn: AsyncConnection[Any], store_id: int) -> None:
    """Keeps others from writing this store until the transaction ends; raises NotFound."""
    if await stores.lock(conn, store_id) is None:
        raise NotFound(f"store {store_id} does not exist")


def _platform_of(platforms: Mapping[str, Platform], menu_url: str) -> tuple[str, str]:
    """(platform, slug) of a menu's address; raises Unusable."""
    for platform in platforms.values():
        slug = platform.slug_of(menu_url)
        if slug is not None:
            return platform.name, slug
    raise Unusable(
        "menu_url",
        f"{menu_url!r} is no address of a menu on a platform that Menuwatch knows ({', '.join(platforms)}): it looks like "
        "https://dutchie.com/dispensary/<slug> or https://dutchie.com/embedded-menu/<slug>",
    )


async def add_by_url(conn: AsyncConnection[Any], platforms: Mapping[str, Platform], menu_url: str) -> tuple[int, int]:
    """Adds a store that is known by its menu's address, and the task that finds out which it is; returns the ids of both.

    Raises Unusable for an address that is no menu's, Conflict for a store that is known already.
    """
    platform, slug = _platform_of(platforms, menu_url)
    try:
        store = await stores.add_by_url(conn, platform=platform, slug=slug, menu_url=menu_url)
    except Refused as error:
        raise Conflict(str(error)) from error
    task = NewTask(
        role=Role.ENTRY_POINT_DISCOVERY, dispensary_id=store.id, platform=platform, priority=PRIORITY_CHAINED
    )
    (enqueued,) = await tasks.enqueue(conn, [task])
    await audit.record(conn, "store_added", ("store", store.id), platform=platform, slug=slug, task=enqueued.id)
    return store.id, enqueued.id


async def set_crawl_enabled(conn: AsyncConnection[Any], store_id: int, enabled: bool) -> None:
    """Whether the store may be contacted; raises NotFound."""
    try:
        await stores.set_crawl_enabled(conn, store_id, enabled)
    except Refused as error:
        raise NotFound(str(error)) from error
    await audit.record(conn, "store_enabled" if enabled else "store_disabled", ("store", store_id))
