"""What handlers are given to work with."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from psycopg import AsyncConnection

from menuwatch.archive.files import FileArchive
from menuwatch.core.clock import Clock
from menuwatch.core.errors import Permanent
from menuwatch.core.http import Session
from menuwatch.db.pool import Pool
from menuwatch.platforms.base import FoundStore, Platform
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details, Store
from menuwatch.tasks.model import Task


class RecordedSession(Session, Protocol):
    """A session that remembers its requests, so that they can be written with the task's outcome."""

    async def write_attempts(self, conn: AsyncConnection[Any]) -> None:
        """Inserts one row per request made so far."""
        ...

    @property
    def figures(self) -> Mapping[str, int]:
        """`requests`, `blocked`, `rotations`, `bytes` so far."""
        ...


class OpenSession(Protocol):
    """Opens a session for one task: one identity, kept for all its requests."""

    def __call__(
        self, *, task_id: int, dispensary_id: int | None, state: str | None
    ) -> AbstractAsyncContextManager[RecordedSession]: ...


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
