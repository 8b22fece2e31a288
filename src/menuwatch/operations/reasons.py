"""Why a task is where it is: one sentence that follows from facts. Pure.

`explanation` looks through the reasons in the order in which they keep a task from running, and the first that holds is the answer.

    over ─► a worker is at it ─► not due yet ─► behind an earlier task of its role and store ─► its store is busy
         ─► nobody lives who takes its role ─► the host that it asks is closed ─► those who live claim nothing now
         ─► all their slots are taken ─► ready
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from menuwatch.operations import closed_hosts
from menuwatch.operations.explanation import Code, Explanation
from menuwatch.operations.facts import Facts
from menuwatch.operations.staffing import unmanned
from menuwatch.operations.wording import at, because, many, span


def explanation(facts: Facts) -> Explanation:
    """The first reason that holds."""
    return _over(facts) or _held(facts) or _early(facts) or _blocked(facts) or unmanned(facts)


def _over(f: Facts) -> Explanation | None:
    if f.completed_at is None:
        return None
    code = Code(f.status)
    tries = f"at attempt {f.attempt}" if f.attempt > 1 else "at the first attempt"
    by = f" by worker {f.worker_id}" if f.worker_id else ""
    said = {
        Code.COMPLETED: f"It was completed at {at(f.completed_at)}{by}, {tries}.",
        Code.FAILED: f"It failed for good at {at(f.completed_at)}, {tries}: {because(f.error_message)}.",
        Code.CANCELLED: f"It was cancelled at {at(f.completed_at)}: {because(f.error_message)}.",
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
    doing = "has been running it" if f.started_at else "has claimed it and not started"
    text = f"{who} {doing} for {span((f.now - begun).total_seconds())}, since {at(begun)}"
    if left <= 0:
        code = Code.STALE
        text = f"{who} has been silent for {span(silent)}: the task is about to be taken back and to wait for another worker"
    elif silent > f.live_seconds:
        code = Code.SILENT
        text += f", but has been silent for {span(silent)}: the task is taken back in {span(left)} if that lasts"
    else:
        code = Code.RUNNING
        text += f"; its last heartbeat was {span(silent)} ago"
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
    when = f"in {span(wait)}, at {at(f.scheduled_for)}"
    denied = closed_hosts.denial(f.error_message) if f.attempt else None
    until: datetime | None = f.scheduled_for
    told: Mapping[str, Any] = {}
    if f.attempt == 0:
        code, text = Code.LATER, f"It is planned for later: it is due {when}"
    elif denied is not None:
        code = Code.HOST_CLOSED
        text, until, told = closed_hosts.put_off(f, denied, when)
    elif not f.retry_count or _REFUSED in (f.error_message or ""):
        code = Code.POSTPONED
        text = f"It was put off and is due {when}: {because(f.error_message)}"
    else:
        code = Code.BACKING_OFF
        text = f"It waits for retry {f.retry_count} of {f.max_retries}, due {when}, after: {because(f.error_message)}"
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
        until=until,
        seconds=None if until is None else (until - f.now).total_seconds(),
        details={**details, **told} if f.attempt else {},
    )


_REFUSED = " refused every identity: "


def _blocked(f: Facts) -> Explanation | None:
    if f.head is not None:
        ahead = max(f.ahead, 1)
        more = f"; {many(ahead, 'task')} of this role and store go before it" if ahead > 1 else ""
        at_work = (
            f", which worker {f.head.worker_id} has had since {at(f.head.claimed_at)}"
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
        since = f" since {at(f.holder.claimed_at)}" if f.holder.claimed_at else ""
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
