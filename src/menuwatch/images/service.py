"""Images for operators: list and count them, queue missing ones, retry failed ones, compare rows with files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.catalog import store as catalog
from menuwatch.core.errors import Refused, unknown_value
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import Row, fetch_all
from menuwatch.images import store, vips
from menuwatch.images.files import ImageFiles
from menuwatch.images.transform import decodes

_q = sql.load(__package__, "overview.sql")

STATUSES = ("queued", "waiting", "stored", "failed")
_PAGE = 200
YOUNG_SECONDS = 3600.0
"""A younger file without a row may belong to a download that is about to write the row."""
_SHOWN = 20


MAX_COUNTED = 10_000
"""References of a status, and failures, that are counted one by one."""
EXACT = 30_000
"""Stored images up to which their number and size are exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """References by status: at most MAX_COUNTED + 1 each, `stored` all. `files` are different images of `bytes` in all; if
    `estimated`, these two and `stored` are approximate. `overdue` download URLs are late by more than ten minutes."""

    queued: int
    waiting: int
    failed: int
    stored: int
    files: int
    bytes: int
    estimated: bool
    overdue: int


async def overview(conn: Connection) -> Overview:
    """Counts in bounded time: exact for few images, estimated for hundreds of thousands."""
    (row,) = await fetch_all(conn, _q.overview, {"most": MAX_COUNTED + 1, "exact": EXACT + 1})
    looked, stored = row["looked"], row["stored_looked"]
    files = max(row["files_about"], looked) if looked > EXACT else looked
    return Overview(
        queued=row["queued"],
        waiting=row["waiting"],
        failed=row["failed"],
        stored=max(row["uses_about"], stored) if stored > EXACT else stored,
        files=files,
        bytes=round(row["bytes_looked"] / max(looked, 1) * files),
        estimated=looked > EXACT or stored > EXACT,
        overdue=row["overdue"],
    )


async def failure_reasons(conn: Connection, limit: int = 12) -> Sequence[Row]:
    """Reasons of the newest MAX_COUNTED failures (`kind`, `n`, `example`), the most frequent first."""
    return await fetch_all(conn, _q.failure_reasons, {"most": MAX_COUNTED, "limit": limit})


async def list_failures(conn: Connection, *, before: int | None = None, limit: int = 20) -> list[Row]:
    """Failed references with their errors, newest first, those before the id `before`."""
    return await fetch_all(conn, _q.failures, {"before": before, "limit": limit})


async def list_newest(conn: Connection, limit: int = 24) -> list[Row]:
    """The newest references with a stored image."""
    return await fetch_all(conn, _q.newest, {"limit": limit})


async def retry_failed(conn: Connection) -> int:
    """Queues all failed downloads again; returns how many references wait."""
    retried = await store.retry_failed(conn)
    await audit.record(conn, "images_retried", retried=retried)
    return retried


async def list_images(
    conn: AsyncConnection[Any], *, status: str | None = None, dispensary_id: int | None = None, limit: int = 50
) -> list[Row]:
    """References with what is known of their images, newest first. Raises Refused for an unknown status."""
    if status is not None and status not in STATUSES:
        raise Refused(unknown_value("status", status, STATUSES))
    return await store.page(conn, status=status, dispensary_id=dispensary_id, limit=limit)


async def backfill(
    pool: Pool,
    *,
    dispensary_id: int | None = None,
    failed: bool = False,
    report: Callable[[int, int], object] = lambda done, total: None,
) -> tuple[int, int]:
    """Queues every missing image, of one store or of all; with `failed` also the failed ones. Returns how many were queued and
    retried. `report` is called with (stores done, stores in total)."""
    async with pool.connection() as conn:
        store_ids = await store.stores_without(conn, dispensary_id)
        await audit.record(conn, "images_asked", store=dispensary_id, failed_too=failed)
    queued = 0
    for done, store_id in enumerate(store_ids):
        report(done, len(store_ids))
        async with pool.connection() as conn, conn.transaction():
            queued += await store.queue_products(conn, store_id)
    report(len(store_ids), len(store_ids))
    retried = 0
    if failed:
        async with pool.connection() as conn:
            retried = await store.retry_failed(conn, dispensary_id)
    return queued, retried


