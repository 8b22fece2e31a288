"""What has just changed, told to whoever looks: topics over server-sent events.

A topic is only a hint that something of that kind changed; who hears it asks anew for what it shows. While nobody listens nothing
is looked at. Any replica tells of changes made by any other, by workers, by the command line or by hand, because it looks at the
database and not at who wrote.

    nobody listens ──subscribe──► looking every INTERVAL ──last one leaves──► nobody listens
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

import psycopg
from psycopg_pool import PoolTimeout

from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.operations import live

log = get_logger(__name__)

INTERVAL = 0.5
"""Seconds between two looks: with the time of a look and of the page's own question, a change shows within two seconds."""
STREAM_SECONDS = 600.0
"""A stream ends after this time, and the browser comes again: a replica that goes does not keep its listeners."""
KEEP_ALIVE_SECONDS = 15.0
TOPICS = live.TOPICS


class Live:
    """One per process and database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._listeners: set[_Listener] = set()
        self._looking: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def _listening(self, topics: frozenset[str]) -> Iterator[_Listener]:
        listener = _Listener(topics)
        self._listeners.add(listener)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="live")
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def events(self, topics: Iterable[str], *, seconds: float = STREAM_SECONDS) -> AsyncIterator[bytes]:
        """Server-sent events: one named after each topic that changed, and a comment now and then so that nobody gives up."""
        until = time.monotonic() + seconds
        with self._listening(frozenset(topics)) as listener:
            yield b"retry: 1000\nevent: hello\ndata: live\n\n"
            while (left := until - time.monotonic()) > 0:
                changed = await listener.wait(min(left, KEEP_ALIVE_SECONDS))
                if not changed:
                    yield b"event: beat\ndata: -\n\n"
                for topic in sorted(changed):
                    yield f"event: {topic}\ndata: {topic}\n\n".encode()

    async def _look(self) -> None:
        before: Mapping[str, str] | None = None
        while True:
            try:
                async with self._pool.connection(timeout=5) as conn:
                    marks = await live.marks(conn)
                changed = frozenset(t for t in marks if before is not None and before.get(t) != marks[t])
                if changed:
                    for listener in self._listeners:
                        listener.tell(changed)
                before = marks
            except (psycopg.Error, PoolTimeout) as error:
                # Who listens sees by the missing beats of its own questions that something is wrong; the next look may work.
                log.warning("could not look for changes", action="live_failed", error=type(error).__name__)
            except Exception:
                # Whoever listens would hear nothing any more, and not know it.
                log.exception("could not look for changes", action="live_failed")
            await asyncio.sleep(INTERVAL)


class _Listener:
    def __init__(self, topics: frozenset[str]) -> None:
        self._topics = topics
        self._changed: set[str] = set()
        self._woken = asyncio.Event()

    def tell(self, changed: frozenset[str]) -> None:
        mine = changed & self._topics
        if mine:
            self._changed |= mine
            self._woken.set()

    async def wait(self, seconds: float) -> set[str]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
        changed, self._changed = self._changed, set()
        return changed
