"""Submits the pages of search crawls: one at a time per job, 5 to 15 s apart. Nothing else submits.

A turn is one transaction that holds the job: what is overdue has failed, a page is chosen and marked submitted, the time of the next
submission is set. Then, outside of it, the provider is asked, and until it has taken the order nobody submits another, nor for 5 s
after. A process that dies between the two loses one attempt, which its deadline ends; whoever looks at the job next goes on from its
rows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.telemetry import get_logger
from menuwatch.crawls import ending, rules, store
from menuwatch.crawls.base import Order, OrderRefused, Provider
from menuwatch.crawls.model import Item, Job
from menuwatch.crawls.rules import Over, Submit, Wait
from menuwatch.db.pool import Connection, Pool
from menuwatch.engine.loop import Loop

log = get_logger(__name__)

DEADLINE = timedelta(minutes=30)
_ASKING_SECONDS = 60.0
"""Longest wait for a provider to take an order; adapters have limits of their own."""
_ASKING = timedelta(seconds=_ASKING_SECONDS + 5.0)
"""For which nobody else submits for the job, should the process die while it asks."""
_UNREAD = timedelta(minutes=1)
"""By which a deadline is put off while what was brought is still to be read."""
_LOCKED_SECONDS = 0.1
"""After so long a job is looked at again that somebody else has in hand."""
_NO_WEBHOOK = "the page did not come within {minutes:g} minutes"

Postback = Callable[[str], Awaitable[str]]
"""The address that a provider of that name is to call."""


@dataclass(frozen=True, slots=True)
class _Ordered:
    job: Job
    item: Item
    asking_until: datetime


class CrawlPacer(Loop):
    """Any number of them may run: each job is one's at a time. `providers` are those of this process by name; jobs of others are left
    to who has them."""

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
        self._asking: dict[int, asyncio.Task[None]] = {}
        """Orders that are being handed over, by job: the next one waits until the one before was taken."""

    async def step(self) -> float | None:
        # While no job runs this one look is all that it costs.
        while (soon := await self._soon()) is not None and soon <= 0.0 and not self.stopping:
            if not await self._turn():
                return _LOCKED_SECONDS
        return None if soon is None else min(self.interval, max(soon, 0.0))

    async def _soon(self) -> float | None:
        """Seconds until a job is to be looked at, None while there is none."""
        async with self._pool.connection() as conn:
            at = await store.next_due(conn, providers=self._providers, but=self._asking)
        return None if at is None else (at - self._clock.now()).total_seconds()

    async def run(self) -> None:
        """Steps until `stop`; orders that are being handed over are then seen through."""
        try:
            await super().run()
        finally:
            await self.settled()

    async def settled(self) -> None:
        """Waits until every order that was made is taken or refused."""
        while self._asking:
            await asyncio.gather(*self._asking.values(), return_exceptions=True)

    async def _turn(self) -> bool:
        """Looks at one job that is due; returns whether there was one."""
        async with self._pool.connection() as conn, conn.transaction():
            now = self._clock.now()
            job = await store.take_due(conn, now, providers=self._providers, but=self._asking)
            if job is None:
                return False
            ordered = await self._look(conn, job)
        if ordered is not None:
            task = asyncio.create_task(self._order(ordered), name=f"crawl order {ordered.item.reference}")
            self._asking[job.id] = task
            task.add_done_callback(lambda _: self._taken(job.id))
        return True

    def _taken(self, job_id: int) -> None:
        del self._asking[job_id]
        self.wake()

    async def _look(self, conn: Connection, job: Job) -> _Ordered | None:
        now = self._clock.now()
        standing = await store.standing(conn, job, now)
        if standing.deadline_at is not None and standing.deadline_at <= now:
            await store.spare_delivered(conn, job.id, now, now + _UNREAD)
            said = _NO_WEBHOOK.format(minutes=self._deadline / timedelta(minutes=1))
            for item in await store.overdue(conn, job.id, now):
                await ending.fail(conn, item, said, now=now, rng=self._rng)
            standing = await store.standing(conn, job, now)
        match rules.decide(standing, now):
            case Over():
                await store.complete_job(conn, job.id, now)
                log.info("a search crawl is complete", action="crawl_completed", job_id=job.id)
            case Wait(until):
                await store.look_at(conn, job.id, until)
            case Submit(priority):
                item = await store.submit(
                    conn,
                    job.id,
                    priority=priority,
                    skip=self._rng.randrange(standing.ready[priority - 1]),
                    now=now,
                    deadline_at=now + self._deadline,
                    not_before=now + rules.gap(self._rng),
                    asking_until=now + _ASKING,
                    mixing=rules.is_mixing(standing),
                )
                return _Ordered(job, item, now + _ASKING)
        return None

    async def _order(self, one: _Ordered) -> None:
        """Hands an order over. Whatever goes wrong with that ends the attempt at once; what goes wrong here is left to the
        deadline."""
        job, item = one.job, one.item
        told = {"job_id": job.id, "item_id": item.id, "attempt": item.attempt, "provider": job.provider}
        try:
            try:
                request_id = await self._ask(self._providers[job.provider], job, item)
            except OrderRefused as error:
                await self._handed_over(one)
                await self._refused(one, error)
                return
            await self._handed_over(one, request_id)
            log.info("a page was ordered", action="crawl_submitted", url_type=item.url_type, **told)
        except Exception as error:
            log.exception("an order went wrong", action="crawl_order_failed", error=type(error).__name__, **told)

    async def _handed_over(self, one: _Ordered, request_id: str | None = None) -> None:
        """When in all that time the provider got it nobody knows: it may have been this moment."""
        soonest = self._clock.now() + timedelta(seconds=rules.GAP_SECONDS[0])
        async with self._pool.connection() as conn:
            await store.handed_over(conn, one.job.id, asking_until=one.asking_until, not_before=soonest)
            if request_id is not None:
                await store.requested(conn, one.item, request_id[:200])

    async def _ask(self, provider: Provider, job: Job, item: Item) -> str | None:
        try:
            async with asyncio.timeout(_ASKING_SECONDS):
                order = Order(
                    url=item.url,
                    site=job.site,
                    reference=str(item.reference),
                    postback_url=await self._postback(provider.name) if provider.needs_webhook else None,
                    country=job.country,
                )
                return await provider.submit(order)
        except TimeoutError:
            raise OrderRefused(f"{provider.name} did not take the order within {_ASKING_SECONDS:g} s") from None

    async def _refused(self, one: _Ordered, error: OrderRefused) -> None:
        pause = min(timedelta(seconds=max(0.0, error.retry_after or 0.0)), rules.LONGEST_PAUSE)
        async with self._pool.connection() as conn, conn.transaction():
            now = self._clock.now()
            if await store.lock_job(conn, one.job.id) is None:
                return
            item = await store.item(conn, one.item.id)
            if item != one.item:
                return  # cancelled, or its page came although it was refused
            said = f"{one.job.provider} refused: {error}"
            await ending.fail(conn, item, said, now=now, rng=self._rng, final=error.final, at_least=pause)
            if pause:
                await store.hold_off(conn, one.job.id, now + pause)
            await store.look_soon(conn, one.job.id, now)
