"""What the engine asks of a handler, and what it gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from menuwatch.tasks.model import Role, Task
from menuwatch.tasks.outcome import Outcome


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Where an attempt runs. Once `lost` is set the task is somebody else's: the handler is cancelled as well."""

    worker_id: str
    lost: asyncio.Event = field(default_factory=asyncio.Event)


class Handler(Protocol):
    """Does one role's work: returns how it went, or raises an error that says what to do about it."""

    async def __call__(self, task: Task, ctx: TaskContext, /) -> Outcome: ...


Handlers = Mapping[Role, Handler]

MayClaim = Callable[[], Awaitable[frozenset[Role]]]
"""Asked before each claim: the roles that may be claimed now."""
