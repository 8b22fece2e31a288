"""Rebuilds a store's products and history from its archive with the current normalizer.

One transaction, so it is never partial; a dry run is the same transaction rolled back. Products keep their ids and images.
With `since`, earlier history stays unchanged and need not be in the archive: `restore_state` resets the products to their state
at that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.archive.files import Damaged, Missing
from menuwatch.archive.store import Payload
from menuwatch.catalog import apply
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.images import store as images
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.product_refresh import apply_payload
from menuwatch.pipeline.restore_state import StateRestore
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

log = get_logger(__name__)
_q = sql.load(__package__, "rebuild.sql")
_SHOWN = 20

Progress = Callable[[int, int], None]
"""Called with the number of payloads applied and the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """Number of rows that differ from the previous ones."""

    added: int
    removed: int
    changed: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedFile:
    """A payload whose archived file is missing or damaged, and why it cannot be read."""

    payload_id: int
    path: str
    fetched_at: datetime
    reason: str


class RebuildResult(Struct, frozen=True, kw_only=True):
    """Result of rebuilding one store. `examples` are some of the products that differ; `refused` are payloads that were applied
    before and are now rejected, with the reason; `damaged` payloads are left out, as if the store had not been crawled then.
    `approximate` counts products whose texts before `since` are no longer in any payload, so that changes of their name may have a
    wrong date.
    """

    store: Store
    since: datetime | None = None
    approximate: int = 0
    payloads: int
    products: RowChanges
    states: RowChanges
    details: RowChanges
    """Batches, lab values and sold counts."""
    crawls: RowChanges
    examples: tuple[dict[str, Any], ...]
    refused: tuple[tuple[int, str], ...]
    damaged: tuple[DamagedFile, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.products or self.states or self.details or self.crawls)


