"""Why a task is where it is: facts from the database, and one sentence that follows from them.

`explanation` is pure: it looks through the reasons in the order in which they keep a task from running, and the first that holds is
the answer.

    over ─► a worker is at it ─► not due yet ─► behind an earlier task of its role and store ─► its store is busy
         ─► nobody lives who takes its role ─► those who do claim nothing now ─► all their slots are taken ─► ready
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import row, rows
from menuwatch.operations.refusals import NotFound
from menuwatch.tasks.model import UNHANDLED_ROLES, Role

_q = sql.load(__package__)

BEATS = 3
"""A worker lives while its last heartbeat is at most this many heartbeat intervals old."""

COUNTED = 10_000
"""Tasks that stand before one are counted up to this many."""


class Code(StrEnum):
    """The reasons."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"
    SILENT = "silent"
    STALE = "stale"
    LATER = "later"
    BACKING_OFF = "backing_off"
    POSTPONED = "postponed"
    BEHIND = "behind"
    STORE_BUSY = "store_busy"
    NO_HANDLER = "no_handler"
    NO_WORKER = "no_worker"
    NO_WORKER_FOR_ROLE = "no_worker_for_role"
    NO_PROXY = "no_proxy"
    WORKERS_PAUSED = "workers_paused"
    WORKERS_STOPPING = "workers_stopping"
    WORKERS_BACKING_OFF = "workers_backing_off"
    NO_FREE_SLOT = "no_free_slot"
    READY = "ready"


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """A task that stands in the way."""

    id: int
    role: str
    worker_id: str | None = None
    claimed_at: datetime | None = None


class WorkerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has not stopped. `roles` None means any; `slots` None that it has not said; `silent` is in seconds."""

    worker_id: str
    friendly_name: str
    roles: list[str] | None
    status: str
    silent: float
    slots: int | None
    active: int
    paused_roles: list[str] = []
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that an explanation follows from. `state` is the live task's (r, p, s, a), None for one that is over."""

    id: int
    role: str
    status: str
    now: datetime
    state: str | None = None
    dispensary_id: int | None = None
    scheduled_for: datetime | None = None
    worker_id: str | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    last_heartbeat_at: datetime | None = None
    error_message: str | None = None
    attempt: int = 0
    retry_count: int = 0
    max_retries: int = 3
    postpone_count: int = 0
    head: Other | None = None
    """The task of the same role and store that goes first, if that is another one."""
    ahead: int = 0
    """Tasks of the same role and store that go before it."""
    holder: Other | None = None
    """The task that works on its store."""
    workers: Sequence[WorkerFacts] = ()
    before: int = 0
    """Ready tasks that its workers would take before it, counted up to COUNTED."""
    live_seconds: float = 90.0
    stale_seconds: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The workers that a task could have. Those that `take` its role live; `claiming` are those that would claim it now."""

    live: int
    take: int
    claiming: int
    paused: int
    backing_off: int
    slots: int
    busy: int
    silent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a task is where it is. `reason` is for people; the rest is what it was made of, None where it plays no part."""

    task_id: int
    status: str
    code: Code
    reason: str
    until: datetime | None = None
    seconds: float | None = None
    blocked_by: Other | None = None
    ahead: int | None = None
    worker_id: str | None = None
    since: datetime | None = None
    workers: Crew | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def span(seconds: float) -> str:
    """A length of time in words, by its two largest units."""
    whole = max(round(seconds), 0)
    for size, name, small, minor in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {minor}" if rest else "")
    return f"{whole} s"


