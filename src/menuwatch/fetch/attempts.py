"""Attempts: one row per request, written in batches and listed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.core.http import proxy_address
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all
from menuwatch.fetch.classify import Blame, Verdict
from menuwatch.fetch.retry_policy import Action

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request. `host` includes the port if the URL names one; `rotated`: the identity was changed because of it; `waited_ms` is
    the wait for the host's budget, `elapsed_ms` the duration; `bytes` is the decoded size of the response; `error` holds no
    password."""

    task_id: int | None
    dispensary_id: int | None
    host: str
    proxy_id: int
    profile: str
    verdict: Verdict
    blame: Blame
    reaction: Action
    status: int | None
    rotated: bool
    waited_ms: float
    bytes: int
    elapsed_ms: float
    error: str | None
    attempted_at: datetime
    task_attempt: int | None = None


_COLUMNS = tuple(spec.name for spec in fields(Attempt))


async def insert(conn: AsyncConnection[Any], attempts: Sequence[Attempt]) -> None:
    """Insert the rows in order and update the totals, within the open transaction."""
    if attempts:
        columns = {name: [getattr(attempt, name) for attempt in attempts] for name in _COLUMNS}
        await conn.execute(_q.insert_attempts, columns)
        await conn.execute(_q.add_totals, columns)


async def ensure_partitions(conn: AsyncConnection[Any], days: int = 3) -> None:
    """Create missing partitions for today and the next days."""
    await conn.execute(_q.prepare_attempts, {"days": days})


async def traffic(conn: AsyncConnection[Any]) -> dict[str, int]:
    """Totals of all requests: `requests`, `blocked` (refusals), `rotations` (changes of identity), `bytes` (decoded)."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.traffic)
        row = await cur.fetchone()
    assert row is not None, "an aggregate gives a row"
    return {key: int(value) for key, value in row.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFilter:
    """Filter for requests; None matches all. `since` is inclusive, `until` is exclusive."""

    task_id: int | None = None
    dispensary_id: int | None = None
    host: str | None = None
    proxy_id: int | None = None
    verdicts: Sequence[Verdict] | None = None
    since: datetime | None = None
    until: datetime | None = None


class FetchAttempt(Struct, kw_only=True, frozen=True):
    """One request to a platform."""

    id: int
    attempted_at: Annotated[Instant, doc("When the request was sent.")]
    task_id: Annotated[int | None, doc("Id of the task; null for proxy tests.")]
    task_attempt: Annotated[int | None, doc("Attempt of the task that sent it; null for proxy tests.")]
    dispensary_id: Annotated[int | None, doc("Id of the store; null if the request was not for one.")]
    host: Annotated[str, doc("Host that the request was sent to.")]
    proxy_id: Annotated[int | None, doc("Id of the proxy; null without a proxy.")]
    proxy: Annotated[
        str | None, doc("Address of the proxy without the password; null without a proxy or if it was removed since.")
    ]
    profile: Annotated[str | None, doc("Name of the browser profile.")]
    verdict: Annotated[Verdict, doc("Outcome of the request.")]
    blame: Annotated[Blame, doc("Party responsible for the outcome.")]
    reaction: Annotated[
        Action,
        doc(
            "Action taken: `return` the response, retry (`again`), `rotate` proxy and browser, `reroute` through another "
            "proxy, `give_up`."
        ),
    ]
    rotated: Annotated[bool, doc("Whether the identity was changed because of this request.")]
    status: Annotated[int | None, doc("HTTP status of the response; null if there was none.")]
    waited_ms: Annotated[float, doc("Time spent waiting for the host's rate limit, in ms.")]
    elapsed_ms: Annotated[float, doc("Duration of the request, in ms.")]
    bytes: Annotated[int, doc("Size of the decoded response in bytes; 0 if there was none.")]
    error: Annotated[str | None, doc("Error message; null if there was none.")]


async def list_attempts(
    conn: Connection, where: AttemptFilter, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[FetchAttempt]:
    """Requests, newest first, before the given time and id."""
    values = dataclasses.asdict(where)
    values["verdicts"] = None if where.verdicts is None else [str(verdict) for verdict in where.verdicts]
    after_at, after_id = after or (None, None)
    values |= {"after_at": after_at, "after_id": after_id, "limit": limit}
    return [_attempt(row) for row in await fetch_all(conn, _q.list_attempts, values, prepare=False)]


def _attempt(row: Row) -> FetchAttempt:
    protocol, host, port, user = (row.pop(f"proxy_{name}") for name in ("protocol", "host", "port", "user"))
    proxy = None if protocol is None else proxy_address(protocol, host, port, user)
    rounded = {key: round(row[key], 1) for key in ("waited_ms", "elapsed_ms")}
    return FetchAttempt(**{**row, **rounded}, proxy=proxy)
