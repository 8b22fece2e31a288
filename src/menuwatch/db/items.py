"""Error isolation for loops over items: an item that raises is charged with its error and set aside, and the others go on."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

import psycopg

from menuwatch.core.backoff import Backoff
from menuwatch.core.logging import get_logger

log = get_logger(__name__)
_T = TypeVar("_T")


def is_outage(error: BaseException) -> bool:
    """Whether the database failed (away, full, out of connections, or at odds with other transactions), so that no item is to blame.

    Statements that run into their time limit or into a limit of PostgreSQL (classes 57014 and 54) are the item's fault."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = error.sqlstate
    return state is None or (state[:2] in {"08", "40", "53", "55", "57", "58"} and state != "57014")


def described(error: BaseException, *, private: bool = False) -> str:
    """Type and text of an error on one line; the type alone where the text may hold what is secret."""
    name, text = type(error).__name__, " ".join(str(error).split())[:300]
    return name if private or not text else f"{name}: {text}"


def place(error: BaseException) -> str | None:
    """Where it was raised, as `delivery_worker.py:127 _send_one`."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].name}" if frames else None


async def run_item(
    loop: str,
    kind: str,
    key: object,
    work: Awaitable[object],
    charge: Callable[[str], Awaitable[object]],
    *,
    private: bool = False,
) -> bool:
    """Does the work of one item; returns whether it succeeded. Where it raises, the log names the item (`kind` and `key`), and
    `charge` stores the error and puts the item aside. Raises outages of the database, and nothing else.

    `private`: texts of errors may hold secrets (addresses, passwords), so only their types are logged and stored."""
    try:
        await work
    except Exception as error:
        _raise_outage(error, kind, key)
        _log(loop, kind, key, error, private=private)
        reason = described(error, private=private)
    else:
        return True
    try:
        await charge(reason)
    except Exception as error:
        _raise_outage(error, kind, key)
        log.error(
            "storing the error of an item failed",
            action="item_not_charged",
            loop=loop,
            kind=kind,
            id=key,
            error=described(error, private=private),
        )
    return False


async def uncharged(reason: str) -> None:
    """For items that have no row to store an error in: duties, and what is taken only once."""


async def write_in_halves(
    rows: Sequence[_T], write: Callable[[Sequence[_T]], Awaitable[object]], refuse: Callable[[_T, Exception], object]
) -> None:
    """Writes rows in one batch. If that fails, splits the batch in halves until only the failing rows are left, and passes these
    to `refuse`. `write` is all or nothing. Raises database outages."""
    if not rows:
        return
    try:
        await write(rows)
    except Exception as error:
        if is_outage(error):
            raise
        if len(rows) == 1:
            refuse(rows[0], error)
            return
    else:
        return
    middle = len(rows) // 2
    for half in (rows[:middle], rows[middle:]):
        await write_in_halves(half, write, refuse)


def log_refused(loop: str, kind: str, key: object, error: Exception, *, trace: bool = False) -> None:
    """Logs an item that was left out of what is written with others. Of many such items the log would be full of tracebacks."""
    _log(loop, kind, key, error, private=False, trace=trace)


class Aside:
    """Items that failed and are left alone for a while, in this process: longer each time. For items without a row of their own to
    count tries in. Times in seconds."""

    def __init__(self, backoff: Backoff = Backoff(base=60.0, cap=3600.0)) -> None:  # noqa: B008 - frozen
        self._backoff = backoff
        self._rng = random.Random()  # noqa: S311 - jitter, no secret
        self._items: dict[Any, tuple[int, float]] = {}

    def put(self, key: Any) -> float:
        """Counts a failure; returns for how long the item is left alone."""
        failures = self._items.get(key, (0, 0.0))[0]
        wait = self._backoff.delay(failures, self._rng)
        self._items[key] = (failures + 1, time.monotonic() + wait)
        return wait

    def clear(self, key: Any) -> None:
        """Resets the failures of an item that succeeded."""
        self._items.pop(key, None)

    def now(self) -> Collection[Any]:
        """Items currently set aside."""
        now = time.monotonic()
        return [key for key, (_, until) in self._items.items() if until > now]


def _raise_outage(error: Exception, kind: str, key: object) -> None:
    if is_outage(error):
        error.add_note(f"{kind} {key}")
        raise error


def _log(loop: str, kind: str, key: object, error: Exception, *, private: bool, trace: bool = True) -> None:
    log.warning(
        "item failed and was skipped",
        action="item_failed",
        loop=loop,
        kind=kind,
        id=key,
        error=described(error, private=private),
        at=place(error),
        exc_info=error if trace and not private else None,
    )
