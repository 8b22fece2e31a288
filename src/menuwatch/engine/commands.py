"""Does what operators tell this worker: pause, resume, decommission."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.engine.gate import Gate
from menuwatch.engine.loop import Loop
from menuwatch.workers import commands
from menuwatch.workers.commands import Command

log = get_logger(__name__)


class Commands(Loop):
    """Woken by the listener; looks as often as the heartbeat as a net."""

    name: ClassVar[str] = "commands"

    def __init__(
        self,
        pool: Pool,
        gate: Gate,
        *,
        worker_id: str,
        on_change: Callable[[], None],
        on_decommission: Callable[[], None],
        interval: float = 30.0,
    ) -> None:
        """`on_change` is called when the gate was closed or opened."""
        super().__init__(interval=interval)
        self._pool = pool
        self._gate = gate
        self._worker_id = worker_id
        self._on_change = on_change
        self._on_decommission = on_decommission

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            taken = await commands.take(conn, self._worker_id)
        for given in taken:
            by = given.created_by or "an operator"
            log.info(
                f"told to {given.command}",
                action=f"worker_{given.command}",
                command_id=given.id,
                by=by,
                worker_id=self._worker_id,
            )
            match given.command:
                case Command.PAUSE:
                    self._gate.pause(by)
                case Command.RESUME:
                    self._gate.resume()
                case Command.DECOMMISSION:
                    self._on_decommission()
        if taken:
            self._on_change()
        return None
