"""All of it together, over real sockets: a shop, a service that fetches and calls, the API that is called, the loops. And the same
without a service, through a proxy, by our own workers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn

from menuwatch.api.app import System, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import NotNow
from menuwatch.core.http import Response
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.engine.crawl_fetches import CrawlFetches
from menuwatch.engine.crawl_loops import crawl_loops
from menuwatch.fetch.rotator import Rotator
from menuwatch.operations import crawl_views, crawls
from menuwatch.providers.registry import providers
from menuwatch.proxies import store as proxies
from menuwatch.proxies.model import NewProxy
from menuwatch.sim.fetching_service import FetchingService, Manners
from menuwatch.sim.proxies import start_proxies
from menuwatch.sim.shop import Refusals, Shop
from menuwatch.sim.shop_goods import Catalogue
from menuwatch.sites.registry import sites


def clock_ahead() -> ManualClock:
    """Ahead of the machine's, by which the API notes when something came."""
    return ManualClock(datetime.now(UTC) + timedelta(hours=1))


@asynccontextmanager
async def serving(system: System, listener: socket.socket) -> AsyncIterator[None]:
    server = uvicorn.Server(uvicorn.Config(create_app(system), log_level="warning", lifespan="off"))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


async def next_event(pool: Pool) -> datetime | None:
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT least((SELECT min(next_submission_at) FROM crawl_jobs WHERE status = 'running'),"
            " (SELECT min(take_at) FROM crawl_deliveries), (SELECT min(take_at) FROM crawl_fetches))"
        )
        row = await cursor.fetchone()
    found: datetime | None = row[0] if row else None
    return found


async def test_through_a_service(pool: Pool, tmp_path: Path) -> None:
    clock = clock_ahead()
    shop = Shop(Catalogue(("led lamp",), products=24, removed=0.1), refusals=Refusals(rate=0.05, picky=True), seed=3)
    service = FetchingService("s3cr3t", manners=Manners(lose=0.1, double=0.2, fail=0.05, garble=0.1), seed=3, held=True)
    listener = socket.create_server(("127.0.0.1", 0))
    async with AsyncExitStack() as stack:
        for one in (shop, service):
            await one.start()
            stack.push_async_callback(one.close)
        settings = Settings(
            home=tmp_path,
            port=listener.getsockname()[1],
            cj_base_url=shop.url,
            serpwatch_url=service.url,
            serpwatch_token="s3cr3t",
            crawl_result_hosts=(service.url.removeprefix("http://"),),
        )
        places, by = sites(settings), providers(settings, pool, clock, stack)
        assert list(by) == ["serpwatch", "identities"]
        archive = FileArchive(tmp_path / "storage")
        system = System(pool=pool, archive=archive, platforms={}, settings=settings, sites=places, providers=by)
        await stack.enter_async_context(serving(system, listener))
        pacer, reader = crawl_loops(pool, settings, places, by, stack, clock=clock)
        async with pool.connection() as conn, conn.transaction():
            job = await crawls.start(conn, keywords=["LED lamp"], sites=places, providers=by, now=clock.now())
        while (at := await next_event(pool)) is not None:
            clock.advance(max(at - clock.now(), timedelta(0)))
            await pacer.step()
            await pacer.settled()
            await service.release(shuffled=True)
            await reader.step()
        async with pool.connection() as conn:
            figures = await crawl_views.figures(conn, job.id)
            found = await crawl_views.products(conn, job.id, limit=200)
            items = await crawl_views.items(conn, job.id, crawl_views.ItemFilter(), limit=200)
    assert (figures["status"], figures["pages"]) == ("completed", 25)
    assert set(service.answers) <= {"200"}, service.answers
    assert service.stats.lost > 0
    assert service.stats.doubled > 0
    complete = {
        item["url"].rpartition("-p-")[2].removesuffix(".html") for item in items if item["status"] == "completed"
    }
    there = {good.id: good for good in shop.wanted("led lamp").values()}
    expected = {number for number, good in there.items() if number in complete and not good.removed}
    assert {one["site_product_id"] for one in found} == expected
    assert len(expected) > 15
    assert figures["failed"] == sum(item["retry_count"] == 3 and item["status"] == "failed" for item in items)
    for one in found:
        good = there[one["site_product_id"]]
        assert (one["price_min"], one["price_max"]) == (good.price_min, good.price_max)


async def test_by_our_own_workers(pool: Pool, tmp_path: Path) -> None:
    """Without any service: an order is a row, a worker fetches the page through a proxy, and brings it."""
    clock = clock_ahead()
    shop = Shop(Catalogue(("led lamp",), products=5, removed=0.0), refusals=Refusals(picky=True))
    async with AsyncExitStack() as stack:
        await shop.start()
        stack.push_async_callback(shop.close)
        farm = await start_proxies(2, seed=7)
        stack.push_async_callback(farm.close)
        settings = Settings(home=tmp_path, cj_base_url=shop.url, host_rate=1000.0, host_burst=100)
        places, by = sites(settings), providers(settings, pool, clock, stack)
        async with pool.connection() as conn:
            for one in farm.infos:
                new = NewProxy(
                    protocol=one.protocol, host=one.host, port=one.port, username=one.username, password=one.password
                )
                await proxies.add(conn, new)
        rotator = Rotator(pool, settings)
        stack.push_async_callback(rotator.close)
        pacer, reader = crawl_loops(pool, settings, places, by, stack, clock=clock)
        fetches = CrawlFetches(pool, places, rotator.open, clock=clock)
        async with pool.connection() as conn, conn.transaction():
            job = await crawls.start(conn, keywords=["led lamp"], sites=places, providers=by, now=clock.now())
        while (at := await next_event(pool)) is not None:
            clock.advance(max(at - clock.now(), timedelta(0)))
            await pacer.step()
            await pacer.settled()
            await fetches.step()
            await reader.step()
        async with pool.connection() as conn:
            figures = await crawl_views.figures(conn, job.id)
    assert (figures["provider"], figures["status"], figures["products"]) == ("identities", "completed", 5)
    assert (figures["completed"], figures["failed"]) == (6, 0)


async def test_now_is_not_the_time(pool: Pool, tmp_path: Path) -> None:
    """The host asks to be left alone for longer than a page may take: no attempt is lost by that."""
    clock = clock_ahead()
    places = sites(Settings(home=tmp_path))
    asked: list[datetime] = []

    class Session:
        async def request(self, *_: object, **__: object) -> Response:
            asked.append(clock.now())
            if len(asked) < 3:
                raise NotNow("its circuit is open", retry_after=7200.0)
            return Response(404, {}, b"", "", 1.0)

    @asynccontextmanager
    async def opened(**_: object) -> AsyncIterator[Any]:
        yield Session()

    async with AsyncExitStack() as stack:
        by = providers(Settings(), pool, clock, stack)
        pacer, reader = crawl_loops(pool, Settings(home=tmp_path), places, by, stack, clock=clock)
        fetches = CrawlFetches(pool, places, opened, clock=clock)
        async with pool.connection() as conn, conn.transaction():
            job = await crawls.start(conn, keywords=["lamp"], sites=places, providers=by, now=clock.now())
        while (at := await next_event(pool)) is not None:
            clock.advance(max(at - clock.now(), timedelta(0)))
            await pacer.step()
            await pacer.settled()
            await fetches.step()
            await reader.step()
        async with pool.connection() as conn:
            attempts = await crawl_views.attempts(conn, job.id)
    assert asked[2] - asked[0] == timedelta(hours=4)
    assert [one["error"] for one in attempts] == ["HTTP 404"] * 4
