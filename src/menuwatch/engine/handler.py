"""What the engine asks of a handler, and what it gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from menuwatch.tasks.model import Role, Task
from menuwatch.tasks.outcome import Outcome


class TaskContext:
    """Where an attempt runs. Once `lost` is set the task is somebody else's: the handler is cancelled as well."""

    __slots__ = ("_lost", "_rest", "worker_id")

    def __init__(self, worker_id: str, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """`rest` waits without holding a slot."""
        self.worker_id = worker_id
        self._lost: asyncio.Event | None = None
        self._rest = rest

    async def pause(self, seconds: float) -> None:
        """Waits; meanwhile the slot is somebody else's, where that is worth while."""
        await self._rest(seconds)

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


@dataclass(frozen=True, slots=True)
class Claimable:
    """The roles that may be claimed now; `reason` says why the others may not.

    `again`: seconds after which to ask again. With it closed roles are no news for anybody: they open within moments.
    """

    roles: frozenset[Role]
    reason: str | None = None
    again: float | None = None


MayClaim = Callable[[], Awaitable[Claimable]]
"""Asked before each claim."""
