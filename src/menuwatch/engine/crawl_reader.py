"""Reads what providers brought to search crawls: fetches it where it lies elsewhere, keeps it, reads it, and completes the page or
ends the attempt, in one transaction with all that follows from it.

A delivery may come twice, late, or out of order. A page that has come stays as it is, whatever comes later; a good delivery is taken
whichever attempt it is of; a bad one counts for the attempt that is under way, and for no other.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar
from urllib.parse import urlsplit

import psycopg

from menuwatch.archive.pages import PageArchive
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Transient
from menuwatch.core.telemetry import get_logger
from menuwatch.crawls import deliveries, ending, products, store
from menuwatch.crawls.base import BlockPage, Found, Page, Site, Unreadable, UrlType
from menuwatch.crawls.model import Brought, Item, ItemStatus, Job, JobStatus
from menuwatch.db.pool import Connection, Pool
from menuwatch.engine.loop import Loop
from menuwatch.providers.packing import Unpackable, unpacked
from menuwatch.providers.results import MOST_BYTES, NotFetched

log = get_logger(__name__)

MOST_FOUND = 1000
"""Addresses of one page that are followed; a page of results has about 60."""
LONGEST_URL = 2000
_HOLD = timedelta(minutes=3)
"""For which a delivery is one reader's: longer than fetching and reading it can take."""
_TRIES = 3
"""Times that a result is fetched before its attempt counts as failed: it lies there for a while."""
_MOST_TRIES = 30
"""Times that a delivery is taken at all: one that ends the process that reads it may not do so for ever."""
_AGAIN = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class _Read:
    """What became of a delivery: a page, or why there is none; and where its body lies."""

    page: Page | None
    error: str | None
    path: str | None = None


class CrawlReader(Loop):
    """Any number of them may run: each delivery is one's at a time."""

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
        """`fetch` brings a result from where it lies, unpacked, or raises NotFetched; `on_read` is called after each delivery."""
        super().__init__(interval=interval)
        self._pool = pool
        self._sites = sites
        self._archive = archive
        self._fetch = fetch
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._on_read = on_read

    async def step(self) -> float | None:
        # Where nothing was brought this one look is all that it costs.
        while not self.stopping:
            now = self._clock.now()
            async with self._pool.connection() as conn:
                one = await deliveries.take(conn, now, now + _HOLD)
            if one is None:
                break
            await self._read(one)
            self._on_read()
        return None

    async def _read(self, one: Brought) -> None:
        try:
            read = await self._look(one)
        except NotFetched as error:
            if not error.final and one.tries < _TRIES:
                await self._put_off(one, str(error))
                return
            read = _Read(None, str(error))
        except Transient as error:  # the disk is full, say: that is nobody's attempt
            await self._put_off(one, str(error))
            return
        try:
            await self._write(one, read)
        except (
            psycopg.DataError,
            ValueError,
        ) as error:  # a number out of range, a text that is none: the site's, not ours
            log.warning("a page cannot be kept", action="crawl_page_broke", **_ids(one), error=str(error)[:200])
            await self._write(one, _Read(None, "the page holds a value that cannot be kept", read.path))

    async def _write(self, one: Brought, read: _Read) -> None:
        # In one go: what is written last goes out with the end of the transaction.
        async with self._pool.connection() as conn, conn.pipeline(), conn.transaction():
            job = await store.lock_job(conn, one.job_id)
            item = await store.item(conn, one.item_id)
            await deliveries.drop(conn, one.id)
            if job is None or item is None:
                return
            await self._settle(conn, job, item, one, read)

    async def _put_off(self, one: Brought, reason: str) -> None:
        async with self._pool.connection() as conn:
            await deliveries.put_off(conn, one.id, self._clock.now() + _AGAIN)
        log.warning("a delivery is read later", action="crawl_delivery_put_off", **_ids(one), reason=reason)

    async def _look(self, one: Brought) -> _Read:
        """Reads a delivery. Raises NotFetched and Transient."""
        if one.tries > _MOST_TRIES:
            return _Read(None, f"whoever read the page came to grief, {_MOST_TRIES} times")
        if not one.ok:
            return _Read(None, one.error or "the provider could not fetch it, and said no more")
        site = self._sites.get(one.site)
        if site is None:
            return _Read(None, f"nobody here reads pages of {one.site}")
        if one.html is not None:
            try:
                body = await asyncio.to_thread(unpacked, one.html, MOST_BYTES)
            except Unpackable as error:
                return _Read(None, f"the page cannot be read: {error}")
        elif one.html_url is not None:
            body = await self._fetch(one.html_url)
        else:
            return _Read(None, "the provider brought no page")
        path = await asyncio.to_thread(self._archive.put, one.job_id, one.item_id, one.attempt, body)
        try:
            page = await asyncio.to_thread(site.read, one.url_type, one.url, body)
        except BlockPage as error:
            return _Read(None, f"the site refused: {error}", path)
        except Unreadable as error:
            return _Read(None, f"the page cannot be read: {error}", path)
        except Exception as error:  # no page may keep others from being read
            log.exception("a page broke its reader", action="crawl_page_broke", **_ids(one), path=path)
            return _Read(None, f"the page cannot be read: {type(error).__name__}", path)
        return _Read(page, None, path)

    async def _settle(self, conn: Connection, job: Job, item: Item, one: Brought, read: _Read) -> None:
        """Writes down what came of it. The caller holds the job."""
        now = self._clock.now()
        if job.status is not JobStatus.RUNNING or item.status is ItemStatus.COMPLETED:
            log.info("a delivery was not needed", action="crawl_delivery_ignored", **_ids(one), job_status=job.status)
            return
        if read.page is None:
            assert read.error is not None, "there is a page or an error"
            if item.status is not ItemStatus.SUBMITTED or item.attempt != one.attempt:
                log.info("a bad delivery came late", action="crawl_delivery_ignored", **_ids(one), error=read.error)
                return
            await ending.fail(conn, item, read.error, now=now, rng=self._rng, path=read.path)
        else:
            found = 0
            if follow := followed(self._sites[job.site], job, item, read.page):
                found = await store.add_found(conn, item, follow, now)
            if read.page.product is not None:
                await products.put(conn, item, job.site, read.page.product, now)
            await store.complete_item(
                conn, item.id, one.attempt, found=found, removed=read.page.removed, now=now, path=read.path
            )
            log.info("a page was read", action="crawl_page_read", **_ids(one), url_type=item.url_type, found=found)
        await store.look_soon(conn, job.id, now)


def followed(site: Site, job: Job, item: Item, page: Page) -> list[Found]:
    """The addresses of a page that the job goes on to: pages of results up to its limit, products, each once, all of the site's
    own."""
    kept: dict[str, Found] = {}
    for one in page.found[:MOST_FOUND]:
        if one.url_type is UrlType.PAGINATION and (one.page is None or not 1 < one.page <= job.max_pages):
            continue
        if one.url_type is UrlType.SEARCH or one.url in kept or one.url == item.url:
            continue
        if not one.url.isascii() or not one.url.isprintable() or len(one.url) > LONGEST_URL:
            continue
        parts = urlsplit(one.url)
        if parts.scheme in ("http", "https") and parts.netloc.lower() in site.hosts:
            kept[one.url] = one
    return list(kept.values())


def _ids(one: Brought) -> dict[str, int]:
    return {"job_id": one.job_id, "item_id": one.item_id, "attempt": one.attempt, "delivery_id": one.id}
