"""The course of a worker's claims through the queue: where the next one begins, and how much of it is for who has waited longest."""

from __future__ import annotations

from collections.abc import Sequence

from menuwatch.core.clock import Clock
from menuwatch.tasks.cycle import BEGINNING, Claim, Claimed, Place
from menuwatch.tasks.model import Role

FAIR_SHARE = 4
"""One slot of so many goes to the role whose next task has waited longest, whatever its priority."""
FULL_CLAIM = 0.25
"""Longest time in seconds for which claims begin where the one before ended. What was claimed meanwhile is stepped over so, however
long an old snapshot keeps it in the index; what has come in before that place is seen this much later at most."""


class Course:
    """State and a clock; all lanes of a producer share one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._starts: dict[Role, Place] = {}
        """Behind what was claimed of a role, since the queue was looked at as a whole."""
        self._whole_at = float("-inf")
        self._claimed = 0

    def next(self, roles: Sequence[Role], n: int) -> Claim:
        """A claim of up to `n` tasks of these roles."""
        fair = (self._claimed + n) // FAIR_SHARE - self._claimed // FAIR_SHARE if len(roles) > 1 else 0
        now = self._clock.monotonic()
        if now - self._whole_at >= FULL_CLAIM:
            self._whole_at = now
            self._starts.clear()
            return Claim(roles=roles, n=n, fair=fair)
        return Claim(roles=roles, n=n, fair=fair, start=[self._starts.get(role, BEGINNING) for role in roles])

    def went(self, claimed: Sequence[Claimed]) -> None:
        """A claim came back with these, which are in the order of their places."""
        self._claimed += len(claimed)
        last = {one.task.role: one.place for one in claimed}
        for role, place in last.items():
            if role not in self._starts or place > self._starts[role]:
                self._starts[role] = place

    def begin_anew(self) -> None:
        """There may be something before the place where claims go on: the next one looks at the whole queue."""
        self._whole_at = float("-inf")
