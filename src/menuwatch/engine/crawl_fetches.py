"""Fetches pages of search crawls with our own identities, beside a worker's tasks: for jobs whose provider is `identities`.

An order is a row. Who takes it fetches the page within the host's budget and manners, and brings it as a delivery, in one transaction
with the end of the order; when that worker dies, another takes it after a while, or the attempt's deadline ends it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import ClassVar

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import MenuwatchError, NotNow, Throttled
from menuwatch.core.telemetry import get_logger
from menuwatch.crawls import deliveries
from menuwatch.crawls.base import Delivery, Site
from menuwatch.crawls.deliveries import Errand
from menuwatch.crawls.reference import parse
from menuwatch.db.pool import Pool
from menuwatch.engine.crawl_pacer import DEADLINE
from menuwatch.engine.image_downloads import OpenSession
from menuwatch.engine.loop import Loop
from menuwatch.providers.identities import Identities
from menuwatch.providers.results import MOST_BYTES

log = get_logger(__name__)

_AT_ONCE = 4
_BRIEF = timedelta(seconds=10)


class CrawlFetches(Loop):
    """Any number of them may run. `held`: asked before each step; nothing is begun while it says yes."""

    name: ClassVar[str] = "crawl_fetches"

    def __init__(
        self,
        pool: Pool,
        sites: Mapping[str, Site],
        open_session: OpenSession,
        *,
        timeout_seconds: float = 30.0,
        deadline: timedelta = DEADLINE,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        interval: float = 5.0,
    ) -> None:
        """`deadline`: how long a page may take to come, counted anew where now was not the time to ask."""
        super().__init__(interval=interval)
        self._pool = pool
        self._deadline = deadline
        self._hosts: Collection[str] = sorted({host for site in sites.values() for host in site.hosts})
        self._open = open_session
        self._hold = timedelta(seconds=120.0 + 6 * timeout_seconds)
        """For which an order is one worker's: longer than a request with all its tries takes."""
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self.held: Callable[[], bool] = lambda: False

    async def step(self) -> float | None:
        if self.held():
            return None
        now = self._clock.now()
        async with self._pool.connection() as conn:
            soon = await deliveries.next_fetch(conn)
            if soon is None or soon > now:
                return None if soon is None else min(self.interval, (soon - now).total_seconds())
            taken = await deliveries.take_fetches(conn, now, now + self._hold, limit=_AT_ONCE)
        ended = await asyncio.gather(*(self._carry(one) for one in taken), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        return 0.0 if taken else None

    async def _carry(self, one: Errand) -> None:
        if not one.awaited:
            async with self._pool.connection() as conn:
                await deliveries.drop_fetch(conn, one.id)
            return
        try:
            async with self._open(
                task_id=None, dispensary_id=None, state=None, hosts=self._hosts, pause=asyncio.sleep, permit=None
            ) as session:
                answer = await session.request("GET", one.url, expect="any")
        except Throttled as error:  # NotNow among them: the host's budget, its circuit, or nobody to ask with
            wait = timedelta(seconds=error.wait) if not isinstance(error, NotNow) or error.retry_after else _BRIEF
            async with self._pool.connection() as conn:
                at = self._clock.now() + max(wait, _BRIEF)
                await deliveries.put_off_fetch(conn, one.id, at, at + self._deadline)
            log.info(
                "a page is fetched later", action="crawl_fetch_put_off", reference=one.reference, reason=str(error)
            )
            return
        except MenuwatchError as error:
            await self._bring(one, error=str(error))
            return
        if not 200 <= answer.status < 300:
            await self._bring(one, error=f"HTTP {answer.status}")
        elif len(answer.body) > MOST_BYTES:
            await self._bring(one, error=f"the page is larger than {MOST_BYTES:,} bytes")
        else:
            await self._bring(one, body=answer.body)

    async def _bring(self, one: Errand, *, body: bytes | None = None, error: str | None = None) -> None:
        delivery = Delivery(reference=one.reference, ok=body is not None, html=body, error=error)
        async with self._pool.connection() as conn, conn.transaction():
            if (reference := parse(one.reference)) is not None:
                await deliveries.put(conn, reference, Identities.name, delivery, self._clock.now())
            await deliveries.drop_fetch(conn, one.id)
        log.info(
            "a page was fetched",
            action="crawl_fetched",
            reference=one.reference,
            ok=body is not None,
            error=error,
        )
