"""Processes deliveries of search crawls: downloads the page if necessary, archives and parses it, and completes the page or ends the
attempt, in one transaction with all consequences.

A delivery may come twice, late, or out of order. A completed page stays as it is; a valid delivery is accepted for any attempt; an
invalid one counts for the current attempt only.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import ClassVar
from urllib.parse import urlsplit

import psycopg
from msgspec import Struct

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Transient
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool
from menuwatch.search_crawl import store, webhook_inbox
from menuwatch.search_crawl.model import Item, ItemStatus, Job, JobStatus, PendingDelivery
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.protocols import BlockPage, Found, Page, Site, Unreadable, UrlType
from menuwatch.search_crawl.providers.packing import Unpackable, unpacked
from menuwatch.search_crawl.providers.results import MOST_BYTES, NotFetched

log = get_logger(__name__)

MOST_FOUND = 1000
"""URLs of one page that are followed; a page of results has about 60."""
LONGEST_URL = 2000
_HOLD = timedelta(minutes=3)
"""Duration of a claim: longer than downloading and parsing can take."""
_TRIES = 3
"""Downloads of a result before its attempt counts as failed: it stays available for a while."""
_MOST_TRIES = 30
"""Claims of one delivery, in case processing it ends the process."""
_AGAIN = timedelta(seconds=20)


class _Read(Struct, frozen=True):
    """Result of reading a delivery: a page, or the error; and the path of its archived body."""

    page: Page | None
    error: str | None
    path: str | None = None


class ResultProcessor(Loop):
    """Any number may run: each delivery is claimed by one at a time."""

    name: ClassVar[str] = "crawl_reader"

    def __init__(
        self,
        pool: Pool,
        sites: Mapping[str, Site],
        archive: PageArchive,
        fetch: Callable[[str], Awaitable[bytes]],
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        on_read: Callable[[], None] = lambda: None,
        interval: float = 1.0,
    ) -> None:
        """`fetch` downloads and unpacks a result, or raises NotFetched; `on_read` is called after each delivery."""
        super().__init__(interval=interval)
        self._pool = pool
        self._sites = sites
        self._archive = archive
        self._fetch = fetch
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._on_read = on_read

    async def step(self) -> float | None:
        # Without deliveries this is the only query.
        while not self.stopping:
            now = self._clock.now()
            async with self._pool.connection() as conn:
                delivery = await webhook_inbox.take(conn, now, now + _HOLD)
            if delivery is None:
                break
            await self.attend("crawl_delivery", delivery.id, self._read(delivery), partial(self._failed, delivery))
            self._on_read()
        return None

    async def _failed(self, delivery: PendingDelivery, reason: str) -> None:
        await self._write(delivery, _Read(None, f"reading it failed: {reason}"))

    async def _read(self, delivery: PendingDelivery) -> None:
        try:
            read = await self._parse(delivery)
        except NotFetched as error:
            if not error.final and delivery.tries < _TRIES:
                await self._postpone(delivery, str(error))
                return
            read = _Read(None, str(error))
        except Transient as error:  # a full disk, for example: does not count as an attempt
            await self._postpone(delivery, str(error))
            return
        try:
            await self._write(delivery, read)
        except (psycopg.DataError, ValueError) as error:  # a number out of range or an invalid text: the site's fault
            log.warning("page cannot be stored", action="crawl_page_failed", **_ids(delivery), error=str(error)[:200])
            await self._write(delivery, _Read(None, "the page holds a value that cannot be kept", read.path))

    async def _write(self, delivery: PendingDelivery, read: _Read) -> None:
        # Pipelined: the last statement is sent together with the commit.
        async with self._pool.connection() as conn, conn.pipeline(), conn.transaction():
            job = await store.lock_job(conn, delivery.job_id)
            item = await store.item(conn, delivery.item_id)
            await webhook_inbox.drop(conn, delivery.id)
            if job is None or item is None:  # deleted by retention in the meantime
                if read.path is not None:
                    await asyncio.to_thread(self._archive.remove, read.path)
                return
            await self._settle(conn, job, item, delivery, read)

    async def _postpone(self, delivery: PendingDelivery, reason: str) -> None:
        async with self._pool.connection() as conn:
            await webhook_inbox.postpone(conn, delivery.id, self._clock.now() + _AGAIN)
        log.warning("delivery postponed", action="crawl_delivery_postponed", **_ids(delivery), reason=reason)

    async def _parse(self, delivery: PendingDelivery) -> _Read:
        """Reads a delivery. Raises NotFetched and Transient."""
        if delivery.tries > _MOST_TRIES:
            return _Read(None, f"reading the page crashed {_MOST_TRIES} times")
        if not delivery.ok:
            return _Read(None, delivery.error or "the provider could not fetch it (no reason given)")
        site = self._sites.get(delivery.site)
        if site is None:
            return _Read(None, f"no parser for pages of {delivery.site}")
        if delivery.html is not None:
            try:
                body = await asyncio.to_thread(unpacked, delivery.html, MOST_BYTES)
            except Unpackable as error:
                return _Read(None, f"the page cannot be read: {error}")
        elif delivery.html_url is not None:
            body = await self._fetch(delivery.html_url)
        else:
            return _Read(None, "the provider delivered no page")
        path = await asyncio.to_thread(self._archive.put, delivery.job_id, delivery.item_id, delivery.attempt, body)
        try:
            page = await asyncio.to_thread(site.read, delivery.url_type, delivery.url, body)
        except BlockPage as error:
            return _Read(None, f"the site refused: {error}", path)
        except Unreadable as error:
            return _Read(None, f"the page cannot be read: {error}", path)
        except Exception as error:  # one page must not stop the others
            log.exception("page parser failed", action="crawl_page_failed", **_ids(delivery), path=path)
            return _Read(None, f"the page cannot be read: {type(error).__name__}", path)
        return _Read(page, None, path)

    async def _settle(self, conn: Connection, job: Job, item: Item, delivery: PendingDelivery, read: _Read) -> None:
        """Records the result. The caller holds the job."""
        now = self._clock.now()
        if job.status is not JobStatus.RUNNING or item.status is ItemStatus.COMPLETED:
            log.info("delivery not needed", action="crawl_delivery_ignored", **_ids(delivery), job_status=job.status)
            return
        if read.page is None:
            assert read.error is not None, "there is a page or an error"
            if item.status is not ItemStatus.SUBMITTED or item.attempt != delivery.attempt:
                log.info(
                    "late invalid delivery ignored", action="crawl_delivery_ignored", **_ids(delivery), error=read.error
                )
                return
            await store.fail_attempt(conn, item, read.error, pacing=job.pacing, now=now, rng=self._rng, path=read.path)
        else:
            found = 0
            if follow := followed(self._sites[job.site], job, item, read.page):
                found = await store.add_found(conn, item, follow, now)
            if read.page.product is not None:
                await store.put_product(conn, item, job.site, read.page.product, now)
            await store.complete_item(
                conn, item.id, delivery.attempt, found=found, removed=read.page.removed, now=now, path=read.path
            )
            log.info("page processed", action="crawl_page_read", **_ids(delivery), url_type=item.url_type, found=found)
        await store.schedule_now(conn, job.id, now)


def followed(site: Site, job: Job, item: Item, page: Page) -> list[Found]:
    """The links of a page that the job follows: pages of results up to its limit and products, each once, on the site's own hosts."""
    links: dict[str, Found] = {}
    for link in page.found[:MOST_FOUND]:
        if link.url_type is UrlType.PAGINATION and (link.page is None or not 1 < link.page <= job.max_pages):
            continue
        if link.url_type is UrlType.SEARCH or link.url in links or link.url == item.url:
            continue
        if not link.url.isascii() or not link.url.isprintable() or len(link.url) > LONGEST_URL:
            continue
        try:
            parts = urlsplit(link.url)
        except ValueError:
            continue
        if parts.scheme in ("http", "https") and parts.netloc.lower() in site.hosts:
            links[link.url] = link
    return list(links.values())


def _ids(delivery: PendingDelivery) -> dict[str, int]:
    return {
        "job_id": delivery.job_id,
        "item_id": delivery.item_id,
        "attempt": delivery.attempt,
        "delivery_id": delivery.id,
    }
