"""All of it together, over real sockets: a shop, a service that fetches and calls, the API that is called, the loops. And the same
without a service, through a proxy, by our own workers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool
from menuwatch.fetch.rotator import Rotator
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.proxies import store as proxies
from menuwatch.proxies.model import NewProxy
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl import views
from menuwatch.search_crawl.providers.identities import CrawlFetcher
from menuwatch.search_crawl.result_processor import ResultProcessor
from menuwatch.search_crawl.setup import build_loops, build_providers, build_sites
from menuwatch.search_crawl.submitter import CrawlSubmitter
from menuwatch.sim.fetching_service import FetchingService, ServiceQuality
from menuwatch.sim.proxies import start_proxies
from menuwatch.sim.shop import Refusals, Shop
from menuwatch.sim.shop_catalog import ShopCatalog


def clock_ahead() -> ManualClock:
    """Ahead of the machine's, by which the API notes when something came."""
    return ManualClock(datetime.now(UTC) + timedelta(hours=1))


@asynccontextmanager
async def serving(system: AppContext, listener: socket.socket) -> AsyncIterator[None]:
    server = uvicorn.Server(uvicorn.Config(create_app(system), log_level="warning", lifespan="off", log_config=None))
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
            " (SELECT min(visible_at) FROM crawl_deliveries), (SELECT min(visible_at) FROM crawl_fetches))"
        )
        row = await cursor.fetchone()
    found: datetime | None = row[0] if row else None
    return found


async def test_through_a_service(pool: Pool, tmp_path: Path) -> None:
    clock = clock_ahead()
    shop = Shop(ShopCatalog(("led lamp",), products=24, removed=0.1), refusals=Refusals(rate=0.05, picky=True), seed=3)
    service = FetchingService(
        "s3cr3t", quality=ServiceQuality(lose=0.1, double=0.2, fail=0.05, garble=0.1), seed=3, held=True
    )
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
        places, by = build_sites(settings), build_providers(settings, pool, clock, stack)
        assert list(by) == ["serpwatch", "identities"]
        archive = FileArchive(tmp_path / "storage")
        system = AppContext(pool=pool, archive=archive, platforms={}, settings=settings, sites=places, providers=by)
        await stack.enter_async_context(serving(system, listener))
        pacer, reader = build_loops(pool, settings, places, by, stack, clock=clock)
        async with pool.connection() as conn, conn.transaction():
            job = await crawls.start(conn, keywords=["LED lamp"], sites=places, providers=by, now=clock.now())
        while (at := await next_event(pool)) is not None:
            clock.advance(max(at - clock.now(), timedelta(0)))
            await pacer.step()
            await pacer.settled()
            await service.release(shuffled=True)
            await reader.step()
        async with pool.connection() as conn:
            figures = await views.get_statistics(conn, job.id)
            found = await views.list_products(conn, job.id, views.ProductFilter(), limit=200)
            items = await views.list_items(conn, job.id, views.ItemFilter(), limit=200)
    assert (figures.status, figures.pages) == ("completed", 25)
    assert set(service.answers) <= {"200"}, service.answers
    assert service.stats.lost > 0
    assert service.stats.doubled > 0
    complete = {item.url.rpartition("-p-")[2].removesuffix(".html") for item in items if item.status == "completed"}
    there = {good.id: good for good in shop.expected("led lamp").values()}
    expected = {number for number, good in there.items() if number in complete and not good.removed}
    assert {one.site_product_id for one in found} == expected
    assert len(expected) > 15
    assert figures.failed == sum(item.retry_count == 3 and item.status == "failed" for item in items)
    for one in found:
        good = there[one.site_product_id]
        assert (one.price_min, one.price_max) == (good.price_min, good.price_max)


@dataclass
class OwnWorkers:
    """A simulated shop, proxies, and the loops of a search crawl that uses our own identities."""

    pool: Pool
    shop: Shop
    settings: Settings
    clock: ManualClock
    job: int
    pacer: CrawlSubmitter
    reader: ResultProcessor
    fetches: CrawlFetcher

    async def turn(self) -> bool:
        """Advances the clock to the next due event and runs every loop once; False when nothing is due any more."""
        if (at := await next_event(self.pool)) is None:
            return False
        self.clock.advance(max(at - self.clock.now(), timedelta(0)))
        await self.pacer.step()
        await self.pacer.settled()
        await self.fetches.step()
        await self.reader.step()
        return True


@asynccontextmanager
async def own_workers(pool: Pool, tmp_path: Path) -> AsyncIterator[OwnWorkers]:
    clock = clock_ahead()
    shop = Shop(ShopCatalog(("led lamp",), products=5, removed=0.0), refusals=Refusals(picky=True))
    async with AsyncExitStack() as stack:
        await shop.start()
        stack.push_async_callback(shop.close)
        farm = await start_proxies(2, seed=7)
        stack.push_async_callback(farm.close)
        settings = Settings(home=tmp_path, cj_base_url=shop.url, host_rate=1000.0, host_burst=100)
        places, by = build_sites(settings), build_providers(settings, pool, clock, stack)
        async with pool.connection() as conn:
            for one in farm.infos:
                new = NewProxy(
                    protocol=one.protocol, host=one.host, port=one.port, username=one.username, password=one.password
                )
                await proxies.add(conn, new)
        rotator = Rotator(pool, settings)
        stack.push_async_callback(rotator.close)
        pacer, reader = build_loops(pool, settings, places, by, stack, clock=clock)
        fetches = CrawlFetcher(pool, places, rotator.open, clock=clock)
        async with pool.connection() as conn, conn.transaction():
            job = await crawls.start(conn, keywords=["led lamp"], sites=places, providers=by, now=clock.now())
        yield OwnWorkers(pool, shop, settings, clock, job.id, pacer, reader, fetches)


async def test_by_our_own_workers(pool: Pool, tmp_path: Path) -> None:
    """Without any service: an order is a row, a worker fetches the page through a proxy, and brings it."""
    async with own_workers(pool, tmp_path) as own:
        while await own.turn():
            pass
        async with pool.connection() as conn:
            figures = await views.get_statistics(conn, own.job)
    assert (figures.provider, figures.status, figures.products) == ("identities", "completed", 5)
    assert (figures.completed, figures.failed) == (6, 0)


async def test_now_is_not_the_time(pool: Pool, tmp_path: Path) -> None:
    """The host asks to be left alone for longer than a page may take: no attempt is lost by that."""
    async with own_workers(pool, tmp_path) as own:
        began = own.clock.now()
        async with pool.connection() as conn:
            await hosts.add(conn, own.shop.url.removeprefix("http://"), Limits.from_settings(own.settings))
            await conn.execute(
                "UPDATE hosts SET cooldown_until = clock_timestamp() + interval '2 hours', cooldown_reason = 'test'"
            )
        # Cool-downs run on the database's clock, which stands still beside this one: the wait starts again each time.
        while own.clock.now() < began + timedelta(hours=3):
            assert await own.turn()
        assert not own.shop.requests
        async with pool.connection() as conn:
            await conn.execute("UPDATE hosts SET cooldown_until = NULL, cooldown_reason = NULL")
        while await own.turn():
            pass
        async with pool.connection() as conn:
            attempts = await views.list_attempts(conn, own.job)
            figures = await views.get_statistics(conn, own.job)
    assert (figures.status, figures.completed, figures.failed) == ("completed", 6, 0)
    assert len(attempts) == 6, "one of each page"
