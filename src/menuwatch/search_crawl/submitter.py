"""Submits the pages of search crawls: one at a time per job, as far apart as the job says. Nothing else submits.

A turn is one transaction that holds the job: overdue attempts fail, a page is chosen and marked submitted, and the time of the next
submission is set. Then, outside of the transaction, the provider is called; until it has accepted the order, and for the shortest
gap after, no other process submits for the job. A process that dies in between loses one attempt, which ends at its deadline; the next
turn continues from the rows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar

from msgspec import Struct

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.logging import get_logger
from menuwatch.db.items import Aside, described, is_outage
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool
from menuwatch.search_crawl import rules, store
from menuwatch.search_crawl.model import Item, Job
from menuwatch.search_crawl.protocols import Order, OrderRefused, Provider
from menuwatch.search_crawl.rules import Over, Submit, Wait

log = get_logger(__name__)

DEADLINE = timedelta(minutes=30)
_SUBMIT_SECONDS = 60.0
"""Longest wait for a provider to take an order; adapters have limits of their own."""
_SUBMIT_LOCK = timedelta(seconds=_SUBMIT_SECONDS + 5.0)
"""How long other processes submit nothing for the job if this one dies during the call."""
_UNREAD = timedelta(minutes=1)
"""Extension of a deadline while a delivered result is still unread."""
_LOCKED_SECONDS = 0.1
"""Delay before checking a job again that another process has locked."""
_NO_WEBHOOK = "the page did not come within {minutes:g} minutes"

Postback = Callable[[str], Awaitable[str]]
"""Webhook URL for the provider of that name."""


class _Ordered(Struct, frozen=True):
    job: Job
    item: Item
    submitting_until: datetime


class CrawlSubmitter(Loop):
    """Submits due pages. Any number may run: each job is locked by one at a time. `providers` are those of this process by name;
    jobs of other providers are left to other processes."""

    name: ClassVar[str] = "crawl_pacer"

    def __init__(
        self,
        pool: Pool,
        providers: Mapping[str, Provider],
        postback: Postback,
        *,
        deadline: timedelta = DEADLINE,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        interval: float = 1.0,
    ) -> None:
        """`deadline`: how long a page may take to come before its attempt counts as failed."""
        super().__init__(interval=interval)
        self._pool = pool
        self._providers = providers
        self._postback = postback
        self._deadline = deadline
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - chance and jitter, no secret
        self._submitting: dict[int, asyncio.Task[None]] = {}
        """Orders being submitted, by job: the next one waits until the previous one was accepted."""
        self._aside = Aside()

    async def step(self) -> float | None:
        # While no job runs this is the only query.
        while (soon := await self._soon()) is not None and soon <= 0.0 and not self.stopping:
            if not await self._turn():
                return _LOCKED_SECONDS
        return None if soon is None else min(self.interval, max(soon, 0.0))

    async def _soon(self) -> float | None:
        """Seconds until the next job is due, None while there is none."""
        async with self._pool.connection() as conn:
            at = await store.next_due(conn, providers=self._providers, exclude=self._submitting)
        return None if at is None else (at - self._clock.now()).total_seconds()

    async def run(self) -> None:
        """Steps until `stop`; orders being submitted are then completed."""
        try:
            await super().run()
        finally:
            await self.settled()

    async def settled(self) -> None:
        """Waits until every order is accepted or refused."""
        while self._submitting:
            await asyncio.gather(*self._submitting.values(), return_exceptions=True)

    async def _turn(self) -> bool:
        """Handles one due job; returns whether there was one."""
        async with self._pool.connection() as conn, conn.transaction():
            now = self._clock.now()
            job = await store.take_due(conn, now, providers=self._providers, exclude=self._submitting)
            if job is None:
                return False
            ordered: list[_Ordered] = []
            if await self.attend(
                "crawl_job", job.id, self._turn_of(conn, job, ordered), partial(self._failed, conn, job)
            ):
                self._aside.clear(job.id)
        for order in ordered:
            task = asyncio.create_task(self._order(order), name=f"crawl order {order.item.reference}")
            self._submitting[job.id] = task
            task.add_done_callback(lambda _: self._order_ended(job.id))
        return True

    async def _turn_of(self, conn: Connection, job: Job, ordered: list[_Ordered]) -> None:
        async with conn.transaction():
            order = await self._choose_page(conn, job)
        if order is not None:
            ordered.append(order)

    async def _failed(self, conn: Connection, job: Job, reason: str) -> None:
        """Schedules the job after an error, with a growing delay."""
        await store.schedule_at(conn, job.id, self._clock.now() + timedelta(seconds=self._aside.put(job.id)))

    def _order_ended(self, job_id: int) -> None:
        del self._submitting[job_id]
        self.wake()

    async def _choose_page(self, conn: Connection, job: Job) -> _Ordered | None:
        now = self._clock.now()
        standing = await store.standing(conn, job, now)
        if standing.deadline_at is not None and standing.deadline_at <= now:
            await store.extend_deadlines(conn, job.id, now, now + _UNREAD)
            message = _NO_WEBHOOK.format(minutes=self._deadline / timedelta(minutes=1))
            for item in await store.overdue(conn, job.id, now):
                await store.fail_attempt(conn, item, message, pacing=job.pacing, now=now, rng=self._rng)
            standing = await store.standing(conn, job, now)
        match rules.decide(standing, now):
            case Over():
                figures = await store.complete_job(conn, job.id, now)
                log.info("search crawl completed", action="crawl_completed", job_id=job.id, **figures)
            case Wait(until):
                await store.schedule_at(conn, job.id, until)
            case Submit(priority):
                item = await store.submit(
                    conn,
                    job.id,
                    priority=priority,
                    skip=self._rng.randrange(standing.ready[priority - 1]),
                    now=now,
                    deadline_at=now + self._deadline,
                    next_submit_after=now + rules.gap(job.pacing, self._rng),
                    submitting_until=now + _SUBMIT_LOCK,
                    mixing=rules.is_mixing(standing),
                )
                return _Ordered(job, item, now + _SUBMIT_LOCK)
        return None

    async def _order(self, ordered: _Ordered) -> None:
        """Submits an order. A failure of the provider ends the attempt at once; after a failure here it ends at its deadline."""
        job, item = ordered.job, ordered.item
        ids = {"job_id": job.id, "item_id": item.id, "attempt": item.attempt, "provider": job.provider}
        try:
            try:
                request_id = await self._submit(self._providers[job.provider], job, item)
            except OrderRefused as error:
                await self._handed_over(ordered)
                await self._refused(ordered, error)
                return
            await self._handed_over(ordered, request_id)
            log.info("page ordered", action="crawl_submitted", url_type=item.url_type, **ids)
        except Exception as error:
            log.exception("page order failed", action="crawl_order_failed", error=type(error).__name__, **ids)

    async def _handed_over(self, ordered: _Ordered, request_id: str | None = None) -> None:
        """When the provider received the order is unknown: it may have been just now, so the gap starts now."""
        soonest = self._clock.now() + timedelta(seconds=ordered.job.pacing.gap_min_seconds)
        async with self._pool.connection() as conn:
            await store.handed_over(
                conn, ordered.job.id, submitting_until=ordered.submitting_until, next_submit_after=soonest
            )
            if request_id is not None:
                await store.requested(conn, ordered.item, request_id[:200])

    async def _submit(self, provider: Provider, job: Job, item: Item) -> str | None:
        try:
            async with asyncio.timeout(_SUBMIT_SECONDS):
                order = Order(
                    url=item.url,
                    site=job.site,
                    reference=str(item.reference),
                    postback_url=await self._postback(provider.name) if provider.needs_webhook else None,
                    country=job.country,
                )
                return await provider.submit(order)
        except TimeoutError:
            raise OrderRefused(f"{provider.name} did not accept the order within {_SUBMIT_SECONDS:g} s") from None
        except OrderRefused:
            raise
        except Exception as error:
            if is_outage(error):
                raise
            # Its text may hold the provider's address and token.
            raise OrderRefused(f"the order could not be placed: {described(error, private=True)}") from error

    async def _refused(self, ordered: _Ordered, error: OrderRefused) -> None:
        pause = min(timedelta(seconds=max(0.0, error.retry_after or 0.0)), rules.LONGEST_PAUSE)
        async with self._pool.connection() as conn, conn.transaction():
            now = self._clock.now()
            if await store.lock_job(conn, ordered.job.id) is None:
                return
            item = await store.item(conn, ordered.item.id)
            if item != ordered.item:
                return  # cancelled, or its page came although it was refused
            message = f"{ordered.job.provider} refused: {error}"
            await store.fail_attempt(
                conn,
                item,
                message,
                pacing=ordered.job.pacing,
                now=now,
                rng=self._rng,
                final=error.final,
                at_least=pause,
            )
            if pause:
                await store.delay_job(conn, ordered.job.id, now + pause)
            await store.schedule_now(conn, ordered.job.id, now)
