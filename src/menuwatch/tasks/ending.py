"""How an attempt ends, as the database is told it: the flat form of an outcome. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from menuwatch.tasks.model import Task
from menuwatch.tasks.outcome import Done, Fail, Outcome, Postpone, Retry

Verb = Literal["done", "fail", "retry", "postpone", "wait", "release"]

REASON_LIMIT = 4000
"""Longest reason kept, in characters."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt's end. `wait` is in seconds (retry), `due` a time (postpone, and wait, which is not counted), `ran` the
    seconds the handler took."""

    task_id: int
    attempt: int
    verb: Verb
    reason: str | None = None
    result: Mapping[str, Any] | None = None
    wait: float | None = None
    due: datetime | None = None
    ran: float = 0.0


def clean_reason(text: str) -> str:
    """A text the database takes: no NUL, no lone surrogates, not endless, never empty."""
    text = text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8").strip()
    return text[:REASON_LIMIT] or "no reason given"


def ending(task: Task, outcome: Outcome, *, backoff: timedelta, ran: float = 0.0) -> Ending:
    """What `outcome` means for `task`; `backoff` is how long a retry waits that names no time itself."""
    match outcome:
        case Done():
            return Ending(task_id=task.id, attempt=task.attempt, verb="done", result=outcome.result, ran=ran)
        case Fail():
            return Ending(
                task_id=task.id,
                attempt=task.attempt,
                verb="fail",
                reason=clean_reason(outcome.reason),
                result=outcome.result,
                ran=ran,
            )
        case Retry():
            wait = (outcome.after if outcome.after is not None else backoff).total_seconds()
            return Ending(
                task_id=task.id,
                attempt=task.attempt,
                verb="retry",
                reason=clean_reason(outcome.reason),
                result=outcome.result,
                wait=wait,
                ran=ran,
            )
        case Postpone():
            return Ending(
                task_id=task.id,
                attempt=task.attempt,
                verb="postpone" if outcome.counted else "wait",
                reason=clean_reason(outcome.reason),
                wait=outcome.after.total_seconds(),
                due=outcome.until,
                ran=ran,
            )


def release(task: Task) -> Ending:
    """The task goes back as it came: a worker that stops could not finish it."""
    return Ending(task_id=task.id, attempt=task.attempt, verb="release")
