"""Outcomes that handlers return. Handlers never write task state: the engine does, from this value, in one transaction.

The transaction holds the fence (the worker still owns this attempt), the handler's own `writes`, the task's new state and
the follow-up tasks: all of it or nothing. `settle` is called once the fate of that transaction is known, with True after a
commit and False after a rollback; it is not called when the fate is unknown (the connection was lost during COMMIT, or the process
died), so its cleanup must also happen at the next start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.core.errors import MenuwatchError, NotNow, Permanent, Refused, Throttled
from menuwatch.core.postpone import PostponeCode
from menuwatch.queue.model import NewTask

Writes = Callable[[AsyncConnection[Any]], Awaitable["Wrote | None"]]
Settle = Callable[[bool], None]


class Wrote(msgspec.Struct, frozen=True, kw_only=True):
    """What the domain writes led to: merged into the result, and added to the follow-ups, of the same transaction."""

    result: Mapping[str, Any] | None = None
    then: Sequence[NewTask] = ()


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The task succeeded. `then` are the follow-up tasks (the chain)."""

    result: Mapping[str, Any] | None = None
    then: Sequence[NewTask] = ()
    writes: Writes | None = None
    settle: Settle | None = None


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """The task may succeed later. `after` overrides the computed backoff; out of retries the task fails with `reason`."""

    reason: str
    after: timedelta | None = None
    result: Mapping[str, Any] | None = None
    writes: Writes | None = None
    settle: Settle | None = None


class Postpone(msgspec.Struct, frozen=True, kw_only=True):
    """The task cannot run now for external reasons (throttled, no proxy). Uses up no retry, up to a limit.

    Not `counted` if nothing was attempted: that may happen any number of times. It is due at `until`, if given, else `after`
    from the time of the write: a duration does not depend on the worker's clock.
    `reason` is for people; programs read `code` and `host`, the host that is the reason, if any.
    """

    reason: str
    code: PostponeCode
    host: str | None = None
    until: datetime | None = None
    after: timedelta = timedelta(0)
    counted: bool = True
    writes: Writes | None = None
    settle: Settle | None = None


class Fail(msgspec.Struct, frozen=True, kw_only=True):
    """The task will never succeed as requested."""

    reason: str
    result: Mapping[str, Any] | None = None
    writes: Writes | None = None
    settle: Settle | None = None


Outcome = Done | Retry | Postpone | Fail


def outcome_of(error: Exception) -> Outcome:
    """Permanent and Refused fail at once, Throttled postpones, everything else is tried again."""
    match error:
        case Permanent() | Refused():
            return Fail(reason=str(error))
        case Throttled():
            return Postpone(
                after=timedelta(seconds=error.wait),
                reason=str(error),
                code=error.code,
                host=error.host,
                counted=not isinstance(error, NotNow),
            )
        case MenuwatchError():
            return Retry(reason=str(error))
        case _:
            return Retry(reason=f"{type(error).__name__}: {error}")


def expected(error: Exception) -> bool:
    """Whether the error was raised on purpose; anything else deserves a traceback."""
    return isinstance(error, MenuwatchError)
