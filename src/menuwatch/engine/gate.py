"""May this worker claim now, and if not, why. State and a clock: others measure, hear and ask; the gate remembers.

Two things close it, each by itself: an operator (`pause`, until `resume`) and the machine (`weigh`, for a time). A third closes it
for some roles only (`note_roles`). Whoever opens it wakes the producer; until then the producer looks again after the time it is told.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.tasks.model import Role

PAUSED_LOOK = 5.0
"""Seconds after which to look again at a gate that an operator closed; its opening wakes the producer."""
SHORTEST_LOOK = 0.1


class Turn(StrEnum):
    """What a verdict on the machine changed."""

    CLOSED = "closed"
    OPENED = "opened"


class Gate:
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
        self._roles: frozenset[Role] = frozenset()
        self._roles_reason: str | None = None

    def look(self) -> float | None:
        """None: open, claim. Else the seconds after which to look again."""
        if self._paused is not None:
            return PAUSED_LOOK
        if self._pressure is not None:
            return max(self._until - self._clock.monotonic(), SHORTEST_LOOK)
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

    def weigh(self, reason: str | None) -> Turn | None:
        """Takes a verdict on the machine: `reason` says what is too much, None that nothing is. Returns what that changed.

        An overload closes the gate for the back-off time, however soon it is over; one that lasts closes it for that time again.
        """
        now = self._clock.monotonic()
        if reason is not None:
            turn = Turn.CLOSED if self._pressure is None else None
            if turn is not None or now >= self._until:
                self._until = now + self._backoff
            self._pressure = reason
            return turn
        if self._pressure is not None and now >= self._until:
            self._pressure = None
            return Turn.OPENED
        return None

    @property
    def is_backing_off(self) -> bool:
        """Whether the machine closed it."""
        return self._pressure is not None

    @property
    def backoff_reason(self) -> str | None:
        """What of the machine was too much."""
        return self._pressure

    def note_roles(self, closed: Collection[Role], reason: str | None = None) -> None:
        """These roles are not claimed for now (none: all are); the gate itself stays as it is."""
        self._roles = frozenset(closed)
        self._roles_reason = reason if self._roles else None

    @property
    def paused_roles(self) -> tuple[Role, ...]:
        """The roles that are not claimed for now, by name."""
        return tuple(sorted(self._roles))

    @property
    def paused_roles_reason(self) -> str | None:
        """Why they are not."""
        return self._roles_reason