def _at(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _many(n: int, one: str) -> str:
    return f"{n:,} {one}{'' if n == 1 else 's'}"


def _because(text: str | None) -> str:
    return (text or "no reason given").strip().rstrip(".")


def explanation(facts: Facts) -> Explanation:
    """The first reason that holds."""
    return _over(facts) or _held(facts) or _early(facts) or _blocked(facts) or _unmanned(facts)


def _over(f: Facts) -> Explanation | None:
    if f.completed_at is None:
        return None
    code = Code(f.status)
    tries = f"at attempt {f.attempt}" if f.attempt > 1 else "at the first attempt"
    by = f" by worker {f.worker_id}" if f.worker_id else ""
    said = {
        Code.COMPLETED: f"It was completed at {_at(f.completed_at)}{by}, {tries}.",
        Code.FAILED: f"It failed for good at {_at(f.completed_at)}, {tries}: {_because(f.error_message)}.",
        Code.CANCELLED: f"It was cancelled at {_at(f.completed_at)}: {_because(f.error_message)}.",
    }[code]
    return Explanation(
        task_id=f.id, status=f.status, code=code, reason=said, worker_id=f.worker_id, since=f.completed_at
    )


def _held(f: Facts) -> Explanation | None:
    if f.state != "a" or f.claimed_at is None:
        return None
    begun = f.started_at or f.claimed_at
    sign = f.last_heartbeat_at or f.claimed_at
    silent = (f.now - sign).total_seconds()
    left = f.stale_seconds - silent
    who = f"Worker {f.worker_id}"
    doing = "has been running it" if f.started_at else "has claimed it and not begun"
    text = f"{who} {doing} for {span((f.now - begun).total_seconds())}, since {_at(begun)}"
    if left <= 0:
        code = Code.STALE
        text = f"{who} has been silent for {span(silent)}: the task is about to be taken back and to wait for another worker"
    elif silent > f.live_seconds:
        code = Code.SILENT
        text += f", but has been silent for {span(silent)}: the task is taken back in {span(left)} if that lasts"
    else:
        code = Code.RUNNING
        text += f"; its last sign was {span(silent)} ago"
    return Explanation(
        task_id=f.id,
        status=f.status,
        code=code,
        reason=f"{text}.",
        worker_id=f.worker_id,
        since=begun,
        seconds=silent,
        details={"last_sign_at": sign, "stale_in_seconds": max(left, 0.0)},
    )


def _early(f: Facts) -> Explanation | None:
    if f.state != "s" or f.scheduled_for is None or f.scheduled_for <= f.now:
        return None
    wait = (f.scheduled_for - f.now).total_seconds()
    when = f"in {span(wait)}, at {_at(f.scheduled_for)}"
    if f.attempt == 0:
        code, text = Code.LATER, f"It is planned for later: it is due {when}"
    elif f.postpone_count and not f.retry_count:
        code = Code.POSTPONED
        text = f"It was put off and is due {when}: {_because(f.error_message)}"
    else:
        code = Code.BACKING_OFF
        text = f"It waits for retry {f.retry_count} of {f.max_retries}, due {when}, after: {_because(f.error_message)}"
    details = {
        "retry_count": f.retry_count,
        "max_retries": f.max_retries,
        "postpone_count": f.postpone_count,
        "last_error": f.error_message,
    }
    return Explanation(
        task_id=f.id,
        status=f.status,
        code=code,
        reason=f"{text}.",
        until=f.scheduled_for,
        seconds=wait,
        details=details if f.attempt else {},
    )


def _blocked(f: Facts) -> Explanation | None:
    if f.head is not None:
        ahead = max(f.ahead, 1)
        more = f"; {_many(ahead, 'task')} of this role and store go before it" if ahead > 1 else ""
        at_work = (
            f", which worker {f.head.worker_id} has had since {_at(f.head.claimed_at)}"
            if f.head.worker_id and f.head.claimed_at
            else ", which is waiting as well"
        )
        return Explanation(
            task_id=f.id,
            status=f.status,
            code=Code.BEHIND,
            reason=f"It is behind task #{f.head.id} of the same role and store{at_work}{more}.",
            blocked_by=f.head,
            ahead=ahead,
            worker_id=f.head.worker_id,
            since=f.head.claimed_at,
        )
    if f.holder is not None:
        since = f" since {_at(f.holder.claimed_at)}" if f.holder.claimed_at else ""
        return Explanation(
            task_id=f.id,
            status=f.status,
            code=Code.STORE_BUSY,
            reason=f"Its store is busy with task #{f.holder.id} ({f.holder.role}), which worker {f.holder.worker_id} has had{since}; "
            "of one store only one task runs at a time.",
            blocked_by=f.holder,
            worker_id=f.holder.worker_id,
            since=f.holder.claimed_at,
        )
    return None


def _takes(worker: WorkerFacts, role: str) -> bool:
    return worker.roles is None or role in worker.roles


def _claims(worker: WorkerFacts, role: str) -> bool:
    return worker.status == "active" and role not in worker.paused_roles


def _unmanned(f: Facts) -> Explanation:
    live = [worker for worker in f.workers if worker.silent <= f.live_seconds]
    take = [worker for worker in live if _takes(worker, f.role)]
    claiming = [worker for worker in take if _claims(worker, f.role)]
    # One that has not said how many slots it has (it has only just begun) has at least one.
    slots = sum(worker.slots or 1 for worker in claiming)
    busy = sum(min(worker.active, worker.slots or 1) for worker in claiming)
    crew = Crew(
        live=len(live),
        take=len(take),
        claiming=len(claiming),
        paused=sum(
            worker.status == "paused" or (worker.status == "active" and f.role in worker.paused_roles)
            for worker in take
        ),
        backing_off=sum(worker.status == "backing_off" for worker in take),
        slots=slots,
        busy=busy,
        silent=len(f.workers) - len(live),
    )
    code, reason = _crew(f, crew, live, take)
    shown = code in (Code.NO_FREE_SLOT, Code.READY)
    return Explanation(
        task_id=f.id,
        status=f.status,
        code=code,
        reason=reason,
        ahead=f.before if shown else None,
        workers=crew,
        details={
            "live": [
                {"worker_id": w.worker_id, "name": w.friendly_name, "roles": w.roles, "status": w.status}
                for w in live[:20]
            ]
        },
    )


def _crew(f: Facts, crew: Crew, live: Sequence[WorkerFacts], take: Sequence[WorkerFacts]) -> tuple[Code, str]:
    if f.role in UNHANDLED_ROLES:
        return Code.NO_HANDLER, f"No worker of this version does {f.role}: it waits until one is installed that does."
    if not live:
        gone = f"; {_many(crew.silent, 'worker')} fell silent" if crew.silent else ""
        return (
            Code.NO_WORKER,
            f"It is ready, but no worker is alive to take it{gone}. Start one with `menuwatch worker`.",
        )
    if not take:
        taken = sorted({role for worker in live for role in worker.roles or ()})
        who = f"{_many(len(live), 'worker')} take{'s' if len(live) == 1 else ''}"
        return (
            Code.NO_WORKER_FOR_ROLE,
            f"It is ready, but no live worker takes {f.role}: {who} {', '.join(taken)}.",
        )
    if not crew.claiming:
        return _held_back(f, crew, take)
    stand = f"{COUNTED:,} tasks or more stand" if f.before >= COUNTED else _many(f.before, "task") + " stand"
    stand = stand.replace("1 task stand", "1 task stands") if f.before == 1 else stand
    if crew.busy >= crew.slots:
        who = "The one live worker that takes" if crew.claiming == 1 else f"All {crew.claiming} live workers that take"
        verb = "has no free slot" if crew.claiming == 1 else "have no free slot"
        return (
            Code.NO_FREE_SLOT,
            f"{who} {f.role} {verb} ({crew.busy} of {crew.slots} are taken); {stand} before it.",
        )
    free = crew.slots - crew.busy
    if f.before == 0:
        return (
            Code.READY,
            f"It is ready and will be taken next: {_many(free, 'slot')} {'is' if free == 1 else 'are'} free.",
        )
    return Code.READY, f"It is ready; {stand} before it, and {_many(free, 'slot')} {'is' if free == 1 else 'are'} free."


def _held_back(f: Facts, crew: Crew, take: Sequence[WorkerFacts]) -> tuple[Code, str]:
    paused = sum(worker.status == "paused" for worker in take)
    barred = sum(worker.status == "active" and f.role in worker.paused_roles for worker in take)
    stopping = len(take) - paused - barred - crew.backing_off
    without = "does" if barred == 1 else "do"
    states = [
        (crew.backing_off, "backing off"),
        (barred, f"{without} not claim this role"),
        (paused, "paused"),
        (stopping, "stopping"),
    ]
    counted = ", ".join(f"{n} {name}" for n, name in states if n > 0)
    reasons = sorted({worker.reason for worker in take if worker.reason})
    why = f" ({'; '.join(reasons)})" if reasons else ""
    who = "the one live worker that takes" if len(take) == 1 else f"none of the {len(take)} live workers that take"
    text = f"It is ready, but {who} {f.role} {'does not claim' if len(take) == 1 else 'claims'} now: {counted}{why}."
    # What passes by itself comes first for who waits, then what takes the least to mend.
    if crew.backing_off:
        return Code.WORKERS_BACKING_OFF, f"{text} They go on when the machine has room again."
    if barred:
        return (
            Code.NO_PROXY,
            f"{text} Add a working proxy with `menuwatch proxies add`, or see why none is active: `menuwatch proxies list`.",
        )
    if paused:
        return Code.WORKERS_PAUSED, f"{text} `menuwatch workers resume` has a worker claim again."
    return Code.WORKERS_STOPPING, f"{text} Start another one with `menuwatch worker`."


async def explain(
    conn: AsyncConnection[Any], task_id: int, *, heartbeat_seconds: float = 30.0, stale_minutes: float = 10.0
) -> Explanation:
    """Why this task is where it is, as of now; raises NotFound.

    `heartbeat_seconds` is the workers' heartbeat interval: those that are silent for BEATS of them do not count as alive.
    """
    timing: dict[str, Any] = {"live_seconds": heartbeat_seconds * BEATS, "stale_seconds": stale_minutes * 60}
    found = await row(conn, _q.live_task_facts, {"id": task_id})
    if found is None:
        found = await row(conn, _q.finished_task_facts, {"id": task_id})
        if found is None:
            raise NotFound(f"task {task_id} does not exist")
        return explanation(Facts(**found, **timing))
    for name in ("head", "holder"):
        found[name] = None if found[name] is None else msgspec.json.decode(found[name], type=Other)
    workers = [] if found["state"] == "a" else [WorkerFacts(**one) for one in await rows(conn, _q.worker_facts, {})]
    facts = Facts(**found, **timing, workers=workers)
    first = explanation(facts)
    if first.code not in (Code.READY, Code.NO_FREE_SLOT):
        return first
    count = await row(conn, _q.tasks_before, {"id": task_id, "roles": _beside(facts), "most": COUNTED})
    return explanation(replace(facts, before=count["n"] if count else 0))


def _beside(f: Facts) -> list[str]:
    """The roles that compete for the workers of this task."""
    roles: set[str] = set()
    for worker in f.workers:
        if worker.silent <= f.live_seconds and _takes(worker, f.role) and _claims(worker, f.role):
            roles |= set(Role if worker.roles is None else worker.roles) - set(worker.paused_roles)
    # Whoever takes any role takes none that it has no handler for.
    return sorted({str(role) for role in roles} - {str(role) for role in UNHANDLED_ROLES})
