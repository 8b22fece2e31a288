"""Sites, providers and background loops of search crawls, built from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import timedelta

from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock
from menuwatch.db.pool import Pool
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.protocols import Provider, Site
from menuwatch.search_crawl.providers.identities import Identities
from menuwatch.search_crawl.providers.results import Results
from menuwatch.search_crawl.providers.serpwatch import SerpWatch
from menuwatch.search_crawl.result_processor import ResultProcessor
from menuwatch.search_crawl.rules import Pacing
from menuwatch.search_crawl.sites.cj import CJDropshipping
from menuwatch.search_crawl.submitter import CrawlSubmitter
from menuwatch.search_crawl.webhook import secret_for, secret_keys
from menuwatch.storage.service import open_storage

WEBHOOK = "/api/crawl/webhook/"
"""The address that providers call, with their secret behind it; below PUBLIC_URL."""


def build_sites(settings: Settings) -> dict[str, Site]:
    """Shops that can be searched, by name; the first is the default."""
    cj = CJDropshipping(settings.cj_base_url)
    return {cj.name: cj}


def default_pacing(settings: Settings) -> Pacing:
    """Pacing of crawls that are started without their own."""
    return Pacing(
        gap_min_seconds=settings.crawl_gap_min_seconds,
        gap_max_seconds=settings.crawl_gap_max_seconds,
        mixing_threshold=settings.crawl_mixing_threshold,
        max_retries=settings.crawl_max_retries,
        retry_base_minutes=settings.crawl_retry_base_minutes,
    )


def build_providers(settings: Settings, pool: Pool, clock: Clock, at_end: AsyncExitStack) -> dict[str, Provider]:
    """Services that fetch pages, by name; the first is the default. Our own workers come last. Raises Refused for an invalid token."""
    providers: dict[str, Provider] = {}
    if settings.serpwatch_token:
        serpwatch = SerpWatch(settings.serpwatch_token, address=settings.serpwatch_url, clock=clock)
        at_end.push_async_callback(serpwatch.close)
        providers[serpwatch.name] = serpwatch
    own = Identities(pool, clock=clock)
    providers[own.name] = own
    return providers


def build_loops(
    pool: Pool,
    settings: Settings,
    sites: Mapping[str, Site],
    providers: Mapping[str, Provider],
    at_end: AsyncExitStack,
    *,
    clock: Clock,
) -> tuple[CrawlSubmitter, ResultProcessor]:
    """The loops of a server: one submits pages, one processes results and wakes the first after each."""
    base = (settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/")

    async def postback(provider: str) -> str:
        async with pool.connection() as conn:
            keys = await secret_keys(conn, settings.secret_key)
        return base + WEBHOOK + secret_for(keys[0], provider)

    results = Results(settings.crawl_result_hosts, seconds=settings.fetch_timeout_seconds)
    at_end.push_async_callback(results.close)
    pacer = CrawlSubmitter(
        pool, providers, postback, deadline=timedelta(minutes=settings.crawl_deadline_minutes), clock=clock
    )
    pages = PageArchive(open_storage(settings), level=settings.archive_level)
    return pacer, ResultProcessor(pool, sites, pages, results.fetch, clock=clock, on_read=pacer.wake)
