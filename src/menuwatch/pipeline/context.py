"""Context objects of handlers, and the check that a store may still be crawled."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from menuwatch.archive.files import FileArchive
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Permanent
from menuwatch.core.http import Session
from menuwatch.db.pool import Pool
from menuwatch.platforms.base import Platform
from menuwatch.platforms.model import FoundStore
from menuwatch.platforms.registry import unknown_platform
from menuwatch.queue.model import Task
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details, Store

if TYPE_CHECKING:
    from menuwatch.fetch.robots import Policy

RECHECK_SECONDS = 1.0
"""Maximum seconds that a crawl continues after its store was disabled."""


class CrawlPermission:
    """Checks before each request that the task's store may be crawled: a task may have waited a long time for its turn."""

    def __init__(self, pool: Pool, store_id: int) -> None:
        self._pool = pool
        self._store_id = store_id
        self._checked_at = time.monotonic()

    async def __call__(self) -> None:
        """Raises Permanent if the store may no longer be contacted. The first check is skipped, as the creator has just done it."""
        if time.monotonic() - self._checked_at < RECHECK_SECONDS:
            return
        async with self._pool.connection() as conn:
            store = await stores.get(conn, self._store_id)
        if store is None:
            raise Permanent(f"store {self._store_id} was removed in the meantime")
        if not store.crawl_enabled:
            raise Permanent(f"crawling of store {store.id} ({store.name}) was disabled after this task started")
        self._checked_at = time.monotonic()


class RecordedSession(Session, Protocol):
    """A session that counts its requests, for the task's result."""

    def mark_unusable(self, kind: str, reason: str) -> None:
        """Reports that the last answer was unusable; `kind` is a BadPayload's."""
        ...

    @property
    def figures(self) -> Mapping[str, int]:
        """`requests`, `blocked`, `rotations`, `bytes` so far."""
        ...


class AttemptContext(Protocol):
    """The part of a task attempt that handlers use."""

    async def pause(self, seconds: float) -> None:
        """Waits while the worker runs other tasks."""
        ...


class OpenSession(Protocol):
    """Opens a session for one task: one identity, kept for all its requests."""

    def __call__(
        self,
        *,
        task_id: int | None,
        task_attempt: int | None = None,
        dispensary_id: int | None,
        state: str | None,
        hosts: Collection[str],
        pause: Callable[[float], Awaitable[None]],
        permit: Callable[[], Awaitable[None]] | None,
        robots: Policy | None = ...,
    ) -> AbstractAsyncContextManager[RecordedSession]:
        """`hosts` are allowed redirect targets; `pause` waits for the session's turn; `permit` is called before each request, which is
        not sent if it raises; `robots` applies to hosts without a policy of their own.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerContext:
    """Dependencies of handlers."""

    pool: Pool
    clock: Clock
    archive: FileArchive
    platforms: Mapping[str, Platform]
    open_session: OpenSession
    suspect_share: float
    blocked_wait: timedelta = timedelta(minutes=15)
    """Delay of a task whose target blocked several identities."""
    analytics_window: timedelta = timedelta(days=7)
    """Period of the analytics reports."""
    robots: Mapping[str, Policy] = field(default_factory=dict)
    """How robots.txt applies to the requests of each platform."""

    def session(
        self,
        task: Task,
        platform: Platform,
        ctx: AttemptContext,
        *,
        store: Store | None = None,
        state: str | None = None,
    ) -> AbstractAsyncContextManager[RecordedSession]:
        """A session for one task, on that platform's hosts; `state` is used if no store determines it."""
        return self.open_session(
            task_id=task.id,
            task_attempt=task.attempt,
            dispensary_id=store.id if store else None,
            state=store.state if store else state,
            # On shops' own sites, the slug of an unresolved store has its host.
            hosts=platform.hosts_of((store.platform_dispensary_id or store.slug) if store else None),
            pause=ctx.pause,
            permit=CrawlPermission(self.pool, store.id) if store else None,
            robots=self.robots.get(platform.name),
        )

    def platform(self, task: Task) -> Platform:
        """The adapter of the task's platform; raises Permanent for an unknown platform."""
        try:
            return self.platforms[task.platform]
        except KeyError:
            raise Permanent(unknown_platform(task.platform, sorted(self.platforms))) from None

    async def store(self, task: Task) -> Store:
        """The task's store; raises Permanent if it names none or one that does not exist."""
        if task.dispensary_id is None:
            raise Permanent(f"a {task.role} task needs a store (dispensary_id)")
        async with self.pool.connection() as conn:
            found = await stores.get(conn, task.dispensary_id)
        if found is None:
            raise Permanent(f"store {task.dispensary_id} does not exist")
        return found


def offline_context(
    pool: Pool, archive: FileArchive, platforms: Mapping[str, Platform], *, suspect_share: float = 0.0
) -> HandlerContext:
    """The context of work on archived payloads, without network access."""
    return HandlerContext(
        pool=pool,
        clock=SystemClock(),
        archive=archive,
        platforms=platforms,
        open_session=_offline,
        suspect_share=suspect_share,
    )


def _offline(**_: Any) -> Any:
    raise AssertionError("work on archived payloads never asks a platform")


def store_details(found: FoundStore) -> Details:
    """Converts a platform's store data for the stores table."""
    return Details(**{name: getattr(found, name) for name in Details.__slots__})
