"""What a failed fetch means for its task."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import Blocked, MenuwatchError, NotNow, Throttled, Transient
from menuwatch.pipeline.parts import Parts
from menuwatch.stores import store as stores
from menuwatch.tasks.outcome import Fail, Outcome, Postpone, Retry

_SPREAD = timedelta(seconds=5)
"""The most that is added to a wait, so that tasks which were sent away together come back one by one."""


def tried(store_id: int | None, at: datetime, error: str) -> Callable[[AsyncConnection[Any]], Awaitable[None]] | None:
    """Writes down when a store was tried and what went wrong; None where there is no store."""
    if store_id is None:
        return None

    async def writes(conn: AsyncConnection[Any]) -> None:
        await stores.attempted(conn, store_id, at, error)

    return writes


def outcome_of(parts: Parts, error: MenuwatchError, store_id: int | None = None) -> Outcome:
    """Throttled and blocked work is postponed and uses up no retry, transient faults are tried again, the rest fails.

    Where now was not the time nothing was tried: that is not counted, and leaves the store as it was.
    """
    now = parts.clock.now()
    reason = str(error)
    if isinstance(error, NotNow):
        return Postpone(after=_apart(_wait(error)), reason=reason, counted=False)
    writes = tried(store_id, now, reason)
    if isinstance(error, Throttled):
        return Postpone(after=_wait(error), reason=reason, writes=writes)
    if isinstance(error, Blocked):
        return Postpone(after=parts.blocked_wait, reason=reason, writes=writes)
    if isinstance(error, Transient):
        return Retry(reason=reason, writes=writes)
    return Fail(reason=reason, writes=writes)


def _apart(wait: timedelta) -> timedelta:
    """A little longer, each by another bit: what was sent away together does not come back together."""
    return wait + random.random() * min(wait, _SPREAD)  # noqa: S311 - jitter, no secret


def _wait(error: Throttled) -> timedelta:
    return timedelta(seconds=error.wait)
