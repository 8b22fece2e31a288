"""Why a task is in its current state: one sentence that follows from facts. Pure.

`explanation` checks the reasons in the order in which they keep a task from running; the first that applies is the result.

    over ─► a worker holds it ─► not due yet ─► the host that it requests is blocked ─► behind an earlier task of its role and store
         ─► its store is busy ─► no live worker accepts its role ─► the live workers claim nothing now
         ─► all their slots are taken ─► ready
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from menuwatch.core.format import duration, pluralize, strip_period, timestamp
from menuwatch.core.postpone import PostponeCode
from menuwatch.queue.explain.model import BlockingTask, Code, Explanation, Facts, WorkerAvailability, WorkerFacts
from menuwatch.queue.model import UNHANDLED_ROLES


def explanation(facts: Facts) -> Explanation:
    """The first reason that applies."""
    return (
        _finished(facts)
        or _active(facts)
        or _not_due(facts)
        or _host_blocked(facts)
        or _behind(facts)
        or explain_due(facts)
    )


def _finished(f: Facts) -> Explanation | None:
    if f.completed_at is None:
        return None
    code = Code(f.status)
    attempts = f"on attempt {f.attempt}" if f.attempt > 1 else "on the first attempt"
    by = f" by worker {f.worker_name or f.worker_id}" if f.worker_id else ""
    reason = {
        Code.COMPLETED: f"Completed at {timestamp(f.completed_at)}{by}, {attempts}.",
        Code.FAILED: f"Failed at {timestamp(f.completed_at)}, {attempts}: {strip_period(f.error_message)}.",
        Code.CANCELLED: f"Cancelled at {timestamp(f.completed_at)}: {strip_period(f.error_message)}.",
    }[code]
    return f.explain(code, reason, worker_id=f.worker_id, since=f.completed_at)


def _active(f: Facts) -> Explanation | None:
    if f.state != "a" or f.claimed_at is None:
        return None
    began = f.started_at or f.claimed_at
    heartbeat = f.last_heartbeat_at or f.claimed_at
    silent = (f.now - heartbeat).total_seconds()
    left = f.stale_seconds - silent
    worker = f"Worker {f.worker_name or f.worker_id}"
    action = "has been running it" if f.started_at else "has claimed it but not started it"
    text = f"{worker} {action} for {duration((f.now - began).total_seconds())}, since {timestamp(began)}"
    if left <= 0:
        code = Code.STALE
        text = f"{worker} has sent no heartbeat for {duration(silent)}: the task is about to be recovered for another worker"
    elif silent > f.alive_seconds:
        code = Code.SILENT
        text += f", but has sent no heartbeat for {duration(silent)}: the task is recovered in {duration(left)} if that continues"
    else:
        code = Code.RUNNING
        text += f"; its last heartbeat was {duration(silent)} ago"
    details = {"last_sign_at": heartbeat, "stale_in_seconds": max(left, 0.0)}
    return f.explain(code, f"{text}.", worker_id=f.worker_id, since=began, seconds=silent, details=details)


def _not_due(f: Facts) -> Explanation | None:
    if f.state != "s" or f.scheduled_for is None or f.scheduled_for <= f.now:
        return None
    when = f"in {duration((f.scheduled_for - f.now).total_seconds())}, at {timestamp(f.scheduled_for)}"
    until: datetime | None = f.scheduled_for
    more: Mapping[str, Any] = {}
    if f.attempt == 0:
        code, text = Code.LATER, f"Scheduled: due {when}"
    elif f.postpone_code is not None and f.postpone_code.by_host and f.postpone_host is not None:
        code = Code.HOST_CLOSED
        text, until, more = explain_postponed(f, f.postpone_code, f.postpone_host, when)
    elif f.postpone_code is not None:
        code = Code.POSTPONED
        text = f"Postponed, due {when}: {strip_period(f.error_message)}"
    else:
        code = Code.BACKING_OFF
        text = f"Retry {f.retry_count} of {f.max_retries} due {when}, after: {strip_period(f.error_message)}"
    details = {
        "retry_count": f.retry_count,
        "max_retries": f.max_retries,
        "postpone_count": f.postpone_count,
        "postpone_code": f.postpone_code,
        "postpone_host": f.postpone_host,
        "last_error": f.error_message,
    }
    seconds = None if until is None else (until - f.now).total_seconds()
    return f.explain(code, f"{text}.", until=until, seconds=seconds, details={**details, **more} if f.attempt else {})


def _behind(f: Facts) -> Explanation | None:
    if f.head is not None:
        ahead = max(f.ahead, 1)
        more = f"; {pluralize(ahead, 'task')} of this role and store run before it" if ahead > 1 else ""
        state = (
            f", which {_worker_since(f.head)}" if f.head.worker_id and f.head.claimed_at else ", which is also waiting"
        )
        return f.explain(
            Code.BEHIND,
            f"Waiting behind task #{f.head.id} of the same role and store{state}{more}.",
            blocked_by=f.head,
            ahead=ahead,
            worker_id=f.head.worker_id,
            since=f.head.claimed_at,
        )
    if f.holder is not None:
        return f.explain(
            Code.STORE_BUSY,
            f"Its store is in use by task #{f.holder.id} ({f.holder.role}), which {_worker_since(f.holder)}; only one task per "
            "store runs at a time.",
            blocked_by=f.holder,
            worker_id=f.holder.worker_id,
            since=f.holder.claimed_at,
        )
    return None


def _worker_since(task: BlockingTask) -> str:
    since = f" since {timestamp(task.claimed_at)}" if task.claimed_at else ""
    return f"worker {task.worker_name or task.worker_id} has run{since}"


MAX_COUNTED = 10_000
"""Tasks ahead of one are counted up to this many."""


_FROM_HEARTBEATS = (
    Code.READY,
    Code.NO_FREE_SLOT,
    Code.NO_PROXY,
    Code.HOST_CLOSED,
    Code.WORKERS_PAUSED,
    Code.WORKERS_STOPPING,
    Code.WORKERS_BACKING_OFF,
)
"""Reasons derived from what workers reported."""
_HOST_CODES = frozenset(code.value for code in PostponeCode if code.by_host)


def accepts_role(worker: WorkerFacts, role: str) -> bool:
    return worker.roles is None or role in worker.roles


def claims_role(worker: WorkerFacts, role: str) -> bool:
    return worker.status == "active" and role not in worker.paused_roles


def explain_due(f: Facts) -> Explanation:
    """Explain for a due task at the head of the queue which workers could run it and why none has."""
    availability, live, take = _workers(f)
    code, reason = _reason(f, availability, live, take)
    if code in _FROM_HEARTBEATS and take:
        reason += f" Based on heartbeats, the oldest {duration(max(worker.silent for worker in take))} old."
    shown = code in (Code.NO_FREE_SLOT, Code.READY)
    return f.explain(
        code,
        reason,
        ahead=f.before if shown else None,
        workers=availability,
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


def _workers(f: Facts) -> tuple[WorkerAvailability, Sequence[WorkerFacts], Sequence[WorkerFacts]]:
    """The workers that could run it, all live ones, and those of them that accept its role."""
    live = [worker for worker in f.workers if worker.alive]
    take = [worker for worker in live if accepts_role(worker, f.role)]
    claiming = [worker for worker in take if claims_role(worker, f.role)]
    # A worker that has not reported its slots yet (it has just started) has at least one.
    slots = sum(worker.slots or 1 for worker in claiming)
    busy = sum(min(worker.active, worker.slots or 1) for worker in claiming)
    availability = WorkerAvailability(
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
    return availability, live, take


def _reason(
    f: Facts, availability: WorkerAvailability, live: Sequence[WorkerFacts], take: Sequence[WorkerFacts]
) -> tuple[Code, str]:
    if f.role in UNHANDLED_ROLES:
        return Code.NO_HANDLER, f"No worker of this version runs {f.role}: the task waits for a version that does."
    if not live:
        gone = f"; {pluralize(availability.silent, 'worker')} without a heartbeat" if availability.silent else ""
        return (
            Code.NO_WORKER,
            f"Ready, but no worker is online{gone}. Start one with `menuwatch worker`.",
        )
    if not take:
        taken = sorted({role for worker in live for role in worker.roles or ()})
        who = f"{pluralize(len(live), 'worker')} run{'s' if len(live) == 1 else ''}"
        return (
            Code.NO_WORKER_FOR_ROLE,
            f"Ready, but no online worker runs {f.role}: {who} {', '.join(taken)}.",
        )
    if not availability.claiming:
        return _held_back(f, availability, take)
    stand = f"{MAX_COUNTED:,} or more tasks are" if f.before >= MAX_COUNTED else pluralize(f.before, "task") + " are"
    stand = "1 task is" if f.before == 1 else stand
    if availability.busy >= availability.slots:
        who = (
            "The only online worker that runs"
            if availability.claiming == 1
            else f"All {availability.claiming} online workers that run"
        )
        verb = "has no free slot" if availability.claiming == 1 else "have no free slot"
        return (
            Code.NO_FREE_SLOT,
            f"{who} {f.role} {verb} ({availability.busy} of {availability.slots} busy); {stand} before it.",
        )
    free = availability.slots - availability.busy
    if f.before == 0:
        return (
            Code.READY,
            f"Ready and next in line: {pluralize(free, 'slot')} free.",
        )
    return Code.READY, f"Ready; {stand} before it, {pluralize(free, 'slot')} free."


def _held_back(f: Facts, availability: WorkerAvailability, take: Sequence[WorkerFacts]) -> tuple[Code, str]:
    paused = sum(worker.status == "paused" for worker in take)
    barred = sum(worker.status == "active" and f.role in worker.paused_roles for worker in take)
    stopping = len(take) - paused - barred - availability.backing_off
    without = "does" if barred == 1 else "do"
    states = [
        (availability.backing_off, "backing off"),
        (barred, f"{without} not claim this role"),
        (paused, "paused"),
        (stopping, "stopping"),
    ]
    counted = ", ".join(f"{n} {name}" for n, name in states if n > 0)
    reasons = sorted({worker.reason for worker in take if worker.reason})
    why = f" ({'; '.join(reasons)})" if reasons else ""
    who = "the only online worker that runs" if len(take) == 1 else f"none of the {len(take)} online workers that run"
    text = f"Ready, but {who} {f.role} {'does not claim' if len(take) == 1 else 'claims'} now: {counted}{why}."
    # Temporary states come first, then what is easiest to fix.
    if availability.backing_off:
        return Code.WORKERS_BACKING_OFF, f"{text} They resume when CPU and memory are free again."
    if barred and f.active_proxies:
        # The database no longer gives a reason: the workers have not checked again yet.
        if any(worker.paused_roles_code in _HOST_CODES for worker in take):
            return Code.HOST_CLOSED, f"{text} They check again automatically; `menuwatch hosts list` shows the host."
        return Code.WORKERS_BACKING_OFF, f"{text} They check again automatically."
    if barred:
        return (
            Code.NO_PROXY,
            f"{text} Add a working proxy with `menuwatch proxies add`, or see why none is active: `menuwatch proxies list`.",
        )
    if paused:
        return Code.WORKERS_PAUSED, f"{text} Resume one with `menuwatch workers resume`."
    return Code.WORKERS_STOPPING, f"{text} Start another one with `menuwatch worker`."


def explain_postponed(
    f: Facts, code: PostponeCode, host: str, when: str
) -> tuple[str, datetime | None, Mapping[str, Any]]:
    """Of a task that is postponed because of `host`: the text, until when it waits, and the details."""
    now, by_pause = f.postponed_by, code is PostponeCode.PAUSED
    text = f"Postponed by {host}, due {when}: {strip_period(f.error_message)}"
    until = f.scheduled_for
    if now is not None and now.code is not None:
        code, until = now.code, None if now.until is None else max(now.until, f.scheduled_for or now.until)
        if until is None:
            text += "; the host stays blocked until an operator resumes it"
        elif f.scheduled_for is not None and (until - f.scheduled_for).total_seconds() >= 1:
            text += f"; the host is blocked until {timestamp(until)}"
    elif now is not None and code in _LASTING:
        return (
            f"{text}; the host is available again: `menuwatch tasks retry {f.id}` runs the task now",
            until,
            {"host": host, "host_code": None},
        )
    remedy = code.remedy(host)
    # The end of a pause makes due what the pause postponed.
    if now is not None and now.code is not None and not (by_pause and code is PostponeCode.PAUSED):
        remedy = f"{remedy}, then run this task now with `menuwatch tasks retry {f.id}`"
    return (
        f"{text}. Fix: {remedy}" if remedy else text,
        until,
        {"host": host, "host_code": code.value, "advice": remedy},
    )


_LASTING = frozenset({PostponeCode.PAUSED, PostponeCode.CIRCUIT, PostponeCode.COOLING, PostponeCode.THROTTLED})
"""Reasons that last until a known time or an operator's action; the others pass within moments."""


def _host_blocked(f: Facts) -> Explanation | None:
    """Which host blocks it. Without an active proxy the host does not matter."""
    host = f.blocked
    availability, _, take = _workers(f)
    if (
        host is None
        or host.code is None
        or (not f.active_proxies and any(f.role in worker.paused_roles for worker in take))
    ):
        return None
    when = (
        "It stays blocked until an operator resumes it"
        if host.until is None
        else f"Requests resume in {duration((host.until - f.now).total_seconds())}, at {timestamp(host.until)}"
    )
    remedy = host.code.remedy(host.host)
    return f.explain(
        Code.HOST_CLOSED,
        f"Blocked: {host.host} gets no requests ({host.code.label}: {strip_period(host.reason)}). {when}. Fix: {remedy}.",
        until=host.until,
        seconds=None if host.until is None else (host.until - f.now).total_seconds(),
        workers=availability,
        details={"host": host.host, "host_code": host.code.value, "advice": remedy},
    )
