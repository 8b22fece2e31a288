"""Brings proxies back that their health took out: each is tried with one real request before it works again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import ClassVar

from menuwatch.core.clock import Clock
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.engine.loop import Loop
from menuwatch.fetch.errand import Errands
from menuwatch.fetch.probe import Finding, Permit, Probe, Probed, finding
from menuwatch.hosts.model import host_of
from menuwatch.proxies import store as proxies
from menuwatch.proxies.health import probing
from menuwatch.proxies.model import Proxy
from menuwatch.proxies.vault import Locked
from menuwatch.tasks import store as tasks

log = get_logger(__name__)

Record = Callable[[Probed], Awaitable[None]]

_AT_ONCE = 8
_LONGEST_INTERVAL = 15.0
_LONGEST_PUT_OFF = 3600.0
"""Seconds after which a closed host is looked at again, however long it is closed for: a person may have opened it."""
_SLACK_SECONDS = 30.0
"""What a probe may take beyond the time limit of its request, the wait for a connection to the database included."""


class Prober(Loop):
    """Any number of them may run: each due proxy is taken by one. Goes on while no proxy is active, so that work resumes by itself."""

    name: ClassVar[str] = "prober"

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
        """`permit` is the host's budget, `record` is told of each request that was made; in the database where they are not given."""
        self._wait = probing(settings.proxy_probe_seconds)
        super().__init__(interval=min(_LONGEST_INTERVAL, self._wait.base / 4))
        self._pool = pool
        self._settings = settings
        errands = Errands(pool, settings, clock=clock)
        self._permit = permit or errands.permit
        self._record = record or errands.record
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._probe = Probe(settings, clock=clock, rng=self._rng, ca_file=ca_file)

    async def step(self) -> float | None:
        hold = self._settings.fetch_timeout_seconds + _SLACK_SECONDS
        async with self._pool.connection() as conn:
            due = await proxies.take_due(conn, _AT_ONCE, hold=hold)
        ended = await asyncio.gather(*(self._try(proxy) for proxy in due), return_exceptions=True)
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
            await self._put_off(proxy, wait)
            return
        try:
            probed = await self._probe(proxy, url)
        except Locked as error:
            await self._failed(proxy, str(error))
            return
        await self._record(probed)
        match finding(probed):
            case Finding.WORKS:
                await self._back(proxy, probed)
            case Finding.FAILS:
                await self._failed(proxy, probed.judgement.reason)
            case Finding.UNKNOWN:
                usual = self._wait.delay(proxy.probe_failures, self._rng)
                await self._put_off(proxy, max(usual, probed.judgement.retry_after or 0.0))

    async def _back(self, proxy: Proxy, probed: Probed) -> None:
        async with self._pool.connection() as conn, conn.transaction():
            if not await proxies.reactivate(conn, proxy.id):
                return
            # Work that waited for a proxy need not wait for the next poll.
            await tasks.wake(conn)
        log.info(
            "proxy works again",
            action="proxy_reactivated",
            proxy_id=proxy.id,
            address=proxy.address,
            said=probed.judgement.reason,
            failed_probes=proxy.probe_failures,
        )

    async def _failed(self, proxy: Proxy, reason: str) -> None:
        wait = self._wait.delay(proxy.probe_failures + 1, self._rng)
        async with self._pool.connection() as conn:
            await proxies.probe_failed(conn, proxy.id, wait=wait, error=reason)
        log.info(
            "proxy still fails",
            action="proxy_probe_failed",
            proxy_id=proxy.id,
            reason=reason,
            failed_probes=proxy.probe_failures + 1,
            again_in_seconds=round(wait, 1),
        )

    async def _put_off(self, proxy: Proxy, wait: float) -> None:
        async with self._pool.connection() as conn:
            await proxies.put_off_probe(conn, proxy.id, wait=min(wait, _LONGEST_PUT_OFF))
