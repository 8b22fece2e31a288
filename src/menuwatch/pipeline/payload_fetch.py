"""`payload_fetch` and `product_discovery`: fetch and archive every page of one menu. Writes no products."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document, bodies
from menuwatch.archive.files import Staged
from menuwatch.archive.store import NewPayload
from menuwatch.core.errors import BadPayload, MenuwatchError, Permanent
from menuwatch.pipeline import fetch_errors, quarantine
from menuwatch.pipeline.archive_transaction import DeduplicatedFile
from menuwatch.pipeline.context import AttemptContext, HandlerContext, RecordedSession
from menuwatch.pipeline.quarantine import size_anomaly
from menuwatch.platforms.model import Menu
from menuwatch.queue.model import PRIORITY_CHAINED, NewTask, Role, Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Retry, Wrote
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store


class PayloadFetch:
    """Fetches and archives a menu. `first` marks a store's first crawl."""

    def __init__(self, context: HandlerContext, *, first: bool = False) -> None:
        self._context = context
        self._first = first

    async def __call__(self, task: Task, ctx: AttemptContext) -> Outcome:
        store = await self._context.store(task)
        if not store.crawl_enabled:
            raise Permanent(f"crawling of store {store.id} ({store.name}) is disabled")
        if store.platform_dispensary_id is None:
            raise Permanent(f"store {store.id} ({store.name}) is not resolved yet: run entry_point_discovery")
        platform = self._context.platform(task)
        async with self._context.session(task, platform, ctx, store=store) as session:
            try:
                menu = await platform.fetch_menu(session, store.platform_dispensary_id)
            except BadPayload as error:
                session.mark_unusable(error.kind, str(error))
                return await self._rejected(task, store, error)
            except MenuwatchError as error:
                return fetch_errors.to_outcome(self._context, error, store.id)
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
            fetched_at=self._context.clock.now(),
            whole=whole,
            pages=(*pages, *good),
            broken=bad,
        )
        return doc, await asyncio.to_thread(self._context.archive.stage, store.id, doc, strict=strict)

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
        file = DeduplicatedFile(self._context.archive, staged)

        async def writes(conn: AsyncConnection[Any]) -> None:
            await file.insert(conn, self._row(task, store, doc, staged, status="rejected", reason=reason))
            await stores.attempted(conn, store.id, doc.fetched_at, reason)

        end = Fail if error.final else Retry
        return end(reason=reason, writes=writes, settle=file.settle)

    async def _suspect(self, store: Store, menu: Menu) -> str | None:
        """Why the menu must be quarantined, None if it need not."""
        async with self._context.pool.connection() as conn:
            usual = await payloads.usual_counts(conn, store.id)
            why = size_anomaly(menu.product_count, usual, self._context.suspect_share, short=menu.short)
            return None if why is None else await quarantine.add_waiting(conn, store, why)

    async def _archived(self, task: Task, store: Store, session: RecordedSession, menu: Menu) -> Outcome:
        doc, staged = await self._stage(store, menu.pages, (), whole=menu.complete, strict=menu.strict)
        file = DeduplicatedFile(self._context.archive, staged)
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
                quarantine.log_quarantine(store.id, payload_id, reason or status)
            if status != "ok":
                return Wrote(result={"payload_id": payload_id, "reason": reason})
            # Each payload has its own refresh task: a waiting one for an older payload must not replace it.
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
