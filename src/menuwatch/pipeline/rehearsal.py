"""What applying one archived menu would do: the real refresh, in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.archive.files import FileArchive
from menuwatch.core.clock import SystemClock
from menuwatch.core.errors import Permanent, Refused
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.payloads import store as payloads
from menuwatch.pipeline.parts import Parts
from menuwatch.pipeline.product_refresh import refresh
from menuwatch.platforms.base import Platform
from menuwatch.tasks.outcome import Fail

_q = sql.load(__package__, "rehearsal.sql")
PATIENCE = timedelta(seconds=20)
"""Longest time of a rehearsal: meanwhile it holds the store's row, and a real crawl of it waits."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a refresh came to. `counts` are those of a task's result, empty where nothing was applied; `refused` says why that was.
    `conn` shows the catalogue as it would be, for as long as the context lasts."""

    conn: AsyncConnection[Any]
    counts: Mapping[str, Any]
    refused: str | None = None
    new: tuple[Mapping[str, Any], ...] = ()
    gone: tuple[Mapping[str, Any], ...] = ()
    shown: int = 0
    """Of `new` and `gone` at most so many were read."""


@asynccontextmanager
async def rehearsing(
    pool: Pool,
    archive: FileArchive,
    platforms: Mapping[str, Platform],
    payload_id: int,
    *,
    suspect_share: float,
    shown: int = 100,
) -> AsyncIterator[Rehearsal]:
    """Applies the payload as `product_refresh` would, one that is in quarantine as if it were released, and takes all of it back.

    Raises Refused for a payload that cannot be applied at all: unknown, rejected, of a platform that is not known, its file gone.
    """
    parts = Parts(
        pool=pool,
        clock=SystemClock(),
        archive=archive,
        platforms=platforms,
        open_session=_offline,
        suspect_share=suspect_share,
    )
    async with pool.connection(timeout=10) as conn, conn.transaction(force_rollback=True):
        await conn.execute(_q.patience, {"patience": f"{int(PATIENCE.total_seconds())}s"})
        payload = await payloads.lock(conn, payload_id)
        if payload is None:
            raise Refused(f"payload {payload_id} does not exist")
        if payload.platform not in platforms:
            raise Refused(f"payload {payload_id} is of platform {payload.platform!r}, which is not known here")
        if payload.status == "quarantined":
            await payloads.release(conn, payload_id)
            payload = await payloads.get(conn, payload_id)
            assert payload is not None, "it is locked"
        try:
            outcome = await refresh(parts, payload)
        except Permanent as error:
            raise Refused(str(error)) from error
        if isinstance(outcome, Fail):
            yield Rehearsal(conn, {}, outcome.reason)
            return
        assert outcome.writes is not None, "a refresh writes"
        wrote = await outcome.writes(conn)
        counts = dict(wrote.result or {}) if wrote is not None else {}
        refused = _why_not(counts)
        if refused is not None:
            yield Rehearsal(conn, {}, refused)
            return
        which = {"id": payload.dispensary_id, "at": payload.fetched_at, "limit": shown}
        yield Rehearsal(
            conn, counts, None, await _rows(conn, _q.first_seen, which), await _rows(conn, _q.missed, which), shown
        )


def _why_not(counts: Mapping[str, Any]) -> str | None:
    if counts.get("already_applied"):
        return "The catalogue holds this menu already: applying it again changes nothing."
    if counts.get("superseded"):
        return "The catalogue shows a newer crawl of this store: an older menu does not undo what came after it."
    if counts.get("quarantined"):
        return f"It would be quarantined: {counts['quarantined']}"
    return None


async def _rows(conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    cursor = await conn.execute(query, values)
    return tuple(
        {"id": one[0], "name": one[1], "brand_name": one[2], "misses": one[3]} for one in await cursor.fetchall()
    )


def _offline(**_: Any) -> Any:
    raise AssertionError("a refresh never asks a platform")
