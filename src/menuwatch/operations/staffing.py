"""Why a task that nothing else stands in the way of is not taken: the workers that it could have. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from menuwatch.operations import closed_hosts
from menuwatch.operations.explanation import Code, Crew, Explanation
from menuwatch.operations.facts import Facts, WorkerFacts
from menuwatch.operations.wording import many, span
from menuwatch.tasks.model import NETWORK_ROLES, UNHANDLED_ROLES

COUNTED = 10_000
"""Tasks that stand before one are counted up to this many."""


_TOLD = (
    Code.READY,
    Code.NO_FREE_SLOT,
    Code.NO_PROXY,
    Code.HOST_CLOSED,
    Code.WORKERS_PAUSED,
    Code.WORKERS_STOPPING,
    Code.WORKERS_BACKING_OFF,
)
"""Reasons that follow from what workers said of themselves."""


def takes(worker: WorkerFacts, role: str) -> bool:
    """Whether it does that work at all."""
    return worker.roles is None or role in worker.roles


def claims(worker: WorkerFacts, role: str) -> bool:
    """Whether it takes that work on now."""
    return worker.status == "active" and role not in worker.paused_roles


def unmanned(f: Facts) -> Explanation:
    """Of a task that is due and whose turn it is: who could take it, and why nobody has."""
    live = [worker for worker in f.workers if worker.silent <= f.live_seconds]
    take = [worker for worker in live if takes(worker, f.role)]
    claiming = [worker for worker in take if claims(worker, f.role)]
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
    closed = closed_hosts.closed(f) if take and f.role in NETWORK_ROLES else None
    if closed is not None and (f.active_proxies or not any(f.role in worker.paused_roles for worker in take)):
        return replace(closed, workers=crew)
    code, reason = _crew(f, crew, live, take)
    if code in _TOLD and take:
        reason += f" That is known from heartbeats, the oldest {span(max(worker.silent for worker in take))} old."
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
                {
                    "worker_id": w.worker_id,
                    "name": w.friendly_name,
                    "roles": w.roles,
                    "status": w.status,
                    "heartbeat_age_seconds": round(w.silent, 1),
                }
                for w in live[:20]
            ]
        },
    )


def _crew(f: Facts, crew: Crew, live: Sequence[WorkerFacts], take: Sequence[WorkerFacts]) -> tuple[Code, str]:
    if f.role in UNHANDLED_ROLES:
        return Code.NO_HANDLER, f"No worker of this version does {f.role}: it waits until one is installed that does."
    if not live:
        gone = f"; {many(crew.silent, 'worker')} fell silent" if crew.silent else ""
        return (
            Code.NO_WORKER,
            f"It is ready, but no worker is alive to take it{gone}. Start one with `menuwatch worker`.",
        )
    if not take:
        taken = sorted({role for worker in live for role in worker.roles or ()})
        who = f"{many(len(live), 'worker')} take{'s' if len(live) == 1 else ''}"
        return (
            Code.NO_WORKER_FOR_ROLE,
            f"It is ready, but no live worker takes {f.role}: {who} {', '.join(taken)}.",
        )
    if not crew.claiming:
        return _held_back(f, crew, take)
    stand = f"{COUNTED:,} tasks or more stand" if f.before >= COUNTED else many(f.before, "task") + " stand"
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
            f"It is ready and will be taken next: {many(free, 'slot')} {'is' if free == 1 else 'are'} free.",
        )
    return Code.READY, f"It is ready; {stand} before it, and {many(free, 'slot')} {'is' if free == 1 else 'are'} free."


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
    if barred and f.active_proxies:
        return _not_asked(text, reasons)
    if barred:
        return (
            Code.NO_PROXY,
            f"{text} Add a working proxy with `menuwatch proxies add`, or see why none is active: `menuwatch proxies list`.",
        )
    if paused:
        return Code.WORKERS_PAUSED, f"{text} `menuwatch workers resume` has a worker claim again."
    return Code.WORKERS_STOPPING, f"{text} Start another one with `menuwatch worker`."


def _not_asked(text: str, reasons: Sequence[str]) -> tuple[Code, str]:
    """Workers say that they do not claim the role, and what we see does not bear it out: they have not looked since."""
    if any(" is not asked: " in reason for reason in reasons):
        return Code.HOST_CLOSED, f"{text} They look again by themselves; `menuwatch hosts list` shows the host."
    return Code.WORKERS_BACKING_OFF, f"{text} They look again by themselves."
