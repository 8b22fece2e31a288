"""Interface between engine and handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from menuwatch.queue.model import Role, Task
from menuwatch.queue.outcome import Outcome


class TaskContext:
    """Where an attempt runs. Once `lost` is set, this worker no longer owns the task, and the handler is cancelled."""

    __slots__ = ("_lost", "_suspend", "worker_id")

    def __init__(self, worker_id: str, suspend: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """`suspend` waits without holding a slot."""
        self.worker_id = worker_id
        self._lost: asyncio.Event | None = None
        self._suspend = suspend

    async def pause(self, seconds: float) -> None:
        """Wait; a longer wait frees the slot for other tasks."""
        await self._suspend(seconds)

    @property
    def lost(self) -> asyncio.Event:
        """Created on first access, since few handlers use it."""
        if self._lost is None:
            self._lost = asyncio.Event()
        return self._lost


class Handler(Protocol):
    """Handles one role: returns an outcome, or raises an error that is mapped to one."""

    async def __call__(self, task: Task, ctx: TaskContext, /) -> Outcome: ...


Handlers = Mapping[Role, Handler]
