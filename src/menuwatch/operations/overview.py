"""Is it healthy: what waits, what gets done, how long it will take, and what stands in the way. The read behind the first screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import rows
from menuwatch.tasks.capacity import HOURS, Capacity, capacity

_q = sql.load(__package__, "overview.sql")

STEP = timedelta(minutes=5)
T = TypeVar("T")
_START = datetime(2000, 1, 1, tzinfo=UTC)


class Crew(msgspec.Struct, frozen=True, kw_only=True):
    """The workers that have not stopped; `silent` ones gave no sign for two minutes, `slots` are tasks that the others run at once."""

    live: int
    claiming: int
    backing_off: int
    paused: int
    silent: int
    slots: int
    pods: int


class LateSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that should have fired two minutes ago or earlier."""

    id: int
    name: str
    due_at: datetime
    error: str | None


class ClosedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is not asked now; `until` None: until somebody opens it."""

    host: str
    code: str
    reason: str | None
    until: datetime | None


class ProxyCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Proxies: `down` ones were taken out by their failures, `disabled` ones by an operator."""

    known: int
    active: int
    down: int
    disabled: int


class StoreCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Stores; of those that are `crawled`, `never` ones have no menu yet, and `stale` ones none for twice their interval."""

    known: int
    crawled: int
    never: int
    stale: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleLoad:
    """What there is to do of one role, and how fast it gets done: `capacity` is its row of `v_worker_capacity`. `retrying` ones are
    among `ready` and `scheduled`, `stale` ones among `claimed` and `running`."""

    role: str
    ready: int
    scheduled: int
    retrying: int
    claimed: int
    running: int
    stale: int
    oldest_ready_seconds: float | None
    capacity: Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Minutes:
    """What came and what ended in five minutes from `start` on."""

    start: datetime
    arrived: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """How long the work that is due takes. `worker_hours` is the work of one worker; `hours` is for the workers that live and are
    not paused (None without any); `needed` are workers by the hours in which they would have done it. Roles that nothing was completed
    of in the last hour are `unknown` and left out; with nothing but those, everything is None."""

    worker_hours: float | None
    hours: float | None
    needed: Mapping[int, int | None]
    unknown: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How it stands at one moment."""

    at: datetime
    roles: Sequence[RoleLoad]
    series: Sequence[Minutes]
    """Oldest first, without a gap; the last one is under way."""
    drain: Drain
    workers: Crew
    late_schedules: Sequence[LateSchedule]
    closed_hosts: Sequence[ClosedHost]
    proxies: ProxyCounts
    stores: StoreCounts
    quarantined: int

    @property
    def ready(self) -> int:
        """Tasks that could be taken now."""
        return sum(role.ready for role in self.roles)

    @property
    def pending(self) -> int:
        """Tasks that wait, for their turn or their time."""
        return self.ready + sum(role.scheduled for role in self.roles)

    @property
    def running(self) -> int:
        """Tasks that workers have, begun or not."""
        return sum(role.claimed + role.running for role in self.roles)

    @property
    def completed_last_hour(self) -> int:
        """Tasks that were completed."""
        return sum(role.capacity.completed_last_hour for role in self.roles)

    @property
    def failed_last_hour(self) -> int:
        """Tasks that failed for good."""
        return sum(role.capacity.failed_last_hour for role in self.roles)

    @property
    def oldest_ready_seconds(self) -> float | None:
        """How long the task waits that has been due longest; None where none is due."""
        return max(
            (role.oldest_ready_seconds for role in self.roles if role.oldest_ready_seconds is not None), default=None
        )


async def overview(conn: Connection, *, hours: float = 3) -> Overview:
    """How it stands, with what came and ended in the last `hours` (at most 24)."""
    (around,) = await rows(conn, _q.around, {})
    at: datetime = around["at"]
    since = floor(at - timedelta(hours=min(hours, 24)))
    load = await loads(conn, at)
    crew = _decode(around["workers"], Crew)
    return Overview(
        at=at,
        roles=load,
        series=await _series(conn, since, at),
        drain=drain(load, crew.live - crew.paused),
        workers=crew,
        late_schedules=_decode(around["late_schedules"], list[LateSchedule]),
        closed_hosts=_decode(around["closed_hosts"], list[ClosedHost]),
        proxies=_decode(around["proxies"], ProxyCounts),
        stores=_decode(around["stores"], StoreCounts),
        quarantined=around["quarantined"],
    )


async def loads(conn: Connection, at: datetime) -> list[RoleLoad]:
    """What there is to do of every role at that moment, now."""
    by_role = {one.role: one for one in await capacity(conn)}
    return [
        RoleLoad(
            **{name: one[name] for name in ("role", "ready", "scheduled", "retrying", "claimed", "running", "stale")},
            oldest_ready_seconds=None
            if one["oldest_at"] is None
            else max((at - one["oldest_at"]).total_seconds(), 0.0),
            capacity=by_role[one["role"]],
        )
        for one in await rows(conn, _q.load, {})
    ]


async def pace(conn: Connection, workers: int) -> tuple[Drain, int]:
    """How long that many workers take for what is due, and how many tasks that is: the overview without everything else."""
    (now,) = await rows(conn, "SELECT now() AS at", {})
    load = await loads(conn, now["at"])
    return drain(load, workers), sum(one.ready for one in load)


def floor(moment: datetime) -> datetime:
    """The beginning of its five minutes."""
    return moment - (moment - _START) % STEP


async def _series(conn: Connection, since: datetime, until: datetime) -> list[Minutes]:
    ended = {one["start"]: one for one in await rows(conn, _q.ends, {"since": since}, prepare=False)}
    arrived = {one["start"]: one["arrived"] for one in await rows(conn, _q.arrivals, {"since": since}, prepare=False)}
    series = []
    start = since
    while start <= until:
        found = ended.get(start, {})
        series.append(
            Minutes(
                start=start,
                arrived=arrived.get(start, 0),
                completed=found.get("completed", 0),
                failed=found.get("failed", 0),
            )
        )
        start += STEP
    return series


def drain(load: Sequence[RoleLoad], workers: int) -> Drain:
    """How long that many workers take for what is due, each taking every role; pure."""
    waiting = [one for one in load if one.ready]
    known = [(one.ready, rate) for one in waiting if (rate := one.capacity.tasks_per_worker_hour)]
    unknown = [one.role for one in waiting if not one.capacity.tasks_per_worker_hour]
    if unknown and not known:
        return Drain(worker_hours=None, hours=None, needed=dict.fromkeys(HOURS), unknown=unknown)
    work = sum(ready / rate for ready, rate in known)
    return Drain(
        worker_hours=work,
        hours=0.0 if not work else work / workers if workers else None,
        needed={hours: math.ceil(round(work / hours, 9)) for hours in HOURS},
        unknown=unknown,
    )


def _decode(value: msgspec.Raw, kind: type[T]) -> T:
    return msgspec.json.decode(value, type=kind)
