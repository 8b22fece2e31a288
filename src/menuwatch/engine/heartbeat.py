"""Says that this worker lives, and learns what it has lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec
import psycopg

from menuwatch.core.clock import Clock
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.engine.gate import Gate
from menuwatch.engine.loop import Loop
from menuwatch.engine.resources import Machine, ProcessResources
from menuwatch.engine.slots import Slots
from menuwatch.tasks import store as tasks
from menuwatch.workers import heartbeat, registry
from menuwatch.workers.registry import Identity

log = get_logger(__name__)


class Heartbeat(Loop):
    """One UPDATE for all tasks of the worker, one for the worker itself."""

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
        gate: Gate | None = None,
        machine: Machine | None = None,
        on_beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`gate` says why nothing is claimed, where that is so; `machine` is shared with who watches it; `on_beat` hears of each
        beat that was written."""
        super().__init__(interval=interval)
        self._pool = pool
        self._slots = slots
        self._who = who
        self._status = status
        self._clock = clock
        self._gate = gate or Gate(clock=clock)
        self._resources = ProcessResources(machine)
        self._on_beat = on_beat

    async def step(self) -> float | None:
        held = self._slots.held(self._clock.monotonic())
        async with self._pool.connection() as conn:
            owned = await tasks.heartbeat(conn, self._who.worker_id, held)
            for item in held:
                if (item.task_id, item.attempt) not in owned and self._slots.lose(item.task_id, item.attempt):
                    log.warning(
                        "a running task is no longer ours",
                        action="task_lost",
                        task_id=item.task_id,
                        attempt=item.attempt,
                        worker_id=self._who.worker_id,
                    )
            self._on_beat()
            try:
                await registry.beat(conn, self._who, self.body())
            except psycopg.Error as error:
                log.warning(
                    "the registry did not take the heartbeat",
                    action="registry_failed",
                    worker_id=self._who.worker_id,
                    error=str(error),
                )
        return None

    def body(self) -> heartbeat.Heartbeat:
        """What the worker says of itself now."""
        ids = [attempt.task.id for attempt in sorted(self._slots, key=lambda attempt: attempt.started)]
        return heartbeat.Heartbeat(
            worker_id=self._who.worker_id,
            current_task_id=ids[0] if ids else None,
            current_task_ids=ids,
            active_task_count=len(ids) - self._slots.resting,
            max_concurrent_tasks=self._slots.limit,
            status=self._status(),
            resources=self._resources.read(
                is_backing_off=self._gate.is_backing_off, backoff_reason=self._gate.backoff_reason
            ),
            paused_roles=[str(role) for role in self._gate.paused_roles] or msgspec.UNSET,
            paused_roles_reason=self._gate.paused_roles_reason or msgspec.UNSET,
        )
