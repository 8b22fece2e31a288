"""`product_refresh`: applies one archived menu to the catalogue; and its dry run, in a transaction that is rolled back. Idempotent,
without network access."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.alerts import evaluate_menu as evaluate
from menuwatch.archive import store as payloads
from menuwatch.archive.files import FileArchive
from menuwatch.archive.store import Payload
from menuwatch.catalog import apply, bad_row_isolation
from menuwatch.catalog.apply import Applied, MenuToApply, SuspectMenu
from menuwatch.core.errors import BadPayload, Permanent, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Pool
from menuwatch.images import store as images
from menuwatch.images.files import slug
from menuwatch.pipeline import quarantine
from menuwatch.pipeline.context import HandlerContext, offline_context
from menuwatch.platforms.base import Platform
from menuwatch.platforms.registry import unknown_platform
from menuwatch.queue.model import Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Wrote
from menuwatch.stores import store as stores

log = get_logger(__name__)
_dry = sql.load(__package__, "dry_run.sql")

_WARNINGS_SHOWN = 50
_CLOCK_TOLERANCE = timedelta(minutes=1)
_ALERTS_FOR = timedelta(days=1)
"""Maximum age of a menu for alert events; an older one only updates the state of alert rules."""


class ProductRefresh:
    """Reads a payload from the archive and applies it."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context

    async def __call__(self, task: Task, _ctx: object) -> Outcome:
        payload_id = task.payload.get("payload_id")
        if not isinstance(payload_id, int) or isinstance(payload_id, bool):
            raise Permanent(f'a product_refresh task needs the payload {{"payload_id": number}}, got {task.payload}')
        async with self._context.pool.connection() as conn:
            payload = await payloads.get(conn, payload_id)
        if payload is None:
            raise Permanent(f"payload {payload_id} does not exist")
        if task.dispensary_id is not None and payload.dispensary_id != task.dispensary_id:
            raise Permanent(
                f"payload {payload_id} is of store {payload.dispensary_id}, the task is for store {task.dispensary_id}"
            )
        return await refresh(self._context, payload)


async def refresh(context: HandlerContext, payload: Payload) -> Done | Fail:
    """Reads the payload; the outcome's `writes` apply it in the transaction that runs them."""
    if payload.status != "ok":
        hint = ": release it first" if payload.status == "quarantined" else ""
        raise Permanent(f"payload {payload.id} is {payload.status} ({payload.reason}){hint}")
    platform = context.platforms.get(payload.platform)
    if platform is None:
        raise Permanent(unknown_platform(payload.platform, sorted(context.platforms)))
    document = await asyncio.to_thread(context.archive.read, payload.path, payload.sha256, payload.raw_bytes)
    try:
        if document.broken:
            raise BadPayload("schema", "the archived response is not a menu")
        pages = await asyncio.to_thread(platform.split_menu, document.pages)
    except BadPayload as error:
        reason = f"{error.kind}: {error}"

        async def keep_out(conn: AsyncConnection[Any]) -> None:
            await quarantine.quarantine_payload(conn, payload, reason)

        return Fail(reason=f"payload {payload.id} is not a menu: {reason}", writes=keep_out)
    await apply.ensure_partition(context.pool, payload.fetched_at)
    items = [item for page in pages for item in page]

    async def writes(conn: AsyncConnection[Any]) -> Wrote:
        return Wrote(result=await apply_payload(conn, payload, platform, items, pages=pages))

    return Done(result={"payload_id": payload.id}, writes=writes)


def _not_from_the_future(payload: Payload) -> None:
    """Rejects a crawl dated in the future, which would make every later one look old. The row has the database's time."""
    if payload.fetched_at > payload.created_at + _CLOCK_TOLERANCE:
        at = f"{payload.fetched_at:%Y-%m-%d %H:%M:%S} UTC"
        raise SuspectMenu(f"it is dated {at}, in the future: the clock of the machine that fetched it is ahead")


async def apply_payload(
    conn: AsyncConnection[Any],
    seen: Payload,
    platform: Platform,
    items: list[msgspec.Raw],
    *,
    pages: Sequence[Sequence[msgspec.Raw]] = (),
    rebuilding: bool = False,
) -> dict[str, Any]:
    """Applies a payload's items in the caller's transaction; returns the task's result. Does nothing if the payload was applied
    already, or if the catalogue shows a newer crawl of the store. With its `pages`, the menu of another store is quarantined. With
    `rebuilding`, no alerts are evaluated and no images queued.
    """
    store = await stores.lock(conn, seen.dispensary_id)
    payload = await payloads.lock(conn, seen.id)
    if store is None or payload is None:
        raise Permanent(f"payload {seen.id} or its store was removed in the meantime")
    if payload.applied_at is not None:
        # The counts of an identical menu: every product known, none changed.
        return {
            **Applied(products=payload.product_count, unchanged=payload.product_count).counts(),
            "already_applied": True,
        }
    if store.last_crawled_at is not None and payload.fetched_at <= store.last_crawled_at:
        if store.last_payload_id is not None and payload.id > store.last_payload_id:
            log.warning(
                "payload is dated before the last crawl; compare the clocks of the machines",
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
        whole=not payload.is_partial,
        trusted=payload.released_at is not None,
    )

    async def examine(conn: AsyncConnection[Any], unknown: Sequence[msgspec.Raw]) -> None:
        if pages and not menu.trusted:
            await quarantine.check_store(conn, store, platform, pages, unknown)

    try:
        _not_from_the_future(payload)
        applied = await bad_row_isolation.apply_menu(
            conn, menu, platform, examine=examine, check=quarantine.check_changes
        )
    except SuspectMenu as error:
        if rebuilding:
            await payloads.quarantine(conn, payload.id, str(error))
            return {"quarantined": str(error)}
        return {"quarantined": await quarantine.quarantine_payload(conn, payload, str(error))}
    async with conn.pipeline():
        await payloads.mark_applied(conn, payload.id)
        await stores.crawled(
            conn, store.id, crawled_at=payload.fetched_at, payload_id=payload.id, products=applied.products
        )
    shown = [msgspec.to_builtins(w) for w in applied.warnings[:_WARNINGS_SHOWN]]
    result = {**applied.counts(), "warnings": shown, "warning_count": len(applied.warnings)}
    if rebuilding:
        return result
    if await evaluate.has_rules(conn):
        await evaluate.evaluate_menu(
            conn,
            evaluate.Crawl(
                dispensary_id=store.id,
                provider=payload.platform,
                crawled_at=payload.fetched_at,
                # Replaying old menus must not send old alerts.
                live=await database_now(conn) - payload.fetched_at < _ALERTS_FOR,
            ),
        )
    if applied.new or applied.changed or applied.returned:
        await images.queue_products(conn, store.id, changed_at=payload.fetched_at)
    if logos := brand_logos(applied.unknown):
        await images.queue_brands(conn, logos)
    return result


