"""What a server does for search crawls beside answering: it submits pages, and reads those that come."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import timedelta

from menuwatch.archive.pages import PageArchive
from menuwatch.core.clock import Clock
from menuwatch.core.settings import Settings
from menuwatch.crawls import secret
from menuwatch.crawls.base import Provider, Site
from menuwatch.db.pool import Pool
from menuwatch.engine.crawl_pacer import CrawlPacer
from menuwatch.engine.crawl_reader import CrawlReader
from menuwatch.providers.results import Results

WEBHOOK = "/api/crawl/webhook/"
"""The address that providers call, with their secret behind it; below PUBLIC_URL."""


def crawl_loops(
    pool: Pool,
    settings: Settings,
    sites: Mapping[str, Site],
    providers: Mapping[str, Provider],
    at_end: AsyncExitStack,
    *,
    clock: Clock,
) -> tuple[CrawlPacer, CrawlReader]:
    """The two loops; what was read has the first one look at once whether there is more to do."""
    base = (settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/")

    async def postback(provider: str) -> str:
        async with pool.connection() as conn:
            keys = await secret.keys(conn, settings.secret_key)
        return base + WEBHOOK + secret.secret_for(keys[0], provider)

    results = Results(settings.crawl_result_hosts, seconds=settings.fetch_timeout_seconds)
    at_end.push_async_callback(results.close)
    pacer = CrawlPacer(
        pool, providers, postback, deadline=timedelta(minutes=settings.crawl_deadline_minutes), clock=clock
    )
    pages = PageArchive(settings.storage, level=settings.archive_level)
    return pacer, CrawlReader(pool, sites, pages, results.fetch, clock=clock, on_read=pacer.wake)
