"""Maps fetch errors to task outcomes."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import BadPayload, Blocked, MenuwatchError, NotNow, Throttled, Transient
from menuwatch.core.postpone import PostponeCode
from menuwatch.pipeline.context import HandlerContext
from menuwatch.queue.outcome import Fail, Outcome, Postpone, Retry
from menuwatch.stores import store as stores

_SPREAD = timedelta(seconds=5)
"""Maximum random addition to a delay, so that tasks postponed together do not resume together."""


def record_attempt(
    store_id: int | None, at: datetime, error: str
) -> Callable[[AsyncConnection[Any]], Awaitable[None]] | None:
    """Records when a store was crawled and the error; returns None without a store."""
    if store_id is None:
        return None

    async def writes(conn: AsyncConnection[Any]) -> None:
        await stores.attempted(conn, store_id, at, error)

    return writes


def to_outcome(context: HandlerContext, error: MenuwatchError, store_id: int | None = None) -> Outcome:
    """Throttled and blocked tasks are postponed without using a retry, transient faults are retried, others fail.

    After NotNow no request was sent: no attempt is counted and the store does not change.
    """
    now = context.clock.now()
    reason = str(error)
    if isinstance(error, NotNow):
        return Postpone(after=_apart(_wait(error)), reason=reason, code=error.code, host=error.host, counted=False)
    writes = record_attempt(store_id, now, reason)
    if isinstance(error, Throttled):
        return Postpone(after=_wait(error), reason=reason, code=error.code, host=error.host, writes=writes)
    if isinstance(error, Blocked):
        return Postpone(
            after=context.blocked_wait, reason=reason, code=PostponeCode.BLOCKED, host=error.host, writes=writes
        )
    if isinstance(error, Transient) and not (isinstance(error, BadPayload) and error.final):
        return Retry(reason=reason, writes=writes)
    return Fail(reason=reason, writes=writes)


def _apart(wait: timedelta) -> timedelta:
    """Adds random jitter to a delay."""
    return wait + random.random() * min(wait, _SPREAD)  # noqa: S311 - jitter, no secret


def _wait(error: Throttled) -> timedelta:
    return timedelta(seconds=error.wait)
