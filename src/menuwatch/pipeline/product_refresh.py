"""`product_refresh`: one archived menu into the catalogue. Never touches the network; the same payload twice changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.alerts import evaluate
from menuwatch.catalog import apply, net
from menuwatch.catalog.apply import Applied, MenuToApply, SuspectMenu
from menuwatch.core.clock import SystemClock
from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.core.telemetry import get_logger
from menuwatch.images import store as images
from menuwatch.payloads import store as payloads
from menuwatch.payloads.extent import NOT_WHOLE, is_whole
from menuwatch.payloads.store import Payload
from menuwatch.pipeline import quarantine, upheaval
from menuwatch.pipeline.logos import logos
from menuwatch.pipeline.parts import Parts
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.tasks.model import Task
from menuwatch.tasks.outcome import Done, Fail, Outcome, Wrote

log = get_logger(__name__)

_WARNINGS_SHOWN = 50
_CLOCK_TOLERANCE = timedelta(minutes=1)
_ALERTS_FOR = timedelta(days=1)
"""A menu older than that moves alert rules on and makes no event."""


class ProductRefresh:
    """Reads a payload from the archive and applies it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, task: Task, _ctx: object) -> Outcome:
        payload_id = task.payload.get("payload_id")
        if not isinstance(payload_id, int) or isinstance(payload_id, bool):
            raise Permanent(f'a product_refresh task needs the payload {{"payload_id": number}}, got {task.payload}')
        async with self._parts.pool.connection() as conn:
            payload = await payloads.get(conn, payload_id)
        if payload is None:
            raise Permanent(f"payload {payload_id} does not exist")
        if task.dispensary_id is not None and payload.dispensary_id != task.dispensary_id:
            raise Permanent(
                f"payload {payload_id} is of store {payload.dispensary_id}, the task is for store {task.dispensary_id}"
            )
        return await refresh(self._parts, payload)


async def refresh(parts: Parts, payload: Payload) -> Done | Fail:
    """Reads the payload; the outcome's `writes` apply it, in whatever transaction they are run."""
    if payload.status != "ok":
        hint = ": release it first" if payload.status == "quarantined" else ""
        raise Permanent(f"payload {payload.id} is {payload.status} ({payload.reason}){hint}")
    platform = parts.platforms[payload.platform]
    document = await asyncio.to_thread(parts.archive.read, payload.path, payload.sha256)
    try:
        if document.broken:
            raise BadPayload("schema", "the archived answer is no menu")
        pages = [platform.split(page) for page in document.pages]
    except BadPayload as error:
        reason = f"{error.kind}: {error}"

        async def keep_out(conn: AsyncConnection[Any]) -> None:
            await quarantine.keep_out(conn, payload, reason)

        return Fail(reason=f"payload {payload.id} is no menu: {reason}", writes=keep_out)
    await apply.ensure_partition(parts.pool, payload.fetched_at)
    items = [item for page in pages for item in page]

    async def writes(conn: AsyncConnection[Any]) -> Wrote:
        if strange := await _strange(conn, payload, platform, pages):
            return Wrote(result={"quarantined": await quarantine.keep_out(conn, payload, strange)})
        return Wrote(result=await apply_payload(conn, payload, platform, items))

    return Done(result={"payload_id": payload.id}, writes=writes)


async def _strange(
    conn: AsyncConnection[Any], payload: Payload, platform: Platform, pages: list[Sequence[msgspec.Raw]]
) -> str | None:
    """Why this is not the store's own menu, None where it is, or where a person said that it is."""
    if payload.released_at is not None or payload.applied_at is not None:
        return None
    store = await stores.lock(conn, payload.dispensary_id)
    return None if store is None else await upheaval.strange(conn, store, platform, pages)


def _not_from_the_future(payload: Payload) -> None:
    """A crawl dated by a clock that runs ahead would make every later one look old. The row was dated by the database's clock."""
    if payload.fetched_at > payload.created_at + _CLOCK_TOLERANCE:
        at = f"{payload.fetched_at:%Y-%m-%d %H:%M:%S} UTC"
        raise SuspectMenu(
            f"it is dated {at}, which was still to come: the clock of the machine that fetched it runs ahead"
        )


async def apply_payload(
    conn: AsyncConnection[Any],
    seen: Payload,
    platform: Platform,
    items: list[msgspec.Raw],
    *,
    anew: bool = False,
) -> dict[str, Any]:
    """Applies the items of one payload in the caller's transaction; returns the task's result. Does nothing when it was applied
    already, or when the catalogue shows a newer crawl of the store. Where it is done `anew`, nobody is told of what changed then, and
    no picture is asked for."""
    store = await stores.lock(conn, seen.dispensary_id)
    payload = await payloads.lock(conn, seen.id)
    if store is None or payload is None:
        raise Permanent(f"payload {seen.id} or its store was removed meanwhile")
    if payload.applied_at is not None:
        # As the same bytes again would have it: every product known, none changed.
        return {
            **Applied(products=payload.product_count, unchanged=payload.product_count).counts(),
            "already_applied": True,
        }
    if store.last_crawled_at is not None and payload.fetched_at <= store.last_crawled_at:
        if store.last_payload_id is not None and payload.id > store.last_payload_id:
            log.warning(
                "a payload that came later is dated before the last crawl: compare the clocks of the machines",
                action="payload_superseded",
                payload_id=payload.id,
                dispensary_id=store.id,
            )
        return {**Applied(products=payload.product_count).counts(), "superseded": True}
    menu = MenuToApply(
        dispensary_id=store.id,
        provider=payload.platform,
        payload_id=payload.id,
        crawled_at=payload.fetched_at,
        previous=store.last_crawled_at,
        items=items,
        whole=is_whole(payload.notes),
        trusted=payload.released_at is not None,
    )
    try:
        _not_from_the_future(payload)
        async with conn.transaction():
            applied = await net.apply_menu(conn, menu, platform)
            await upheaval.look(conn, menu, applied)
    except SuspectMenu as error:
        if anew:
            await payloads.quarantine(conn, payload.id, str(error))
            return {"quarantined": str(error)}
        return {"quarantined": await quarantine.keep_out(conn, payload, str(error))}
    async with conn.pipeline():
        await payloads.mark_applied(conn, payload.id)
        await stores.crawled(
            conn, store.id, crawled_at=payload.fetched_at, payload_id=payload.id, products=applied.products
        )
    shown = [msgspec.to_builtins(w) for w in applied.warnings[:_WARNINGS_SHOWN]]
    result = {**applied.counts(), "warnings": shown, "warning_count": len(applied.warnings)}
    if anew:
        return result
    await evaluate.look(
        conn,
        evaluate.Crawl(
            dispensary_id=store.id,
            provider=payload.platform,
            crawled_at=payload.fetched_at,
            part_note=NOT_WHOLE,
            # Whoever replays last year's menus does not want last year's alerts.
            live=SystemClock().now() - payload.fetched_at < _ALERTS_FOR,
        ),
    )
    if applied.new or applied.changed or applied.returned:
        await images.queue_products(conn, store.id)
    if applied.new:
        await images.queue_brands(conn, logos(items))
    return result
