"""The attempts that a worker is running."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from menuwatch.queue.model import Task
from menuwatch.queue.store import Held
from menuwatch.workers.engine.handler import TaskContext


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt at one task: from its claim until its outcome is settled."""

    task: Task
    ctx: TaskContext
    started: float
    work: asyncio.Task[None] | None = None
    handling: bool = False
    """The handler is running: only then is there something to cancel."""
    settling: bool = False
    shown: bool = False
    """The database shows it as running."""
    lost: bool = False
    """This worker no longer owns the task."""
    stopped: bool = False
    """Cancelled because the worker stops, not because the task was lost."""

    def is_cut_off(self) -> bool:
        """Whether its outcome is no longer needed."""
        return self.lost or self.stopped

    def cancel(self) -> None:
        """Cancels the handler, not the settling of what it returned. One that has not begun yet never begins."""
        if self.work is not None and self.handling:
            self.work.cancel()


MIN_SUSPEND_SECONDS = 0.05
"""Shortest wait in seconds that frees the slot."""


@dataclass(slots=True)
class Slots:
    """At most `limit` attempts at work, and as many again that rest. `idle` is set while there are none.

    at work ──rest──► suspended ──its time is over──► at work again, once a slot is free: before anything new begins
    """

    limit: int
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    on_free: Callable[[], None] = lambda: None
    suspended: int = 0
    """Attempts that hold no slot now."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    _returning: deque[asyncio.Future[None]] = field(default_factory=deque)
    _attempts: dict[tuple[int, int], Attempt] = field(
        default_factory=dict
    )  # a worker may lose a task and claim it again

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"a worker needs at least one slot, got {self.limit}")
        self.idle.set()

    def __len__(self) -> int:
        return len(self._attempts)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(list(self._attempts.values()))

    def is_running(self, task_id: int, attempt: int) -> bool:
        """Whether this attempt is running or its outcome is being written."""
        return (task_id, attempt) in self._attempts

    @property
    def free_signed(self) -> int:
        """Number of free slots; negative if there are too many attempts."""
        return self.limit - self._at_work - len(self._returning)

    @property
    def free(self) -> int:
        """Number of free slots, at least 0."""
        return max(0, self.free_signed)

    async def suspend(self, seconds: float) -> None:
        """Wait that long without holding the attempt's slot, then until a slot is free again."""
        if seconds < MIN_SUSPEND_SECONDS or self.suspended >= self.limit:
            await self.sleep(seconds)
            return
        self.suspended += 1
        self._resume_waiting()
        self.on_free()
        try:
            await self.sleep(seconds)
        except BaseException:
            self.suspended -= 1
            raise
        if self._at_work < self.limit and not self._returning:
            self.suspended -= 1
            return
        back = asyncio.get_running_loop().create_future()
        self._returning.append(back)
        try:
            await back
        except BaseException:
            if back in self._returning:
                self._returning.remove(back)
                self.suspended -= 1
            raise

    @property
    def _at_work(self) -> int:
        return len(self._attempts) - self.suspended

    def _resume_waiting(self) -> None:
        while self._returning and self._at_work < self.limit:
            back = self._returning.popleft()
            self.suspended -= 1
            if not back.done():  # else it was just cancelled, and ends in the slot that it gets
                back.set_result(None)

    def add(self, attempt: Attempt) -> None:
        """Takes a slot."""
        self._attempts[attempt.task.id, attempt.task.attempt] = attempt
        self.idle.clear()

    def remove(self, attempt: Attempt) -> None:
        """Frees the slot."""
        if self._attempts.pop((attempt.task.id, attempt.task.attempt), None) is not None:
            self._resume_waiting()
        if not self._attempts:
            self.idle.set()

    def held(self, now: float) -> list[Held]:
        """What to beat for; `now` on the clock of `Attempt.started`."""
        return [
            Held(task_id=a.task.id, attempt=a.task.attempt, ran=max(0.0, now - a.started))
            for a in self._attempts.values()
        ]

    def mark_lost(self, task_id: int, attempt: int) -> bool:
        """Cancel an attempt that this worker no longer owns; False if it is not running or its outcome is being written."""
        running = self._attempts.get((task_id, attempt))
        if running is None or running.settling or running.lost:
            return False
        running.lost = True
        running.ctx.lost.set()
        running.cancel()
        return True
