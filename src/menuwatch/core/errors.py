"""Errors, grouped by the reaction they require: retry, rotate, postpone, fail permanently, or refuse the request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from menuwatch.core.postpone import PostponeCode


class MenuwatchError(Exception):
    """Base class of all errors that Menuwatch raises deliberately."""


class Transient(MenuwatchError):
    """May succeed later: the task goes back to pending with backoff and uses up a retry."""


class Blocked(MenuwatchError):
    """The target refused this identity: rotate proxy and profile and retry. `host` is the target, if known."""

    def __init__(self, message: str, host: str | None = None) -> None:
        super().__init__(message)
        self.host = host


UNNAMED_WAIT = 60.0
"""Seconds to wait where a target asked us to slow down and named no time."""


class Throttled(MenuwatchError):
    """The target asked us to slow down: postpone without using up a retry.

    `retry_after` is in seconds, or None when the target named no time. `host` is the target, where one is the reason.
    """

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        code: PostponeCode = PostponeCode.THROTTLED,
        host: str | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.code = code
        self.host = host

    @property
    def wait(self) -> float:
        """Seconds to postpone the work."""
        return UNNAMED_WAIT if self.retry_after is None else max(0.0, self.retry_after)


class NotNow(Throttled):
    """No request was made: the host's budget is used up, its circuit is open, or no identity is available. Does not count as a
    failed attempt of the task."""


class Permanent(MenuwatchError):
    """Will never succeed: the task fails at once."""


class Refused(MenuwatchError):
    """A request that cannot be fulfilled; the message says what is wrong and how to fix it."""


class NotFound(Refused):
    """The requested object does not exist."""


class Conflict(Refused):
    """The object's state does not allow the request."""


def unknown_value(name: str, value: object, known: Iterable[str]) -> str:
    """The message for a value that is not one of `known`."""
    return f"unknown {name} {value!r}; use one of: {', '.join(known)}"


class InvalidField(Refused):
    """One value of the request is invalid. `field` is its name in the request."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field

    @property
    def errors(self) -> Sequence[InvalidField]:
        """Every invalid value; this one alone."""
        return (self,)


class InvalidFields(InvalidField):
    """Several values of the request are invalid. `field` is the first one's."""

    def __init__(self, errors: Sequence[InvalidField]) -> None:
        super().__init__(errors[0].field, "; ".join(map(str, errors)))
        self._errors = tuple(errors)

    @property
    def errors(self) -> Sequence[InvalidField]:
        return self._errors


class PreconditionFailed(Conflict):
    """The object was changed since the client read it; nothing was written."""


class PayloadMissing(Refused):
    """The payload exists, but its archived file is missing."""


class PayloadDamaged(Refused):
    """The payload exists, but its archived file is corrupt."""


class BadPayload(Transient):
    """A platform's response that cannot be used as a menu.

    `kind` is one of `html`, `truncated`, `errors`, `no_data`, `empty`, `schema`, `persisted_query`, `limits`
    (larger than any menu: not requested again); `body` is the raw response, so that it can be archived.
    """

    def __init__(self, kind: str, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.kind = kind
        self.body = body

    @property
    def final(self) -> bool:
        """Whether a retry is pointless: the same response would come again."""
        return self.kind == "limits"


class NotAMenu(BadPayload):
    """A response that an adapter knows as another one of its platform: of kind no_data; the message says what it is."""

    def __init__(self, message: str, body: bytes = b"") -> None:
        super().__init__("no_data", message, body)
