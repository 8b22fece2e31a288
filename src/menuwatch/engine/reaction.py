"""What an error of a handler means for its task. Pure."""

from __future__ import annotations

from datetime import timedelta

from menuwatch.core.errors import MenuwatchError, NotNow, Permanent, Refused, Throttled
from menuwatch.tasks.outcome import Fail, Outcome, Postpone, Retry


def outcome_of(error: Exception) -> Outcome:
    """Permanent and Refused fail at once, Throttled postpones, everything else is tried again."""
    match error:
        case Permanent() | Refused():
            return Fail(reason=str(error))
        case Throttled():
            return Postpone(
                after=timedelta(seconds=error.wait), reason=str(error), counted=not isinstance(error, NotNow)
            )
        case MenuwatchError():
            return Retry(reason=str(error))
        case _:
            return Retry(reason=f"{type(error).__name__}: {error}")


def expected(error: Exception) -> bool:
    """Whether the error was raised on purpose; anything else deserves a traceback."""
    return isinstance(error, MenuwatchError)
