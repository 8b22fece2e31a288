"""The world outside: a shop with pages, a service that fetches them and calls us, when it does not lose the call; and the machine
that our loops run on, which may die at any moment. All of it by seed, on a clock that moves from one event to the next."""

from __future__ import annotations

import asyncio
import heapq
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import NotFound
from menuwatch.db.pool import Pool
from menuwatch.search_crawl import webhook as crawl_webhook
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.protocols import (
    BadWebhook,
    BlockPage,
    CrawledProduct,
    Delivery,
    Found,
    Order,
    OrderRefused,
    Page,
    Unreadable,
    UrlType,
    Variant,
)
from menuwatch.search_crawl.result_processor import ResultProcessor
from menuwatch.search_crawl.submitter import CrawlSubmitter

HOST = "https://shop.test"


class Killed(BaseException):
    """The process is gone at this point."""


@dataclass(frozen=True)
class Catalogue:
    """What the shop has: for each keyword, pages of products; neighbours share some."""

    keywords: tuple[str, ...]
    pages: int
    per_page: int
    shared: int = 5

    def products_of(self, keyword: str, page: int) -> list[str]:
        """Addresses of the products on a page of results. The last few of a page are the first few of the next keyword's page."""
        place = self.keywords.index(keyword)
        own = [(place * 100 + page) * 1000 + n for n in range(self.per_page - self.shared)]
        other = (place + 1) % len(self.keywords)
        lent = [(other * 100 + page) * 1000 + n for n in range(self.shared)]
        return [f"{HOST}/product/{number}" for number in own + lent]

    def result(self, keyword: str, page: int) -> str:
        return f"{HOST}/search/{keyword}" + (f"?page={page}" if page > 1 else "")

    def every_url(self) -> set[str]:
        pages = range(1, self.pages + 1)
        found = {self.result(keyword, page) for keyword in self.keywords for page in pages}
        return found | {url for k in self.keywords for page in pages for url in self.products_of(k, page)}


@dataclass
class Shop:
    """A site. `broken` are addresses whose pages are never readable, `removed` products that are gone. `hook` is called whenever a
    page is read."""

    stock: Catalogue
    broken: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    hook: Callable[[], None] = lambda: None
    name: str = "shop"
    hosts: frozenset[str] = frozenset({"shop.test"})

    def search_url(self, keyword: str) -> str:
        return self.stock.result(keyword, 1)

    def body(self, url: str) -> bytes:
        """The page at an address."""
        if url in self.broken:
            return b"<html>nothing of use"
        if "/product/" in url:
            return json.dumps({"gone": True} if url in self.removed else {"number": url.rpartition("/")[2]}).encode()
        keyword, _, page = url.removeprefix(f"{HOST}/search/").partition("?page=")
        return json.dumps({"keyword": keyword, "page": int(page or 1)}).encode()

    def read(self, url_type: UrlType, url: str, body: bytes) -> Page:
        self.hook()
        if body == b"blocked":
            raise BlockPage("Just a moment")
        if not body.startswith(b"{"):
            raise Unreadable("no object in it")
        told = json.loads(body)
        if url_type is UrlType.PRODUCT:
            return Page(removed=True) if "gone" in told else Page(product=product_of(url))
        pages = [n for n in range(2, self.stock.pages + 1) if told["page"] == 1]
        found = [Found(url=self.stock.result(told["keyword"], n), url_type=UrlType.PAGINATION, page=n) for n in pages]
        products = self.stock.products_of(told["keyword"], told["page"])
        return Page(found=(*found, *(Found(url=one, url_type=UrlType.PRODUCT) for one in products)))


def product_of(url: str) -> CrawledProduct:
    """What the shop's page says of the product at an address."""
    number = int(url.rpartition("/")[2])
    price = Decimal(number % 977) + Decimal("0.10")
    variants = tuple(
        Variant(variant_id=f"{number}-{n}", sku=f"S{n}", name=f"Size {n}", price=price + n, weight_g=Decimal(100 + n))
        for n in range(2)
    )
    return CrawledProduct(
        site_product_id=str(number),
        name=f"Thing {number}",
        url=url,
        price_min=price,
        price_max=price + 1,
        currency="USD",
        weight_g=Decimal(100),
        listed=number % 5000,
        variants=variants,
    )


@dataclass
class Manners:
    """Shares of calls that are lost, doubled, tell of an error, bring a block page; the longest delay of a call, and of a second
    one."""

    lost: float = 0.10
    doubled: float = 0.10
    failed: float = 0.03
    blocked: float = 0.03
    refused: float = 0.0
    longest: float = 600.0
    latest: float = 5400.0


