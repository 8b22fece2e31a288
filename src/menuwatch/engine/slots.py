"""The attempts that a worker runs at this moment."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from menuwatch.engine.handler import TaskContext
from menuwatch.tasks.model import Task
from menuwatch.tasks.store import Held


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt at one task: from its claim until its outcome is settled."""

    task: Task
    ctx: TaskContext
    started: float
    work: asyncio.Task[None] | None = None
    handling: bool = False
    """The handler is at it: until then, and after it, there is nothing to cancel."""
    settling: bool = False
    shown: bool = False
    """The database says that it runs."""
    lost: bool = False
    """The task is somebody else's."""
    stopped: bool = False
    """Cancelled because the worker stops, not because the task was lost."""

    def is_cut_off(self) -> bool:
        """Whether nobody wants its outcome any more."""
        return self.lost or self.stopped

    def cancel(self) -> None:
        """Cancels the handler, not the settling of what it returned. One that has not begun yet never begins."""
        if self.work is not None and self.handling:
            self.work.cancel()


WORTH_WHILE = 0.05
"""Seconds of waiting from which a slot is given up meanwhile."""


@dataclass(slots=True)
class Slots:
    """At most `limit` attempts at work, and as many again that rest. `idle` is set while there are none.

    at work ──rest──► resting ──its time is over──► at work again, once a slot is free: before anything new begins
    """

    limit: int
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    on_free: Callable[[], None] = lambda: None
    resting: int = 0
    """Attempts that hold no slot at present."""
    _returning: deque[asyncio.Future[None]] = field(default_factory=deque)
    _attempts: dict[tuple[int, int], Attempt] = field(
        default_factory=dict
    )  # a worker may lose a task and claim it anew

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"a worker needs at least one slot, got {self.limit}")
        self.idle.set()

    def __len__(self) -> int:
        return len(self._attempts)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(list(self._attempts.values()))

    def runs(self, task_id: int, attempt: int) -> bool:
        """Whether this very attempt is running or settling."""
        return (task_id, attempt) in self._attempts

    @property
    def room(self) -> int:
        """How many more attempts there is room for; below zero where there are too many."""
        return self.limit - self._at_work - len(self._returning)

    @property
    def free(self) -> int:
        """The same, never below zero."""
        return max(0, self.room)

    async def rest(self, seconds: float) -> None:
        """Waits that long for an attempt that has a slot, without holding it; then until there is a slot for it again."""
        if seconds < WORTH_WHILE or self.resting >= self.limit:
            await asyncio.sleep(seconds)
            return
        self.resting += 1
        self._let_back()
        self.on_free()
        try:
            await asyncio.sleep(seconds)
        except BaseException:
            self.resting -= 1
            raise
        if self._at_work < self.limit and not self._returning:
            self.resting -= 1
            return
        back = asyncio.get_running_loop().create_future()
        self._returning.append(back)
        try:
            await back
        except BaseException:
            if back in self._returning:
                self._returning.remove(back)
                self.resting -= 1
            raise

    @property
    def _at_work(self) -> int:
        return len(self._attempts) - self.resting

    def _let_back(self) -> None:
        while self._returning and self._at_work < self.limit:
            back = self._returning.popleft()
            self.resting -= 1
            if not back.done():  # else it was cancelled just now, and ends in the slot that it gets
                back.set_result(None)

    def add(self, attempt: Attempt) -> None:
        """Takes a slot."""
        self._attempts[attempt.task.id, attempt.task.attempt] = attempt
        self.idle.clear()

    def remove(self, attempt: Attempt) -> None:
        """Frees the slot."""
        if self._attempts.pop((attempt.task.id, attempt.task.attempt), None) is not None:
            self._let_back()
        if not self._attempts:
            self.idle.set()

    def held(self, now: float) -> list[Held]:
        """What to beat for; `now` on the clock of `Attempt.started`."""
        return [
            Held(task_id=a.task.id, attempt=a.task.attempt, ran=max(0.0, now - a.started))
            for a in self._attempts.values()
        ]

    def lose(self, task_id: int, attempt: int) -> bool:
        """Cancels an attempt that is no longer ours; False if it is not running (any more) or already settling."""
        found = self._attempts.get((task_id, attempt))
        if found is None or found.settling or found.lost:
            return False
        found.lost = True
        found.ctx.lost.set()
        found.cancel()
        return True
