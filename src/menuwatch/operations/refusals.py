"""The ways in which a person's request is refused, where the answer depends on which it is."""

from __future__ import annotations

from menuwatch.core.errors import Refused


class NotFound(Refused):
    """What was asked for does not exist."""


class Conflict(Refused):
    """It exists, but its state does not allow what was asked."""


class Unusable(Refused):
    """One named value of the request cannot be used. `field` is its name in the request."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Stale(Conflict):
    """Somebody else has changed it since it was looked at: nothing was written. What it is now is read anew."""
