"""Hands out sessions: picks proxies, draws browsers, counts how proxies do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.fetch.identity import assume
from menuwatch.fetch.session import FetchSession
from menuwatch.fetch.transport import Transport
from menuwatch.proxies import store as proxies
from menuwatch.proxies.health import Event


class Rotator:
    """One per process. `ca_file`: certificates to trust instead of the built-in ones, for networks and tests with their own.

    Every write here is a short transaction of its own, never part of a task's: a proxy's fault is a fact whatever becomes of
    the task.
    """

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        ca_file: str | None = None,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - a choice of browsers, no secret
        self._ca_file = ca_file
        self._in_use: Counter[int] = Counter()

    @asynccontextmanager
    async def open(
        self, *, task_id: int | None, dispensary_id: int | None, state: str | None
    ) -> AsyncIterator[FetchSession]:
        """A session for one task: one identity, kept for all its requests. `state` is the store's, in two letters.

        Raises NoProxy when no proxy is active.
        """
        session = FetchSession(
            self,
            task_id=task_id,
            dispensary_id=dispensary_id,
            state=state,
            clock=self._clock,
            retry_base_seconds=self._settings.fetch_retry_base_seconds,
            rng=self._rng,
        )
        await session.start()
        try:
            yield session
        finally:
            await session.close()

    async def assume(self, *, state: str | None, avoid: Collection[int], profiles: Collection[str]) -> Transport:
        """A fresh identity; see `session.Desk`."""
        async with self._pool.connection() as conn:
            proxy = await proxies.pick(conn, avoid=avoid, busy=list(self._in_use))
        transport = Transport(
            assume(proxy, store_state=state, rng=self._rng, avoid=profiles),
            timeout_seconds=self._settings.fetch_timeout_seconds,
            max_bytes=self._settings.fetch_max_bytes,
            ca_file=self._ca_file,
        )
        self._in_use[proxy.id] += 1
        return transport

    async def retire(self, transport: Transport) -> None:
        """Closes an identity; see `session.Desk`."""
        proxy_id = transport.identity.proxy.id
        self._in_use[proxy_id] -= 1
        if self._in_use[proxy_id] <= 0:
            del self._in_use[proxy_id]
        await transport.close()

    async def record(
        self, proxy_id: int, event: Event, *, elapsed_ms: float | None = None, error: str | None = None
    ) -> None:
        """Counts an event for a proxy; see `session.Desk`."""
        async with self._pool.connection() as conn:
            await proxies.record(conn, proxy_id, event, elapsed_ms=elapsed_ms, error=error)
