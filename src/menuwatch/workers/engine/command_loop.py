"""The loop with which a worker obeys the commands of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from menuwatch.core.logging import get_logger
from menuwatch.db.items import uncharged
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.workers import commands
from menuwatch.workers.commands import Command, WorkerCommand
from menuwatch.workers.engine.claim_gate import ClaimGate

log = get_logger(__name__)


class CommandLoop(Loop):
    """Obeys operators. Woken by the listener; also checks as often as the heartbeat."""

    name: ClassVar[str] = "commands"

    def __init__(
        self,
        pool: Pool,
        gate: ClaimGate,
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
            received = await commands.receive(conn, self._worker_id)
        for command in received:
            await self.attend(
                "worker_command", command.id, self._obey(command), uncharged
            )  # it was acknowledged when taken
        if received:
            self._on_change()
        return None

    async def _obey(self, command: WorkerCommand) -> None:
        by = command.created_by or "an operator"
        log.info(
            f"command received: {command.command}",
            action=f"worker_{command.command}",
            command_id=command.id,
            by=by,
            worker_id=self._worker_id,
        )
        match command.command:
            case Command.PAUSE:
                self._gate.pause(by)
            case Command.RESUME:
                self._gate.resume()
            case Command.DECOMMISSION:
                self._on_decommission()
