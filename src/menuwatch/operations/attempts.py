"""Requests that were made, as people look at them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.fetch.verdict import Verdict
from menuwatch.operations.reading import Row, rows
from menuwatch.proxies.model import address

_q = sql.load(__package__, "attempts.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFilter:
    """Which requests; None takes all. `since` is inclusive, `until` is not."""

    task_id: int | None = None
    dispensary_id: int | None = None
    host: str | None = None
    proxy_id: int | None = None
    verdicts: Sequence[Verdict] | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One request. `proxy` is its address without the password, None where the proxy is gone; `reaction` is what was done about the
    answer, `blame` who caused it; it waited `waited_ms` for the host's budget and then took `elapsed_ms`."""

    id: int
    attempted_at: datetime
    task_id: int | None
    dispensary_id: int | None
    host: str
    proxy_id: int | None
    proxy: str | None
    profile: str | None
    verdict: str
    blame: str
    reaction: str
    rotated: bool
    status: int | None
    waited_ms: float
    elapsed_ms: float
    bytes: int
    error: str | None


async def page(
    conn: Connection, where: AttemptFilter, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[AttemptView]:
    """Requests, newest first, those before the one with that time and number."""
    values = dataclasses.asdict(where)
    values["verdicts"] = None if where.verdicts is None else [str(verdict) for verdict in where.verdicts]
    after_at, after_id = after or (None, None)
    values |= {"after_at": after_at, "after_id": after_id, "limit": limit}
    return [_view(found) for found in await rows(conn, _q.list_attempts, values, prepare=False)]


def _view(found: Row) -> AttemptView:
    protocol, host, port, user = (found.pop(f"proxy_{name}") for name in ("protocol", "host", "port", "user"))
    name = None if protocol is None else address(protocol, host, port, user)
    rounded = {key: round(found[key], 1) for key in ("waited_ms", "elapsed_ms")}
    return AttemptView(**{**found, **rounded}, proxy=name)
