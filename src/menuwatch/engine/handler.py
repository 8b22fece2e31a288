"""What the engine asks of a handler, and what it gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from menuwatch.tasks.model import Role, Task
from menuwatch.tasks.outcome import Outcome


class TaskContext:
    """Where an attempt runs. Once `lost` is set the task is somebody else's: the handler is cancelled as well."""

    __slots__ = ("_lost", "worker_id")

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self._lost: asyncio.Event | None = None

    @property
    def lost(self) -> asyncio.Event:
        """Made when it is asked for first: few handlers do."""
        if self._lost is None:
            self._lost = asyncio.Event()
        return self._lost


class Handler(Protocol):
    """Does one role's work: returns how it went, or raises an error that says what to do about it."""

    async def __call__(self, task: Task, ctx: TaskContext, /) -> Outcome: ...


Handlers = Mapping[Role, Handler]

MayClaim = Callable[[], Awaitable[frozenset[Role]]]
"""Asked before each claim: the roles that may be claimed now."""
