"""`payload_fetch` and `product_discovery`: every page of one menu, archived. Touches no product."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from psycopg import AsyncConnection

from menuwatch.archive.document import Document, bodies
from menuwatch.archive.files import Staged
from menuwatch.core.errors import BadPayload, MenuwatchError, Permanent
from menuwatch.payloads import store as payloads
from menuwatch.payloads.judge import suspicion
from menuwatch.payloads.store import NewPayload
from menuwatch.pipeline import quarantine, trouble
from menuwatch.pipeline.parts import Context, Parts, RecordedSession
from menuwatch.pipeline.shelving import OneFile
from menuwatch.platforms.base import Menu
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store
from menuwatch.tasks.model import PRIORITY_CHAINED, NewTask, Role, Task
from menuwatch.tasks.outcome import Done, Outcome, Retry, Wrote


class PayloadFetch:
    """Fetches and archives. `first` marks a store's first crawl."""

    def __init__(self, parts: Parts, *, first: bool = False) -> None:
        self._parts = parts
        self._first = first

    async def __call__(self, task: Task, ctx: Context) -> Outcome:
        store = await self._parts.store(task)
        if not store.crawl_enabled:
            raise Permanent(f"store {store.id} ({store.name}) has crawl_enabled = false and is never contacted")
        if store.platform_dispensary_id is None:
            raise Permanent(f"store {store.id} ({store.name}) has no platform id yet: entry_point_discovery finds it")
        platform = self._parts.platform(task)
        async with self._parts.session(task, platform, ctx, store=store) as session:
            try:
                menu = await platform.fetch_menu(session, store.platform_dispensary_id)
            except BadPayload as error:
                session.doubt(error.kind, str(error))
                return await self._rejected(task, store, error)
            except MenuwatchError as error:
                return trouble.outcome_of(self._parts, error, store.id)
        return await self._archived(task, store, session, menu)

    async def _stage(
        self,
        store: Store,
        pages: Sequence[bytes],
        broken: Sequence[bytes],
        *,
        whole: bool = True,
        strict: Collection[int] = (),
    ) -> tuple[Document, Staged]:
        assert store.platform_dispensary_id is not None, "checked before anything was fetched"
        good, bad = bodies(broken)
        doc = Document(
            platform=store.platform,
            platform_dispensary_id=store.platform_dispensary_id,
            fetched_at=self._parts.clock.now(),
            whole=whole,
            pages=(*pages, *good),
            broken=bad,
        )
        return doc, await asyncio.to_thread(self._parts.archive.stage, store.id, doc, strict=strict)

    def _row(self, task: Task, store: Store, doc: Document, staged: Staged, **more: Any) -> NewPayload:
        return NewPayload(
            task_id=task.id,
            dispensary_id=store.id,
            platform=store.platform,
            fetched_at=doc.fetched_at,
            is_first=self._first,
            path=staged.path,
            bytes=staged.size,
            raw_bytes=staged.raw_size,
            sha256=staged.sha256,
            content_sha256=staged.content_sha256,
            page_count=len(doc.pages) + len(doc.broken),
            **more,
        )

    async def _rejected(self, task: Task, store: Store, error: BadPayload) -> Outcome:
        reason = f"{error.kind}: {error}"
        doc, staged = await self._stage(store, (), (error.body,))
        file = OneFile(self._parts.archive, staged)

        async def writes(conn: AsyncConnection[Any]) -> None:
            await file.insert(conn, self._row(task, store, doc, staged, status="rejected", reason=reason))
            await stores.attempted(conn, store.id, doc.fetched_at, reason)

        return Retry(reason=reason, writes=writes, settle=file.settle)

    async def _suspect(self, store: Store, menu: Menu) -> str | None:
        """Why the menu must wait for a person, None where it need not."""
        async with self._parts.pool.connection() as conn:
            usual = await payloads.usual_counts(conn, store.id)
            why = suspicion(menu.product_count, usual, self._parts.suspect_share, short=menu.short)
            return None if why is None else await quarantine.reason(conn, store, why)

    async def _archived(self, task: Task, store: Store, session: RecordedSession, menu: Menu) -> Outcome:
        doc, staged = await self._stage(store, menu.pages, (), whole=menu.complete, strict=menu.strict)
        file = OneFile(self._parts.archive, staged)
        status, reason = "ok", None
        if not menu.complete:
            status, reason = "partial", "partial: " + "; ".join(menu.notes)
        elif why := await self._suspect(store, menu):
            status, reason = "quarantined", why
        result = {
            "products": menu.product_count,
            "pages": len(menu.pages),
            "status": status,
            "notes": list(menu.notes),
            **session.figures,
        }

        async def writes(conn: AsyncConnection[Any]) -> Wrote:
            payload_id = await file.insert(
                conn,
                self._row(
                    task,
                    store,
                    doc,
                    staged,
                    status=status,
                    reason=reason,
                    product_count=menu.product_count,
                    total_count=menu.total_count,
                    notes=menu.notes,
                ),
            )
            await stores.attempted(conn, store.id, doc.fetched_at, reason)
            if status == "quarantined":
                quarantine.tell(store.id, payload_id, reason or status)
            if status != "ok":
                return Wrote(result={"payload_id": payload_id, "reason": reason})
            # Each payload has its own refresh: a waiting one for an older payload must not swallow it.
            chain = NewTask(
                role=Role.PRODUCT_REFRESH,
                dispensary_id=store.id,
                platform=store.platform,
                priority=max(PRIORITY_CHAINED, task.priority),
                payload={"payload_id": payload_id},
                unique=False,
            )
            return Wrote(result={"payload_id": payload_id}, then=(chain,))

        if status == "partial":
            return Retry(reason=reason or status, result=result, writes=writes, settle=file.settle)
        return Done(result=result, writes=writes, settle=file.settle)
