"""Claims work for free slots."""

from __future__ import annotations

from typing import ClassVar

from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.engine.executor import Executor
from menuwatch.engine.handler import MayClaim
from menuwatch.engine.loop import Loop
from menuwatch.engine.slots import Slots
from menuwatch.tasks import store as tasks
from menuwatch.tasks.ending import Ending
from menuwatch.tasks.model import Role

log = get_logger(__name__)

SOON = 0.05
"""Seconds after which a claim that got less than it asked for looks once more: another claimer may have been in its way."""
SHORTEST = 0.02


class Producer(Loop):
    """Keeps the slots full. Woken by notifications and by slots that come free; polls as a net."""

    name: ClassVar[str] = "producer"

    def __init__(
        self,
        pool: Pool,
        executor: Executor,
        slots: Slots,
        *,
        worker_id: str,
        roles: frozenset[Role],
        interval: float,
        may_claim: MayClaim | None = None,
    ) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._executor = executor
        self._slots = slots
        self._worker_id = worker_id
        self._roles = roles
        self._may_claim = may_claim
        self._closed: frozenset[Role] = frozenset()
        self._in_doubt = False

    async def step(self) -> float | None:
        if self.stopping or self._slots.free == 0:
            return None
        roles = await self._open_roles()
        async with self._pool.connection() as conn:
            if self.stopping:
                # The connection was long in coming, and nobody would run what is claimed now.
                return None  # type: ignore[unreachable]
            if self._in_doubt:
                await self.give_back(conn)
            if not roles:
                return None
            wanted = self._slots.free
            self._in_doubt = True
            claimed = await tasks.claim(conn, self._worker_id, sorted(roles), wanted)
            self._in_doubt = False
            for task in claimed:
                self._executor.start(task)
            if len(claimed) == wanted:
                return None
            pause = SOON if claimed else self.interval
            due = await tasks.next_due(conn)
        return pause if due is None else min(pause, max(due, SHORTEST))

    async def _open_roles(self) -> frozenset[Role]:
        if self._may_claim is None:
            return self._roles
        allowed = self._roles & await self._may_claim()
        closed = self._roles - allowed
        if closed != self._closed:
            self._closed = closed
            if closed:
                log.warning(
                    "claiming is paused for some roles",
                    action="claims_paused",
                    roles=sorted(str(role) for role in closed),
                    worker_id=self._worker_id,
                )
            else:
                log.info("claiming goes on for all roles", action="claims_resumed", worker_id=self._worker_id)
        return allowed

    async def give_back(self, conn: Connection, *, running: bool = False) -> None:
        """A claim whose answer never came may have happened: what the database says is ours and is not running goes back.

        With `running` also what is: the process ends.
        """
        unknown = [
            Ending(task_id=held.task_id, attempt=held.attempt, verb="release")
            for held in await tasks.held_by(conn, self._worker_id)
            if running or not self._slots.runs(held.task_id, held.attempt)
        ]
        await tasks.finish(conn, self._worker_id, unknown)
        self._in_doubt = False
