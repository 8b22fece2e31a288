"""The errors of the house. They differ by the reaction they ask for, not by where they were raised."""

from __future__ import annotations


class MenuwatchError(Exception):
    """Root of everything that Menuwatch raises on purpose."""


class Transient(MenuwatchError):
    """It may work later: the task goes back to pending with backoff and uses up a retry."""


class Blocked(MenuwatchError):
    """The target refused this identity: rotate proxy and profile and try again."""


UNNAMED_WAIT = 60.0
"""Seconds to wait where a target asked us to slow down and named no time."""


class Throttled(MenuwatchError):
    """The target asked us to slow down: postpone without using up a retry.

    `retry_after` is in seconds, or None when the target named no time.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def wait(self) -> float:
        """For how many seconds the work is put off."""
        return UNNAMED_WAIT if self.retry_after is None else max(0.0, self.retry_after)


class NotNow(Throttled):
    """Nothing was asked, because now is not the time: the host's budget, its circuit, or no identity to ask with. It is
    nobody's failure, so it is not counted against the task either."""


class Permanent(MenuwatchError):
    """It will never work as asked: the task fails at once."""


class Refused(MenuwatchError):
    """A person asked for something that cannot be done; the message says what is wrong and what would be right."""


class BadPayload(Transient):
    """A platform's answer that cannot be used as a menu.

    `kind` is one of `html`, `truncated`, `errors`, `no_data`, `empty`, `schema`, `persisted_query`; `body` holds the
    answer as it came, so that it can be kept.
    """

    def __init__(self, kind: str, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.kind = kind
        self.body = body
