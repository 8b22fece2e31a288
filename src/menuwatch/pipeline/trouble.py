"""What a failed fetch means for its task, with its requests on record all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import Blocked, MenuwatchError, Throttled, Transient
from menuwatch.pipeline.parts import Parts, RecordedSession
from menuwatch.stores import store as stores
from menuwatch.tasks.outcome import Fail, Outcome, Postpone, Retry

_THROTTLED_WAIT = timedelta(seconds=60)


def recorded(
    session: RecordedSession, store_id: int | None, at: datetime, error: str | None
) -> Callable[[AsyncConnection[Any]], Awaitable[None]]:
    """Writes the session's attempts and, for a store, when it was tried and what went wrong."""

    async def writes(conn: AsyncConnection[Any]) -> None:
        await session.write_attempts(conn)
        if store_id is not None:
            await stores.attempted(conn, store_id, at, error)

    return writes


def outcome_of(parts: Parts, session: RecordedSession, error: MenuwatchError, store_id: int | None = None) -> Outcome:
    """Throttled and blocked work is postponed and uses up no retry, transient faults are tried again, the rest fails."""
    now = parts.clock.now()
    reason = str(error)
    writes = recorded(session, store_id, now, reason)
    if isinstance(error, Throttled):
        wait = _THROTTLED_WAIT if error.retry_after is None else timedelta(seconds=error.retry_after)
        return Postpone(until=now + wait, reason=reason, writes=writes)
    if isinstance(error, Blocked):
        return Postpone(until=now + parts.blocked_wait, reason=reason, writes=writes)
    if isinstance(error, Transient):
        return Retry(reason=reason, writes=writes)
    return Fail(reason=reason, writes=writes)
