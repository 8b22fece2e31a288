"""What a worker reports while it runs: that it lives (`HeartbeatLoop`), and which attempts take longer (`RunningMarker`)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

import msgspec
import psycopg

from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.store import Held
from menuwatch.workers import registry
from menuwatch.workers.engine.claim_gate import ClaimGate
from menuwatch.workers.engine.resources import Machine, ProcessResources
from menuwatch.workers.engine.slots import Slots
from menuwatch.workers.registry import Identity

log = get_logger(__name__)


class HeartbeatLoop(Loop):
    """One UPDATE for all tasks of the worker, one for the worker itself. Attempts that the worker has lost are cancelled."""

    name: ClassVar[str] = "heartbeat"

    def __init__(
        self,
        pool: Pool,
        slots: Slots,
        who: Identity,
        *,
        status: Callable[[], str],
        clock: Clock,
        interval: float = 30.0,
        gate: ClaimGate | None = None,
        machine: Machine | None = None,
        on_beat: Callable[[], None] = lambda: None,
        on_replaced: Callable[[], None] = lambda: None,
    ) -> None:
        """`gate` says why nothing is claimed, where that is so; `machine` is shared with who watches it; `on_beat` hears of each
        beat that was written, `on_replaced` that another worker has the id of this one by now."""
        super().__init__(interval=interval)
        self._pool = pool
        self._slots = slots
        self._who = who
        self._status = status
        self._clock = clock
        self._gate = gate or ClaimGate(clock=clock)
        self._resources = ProcessResources(machine)
        self._on_beat = on_beat
        self._on_replaced = on_replaced
        self.entered: datetime | None = None
        """Start of the worker in the registry, once it is registered."""

    async def step(self) -> float | None:
        held = self._slots.held(self._clock.monotonic())
        async with self._pool.connection() as conn:
            owned = await tasks.heartbeat(conn, self._who.worker_id, held)
            for item in held:
                if (item.task_id, item.attempt) not in owned and self._slots.mark_lost(item.task_id, item.attempt):
                    log.warning(
                        "running task was lost",
                        action="task_lost",
                        task_id=item.task_id,
                        attempt=item.attempt,
                        worker_id=self._who.worker_id,
                    )
            self._on_beat()
            try:
                if not await registry.beat(conn, self._who, self.body(), entered=self.entered):
                    self._on_replaced()
            except psycopg.Error as error:
                log.warning(
                    "heartbeat rejected by the registry",
                    action="registry_failed",
                    worker_id=self._who.worker_id,
                    error=str(error),
                )
        return None

    def body(self) -> registry.Heartbeat:
        """What the worker says of itself now."""
        ids = [attempt.task.id for attempt in sorted(self._slots, key=lambda attempt: attempt.started)]
        return registry.Heartbeat(
            worker_id=self._who.worker_id,
            current_task_id=ids[0] if ids else None,
            current_task_ids=ids,
            active_task_count=len(ids) - self._slots.suspended,
            max_concurrent_tasks=self._slots.limit,
            status=self._status(),
            resources=self._resources.read(
                is_backing_off=self._gate.is_backing_off, backoff_reason=self._gate.backoff_reason
            ),
            paused_roles=[str(role) for role in self._gate.paused_roles] or msgspec.UNSET,
            paused_roles_reason=self._gate.paused_roles_reason or msgspec.UNSET,
            paused_roles_code=self._gate.paused_roles_code or msgspec.UNSET,
        )


MARK_AFTER = 0.5
"""Seconds after which a task is worth a write of its own."""


class RunningMarker(Loop):
    """Marks attempts that take longer as running: at most one UPDATE a second, none while all tasks are short.

    A short task goes from claimed to completed with no write in between.
    """

    name: ClassVar[str] = "running-marker"

    def __init__(self, pool: Pool, slots: Slots, *, worker_id: str, clock: Clock, interval: float = 1.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._slots = slots
        self._worker_id = worker_id
        self._clock = clock

    async def step(self) -> float | None:
        now = self._clock.monotonic()
        longer = [
            attempt
            for attempt in self._slots
            if attempt.handling and not attempt.shown and now - attempt.started >= MARK_AFTER
        ]
        if not longer:
            return None
        held = [
            Held(task_id=attempt.task.id, attempt=attempt.task.attempt, ran=now - attempt.started) for attempt in longer
        ]
        async with self._pool.connection() as conn:
            await tasks.mark_running(conn, self._worker_id, held)
        # Those it did not apply to are being completed, were lost, or a heartbeat has marked them.
        for attempt in longer:
            attempt.shown = True
        return None
