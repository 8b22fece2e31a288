"""Whether this worker may claim now, and why not.

Two things close the gate, independently: an operator (`pause`, until `resume`) and the machine (`report_pressure`, for a time; the
thresholds are in `resources.py`).
`ClaimableRoles` closes it for some roles only. Opening it wakes the producer; until then the producer checks again after
`delay_before_claim`.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.postpone import PostponeCode
from menuwatch.queue.model import Role

PAUSED_DELAY = 5.0
"""Seconds after which to check a paused gate again; `resume` wakes the producer."""
MIN_DELAY = 0.1


class GateChange(StrEnum):
    """What a verdict on the machine changed."""

    CLOSED = "closed"
    OPENED = "opened"


class ClaimGate:
    """Closed, it stops nothing that runs: only claiming."""

    def __init__(self, *, backoff: float = 10.0, clock: Clock | None = None) -> None:
        """`backoff`: seconds without a claim after the machine was found overloaded."""
        if backoff <= 0:
            raise ValueError(f"backoff must be positive, got {backoff}")
        self._backoff = backoff
        self._clock = clock or SystemClock()
        self._paused: str | None = None
        self._pressure: str | None = None
        self._until = 0.0
        self.paused_roles: tuple[Role, ...] = ()
        """Roles that are not claimed for now, by name."""
        self.paused_roles_reason: str | None = None
        self.paused_roles_code: PostponeCode | None = None

    def delay_before_claim(self) -> float | None:
        """None: claim now. Else the seconds after which to check again."""
        if self._paused is not None:
            return PAUSED_DELAY
        if self._pressure is not None:
            return max(self._until - self._clock.monotonic(), MIN_DELAY)
        return None

    @property
    def reason(self) -> str | None:
        """Why it is closed, in words; None while it is open."""
        return "; ".join(why for why in (self._paused, self._pressure) if why is not None) or None

    @property
    def status(self) -> str:
        """What the registry calls this: `paused`, `backing_off` or `active`."""
        if self._paused is not None:
            return "paused"
        return "active" if self._pressure is None else "backing_off"

    def pause(self, by: str = "an operator") -> None:
        """Closes it until `resume`."""
        self._paused = f"paused by {by}"

    def resume(self) -> None:
        """Takes back `pause`; what else closes it goes on."""
        self._paused = None

    @property
    def is_paused(self) -> bool:
        """Whether an operator closed it."""
        return self._paused is not None

    def report_pressure(self, reason: str | None) -> GateChange | None:
        """Takes a verdict on the machine: `reason` says what is too much, None that nothing is. Returns what that changed.

        An overload closes the gate for the back-off time, however soon it is over; one that lasts closes it for that time again.
        """
        now = self._clock.monotonic()
        if reason is not None:
            turn = GateChange.CLOSED if self._pressure is None else None
            if turn is not None or now >= self._until:
                self._until = now + self._backoff
            self._pressure = reason
            return turn
        if self._pressure is not None and now >= self._until:
            self._pressure = None
            return GateChange.OPENED
        return None

    @property
    def is_backing_off(self) -> bool:
        """Whether the machine closed it."""
        return self._pressure is not None

    @property
    def backoff_reason(self) -> str | None:
        """What of the machine was too much."""
        return self._pressure

    def set_paused_roles(
        self, closed: Collection[Role], reason: str | None = None, code: PostponeCode | None = None
    ) -> None:
        """Do not claim these roles for now (none: claim all); the gate itself stays as it is."""
        self.paused_roles = tuple(sorted(closed))
        self.paused_roles_reason, self.paused_roles_code = (reason, code) if closed else (None, None)
