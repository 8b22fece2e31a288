"""What each worker did in the last hours, for a chart of bars: convoys, gaps and stragglers are seen at a glance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import rows

_q = sql.load(__package__, "timeline.sql")

BARS = 4000
"""Most tasks of one timeline."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One worker: its bars from the oldest on, in so many `rows`. Without a `name` it is no longer in the registry, and neither is
    known when it `began` nor when it `left` (None as well while it has not)."""

    worker_id: str
    name: str | None
    pod: str | None
    status: str | None
    began: datetime | None
    left: datetime | None
    rows: int
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Workers by pod and name. Where there were more than BARS tasks, it begins later than was asked, and `cut` is true."""

    since: datetime
    until: datetime
    cut: bool
    lanes: Sequence[Lane]


async def timeline(
    conn: Connection, *, hours: float = 3, pod: str | None = None, worker_id: str | None = None
) -> Timeline:
    """The last `hours` (at most 24) of all workers, of one pod's, or of one."""
    (now,) = [one["at"] for one in await rows(conn, "SELECT now() AS at", {})]
    since: datetime = now - min(timedelta(hours=hours), LONGEST)
    workers = None if worker_id is None else [worker_id]
    if pod is not None:
        crew = [one["worker_id"] for one in await rows(conn, _q.crew_of_pod, {"pod": pod})]
        workers = crew if workers is None else [one for one in workers if one in crew]
    values = {"since": since, "workers": workers, "limit": BARS + 1}
    ended = await rows(conn, _q.ended_bars, values, prepare=False)
    open_now = await rows(conn, _q.open_bars, {"workers": workers, "limit": BARS})
    cut = len(ended) > BARS
    if cut:
        ended = ended[:BARS]
        since = max(since, ended[-1]["end"])
    by_worker: dict[str, list[dict[str, object]]] = {}
    for one in sorted([*ended, *open_now], key=lambda one: (one["start"], one["id"])):
        by_worker.setdefault(one.pop("worker_id"), []).append(one)
    named = {one["worker_id"]: one for one in await rows(conn, _q.names_of_workers, {"ids": list(by_worker)})}
    lanes = []
    for worker, found in by_worker.items():
        bars = packed(found)
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
    return Timeline(since=since, until=now, cut=cut, lanes=lanes)


def packed(found: Iterable[dict[str, object]]) -> list[Bar]:
    """Bars, given by their start, each in the first row that is free; pure."""
    free: list[datetime | None] = []
    bars = []
    for one in found:
        start, end = one["start"], one["end"]
        assert isinstance(start, datetime), "a bar has a start"
        row = next((n for n, until in enumerate(free) if until is not None and until <= start), len(free))
        free[row : row + 1] = [end if isinstance(end, datetime) else None]
        bars.append(Bar(**one, row=row))  # type: ignore[arg-type]
    return bars
