"""Attempts: one row per request that was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.db import sql
from menuwatch.fetch.reaction import Move
from menuwatch.fetch.verdict import Blame, Verdict

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request. `host` has its port where the address names one; `rotated`: the identity was changed because of it;
    `waited_ms` is how
    long it waited for the host's budget, `elapsed_ms` how long it took; `bytes` is the decoded size of the answer; `error`
    says what went wrong, without passwords."""

    task_id: int | None
    dispensary_id: int | None
    host: str
    proxy_id: int
    profile: str
    verdict: Verdict
    blame: Blame
    reaction: Move
    status: int | None
    rotated: bool
    waited_ms: float
    bytes: int
    elapsed_ms: float
    error: str | None
    attempted_at: datetime


_COLUMNS = tuple(spec.name for spec in fields(Attempt))


async def insert(conn: AsyncConnection[Any], attempts: Sequence[Attempt]) -> None:
    """Writes the rows, in order, and adds them to the sums, within whatever transaction the connection is in."""
    if attempts:
        columns = {name: [getattr(attempt, name) for attempt in attempts] for name in _COLUMNS}
        await conn.execute(_q.insert_attempts, columns)
        await conn.execute(_q.add_totals, columns)


async def ensure_partitions(conn: AsyncConnection[Any], days: int = 3) -> None:
    """Makes the partitions of today and the days ahead, where they are missing."""
    await conn.execute(_q.prepare_attempts, {"days": days})


async def traffic(conn: AsyncConnection[Any]) -> dict[str, int]:
    """`requests`, `blocked` (refusals met), `rotations` (identities changed), `bytes` (decoded), over all that was ever asked."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.traffic)
        row = await cur.fetchone()
    assert row is not None, "an aggregate gives a row"
    return {key: int(value) for key, value in row.items()}