async def rebuild(
    context: HandlerContext,
    store_id: int,
    *,
    since: datetime | None = None,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> RebuildResult:
    """Rebuilds one store, or its crawls at `since` or later; a dry run only reports the differences.

    A payload whose file is missing or damaged is left out and listed. Raises Refused, without any change, if that is most of them, or
    if crawls have no payload at all.
    """
    if since is not None and since > context.clock.now():
        raise Refused(f"{since:%Y-%m-%d %H:%M} UTC is in the future")
    async with context.pool.connection() as conn:
        found = await stores.get(conn, store_id)
        if found is None:
            raise Refused(f"store {store_id} does not exist")
        payloads = await _payloads(conn, found, since)
    for month in {payload.fetched_at.replace(day=1) for payload in payloads}:
        await apply.ensure_partition(context.pool, month)
    async with context.pool.connection() as conn, conn.transaction(force_rollback=dry_run):
        await conn.execute(_q.keep_from_packing)
        if await asyncio.to_thread(ParquetPartitions(context.archive.storage).holds, store_id, since):
            which = (
                "months of its history" if since is None else f"months of its history since {since:%Y-%m-%d %H:%M} UTC"
            )
            raise Refused(f"store {store_id}: {which} are packed, and packed months cannot be rebuilt")
        store = await stores.lock(conn, store_id)
        if store is None:
            raise Refused(f"store {store_id} was removed in the meantime")
        result = await rebuild_locked(conn, context, store, since, progress)
    if not dry_run:
        log.info(
            "store rebuilt",
            action="store_rebuilt",
            dispensary_id=store_id,
            since=since,
            payloads=result.payloads,
            same=result.same,
            damaged=[one.payload_id for one in result.damaged],
        )
    return result


async def _payloads(conn: AsyncConnection[Any], store: Store, since: datetime | None) -> list[Payload]:
    async with conn.cursor(row_factory=class_row(Payload)) as cursor:
        values = {"id": store.id, "last": store.last_crawled_at, "since": since}
        await cursor.execute(_q.payloads_to_apply, values)
        return await cursor.fetchall()


async def rebuild_locked(
    conn: AsyncConnection[Any], context: HandlerContext, store: Store, since: datetime | None, progress: Progress
) -> RebuildResult:
    """Rebuilds a store whose row the caller's transaction has locked, with packing kept away; see `rebuild`."""
    which = {"id": store.id, "since": since}
    # First locked, then checked: what retention removed just before is seen by the check.
    payloads = await _payloads(conn, store, since)
    (gone,) = await _rows(conn, _q.without_payload, which)
    if gone["crawls"]:
        raise Refused(
            f"store {store.id}: the archive lacks the payloads of {gone['crawls']} crawls ({gone['first']:%Y-%m-%d} to "
            f"{gone['last']:%Y-%m-%d}), whose history would be lost; use --since with a later time"
        )
    for statement in (
        _q.create_products_before,
        _q.create_states_before,
        _q.create_details_before,
        _q.create_crawls_before,
        _q.create_renamed,
    ):
        await conn.execute(statement)
    for statement in (_q.keep_products, _q.keep_states, _q.keep_details, _q.keep_crawls):
        await conn.execute(statement, which)
    restore = await _clear(conn, context, store, since, payloads)
    refused = []
    damaged: dict[int, DamagedFile] = {}
    for number, payload in enumerate(payloads):
        progress(number, len(payloads))
        try:
            platform, items = await _read(context, payload)
        except (Missing, Damaged) as error:
            damaged[payload.id] = DamagedFile(
                payload_id=payload.id, path=payload.path, fetched_at=payload.fetched_at, reason=str(error)
            )
            continue
        result = await apply_payload(conn, payload, platform, items, rebuilding=True)
        if "quarantined" in result:
            refused.append((payload.id, str(result["quarantined"])))
    progress(len(payloads), len(payloads))
    if len(damaged) * 2 > len(payloads):
        raise Refused(
            f"store {store.id}: of {len(payloads)} payloads, the files of {len(damaged)} are missing or damaged; nothing is changed. "
            "Restore the files (menuwatch verify --repair, or copy them from a backup), or rebuild from a later time on with --since"
        )
    if restore is not None:
        await restore.date_changes()
    await conn.execute(_q.match, which)
    await conn.execute(_q.unqueue_images)
    await conn.execute(_q.free_numbers, which)
    await conn.execute(_q.rename_products)
    await conn.execute(_q.rename_states)
    await conn.execute(_q.rename_details)
    await conn.execute(_q.remove_aside, which)
    await conn.execute(_q.match_again, which)
    await images.queue_products(conn, store.id)
    known = [payload for payload in payloads if payload.applied_at is not None and payload.id not in damaged]
    times = {"ids": [payload.id for payload in known], "times": [payload.applied_at for payload in known]}
    await conn.execute(_q.restore_applied, times)
    return RebuildResult(
        store=store,
        since=since,
        approximate=0 if restore is None else len(restore.approximate),
        payloads=len(payloads) - len(damaged),
        products=await _counts(conn, _q.compare_products, store.id),
        states=await _counts(conn, _q.compare_states, store.id),
        details=await _counts(conn, _q.compare_details, store.id),
        crawls=await _counts(conn, _q.compare_crawls, store.id),
        examples=tuple(await _rows(conn, _q.differing_products, {**which, "limit": _SHOWN})),
        refused=tuple(refused),
        damaged=tuple(damaged.values()),
    )


async def _clear(
    conn: AsyncConnection[Any], context: HandlerContext, store: Store, since: datetime | None, payloads: list[Payload]
) -> StateRestore | None:
    """Deletes what will be rebuilt, back to the last crawl before `since` if there is one."""
    which = {"id": store.id, "since": since}
    before = await _rows(conn, _q.crawl_before, which)
    restore = StateRestore(conn, context, store.id, before[0]["crawled_at"]) if before else None
    if restore is not None:
        await restore.load_state_at()
    for statement in (_q.clear_states, _q.clear_details, _q.clear_crawls, _q.set_aside, _q.forget_applied):
        await conn.execute(statement, which)
    if restore is None:
        await conn.execute(_q.forget_crawls, which)
    else:
        await conn.execute(_q.forget_later_crawls, {**which, **before[0]})
        await restore.restore(payloads)
    return restore


async def _read(context: HandlerContext, payload: Payload) -> tuple[Platform, list[msgspec.Raw]]:
    try:
        platform = context.platforms[payload.platform]
    except KeyError:
        raise Refused(f"payload {payload.id} is from unknown platform {payload.platform!r}") from None
    document = await asyncio.to_thread(context.archive.read, payload.path, payload.sha256, payload.raw_bytes)
    try:
        pages = await asyncio.to_thread(platform.split_menu, document.pages)
        return platform, [item for page in pages for item in page]
    except BadPayload as error:
        raise Refused(f"payload {payload.id} is not a menu: {error}") from error


async def _rows(conn: AsyncConnection[Any], query: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def _counts(conn: AsyncConnection[Any], query: Any, store_id: int) -> RowChanges:
    (row,) = await _rows(conn, query, {"id": store_id})
    return RowChanges(**row)