class _Brand(msgspec.Struct):
    name: str | None = None
    imageUrl: str | None = None  # noqa: N815 - the platform's name


class _Item(msgspec.Struct):
    brandName: str | None = None  # noqa: N815
    brand: _Brand | None = None


_decode = msgspec.json.Decoder(_Item).decode


def brand_logos(items: Iterable[msgspec.Raw]) -> dict[str, str]:
    """Logo URL by brand folder name, the first of each brand. Unreadable items are skipped."""
    logos: dict[str, str] = {}
    for raw in items:
        try:
            item = _decode(raw)
        except (msgspec.DecodeError, RecursionError):
            continue
        brand = item.brand
        name = item.brandName or (brand.name if brand is not None else None)
        if brand is not None and brand.imageUrl and name and name.strip() and "\0" not in brand.imageUrl:
            logos.setdefault(slug(name), brand.imageUrl)
    return logos


PATIENCE = timedelta(seconds=20)
"""Time limit of a dry run: it locks the store's row, so a real crawl of the store waits meanwhile."""


class DryRun(Struct, frozen=True):
    """Result of a dry run. `counts` are those of a task's result, empty if nothing was applied; `refused` says why.
    `conn` shows the resulting catalogue while the context is open.
    """

    conn: AsyncConnection[Any]
    counts: Mapping[str, Any]
    refused: str | None = None
    new: tuple[Mapping[str, Any], ...] = ()
    gone: tuple[Mapping[str, Any], ...] = ()
    shown: int = 0
    """Maximum rows read of `new` and of `gone`."""


@asynccontextmanager
async def dry_run(
    pool: Pool,
    archive: FileArchive,
    platforms: Mapping[str, Platform],
    payload_id: int,
    *,
    suspect_share: float,
    shown: int = 100,
) -> AsyncIterator[DryRun]:
    """Applies the payload as `product_refresh` would (a quarantined one as if released), and rolls back.

    Raises Refused for a payload that cannot be applied: unknown, rejected, of an unknown platform, or without its file.
    """
    context = offline_context(pool, archive, platforms, suspect_share=suspect_share)
    async with pool.connection(timeout=10) as conn, conn.transaction(force_rollback=True):
        await conn.execute(_dry.patience, {"patience": f"{int(PATIENCE.total_seconds())}s"})
        payload = await payloads.lock(conn, payload_id)
        if payload is None:
            raise Refused(f"payload {payload_id} does not exist")
        if payload.platform not in platforms:
            raise Refused(f"payload {payload_id} is from unknown platform {payload.platform!r}")
        if payload.status == "quarantined":
            await payloads.release(conn, payload_id)
            payload = await payloads.get(conn, payload_id)
            assert payload is not None, "it is locked"
        try:
            outcome = await refresh(context, payload)
        except Permanent as error:
            raise Refused(str(error)) from error
        if isinstance(outcome, Fail):
            yield DryRun(conn, {}, outcome.reason)
            return
        assert outcome.writes is not None, "a refresh writes"
        wrote = await outcome.writes(conn)
        counts = dict(wrote.result or {}) if wrote is not None else {}
        refused = _why_not(counts)
        if refused is not None:
            yield DryRun(conn, {}, refused)
            return
        which = {"id": payload.dispensary_id, "at": payload.fetched_at, "limit": shown}
        yield DryRun(
            conn, counts, None, await _rows(conn, _dry.first_seen, which), await _rows(conn, _dry.missed, which), shown
        )


def _why_not(counts: Mapping[str, Any]) -> str | None:
    if counts.get("already_applied"):
        return "The catalog already has this menu: applying it again changes nothing."
    if counts.get("superseded"):
        return "The catalog has a newer crawl of this store: an older menu is not applied."
    if counts.get("quarantined"):
        return f"It would be quarantined: {counts['quarantined']}"
    return None


async def _rows(conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    cursor = await conn.execute(query, values)
    return tuple(
        {"id": product_id, "name": name, "brand_name": brand, "misses": misses}
        for product_id, name, brand, misses in await cursor.fetchall()
    )
