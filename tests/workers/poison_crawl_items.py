"""Poisoned items of search crawls: an order, a page to fetch, a page to read."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

from menuwatch.core.clock import ManualClock
from menuwatch.core.http import Response
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.providers.identities import CrawlFetcher
from menuwatch.search_crawl.result_processor import ResultProcessor
from menuwatch.search_crawl.submitter import CrawlSubmitter
from tests.search_crawl.world import Catalogue, Manners, Service, Shop
from tests.workers.poison_context import NOW, Found, World


async def _job(world: World, keyword: str = "a", *, provider: str = "service", items: int = 0) -> tuple[int, list[int]]:
    """A search crawl with so many pages that were ordered; returns its number and theirs."""
    ((job,),) = await world.rows(
        "INSERT INTO crawl_jobs (site, provider, keywords, max_pages, next_submit_after, next_submission_at, created_at)"
        " VALUES ('shop', %s, %s, 3, %s, %s, %s) RETURNING id",
        *(provider, [keyword], NOW, NOW, NOW),
    )
    made = []
    for n in range(items):
        ((item,),) = await world.rows(
            "INSERT INTO crawl_queue (job_id, url, url_type, keyword, priority, status, attempt, next_attempt_at, created_at,"
            " submitted_at, deadline_at) VALUES (%s, %s, 'product', 'a', 2, 'submitted', 1, %s, %s, %s, %s) RETURNING id",
            *(job, f"https://shop.test/product/{n + 1}", NOW, NOW, NOW, NOW + timedelta(minutes=30)),
        )
        await world.rows("INSERT INTO crawl_attempts VALUES (%s, 1, %s, %s)", item, job, NOW)
        made.append(item)
    return job, made


SHOP = Shop(Catalogue(("a",), pages=1, per_page=6))


async def fetches(world: World) -> Found:
    class Session:
        async def request(self, method: str, url: str, **_: Any) -> Response:
            if url.endswith("/1"):
                raise ZeroDivisionError("http://me:password@proxy.test")
            return Response(status=200, headers={}, body=SHOP.body(url), url=url, elapsed_ms=1.0)

    @asynccontextmanager
    async def session(**_: Any) -> Any:
        yield Session()

    job, items = await _job(world, provider="identities", items=3)
    for n, item in enumerate(items):
        reference, url = f"crawl-{job}-product-{item}-1", f"https://shop.test/product/{n + 1}"
        await world.rows(
            "INSERT INTO crawl_fetches (item_id, attempt, reference, url, visible_at) VALUES (%s, 1, %s, %s, %s)",
            *(item, reference, url, NOW),
        )
    ((poisoned,),) = await world.rows("SELECT min(id) FROM crawl_fetches")
    loop = CrawlFetcher(world.pool, {"shop": SHOP}, session, clock=ManualClock(NOW))
    await loop.step()
    brought = await world.rows("SELECT item_id, ok, error FROM crawl_deliveries ORDER BY item_id")
    assert brought == [
        (items[0], False, "fetching it failed: ZeroDivisionError"),
        *((n, True, None) for n in items[1:]),
    ]
    assert await world.rows("SELECT FROM crawl_fetches") == []
    return [("crawl_fetch", poisoned)]


async def orders_of_pages(world: World) -> Found:
    async def postback(_: str) -> str:
        return "https://menuwatch.test/hook"

    clock = ManualClock(NOW)
    jobs = [(await _job(world, keyword))[0] for keyword in "ab"]
    for job in jobs:
        await world.rows(
            "INSERT INTO crawl_queue (job_id, url, url_type, keyword, priority, next_attempt_at, created_at)"
            " VALUES (%s, 'https://shop.test/search/a', 'search', 'a', 1, %s, %s)",
            *(job, NOW, NOW),
        )
    await world.refuse("crawl_queue", "UPDATE", f"NEW.job_id = {jobs[0]} AND NEW.status = 'submitted'")
    service = Service(clock, SHOP, Random(1), Manners(lost=1.0))
    pacer = CrawlSubmitter(world.pool, {"service": service}, postback, clock=clock)
    for _ in range(3):
        await pacer.step()
        await pacer.settled()
    assert [order.reference.split("-")[1] for _, order in service.asked] == [str(jobs[1])]
    ((wait,),) = await world.rows("SELECT next_submission_at - %s FROM crawl_jobs WHERE id = %s", NOW, jobs[0])
    assert wait >= timedelta(seconds=30)
    return [("crawl_job", jobs[0])]


async def pages(world: World) -> Found:
    async def fetch(url: str) -> bytes:
        raise AssertionError(url)

    _, items = await _job(world, items=3)
    for n, item in enumerate(items):
        await world.rows(
            "INSERT INTO crawl_deliveries (item_id, attempt, received_at, visible_at, ok, html) VALUES (%s, 1, %s, %s, true, %s)",
            *(item, NOW, NOW, SHOP.body(f"https://shop.test/product/{n + 1}")),
        )
    ((poisoned,),) = await world.rows("SELECT min(id) FROM crawl_deliveries")
    await world.refuse("crawl_queue", "UPDATE", f"NEW.id = {items[0]} AND NEW.status = 'completed'")
    reader = ResultProcessor(world.pool, {"shop": SHOP}, PageArchive(world.folder), fetch, clock=ManualClock(NOW))
    await reader.step()
    read = await world.rows("SELECT status, retry_count, error_message FROM crawl_queue ORDER BY id")
    assert read[0] == (
        "pending",
        1,
        "reading it failed: RaiseException: poisoned CONTEXT: PL/pgSQL function refuse() line 1 at RAISE",
    )
    assert [one[0] for one in read[1:]] == ["completed"] * 2
    assert await world.rows("SELECT FROM crawl_deliveries") == []
    return [("crawl_delivery", poisoned)]