@dataclass
class Service:
    """A provider. What it was asked, and when, is in `asked`."""

    clock: ManualClock
    shop: Shop
    rng: random.Random
    manners: Manners = field(default_factory=Manners)
    hook: Callable[[str], None] = lambda _: None
    name: str = "service"
    needs_webhook: bool = True
    killed: bool = False
    """Whether whoever ordered is gone: its task may have ended before anybody waited for it."""
    asked: list[tuple[datetime, Order]] = field(default_factory=list)
    calls: list[tuple[datetime, int, object]] = field(default_factory=list)

    async def submit(self, order: Order) -> str | None:
        try:
            return await self._submit(order)
        except Killed:
            self.killed = True
            raise

    async def _submit(self, order: Order) -> str | None:
        self.hook("before")
        await asyncio.sleep(0)
        if self.rng.random() < self.manners.refused:
            raise OrderRefused("too many requests")
        self.asked.append((self.clock.now(), order))
        number = f"r{len(self.asked)}"
        if self.rng.random() >= self.manners.lost:
            self._call(order, number, self.rng.uniform(1.0, self.manners.longest))
            if self.rng.random() < self.manners.doubled:
                self._call(order, number, self.rng.uniform(1.0, self.manners.latest))
        self.hook("after")
        return number

    def _call(self, order: Order, number: str, delay: float) -> None:
        told: dict[str, Any] = {"post_id": order.reference, "request_id": number, "success": True}
        chance = self.rng.random()
        if chance < self.manners.failed:
            told |= {"success": False, "error": "the browser crashed"}
        elif chance < self.manners.failed + self.manners.blocked:
            told["html"] = "blocked"
        else:
            told["html"] = self.shop.body(order.url).decode()
        at = self.clock.now() + timedelta(seconds=delay)
        heapq.heappush(self.calls, (at, len(self.asked) * 2 + (delay > self.manners.longest), [told]))

    def due(self) -> Iterator[object]:
        """Bodies of the calls that are to be made by now."""
        while self.calls and self.calls[0][0] <= self.clock.now():
            yield heapq.heappop(self.calls)[2]

    def read_webhook(self, body: object) -> list[Delivery]:
        if not isinstance(body, list):
            raise BadWebhook("it is no list")
        return [
            Delivery(
                reference=one["post_id"],
                ok=one["success"],
                error=one.get("error"),
                html=one["html"].encode() if "html" in one else None,
                request_id=one["request_id"],
            )
            for one in body
        ]


class Process:
    """The loops of one process. `seed` decides what chance does in it."""

    def __init__(self, pool: Pool, clock: ManualClock, shop: Shop, service: Service, storage: Path, seed: int) -> None:
        async def postback(provider: str) -> str:
            return f"https://menuwatch.test/api/crawl/webhook/of-{provider}"

        async def fetch(url: str) -> bytes:
            raise AssertionError(f"nothing lies at {url}")

        rng = random.Random(seed)
        self.pacer = CrawlSubmitter(pool, {service.name: service}, postback, clock=clock, rng=rng)
        self.reader = ResultProcessor(
            pool, {shop.name: shop}, PageArchive(storage, level=1), fetch, clock=clock, rng=rng
        )
        self._pool, self._clock, self._service = pool, clock, service

    async def turn(self) -> None:
        """Does all that is due."""
        await self.submit()
        for body in self._service.due():
            with suppress(NotFound):  # of an attempt that nobody knows of
                await self.take(body)
        await self.reader.step()

    async def submit(self) -> None:
        await self.pacer.step()
        tasks = list(self.pacer._submitting.values())
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._service.killed:
            self._service.killed = False
            raise Killed

    async def take(self, body: object) -> crawl_webhook.WebhookResult:
        async with self._pool.connection() as conn:
            return await crawl_webhook.take(
                conn, self._service, self._service.read_webhook(body), now=self._clock.now()
            )


async def next_event(pool: Pool, service: Service) -> datetime | None:
    """When anything happens next, None when nothing will."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT least((SELECT min(next_submission_at) FROM crawl_jobs WHERE status = 'running'),"
            " (SELECT min(visible_at) FROM crawl_deliveries))"
        )
        row = await cursor.fetchone()
    moments = [one for one in (row[0] if row else None, service.calls[0][0] if service.calls else None) if one]
    return min(moments) if moments else None
