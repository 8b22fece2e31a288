"""Timeline of each worker's tasks, for a bar chart, and of events of hosts and workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec import Struct

from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_structs

_q = sql.load(__package__, "timeline.sql")

BARS = 3000
"""Most tasks of one timeline."""

READ = 8_000
"""Most ended tasks that are read to find those of some workers."""

EVENTS = 100
"""Most events of one timeline."""

LONGEST = timedelta(hours=24)


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A task on a worker; `end` None while it is at it. `row` is its row in the worker's lane, from 0: bars of one row do not
    overlap."""

    id: int
    role: str
    dispensary_id: int | None
    status: str
    start: datetime
    end: datetime | None
    row: int


class Lane(Struct, frozen=True, kw_only=True):
    """One worker: its bars from the oldest on, in that many `rows`. Without a `name` it is no longer in the registry, and neither is
    known when it `began` nor when it `left` (None as well while it has not)."""

    worker_id: str
    name: str | None
    pod: str | None
    status: str | None
    began: datetime | None
    left: datetime | None
    rows: int
    bars: Sequence[Bar]


class Timeline(Struct, frozen=True, kw_only=True):
    """Workers by pod and name. Where there were more than BARS tasks, it begins later than was asked, and `cut` is true."""

    since: datetime
    until: datetime
    cut: bool
    lanes: Sequence[Lane]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a host, or to a worker if it has a `worker_id`; `name` is that of either. `reason` is known of
    hosts."""

    at: datetime
    kind: Literal["cooldown", "rate_reduced", "circuit_opened", "circuit_closed", "changed", "started", "stopped"]
    name: str
    worker_id: str | None
    reason: str | None


async def list_events(
    conn: Connection, since: datetime, until: datetime, *, pod: str | None = None
) -> tuple[list[Event], bool]:
    """Events of all hosts and of the workers (of one pod), newest first, at most EVENTS; and whether there are more."""
    values = {"since": since, "until": until, "pod": pod, "limit": EVENTS + 1}
    found = await fetch_structs(conn, Event, _q.events, values)
    return found[:EVENTS], len(found) > EVENTS


async def timeline(
    conn: Connection,
    *,
    hours: float = 3,
    span: tuple[datetime, datetime] | None = None,
    pod: str | None = None,
    worker_id: str | None = None,
) -> Timeline:
    """Timeline of the last `hours` (at most 24), or of the time between the two of `span`, of all workers, of one pod's, or of one.
    Tasks that ended more than an hour after `span` are not in it."""
    now = await database_now(conn)
    since, until = span or (now - min(timedelta(hours=hours), LONGEST), now)
    workers = None if worker_id is None else [worker_id]
    if pod is not None:
        of_pod = [row["worker_id"] for row in await fetch_all(conn, _q.workers_of_pod, {"pod": pod})]
        workers = of_pod if workers is None else [worker for worker in workers if worker in of_pod]
    values = {"since": since, "until": until, "workers": workers, "limit": BARS + 1}
    values["read"] = BARS + 1 if workers is None else READ
    ended = await fetch_all(conn, _q.ended_bars, values, prepare=False)
    read_since = ended[0]["read_since"]
    for row in ended:
        del row["read_since"]
    ended = [row for row in ended if row["id"] is not None]
    if len(ended) > BARS:
        ended = ended[:BARS]
        read_since = ended[-1]["end"]
    since = max(since, read_since or since)
    crossing = await fetch_all(conn, _q.crossing_bars, values, prepare=False) if span else []
    open_now = await fetch_all(conn, _q.open_bars, values)
    by_worker: dict[str, list[dict[str, object]]] = {}
    for row in sorted([*ended, *crossing, *open_now], key=lambda row: (row["start"], row["id"])):
        by_worker.setdefault(row.pop("worker_id"), []).append(row)
    named = {row["worker_id"]: row for row in await fetch_all(conn, _q.names_of_workers, {"ids": list(by_worker)})}
    lanes = []
    for worker, rows in by_worker.items():
        bars = packed(rows)
        known = named.get(worker, {})
        lanes.append(
            Lane(
                worker_id=worker,
                name=known.get("friendly_name"),
                pod=known.get("pod"),
                status=known.get("status"),
                began=known.get("started_at"),
                left=known["last_heartbeat_at"] if known.get("status") == "stopped" else None,
                rows=max(bar.row for bar in bars) + 1,
                bars=bars,
            )
        )
    lanes.sort(key=lambda lane: (lane.pod is None, lane.pod or "", lane.name or "", lane.worker_id))
    return Timeline(since=since, until=until, cut=read_since is not None, lanes=lanes)


def packed(rows: Iterable[dict[str, object]]) -> list[Bar]:
    """Put each bar, ordered by start, into the first free row. Pure."""
    free: list[datetime | None] = []
    bars = []
    for row in rows:
        start, end = row["start"], row["end"]
        assert isinstance(start, datetime), "a bar has a start"
        lane_row = next((n for n, until in enumerate(free) if until is not None and until <= start), len(free))
        free[lane_row : lane_row + 1] = [end if isinstance(end, datetime) else None]
        bars.append(Bar(**row, row=lane_row))  # type: ignore[arg-type]
    return bars
