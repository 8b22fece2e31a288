"""What handlers are given to work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from menuwatch.archive.files import FileArchive
from menuwatch.core.clock import Clock
from menuwatch.core.errors import Permanent
from menuwatch.core.http import Session
from menuwatch.db.pool import Pool
from menuwatch.pipeline.permission import Permission
from menuwatch.platforms.base import FoundStore, Platform
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details, Store
from menuwatch.tasks.model import Task


class RecordedSession(Session, Protocol):
    """A session that counts its requests, for the task's result."""

    def doubt(self, kind: str, reason: str) -> None:
        """The last answer was not what it seemed: `kind` is a BadPayload's."""
        ...

    @property
    def figures(self) -> Mapping[str, int]:
        """`requests`, `blocked`, `rotations`, `bytes` so far."""
        ...


class Context(Protocol):
    """What a handler needs of the attempt that it runs in."""

    async def pause(self, seconds: float) -> None:
        """Waits without keeping other work from the worker."""
        ...


class OpenSession(Protocol):
    """Opens a session for one task: one identity, kept for all its requests."""

    def __call__(
        self,
        *,
        task_id: int | None,
        dispensary_id: int | None,
        state: str | None,
        hosts: Collection[str],
        pause: Callable[[float], Awaitable[None]],
        permit: Callable[[], Awaitable[None]] | None,
    ) -> AbstractAsyncContextManager[RecordedSession]:
        """`hosts` are those that redirects may lead to; `pause` is how the session waits for its turn; `permit` is called right before
        each request, which is not made where it raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The outside world and the stores of state, as handlers see them."""

    pool: Pool
    clock: Clock
    archive: FileArchive
    platforms: Mapping[str, Platform]
    open_session: OpenSession
    suspect_share: float
    blocked_wait: timedelta = timedelta(minutes=15)
    """How long a task rests whose target refused several identities."""
    analytics_window: timedelta = timedelta(days=7)
    """The time that figures look back on."""

    def session(
        self, task: Task, platform: Platform, ctx: Context, *, store: Store | None = None, state: str | None = None
    ) -> AbstractAsyncContextManager[RecordedSession]:
        """A session for one task, on that platform's hosts; `state` where there is no store that has one."""
        return self.open_session(
            task_id=task.id,
            dispensary_id=store.id if store else None,
            state=store.state if store else state,
            hosts=platform.hosts,
            pause=ctx.pause,
            permit=Permission(self.pool, store.id) if store else None,
        )

    def platform(self, task: Task) -> Platform:
        """The adapter of the task's platform; raises Permanent for one that there is none for."""
        try:
            return self.platforms[task.platform]
        except KeyError:
            known = ", ".join(sorted(self.platforms))
            raise Permanent(f"platform {task.platform!r} is not known: it is one of {known}") from None

    async def store(self, task: Task) -> Store:
        """The task's store; raises Permanent when it names none or one that does not exist."""
        if task.dispensary_id is None:
            raise Permanent(f"a {task.role} task needs a store (dispensary_id)")
        async with self.pool.connection() as conn:
            found = await stores.get(conn, task.dispensary_id)
        if found is None:
            raise Permanent(f"store {task.dispensary_id} does not exist")
        return found


def details(found: FoundStore) -> Details:
    """A platform's word of a store, as the stores' ledger takes it."""
    return Details(**{name: getattr(found, name) for name in Details.__slots__})
