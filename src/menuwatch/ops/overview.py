"""Is it healthy: what waits, what gets done, how long it will take, and what stands in the way. The read behind the first screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.queue.capacity import HOURS, Capacity, capacity
from menuwatch.queue.failures import OpenFailures, count_open

_q = sql.load(__package__, "overview.sql")

T = TypeVar("T")


class Crew(msgspec.Struct, frozen=True, kw_only=True):
    """The workers that have not stopped; `silent` ones gave no sign for two minutes, `slots` are tasks that the others run at once."""

    live: int
    claiming: int
    backing_off: int
    paused: int
    stopping: int
    silent: int
    slots: int
    pods: int


class Supervisor(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor of `menuwatch up` or `menuwatch supervisor`, while one runs: how many workers it should run, and what prevents
    it (None: nothing)."""

    desired: int | None
    error: str | None


class LateSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that should have fired two minutes ago or earlier."""

    id: int
    name: str
    due_at: datetime
    error: str | None


class ClosedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host that gets no requests now; `until` None: until an operator opens it."""

    host: str
    code: str
    reason: str | None
    until: datetime | None


class ProxyCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Proxies: `down` ones were taken out by their failures, `disabled` ones by an operator. The rest are `untested`."""

    known: int
    active: int
    down: int
    disabled: int

    @property
    def untested(self) -> int:
        """Those that wait for their first test."""
        return self.known - self.active - self.down - self.disabled


class StoreCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Stores; of those that are `crawled`, `never` ones have no menu yet, and `stale` ones none for twice their interval."""

    known: int
    crawled: int
    never: int
    stale: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleLoad:
    """What there is to do of one role, and how fast it gets done: `capacity` is its row of `v_worker_capacity`. `retrying` ones are
    among `ready`, `blocked` and `scheduled`, `stale` ones among `claimed` and `running`."""

    role: str
    ready: int
    blocked: int
    scheduled: int
    retrying: int
    claimed: int
    running: int
    stale: int
    oldest_ready_seconds: float | None
    capacity: Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """How long the work that is due takes. `worker_hours` is the work of one worker; `hours` is for the workers that live and
    neither are paused nor stop (None without any); `needed` are workers by the hours in which they would have done it. Roles that
    nothing was completed of in the last hour are `unknown` and left out; with nothing but those, everything is None. So are `blocked`
    tasks, `blocked_by` hosts that get no requests: more workers or time do not help them."""

    worker_hours: float | None
    hours: float | None
    needed: Mapping[int, int | None]
    unknown: Sequence[str]
    blocked: int = 0
    blocked_by: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How it stands at one moment."""

    at: datetime
    roles: Sequence[RoleLoad]
    drain: Drain
    workers: Crew
    late_schedules: Sequence[LateSchedule]
    closed_hosts: Sequence[ClosedHost]
    proxies: ProxyCounts
    stores: StoreCounts
    quarantined: int
    failures: OpenFailures
    supervisor: Supervisor | None = None

    @property
    def ready(self) -> int:
        """Tasks that could be taken now."""
        return sum(role.ready for role in self.roles)

    @property
    def blocked(self) -> int:
        """Tasks whose host gets no requests now."""
        return self.drain.blocked

    @property
    def scheduled(self) -> int:
        """Tasks that are not due yet."""
        return sum(role.scheduled for role in self.roles)

    @property
    def pending(self) -> int:
        """Tasks that wait, for their turn, their host or their time."""
        return self.ready + self.blocked + self.scheduled

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
        """Tasks that failed permanently."""
        return sum(role.capacity.failed_last_hour for role in self.roles)

    @property
    def oldest_ready_seconds(self) -> float | None:
        """How long the task waits that has been due longest; None where none is due."""
        return max(
            (role.oldest_ready_seconds for role in self.roles if role.oldest_ready_seconds is not None), default=None
        )


async def overview(conn: Connection) -> Overview:
    """How it stands."""
    (around,) = await fetch_all(conn, _q.around, {})
    at: datetime = around["at"]
    load = await loads(conn, at)
    crew = _decode(around["workers"], Crew)
    return Overview(
        at=at,
        roles=load,
        drain=drain(load, crew.live - crew.paused - crew.stopping),
        workers=crew,
        late_schedules=_decode(around["late_schedules"], list[LateSchedule]),
        closed_hosts=_decode(around["closed_hosts"], list[ClosedHost]),
        proxies=_decode(around["proxies"], ProxyCounts),
        stores=_decode(around["stores"], StoreCounts),
        quarantined=around["quarantined"],
        failures=await count_open(conn),
        supervisor=_decode(around["supervisor"], Supervisor) if around["supervisor"] is not None else None,
    )


async def loads(conn: Connection, at: datetime) -> list[RoleLoad]:
    """What there is to do of every role at that moment, now."""
    by_role = {one.role: one for one in await capacity(conn)}
    return [
        RoleLoad(
            **{
                name: one[name]
                for name in ("role", "ready", "blocked", "scheduled", "retrying", "claimed", "running", "stale")
            },
            oldest_ready_seconds=None
            if one["oldest_at"] is None
            else max((at - one["oldest_at"]).total_seconds(), 0.0),
            capacity=by_role[one["role"]],
        )
        for one in await fetch_all(conn, _q.load, {})
    ]


async def pace(conn: Connection, workers: int) -> tuple[Drain, int]:
    """How long that many workers take for what is due, and how many tasks that is: the overview without everything else."""
    (now,) = await fetch_all(conn, "SELECT now() AS at", {})
    load = await loads(conn, now["at"])
    return drain(load, workers), sum(one.ready for one in load)


def drain(load: Sequence[RoleLoad], workers: int) -> Drain:
    """How long that many workers take for what is due, each taking every role; pure."""
    waiting = [one for one in load if one.ready]
    known = [(one.ready, rate) for one in waiting if (rate := one.capacity.tasks_per_worker_hour)]
    unknown = [one.role for one in waiting if not one.capacity.tasks_per_worker_hour]
    blocked = sum(one.blocked for one in load)
    blocked_by = sorted({host for one in load for host in one.capacity.blocked_by})
    if unknown and not known:
        needed: dict[int, int | None] = dict.fromkeys(HOURS)
        return Drain(
            worker_hours=None, hours=None, needed=needed, unknown=unknown, blocked=blocked, blocked_by=blocked_by
        )
    work = sum(ready / rate for ready, rate in known)
    return Drain(
        worker_hours=work,
        hours=0.0 if not work else work / workers if workers else None,
        needed={hours: math.ceil(round(work / hours, 9)) for hours in HOURS},
        unknown=unknown,
        blocked=blocked,
        blocked_by=blocked_by,
    )


def _decode(value: msgspec.Raw, kind: type[T]) -> T:
    return msgspec.json.decode(value, type=kind)
