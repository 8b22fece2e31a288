"""The end of an attempt as the database takes it: a flattened outcome. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from menuwatch.core.postpone import PostponeCode
from menuwatch.queue.model import Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Postpone, Retry

Verb = Literal["done", "fail", "retry", "postpone", "wait", "release"]

REASON_LIMIT = 4000
"""Longest reason stored, in characters."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """End of an attempt. `wait` is in seconds (retry), `due` a time (postpone, and wait, which is not counted), `ran` the
    seconds the handler took. `code` and `host` say why it is postponed."""

    task_id: int
    attempt: int
    verb: Verb
    reason: str | None = None
    code: PostponeCode | None = None
    host: str | None = None
    result: Mapping[str, Any] | None = None
    wait: float | None = None
    due: datetime | None = None
    ran: float = 0.0


def clean_reason(text: str) -> str:
    """Text that the database accepts: no NUL, no lone surrogates, limited length, never empty."""
    text = text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8").strip()
    return text[:REASON_LIMIT] or "no reason given"


def ending(task: Task, outcome: Outcome, *, backoff: timedelta, ran: float = 0.0) -> Ending:
    """Convert `outcome` to the ending of `task`; `backoff` is the delay of a retry without a time of its own."""
    if isinstance(outcome, Done):  # on its own: nearly all outcomes are of this kind
        return Ending(task_id=task.id, attempt=task.attempt, verb="done", result=outcome.result, ran=ran)
    attempt: dict[str, Any] = {"task_id": task.id, "attempt": task.attempt, "ran": ran}
    match outcome:
        case Fail():
            return Ending(verb="fail", reason=clean_reason(outcome.reason), result=outcome.result, **attempt)
        case Retry():
            after = backoff if outcome.after is None else outcome.after
            reason, wait = clean_reason(outcome.reason), after.total_seconds()
            return Ending(verb="retry", reason=reason, result=outcome.result, wait=wait, **attempt)
        case Postpone():
            return Ending(
                verb="postpone" if outcome.counted else "wait",
                reason=clean_reason(outcome.reason),
                code=outcome.code,
                host=outcome.host,
                wait=outcome.after.total_seconds(),
                due=outcome.until,
                **attempt,
            )


def release(task: Task) -> Ending:
    """Return the task unchanged, because the worker stops before it is finished."""
    return Ending(task_id=task.id, attempt=task.attempt, verb="release")
