"""Archived pages are read again after a parser was corrected: what changes, what stays, and that nothing is requested."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool
from menuwatch.search_crawl.protocols import Page, Unreadable, UrlType
from tests.search_crawl.world import HOST, Catalogue, Manners, Process, Service, Shop, next_event, product_of
from tests.users_fixture import bearer

JOBS = "/api/crawl/jobs"
KEYWORDS = ("lamp", "mug")


@dataclass
class Flawed(Shop):
    """A shop with a parser that has faults: it cannot read the pages `unknown`, misses every link but the first of `short` pages, and
    takes prices for cents where `cents`; products of `gone` are read as no longer sold."""

    unknown: frozenset[str] = frozenset()
    short: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    cents: bool = False

    def read(self, url_type: UrlType, url: str, body: bytes) -> Page:
        if url in self.unknown:
            raise Unreadable("the page has no data")
        page = super().read(url_type, url, body)
        if url in self.gone:
            return Page(removed=True)
        if page.product is not None and self.cents:
            variants = tuple(replace(one, price=(one.price or Decimal(0)) * 100) for one in page.product.variants)
            return replace(page, product=replace(page.product, variants=variants))
        return replace(page, found=page.found[:1]) if url in self.short else page

    def mend(self) -> None:
        self.unknown = self.short = self.gone = frozenset()
        self.cents = False


@dataclass
class World:
    pool: Pool
    http: httpx.AsyncClient
    shop: Flawed
    service: Service
    process: Process
    root: Path

    async def crawl(self, **body: Any) -> None:
        """Starts crawl 1 with all keywords, and lets it end."""
        pace = {"max_pages": 1, "max_retries": 0}
        answer = await self.http.post(JOBS, json={"keywords": list(KEYWORDS), **pace, **body})
        assert answer.status_code == 201, answer.text
        await self.finish()

    async def finish(self) -> None:
        clock = self.service.clock
        while (at := await next_event(self.pool, self.service)) is not None:
            clock.advance(max(at - clock.now(), timedelta(0)))
            await self.process.turn()

    async def reparse(self, **body: Any) -> dict[str, Any]:
        answer = await self.http.post(f"{JOBS}/1/reparse", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def job(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.http.get(f"{JOBS}/1")).json()
        return found

    async def rows(self, query: str) -> list[Any]:
        async with self.pool.connection() as conn:
            return await (await conn.execute(query.encode())).fetchall()

    async def prices(self) -> dict[str, Decimal]:
        """The highest variant price of each product, by its URL."""
        return dict(
            await self.rows(
                "SELECT p.url, max(v.price) FROM crawl_products p JOIN crawl_variants v ON v.product_id = p.id GROUP BY p.url"
            )
        )

    def true_prices(self, *without: str) -> dict[str, Decimal]:
        urls = {url for word in KEYWORDS for url in self.shop.stock.products_of(word, 1)} - set(without)
        return {url: max(one.price or Decimal(0) for one in product_of(url).variants) for url in urls}


@pytest.fixture
async def world(pool: Pool, tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock(datetime.now(UTC) + timedelta(hours=1))
    shop = Flawed(Catalogue(KEYWORDS, pages=1, per_page=6, shared=2))
    service = Service(clock, shop, Random(2), Manners(lost=0.0, doubled=0.0, failed=0.0, blocked=0.0))
    process = Process(pool, clock, shop, service, tmp_path, 1)
    there: dict[str, Any] = {"sites": {shop.name: shop}, "providers": {service.name: service}}
    settings = Settings(home=tmp_path, storage_path=tmp_path)
    app = create_app(AppContext(pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=settings, **there))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://menuwatch", headers=await bearer(pool)
    ) as http:
        yield World(pool, http, shop, service, process, tmp_path)


def counts(result: dict[str, Any]) -> tuple[int, ...]:
    return tuple(result[name] for name in ("pages", "changed", "unreadable", "missing", "new_urls"))


async def test_wrong_products_are_corrected_once(world: World) -> None:
    world.shop.cents = True
    await world.crawl()
    wrong = await world.prices()
    assert (await world.job())["products"] == len(wrong) == 8
    assert wrong == {url: price * 100 for url, price in world.true_prices().items()}
    assert counts(await world.reparse()) == (10, 0, 0, 0, 0), "the same parser finds the same"
    world.shop.mend()
    asked = len(world.service.asked)
    tried = await world.reparse(dry_run=True)
    assert (tried["dry_run"], counts(tried)) == (True, (10, 8, 0, 0, 0))
    assert await world.prices() == wrong, "a dry run changes nothing"
    assert counts(await world.reparse()) == (10, 8, 0, 0, 0)
    assert await world.prices() == world.true_prices()
    assert counts(await world.reparse()) == (10, 0, 0, 0, 0)
    assert len(world.service.asked) == asked, "no page is requested"
    audits = await world.rows("SELECT details->>'changed' FROM audit_log WHERE action = 'crawl_reparsed' ORDER BY id")
    assert audits == [("0",), ("8",), ("0",)], "a dry run is not recorded"


async def test_pages_that_failed_are_completed_from_the_archive(world: World) -> None:
    lost = world.shop.stock.products_of("mug", 1)[0]
    world.shop.unknown = frozenset({lost})
    await world.crawl()
    assert (await world.job())["failed"] == 1
    assert counts(await world.reparse()) == (10, 0, 1, 0, 0)
    assert (await world.reparse())["errors"][0]["error"] == "the page has no data"
    world.shop.mend()
    assert counts(await world.reparse()) == (10, 1, 0, 0, 0)
    job = await world.job()
    assert (job["status"], job["failed"], job["completed"]) == ("completed", 0, 10)
    assert await world.prices() == world.true_prices()
    assert counts(await world.reparse()) == (10, 0, 0, 0, 0)


async def test_new_urls_are_fetched_only_on_request(world: World) -> None:
    world.shop.short = frozenset(world.shop.search_url(word) for word in KEYWORDS)
    await world.crawl()
    assert (await world.job())["pages"] == 4
    world.shop.mend()
    for _ in range(2):
        assert counts(await world.reparse()) == (4, 0, 0, 0, 6)
    assert ((await world.job())["status"], (await world.job())["pages"]) == ("completed", 4)
    assert counts(await world.reparse(dry_run=True, follow=True))[1:] == (2, 0, 0, 6)
    assert (await world.job())["pages"] == 4
    assert counts(await world.reparse(follow=True))[1:] == (2, 0, 0, 6)
    assert ((await world.job())["status"], (await world.job())["pending"]) == ("running", 6)
    await world.finish()
    assert (await world.job())["status"] == "completed"
    assert await world.prices() == world.true_prices()
    assert counts(await world.reparse(follow=True)) == (10, 0, 0, 0, 0)


async def test_a_product_that_a_page_no_longer_shows_goes(world: World) -> None:
    await world.crawl()
    sold = world.shop.stock.products_of("lamp", 1)[1]
    world.shop.gone = frozenset({sold})
    assert counts(await world.reparse()) == (10, 1, 0, 0, 0)
    assert await world.prices() == world.true_prices(sold)
    assert await world.rows("SELECT url FROM crawl_queue WHERE removed") == [(sold,)]
    world.shop.mend()
    assert counts(await world.reparse()) == (10, 1, 0, 0, 0)
    assert await world.prices() == world.true_prices()
    assert await world.rows("SELECT url FROM crawl_queue WHERE removed") == []


async def test_only_what_the_archive_holds(world: World) -> None:
    world.shop.cents = True
    await world.crawl()
    world.shop.mend()
    paths = [row[0] for row in await world.rows("SELECT path FROM crawl_attempts ORDER BY item_id DESC LIMIT 2")]
    (world.root / paths[0]).unlink()
    (world.root / paths[1]).write_bytes(b"\x1f\x8bnothing")
    before = await world.prices()
    result = await world.reparse()
    assert counts(result) == (9, 6, 1, 1, 0)
    assert [one["path"] for one in result["errors"]] == [paths[1]]
    assert "is damaged" in result["errors"][0]["error"]
    after = await world.prices()
    assert sum(after[url] == price for url, price in before.items()) == 2, "what cannot be read keeps its result"


async def test_in_steps_and_beside_a_running_crawl(world: World) -> None:
    world.shop.cents = True
    await world.crawl()
    world.shop.mend()
    await world.rows(
        "UPDATE crawl_queue SET status = 'submitted', completed_at = NULL, deadline_at = now() + interval '1 hour'"
        " WHERE id = (SELECT max(id) FROM crawl_queue) RETURNING id"
    )
    seen, after = [0, 0], 0
    while True:
        step = await world.reparse(limit=4, after=after)
        assert step["pages"] <= 4
        seen = [seen[0] + step["pages"], seen[1] + step["changed"]]
        if step["next"] is None:
            break
        after = step["next"]
    assert seen == [9, 7], "a page under way is left to its delivery"


async def test_what_cannot_be_read_again(world: World) -> None:
    assert (await world.http.post(f"{JOBS}/9/reparse", json={})).status_code == 404
    await world.crawl()
    for body in ({"dry_run": 1}, {"after": -1}, {"limit": 0}, {"limit": 501}, {"crawl": 1}):
        assert (await world.http.post(f"{JOBS}/1/reparse", json=body)).status_code == 422, body
    await world.rows("UPDATE crawl_jobs SET site = 'elsewhere' RETURNING id")
    answer = await world.http.post(f"{JOBS}/1/reparse", json={})
    assert "no parser for pages of elsewhere" in answer.json()["detail"]
    assert HOST not in answer.text
