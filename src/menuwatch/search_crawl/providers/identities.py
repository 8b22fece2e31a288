"""Fetches pages of search crawls with our own identities, in addition to a worker's tasks: for jobs whose provider is `identities`.

An order is a row. The worker that claims it fetches the page within the host's budget and stores it as a delivery, in the same
transaction as the end of the order; if that worker dies, another claims it later, or the attempt ends at its deadline.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import ClassVar

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import MenuwatchError, NotNow, Throttled
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.images.downloads import OpenSession
from menuwatch.search_crawl import webhook_inbox
from menuwatch.search_crawl.model import parse_reference
from menuwatch.search_crawl.protocols import BadWebhook, Delivery, Order, OrderRefused, Site
from menuwatch.search_crawl.providers.results import MOST_BYTES
from menuwatch.search_crawl.submitter import DEADLINE
from menuwatch.search_crawl.webhook_inbox import FetchOrder

log = get_logger(__name__)

_AT_ONCE = 4
_BRIEF = timedelta(seconds=10)


class Identities:
    """The provider that needs no service: an order is a row, which a worker fetches."""

    name: ClassVar[str] = "identities"
    needs_webhook: ClassVar[bool] = False

    def __init__(self, pool: Pool, *, clock: Clock | None = None) -> None:
        self._pool = pool
        self._clock = clock or SystemClock()

    async def submit(self, order: Order) -> str | None:
        """Store the order for a worker; returns its id."""
        reference = parse_reference(order.reference)
        if reference is None:
            raise OrderRefused("the order has no reference of ours", final=True)
        async with self._pool.connection() as conn:
            order_id = await webhook_inbox.order_fetch(
                conn, reference, url=order.url, country=order.country, now=self._clock.now()
            )
        return None if order_id is None else str(order_id)

    def read_webhook(self, body: object) -> list[Delivery]:
        """This provider has no webhook."""
        raise BadWebhook("our own workers call no webhook")


class CrawlFetcher(Loop):
    """Any number may run. `held` is checked before each step: while it returns True, no fetch is started."""

    name: ClassVar[str] = "crawl_fetches"
    private: ClassVar[bool] = True  # errors of connections may hold a proxy's password

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
        """`deadline`: how long a page may take; restarts when a fetch is postponed."""
        super().__init__(interval=interval)
        self._pool = pool
        self._deadline = deadline
        self._hosts: Collection[str] = sorted({host for site in sites.values() for host in site.hosts})
        self._open = open_session
        self._claim = timedelta(seconds=120.0 + 6 * timeout_seconds)
        """Duration of a claim: longer than a request with all its tries takes."""
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self.held: Callable[[], bool] = lambda: False

    async def step(self) -> float | None:
        if self.held():
            return None
        now = self._clock.now()
        async with self._pool.connection() as conn:
            next_at = await webhook_inbox.next_fetch(conn)
            if next_at is None or next_at > now:
                return None if next_at is None else min(self.interval, (next_at - now).total_seconds())
            orders = await webhook_inbox.take_fetches(conn, now, now + self._claim, limit=_AT_ONCE)
        ended = await asyncio.gather(
            *(
                self.attend("crawl_fetch", order.id, self._fetch(order), partial(self._failed, order))
                for order in orders
            ),
            return_exceptions=True,
        )
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        return 0.0 if orders else None

    async def _fetch(self, order: FetchOrder) -> None:
        if not order.awaited:
            async with self._pool.connection() as conn:
                await webhook_inbox.drop_fetch(conn, order.id)
            return
        try:
            async with self._open(
                task_id=None, dispensary_id=None, state=None, hosts=self._hosts, pause=asyncio.sleep, permit=None
            ) as session:
                answer = await session.request("GET", order.url, expect="any")
        except Throttled as error:  # NotNow among them: the host's budget, its circuit, or no identity
            wait = timedelta(seconds=error.wait) if not isinstance(error, NotNow) or error.retry_after else _BRIEF
            async with self._pool.connection() as conn:
                at = self._clock.now() + max(wait, _BRIEF)
                await webhook_inbox.postpone_fetch(conn, order.id, at, at + self._deadline)
            log.info(
                "page fetch postponed", action="crawl_fetch_postponed", reference=order.reference, reason=str(error)
            )
            return
        except MenuwatchError as error:
            await self._store(order, error=str(error))
            return
        if not 200 <= answer.status < 300:
            await self._store(order, error=f"HTTP {answer.status}")
        elif len(answer.body) > MOST_BYTES:
            await self._store(order, error=f"the page is larger than {MOST_BYTES:,} bytes")
        else:
            await self._store(order, body=answer.body)

    async def _failed(self, order: FetchOrder, reason: str) -> None:
        await self._store(order, error=f"fetching it failed: {reason}")

    async def _store(self, order: FetchOrder, *, body: bytes | None = None, error: str | None = None) -> None:
        delivery = Delivery(reference=order.reference, ok=body is not None, html=body, error=error)
        async with self._pool.connection() as conn, conn.transaction():
            if (reference := parse_reference(order.reference)) is not None:
                await webhook_inbox.put(conn, reference, Identities.name, delivery, self._clock.now())
            await webhook_inbox.drop_fetch(conn, order.id)
        log.info(
            "page fetched",
            action="crawl_fetched",
            reference=order.reference,
            ok=body is not None,
            error=error,
        )
