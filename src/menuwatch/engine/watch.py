"""Watches the machine for the gate: an overload closes it for the back-off time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from menuwatch.core.clock import Clock
from menuwatch.core.telemetry import get_logger
from menuwatch.engine.gate import Gate, Turn
from menuwatch.engine.loop import Loop
from menuwatch.engine.resources import WINDOW, Machine, Thresholds, verdict

log = get_logger(__name__)

TICK = 0.2
"""Seconds between two looks at how late the event loop runs a step."""
LOOK = 1.0
"""Seconds between two looks at the machine."""


class Watch(Loop):
    """Measures the event loop by its own lateness, looks at the machine once a second, and tells the gate what it finds."""

    name: ClassVar[str] = "watch"

    def __init__(
        self,
        gate: Gate,
        machine: Machine,
        thresholds: Thresholds,
        *,
        worker_id: str,
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_change` is called when the gate was closed or opened."""
        super().__init__(interval=TICK)
        self._gate = gate
        self._machine = machine
        self._thresholds = thresholds
        self._worker_id = worker_id
        self._clock = clock
        self._on_change = on_change
        self._late: deque[tuple[float, float]] = deque()
        self._expected: float | None = None
        self._looked = clock.monotonic()

    async def step(self) -> float | None:
        now = self._clock.monotonic()
        if self._expected is not None:
            self._late.append((now, max(0.0, now - self._expected)))
        if now - self._looked >= LOOK:
            self._looked = now
            self._weigh(now)
        self._expected = self._clock.monotonic() + TICK
        return None

    def lag(self, now: float) -> float:
        """How late the event loop runs what is due, on average over the window, in seconds."""
        while self._late and self._late[0][0] < now - WINDOW:
            self._late.popleft()
        return sum(late for _, late in self._late) / len(self._late) if self._late else 0.0

    def _weigh(self, now: float) -> None:
        turn = self._gate.weigh(verdict(self._machine.look(lag=self.lag(now)), self._thresholds))
        if turn is Turn.CLOSED:
            log.warning(
                "backing off: claiming nothing for a while",
                action="backoff_started",
                reason=self._gate.backoff_reason,
                worker_id=self._worker_id,
            )
        elif turn is Turn.OPENED:
            log.info("the machine has room again", action="backoff_ended", worker_id=self._worker_id)
        if turn is not None:
            self._on_change()
