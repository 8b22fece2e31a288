"""`entry_point_discovery`: finds the platform's id of a store that was added by its menu's address alone."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import MenuwatchError, Permanent
from menuwatch.pipeline import trouble
from menuwatch.pipeline.parts import Context, Parts, details
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store
from menuwatch.tasks.model import PRIORITY_CHAINED, NewTask, Role, Task
from menuwatch.tasks.outcome import Done, Fail, Outcome


class EntryPointDiscovery:
    """Resolves the slug in `menu_url`, then has the store's first crawl made."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, task: Task, ctx: Context) -> Outcome:
        store = await self._parts.store(task)
        if not store.crawl_enabled:
            raise Permanent(f"store {store.id} ({store.name}) has crawl_enabled = false and is never contacted")
        platform = self._parts.platform(task)
        slug = store.slug or (platform.slug_of(store.menu_url) if store.menu_url else None)
        if slug is None:
            raise Permanent(f"store {store.id} has no slug, and its menu_url {store.menu_url!r} names none")
        async with self._parts.session(task, platform, ctx, store=store) as session:
            try:
                found = await platform.resolve(session, slug)
                if found is None:
                    raise Permanent(f"{platform.name} knows no store {slug!r}")
                if found.problem is not None:
                    raise Permanent(f"store {slug!r} cannot be crawled: {found.problem}")
            except MenuwatchError as error:
                return trouble.outcome_of(self._parts, error, store.id)

        async with self._parts.pool.connection() as conn:
            other = await stores.by_platform_id(conn, store.platform, found.platform_dispensary_id)
        if other is not None and other.id != store.id:
            return self._duplicate(store, other)

        async def writes(conn: AsyncConnection[Any]) -> None:
            await stores.update_details(conn, store.id, details(found))

        return Done(
            result={"platform_dispensary_id": found.platform_dispensary_id, **session.figures},
            then=(
                NewTask(
                    role=Role.PRODUCT_DISCOVERY,
                    dispensary_id=store.id,
                    platform=task.platform,
                    priority=PRIORITY_CHAINED,
                ),
            ),
            writes=writes,
        )

    def _duplicate(self, store: Store, other: Store) -> Fail:
        """Two rows for one shop: the one that has the platform's id goes on, this one is never crawled."""
        reason = (
            f"store {store.id} ({store.slug or store.menu_url}) is store {other.id} ({other.name}) of {other.platform}, "
            f"{other.platform_dispensary_id}: crawled there, disabled here"
        )

        async def writes(conn: AsyncConnection[Any]) -> None:
            await stores.close_duplicate(conn, store.id, self._parts.clock.now(), reason)

        return Fail(reason=reason, writes=writes)
