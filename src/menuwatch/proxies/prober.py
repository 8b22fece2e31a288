"""Reactivate proxies that were deactivated by their health, after a successful test request; test others when an operator asks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar

from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock
from menuwatch.core.encryption import DecryptionError
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.fetch.adhoc import AdhocRequests
from menuwatch.fetch.probe import Permit, Probe, ProbeResponse, ProbeResult, probe_result
from menuwatch.hosts.model import host_of
from menuwatch.proxies import store as proxies
from menuwatch.proxies.health import probing
from menuwatch.proxies.model import Proxy

log = get_logger(__name__)

Record = Callable[[ProbeResponse], Awaitable[None]]

_AT_ONCE = 8
_LONGEST_INTERVAL = 15.0
_MAX_POSTPONE = 60.0
"""Longest delay, in seconds, before a closed host is checked again: an operator may resume it early."""
_SLACK_SECONDS = 30.0
"""Time a probe may take beyond the timeout of its request, including the wait for a database connection."""


class Prober(Loop):
    """Any number may run: each due proxy is probed by one. Continues while no proxy is active, so that work resumes automatically."""

    name: ClassVar[str] = "prober"
    private: ClassVar[bool] = True  # connection errors may contain the proxy's password

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        *,
        permit: Permit | None = None,
        record: Record | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        ca_file: str | None = None,
    ) -> None:
        """`permit` requests a slot from the host's budget, `record` saves each request; both default to the database."""
        self._wait = probing(settings.proxy_probe_seconds)
        super().__init__(interval=min(_LONGEST_INTERVAL, self._wait.base / 4))
        self._pool = pool
        self._settings = settings
        requests = AdhocRequests(pool, settings, clock=clock)
        self._permit = permit or requests.acquire
        self._record = record or requests.record
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._probe = Probe(settings, clock=clock, rng=self._rng, ca_file=ca_file)

    async def step(self) -> float | None:
        hold = self._settings.fetch_timeout_seconds + _SLACK_SECONDS
        async with self._pool.connection() as conn:
            due = await proxies.take_due(conn, _AT_ONCE, hold=hold)
        ended = await asyncio.gather(
            *(self.attend("proxy", proxy.id, self._try(proxy), partial(self._failed, proxy)) for proxy in due),
            return_exceptions=True,
        )
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        async with self._pool.connection() as conn:
            soon = await proxies.next_probe(conn)
        return None if soon is None else min(self.interval, max(soon, 0.0))

    async def _try(self, proxy: Proxy) -> None:
        url = self._settings.dutchie_base_url
        wait = await self._permit(host_of(url))
        if wait is not None:
            await self._postpone(proxy, min(wait, _MAX_POSTPONE))
            return
        try:
            probed = await self._probe(proxy, url)
        except DecryptionError as error:
            await self._failed(proxy, str(error))
            return
        await self._record(probed)
        match probe_result(probed):
            case ProbeResult.WORKS:
                await self._back(proxy, probed)
            case ProbeResult.FAILS:
                await self._failed(proxy, probed.classification.reason)
            case ProbeResult.UNKNOWN:
                # If the host asked for a longer wait, it is closed for that time.
                await self._postpone(proxy, self._wait.delay(proxy.probe_failures, self._rng))

    async def _back(self, proxy: Proxy, probed: ProbeResponse) -> None:
        async with self._pool.connection() as conn, conn.transaction():
            if not await proxies.reactivate(conn, proxy.id):
                await proxies.retested(conn, proxy.id)
                return
            # Tasks that waited for a proxy need not wait for the next poll.
            await proxies.wake_workers(conn)
        log.info(
            "proxy reactivated",
            action="proxy_reactivated",
            proxy_id=proxy.id,
            address=proxy.address,
            said=probed.classification.reason,
            failed_probes=proxy.probe_failures,
        )

    async def _failed(self, proxy: Proxy, reason: str) -> None:
        wait = self._wait.delay(proxy.probe_failures + 1, self._rng)
        async with self._pool.connection() as conn:
            await proxies.probe_failed(conn, proxy.id, wait=wait, error=reason)
        log.info(
            "proxy probe failed",
            action="proxy_probe_failed",
            proxy_id=proxy.id,
            reason=reason,
            failed_probes=proxy.probe_failures + 1,
            again_in_seconds=round(wait, 1),
        )

    async def _postpone(self, proxy: Proxy, wait: float) -> None:
        async with self._pool.connection() as conn:
            await proxies.postpone_probe(conn, proxy.id, wait=wait)
