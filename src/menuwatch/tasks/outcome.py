"""What a handler returns. It never writes task state: the engine does, from this value, in one transaction.

The transaction holds the fence (the worker still owns this attempt), the handler's own `writes`, the task's new state and
the follow-up tasks: all of it or nothing. `settle` is called once the fate of that transaction is known, with True after a
commit and False after a rollback; it is not called when the fate is unknown (the connection was lost during COMMIT, or the process
died), so whatever it tidies must also be tidied at the next start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.tasks.model import NewTask

Writes = Callable[[AsyncConnection[Any]], Awaitable["Wrote | None"]]
Settle = Callable[[bool], None]


class Wrote(msgspec.Struct, frozen=True, kw_only=True):
    """What the domain writes led to: merged into the result, and added to the follow-ups, of the same transaction."""

    result: Mapping[str, Any] | None = None
    then: Sequence[NewTask] = ()


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """It worked. `then` are the follow-up tasks (the chain)."""

    result: Mapping[str, Any] | None = None
    then: Sequence[NewTask] = ()
    writes: Writes | None = None
    settle: Settle | None = None


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """It may work later. `after` overrides the computed backoff; out of retries the task fails with `reason`."""

    reason: str
    after: timedelta | None = None
    result: Mapping[str, Any] | None = None
    writes: Writes | None = None
    settle: Settle | None = None


class Postpone(msgspec.Struct, frozen=True, kw_only=True):
    """Not now, through no fault of the task (throttled, no proxy): no retry is used up, to a limit.

    Not `counted` where nothing was even tried: that may happen any number of times. It is due at `until`, where that is
    given, else `after` from when the database hears of it: a length of time means the same whatever the worker's clock says.
    """

    reason: str
    until: datetime | None = None
    after: timedelta = timedelta(0)
    counted: bool = True
    writes: Writes | None = None
    settle: Settle | None = None


class Fail(msgspec.Struct, frozen=True, kw_only=True):
    """It will never work as asked."""

    reason: str
    result: Mapping[str, Any] | None = None
    writes: Writes | None = None
    settle: Settle | None = None


Outcome = Done | Retry | Postpone | Fail