class VerifyReport(Struct):
    """The result of comparing rows with files. `examples` holds the first paths of each kind."""

    checked: int = 0
    missing: int = 0
    damaged: int = 0
    unlisted: int = 0
    """Products whose row does not name their file."""
    orphaned: int = 0
    orphaned_bytes: int = 0
    repaired: int = 0
    examples: dict[str, list[str]] = {}

    @property
    def is_whole(self) -> bool:
        return not (self.missing or self.damaged or self.unlisted or self.orphaned)

    def note(self, kind: str, path: str) -> None:
        """Adds a path to the examples of a kind."""
        shown = self.examples.setdefault(kind, [])
        if len(shown) < _SHOWN:
            shown.append(path)


async def verify(
    pool: Pool,
    files: ImageFiles,
    *,
    deep: bool = False,
    repair: bool = False,
    young_seconds: float = YOUNG_SECONDS,
    report: Callable[[int], object] = lambda checked: None,
) -> VerifyReport:
    """Compares rows with files: each file of a row exists and has an image header (`deep`: can be decoded), and each file has a row.
    With `repair`, missing and damaged images are downloaded again and files without a row (older than `young_seconds`) are deleted."""
    result = VerifyReport()
    after = 0
    if repair:
        async with pool.connection() as conn:
            await audit.record(conn, "images_repaired")
    while True:
        async with pool.connection() as conn:
            uses = await store.stored_uses(conn, after=after, limit=_PAGE)
        if not uses:
            break
        after = uses[-1]["id"]
        states = await asyncio.to_thread(_states, files, [use["path"] for use in uses], deep)
        bad = [(use, state) for use, state in zip(uses, states, strict=True) if state]
        for use, state in bad:
            setattr(result, state, getattr(result, state) + 1)
            result.note(state, use["path"])
        unlisted = [
            use
            for use, state in zip(uses, states, strict=True)
            if not state and use["product_id"] is not None and use["local_image_path"] != use["path"]
        ]
        result.unlisted += len(unlisted)
        for use in unlisted:
            result.note("unlisted", use["path"])
        if repair and (bad or unlisted):
            await _repair(pool, files, [use for use, _ in bad], unlisted)
            result.repaired += len(bad) + len(unlisted)
        result.checked += len(uses)
        report(result.checked)
    await _check_orphans(pool, files, result, repair=repair, young=young_seconds)
    return result


def _states(files: ImageFiles, paths: list[str], deep: bool) -> list[str | None]:
    return [_state(files, path, deep) for path in paths]


def _state(files: ImageFiles, path: str, deep: bool) -> str | None:
    """`missing`, `damaged`, or None for an intact file."""
    try:
        data = files.get(path)
    except FileNotFoundError:
        return "missing"
    try:
        vips.header(data)
        if deep:
            decodes(data)
    except vips.InvalidImage:
        return "damaged"
    return None


async def _repair(pool: Pool, files: ImageFiles, bad: list[dict[str, Any]], unlisted: list[dict[str, Any]]) -> None:
    for use in bad:
        # Else the damaged file would be kept. Its other names (hard links) are checked as well, each in its turn.
        await asyncio.to_thread(files.remove, use["path"])
    async with pool.connection() as conn, conn.transaction():
        await catalog.clear_local_images(conn, await store.uses_lost(conn, [use["id"] for use in bad]))
        await catalog.set_local_images(conn, {use["product_id"]: use["path"] for use in unlisted})


async def _check_orphans(pool: Pool, files: ImageFiles, result: VerifyReport, *, repair: bool, young: float) -> None:
    listed = await asyncio.to_thread(lambda: list(files.every()))
    for start in range(0, len(listed), _PAGE):
        some = {entry.path: entry for entry in listed[start : start + _PAGE]}
        async with pool.connection() as conn:
            known = await store.known_paths(conn, list(some))
        for path, entry in some.items():
            if path in known or not path.startswith(("images/products/", "images/brands/")):
                continue
            if time.time() - entry.changed < young:
                continue
            result.orphaned += 1
            result.orphaned_bytes += entry.size
            result.note("orphaned", path)
            if repair:
                await asyncio.to_thread(files.remove_entry, entry)
                result.repaired += 1
