"""Live updates: topics of recent changes over server-sent events.

A stream ends with the session or token that opened it: it is closed a second after that ends or loses read permission. One check
serves all streams of a process.

A topic is only a hint that something of that kind changed; the client then reloads what it shows. The database is polled only while
there are listeners. Polling finds changes by any replica, worker, command or manual statement.

    idle ──subscribe──► polling every INTERVAL ──last listener leaves──► idle
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

import psycopg
from psycopg_pool import PoolTimeout
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from menuwatch.accounts import credentials
from menuwatch.accounts.model import Permission, Principal
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.web.auth import principal_of

log = get_logger(__name__)
_q = sql.load(__package__, "live.sql")

INTERVAL = 0.5
"""Seconds between two looks: with the time of a look and of the page's own question, a change shows within two seconds."""
STREAM_SECONDS = 600.0
"""A stream ends after this time, and the browser comes again: a replica that goes does not keep its listeners."""
KEEP_ALIVE_SECONDS = 15.0
TOPICS = frozenset({
    "tasks", "workers", "schedules", "payloads", "stores", "products", "proxies", "hosts", "images", "alerts", "visitors", "accounts",
    "crawls", "logs",
})  # fmt: skip
"""What one can listen for."""


class Live:
    """One per process and database."""

    def stream(self, request: Request, topics: Iterable[str], seconds: float = STREAM_SECONDS) -> Response:
        """The response to a request for events; HEAD gets its headers alone."""
        events = self.events(topics, principal_of(request), seconds=0 if request.scope.get("head") else seconds)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._listeners: set[_Listener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._watching = asyncio.Event()

    @contextlib.contextmanager
    def _listening(self, topics: frozenset[str], who: Principal) -> Iterator[_Listener]:
        listener = _Listener(topics, who)
        self._listeners.add(listener)
        if self._looking is None or self._looking.done():
            self._watching.clear()
            self._looking = asyncio.create_task(self._look(), name="live")
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def events(
        self, topics: Iterable[str], who: Principal, *, seconds: float = STREAM_SECONDS
    ) -> AsyncIterator[bytes]:
        """Server-sent events for `who`: `hello` once changes are followed, then one per changed topic, and a periodic heartbeat that
        keeps the connection open. The stream ends early when the database cannot be read; the browser comes again."""
        until = time.monotonic() + seconds
        with self._listening(frozenset(topics), who) as listener:
            yield b"retry: 1000\n\n"
            # Changes are found by comparison: a client is live only once there is a state to compare with.
            try:
                await asyncio.wait_for(self._watching.wait(), KEEP_ALIVE_SECONDS)
            except TimeoutError:
                return
            yield b"event: hello\ndata: live\n\n"
            while (left := until - time.monotonic()) > 0:
                changed = await listener.wait(min(left, KEEP_ALIVE_SECONDS))
                if listener.ended:
                    return
                if not changed:
                    yield b"event: beat\ndata: -\n\n"
                for topic in sorted(changed):
                    yield f"event: {topic}\ndata: {topic}\n\n".encode()

    async def _look(self) -> None:
        before: Mapping[str, str] | None = None
        while True:
            try:
                async with self._pool.connection(timeout=5) as conn:
                    await self._end_streams(conn)
                    marks: Mapping[str, str] = dict(await (await conn.execute(_q.live_marks)).fetchall())
                changed = frozenset(t for t in marks if before is not None and before.get(t) != marks[t])
                if changed:
                    for listener in self._listeners:
                        listener.tell(changed)
                before = marks
                self._watching.set()
            except (psycopg.Error, PoolTimeout) as error:
                # Who listens sees by the missing beats of its own questions that something is wrong; the next look may work.
                log.warning("checking for changes failed", action="live_failed", error=type(error).__name__)
            except Exception:
                # Otherwise listeners would get no more events, without notice.
                log.exception("checking for changes failed", action="live_failed")
            await asyncio.sleep(INTERVAL)

    async def _end_streams(self, conn: Connection) -> None:
        permissions = await credentials.permissions_now(conn, {listener.who for listener in self._listeners})
        for listener in self._listeners:
            # Listeners that subscribed during the query are checked next time.
            if Permission.READ not in permissions.get(listener.who, {Permission.READ}):
                listener.end()


class _Listener:
    def __init__(self, topics: frozenset[str], who: Principal) -> None:
        self.who = who
        self.ended = False
        self._topics = topics
        self._changed: set[str] = set()
        self._woken = asyncio.Event()

    def tell(self, changed: frozenset[str]) -> None:
        mine = changed & self._topics
        if mine:
            self._changed |= mine
            self._woken.set()

    def end(self) -> None:
        """Who listens may do so no longer."""
        self.ended = True
        self._woken.set()

    async def wait(self, seconds: float) -> set[str]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
        changed, self._changed = self._changed, set()
        return changed
