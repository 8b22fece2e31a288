"""A whole job with a service that loses, doubles, delays and reorders its calls, on a clock of its own; and the same with processes
that die in the midst of it. What was submitted when is read off the service's own notes and the rows."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from psycopg.rows import dict_row

from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool, open_pool
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl.protocols import Order, Page, UrlType
from tests.search_crawl.world import HOST, Catalogue, Killed, Manners, Process, Service, Shop, next_event, product_of

START = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)
BROKEN = f"{HOST}/product/1003"
REMOVED = f"{HOST}/product/102007"
Row = dict[str, Any]


@dataclass
class Course:
    """What a whole job was like."""

    service: Service
    stock: Catalogue
    job: Row
    items: list[Row]
    attempts: list[Row]
    products: list[Row]
    down: list[tuple[datetime, datetime]] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)


@dataclass
class Reaper:
    """Kills the process now and then, at the points that it is called from."""

    rng: random.Random
    share: float
    kills: Counter[str] = field(default_factory=Counter)

    def at(self, point: str) -> None:
        if self.rng.random() < self.share:
            self.kills[point] += 1
            raise Killed(point)


async def rows(pool: Pool, query: str) -> list[Row]:
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query)  # type: ignore[arg-type]
        return await cur.fetchall()


async def run(
    url: str, storage: Path, *, seed: int, stock: Catalogue, kills: float = 0.0, manners: Manners | None = None
) -> Course:
    """A job from its start to its end."""
    clock = ManualClock(START)
    reaper = Reaper(random.Random(seed + 1), kills)
    shop = Shop(stock, broken=frozenset({BROKEN}), removed=frozenset({REMOVED}), hook=lambda: reaper.at("reading"))
    service = Service(
        clock, shop, random.Random(seed), manners or Manners(), hook=lambda when: reaper.at(f"{when} ordering")
    )
    down: list[tuple[datetime, datetime]] = []
    lives = itertools.count(seed * 1000)
    alive, started = True, False
    while alive:
        async with open_pool(url, max_size=4) as pool:  # with its process go its connections
            if not started:
                async with pool.connection() as conn, conn.transaction():
                    words = {"keywords": stock.keywords, "max_pages": stock.pages}
                    there = {"sites": {shop.name: shop}, "providers": {service.name: service}}
                    await crawls.start(conn, **words, **there, now=clock.now())  # type: ignore[arg-type]
                started = True
            process = Process(pool, clock, shop, service, storage, next(lives))
            try:
                while (at := await next_event(pool, service)) is not None:
                    clock.advance(max(at - clock.now(), timedelta(0)))
                    await process.turn()
                alive = False
            except Killed:
                died = clock.now()
                clock.advance(timedelta(seconds=reaper.rng.uniform(0.0, 90.0)))
                down.append((died, clock.now()))
            if not alive:
                return Course(
                    service=service,
                    stock=stock,
                    job=(await rows(pool, "SELECT * FROM crawl_jobs"))[0],
                    items=await rows(pool, "SELECT * FROM crawl_queue ORDER BY id"),
                    attempts=await rows(
                        pool,
                        "SELECT a.*, q.url, q.url_type, q.keyword, q.priority, q.created_at FROM crawl_attempts a"
                        " JOIN crawl_queue q ON q.id = a.item_id ORDER BY a.submitted_at, a.item_id",
                    ),
                    products=await rows(pool, "SELECT * FROM crawl_products ORDER BY site_product_id::bigint"),
                    down=down,
                    kills=reaper.kills,
                )
    raise AssertionError("it ends above")


def check_outcome(course: Course) -> None:
    """Every page once, each ended, products as the shop has them."""
    urls = [item["url"] for item in course.items]
    assert len(urls) == len(set(urls))
    assert course.job["status"] == "completed"
    tried = Counter(one["item_id"] for one in course.attempts)
    complete = {item["url"] for item in course.items if item["status"] == "completed"}
    for item in course.items:
        assert item["status"] in ("completed", "failed"), item
        if item["status"] == "failed":
            assert (tried[item["id"]], item["retry_count"]) == (4, 3), item
        else:
            assert 1 <= tried[item["id"]] <= 4
        assert tried[item["id"]] == item["attempt"]
    (broken,) = [item for item in course.items if item["url"] == BROKEN]
    assert (broken["status"], broken["error_message"]) in {
        ("failed", f"the {said}")
        for said in (
            "page cannot be read: no object in it",
            "page did not come within 30 minutes",
            "site refused: Just a moment",
            "browser crashed",
        )
    } | {("failed", "the page did not come within 30 minutes")}
    results = {item["url"] for item in course.items if item["url_type"] != "product"}
    assert results == {
        course.stock.result(k, n) for k in course.stock.keywords for n in range(1, course.stock.pages + 1)
    }
    # All of what the shop has, but for what only pages lead to that failed for good.
    failed = results - complete
    missed = course.stock.every_url() - set(urls)
    if not failed:
        assert missed == set()
    (gone,) = [item for item in course.items if item["url"] == REMOVED]
    assert gone["removed"] == (gone["status"] == "completed")
    expected = {url for url in complete if "/product/" in url} - {REMOVED}
    assert {one["url"] for one in course.products} == expected
    for one in course.products:
        there = product_of(one["url"])
        assert (one["name"], one["price_min"], one["weight_g"]) == (there.name, there.price_min, Decimal(100))


def check_pace(course: Course) -> None:
    """Never closer than 5 s, as the service saw it; never further apart than 15 s while something was ready that nothing held back."""
    seen = [at for at, _ in course.service.asked]
    assert all(b - a >= timedelta(seconds=5) for a, b in itertools.pairwise(seen))
    made = [one["submitted_at"] for one in course.attempts]
    assert all(b - a >= timedelta(seconds=5) for a, b in itertools.pairwise(made))
    assert made[0] == START, "the first search goes at once"
    before = {(one["item_id"], one["attempt"]): one for one in course.attempts}
    for last, following in itertools.pairwise(made):
        if following - last <= timedelta(seconds=15):
            continue
        if any(down < following and up > last for down, up in course.down):
            continue
        late = following - timedelta(seconds=15)
        if last < course.job["unthrottled_since"]:
            continue  # held back: see check_order
        for one in course.attempts:
            if one["submitted_at"] < following:
                continue
            if one["attempt"] == 1:
                assert one["created_at"] >= late, (last, following, one)
            else:
                failed = before[one["item_id"], one["attempt"] - 1]
                if failed["ok"]:
                    continue
                # Its wait is 15, 30, 60 minutes and up to five more.
                most = timedelta(minutes=15) * 2 ** (one["attempt"] - 2) + timedelta(minutes=5)
                assert failed["ended_at"] + most >= late, (last, following, one)


def check_retries(course: Course) -> None:
    """15, 30, 60 minutes after a failure, and not much later."""
    before = {(one["item_id"], one["attempt"]): one for one in course.attempts}
    retries = [one for one in course.attempts if one["attempt"] > 1]
    assert len(retries) > 20
    for one in retries:
        failed = before[one["item_id"], one["attempt"] - 1]
        if failed["ok"]:
            continue  # its page came late, after it was tried again: when it failed is not known any more
        waited = one["submitted_at"] - failed["ended_at"]
        assert waited >= timedelta(minutes=15) * 2 ** (one["attempt"] - 2), one
    for one in course.attempts:
        if one["error"] == "the page did not come within 30 minutes":
            due = one["submitted_at"] + timedelta(minutes=30)
            late = one["ended_at"] - due
            away = [up - down for down, up in course.down if up > due and down < one["ended_at"]]
            slack = sum(away, timedelta(seconds=15))
            assert timedelta(0) <= late <= slack, one


def check_order(course: Course) -> None:
    """Best priority first, at random within it; searches do not follow each other in a burst."""
    first = [one for one in course.attempts if one["attempt"] == 1]
    funnel = [one for one in first if one["priority"] == 1]
    for one in (one for one in first if one["priority"] == 2):
        overtaken = [f for f in funnel if f["created_at"] < one["submitted_at"] < f["submitted_at"]]
        assert overtaken == [], one
    held = [one for one in first if one["submitted_at"] < course.job["unthrottled_since"]]
    assert len(held) == 1, "one search, until it was known what it leads to"
    products = [one for one in first if one["priority"] == 2]
    mixed = [one["keyword"] for one in products if one["submitted_at"] > max(f["submitted_at"] for f in funnel)]
    # Keywords follow each other as chance has it: of three alike two neighbours differ in 2 of 3 cases.
    share = Counter(mixed)
    differ = sum(a != b for a, b in itertools.pairwise(mixed)) / (len(mixed) - 1)
    by_chance = 1 - sum((n / len(mixed)) ** 2 for n in share.values())
    assert abs(differ - by_chance) < 0.12, (differ, by_chance)
    assert max(len(list(same)) for _, same in itertools.groupby(mixed)) < 25
    # Nor do the products of one page come in its order: half of the neighbours go back.
    ids = [one["item_id"] for one in products if one["submitted_at"] > max(f["submitted_at"] for f in funnel)]
    back = sum(a > b for a, b in itertools.pairwise(ids)) / (len(ids) - 1)
    assert 0.35 < back < 0.65
    # And the first four pages of results are not asked in theirs, for one keyword at least.
    order = {k: [f["item_id"] for f in funnel if f["keyword"] == k] for k in course.stock.keywords}
    assert any(ids != sorted(ids) for ids in order.values())


STOCK = Catalogue(("lamp", "tent", "mug"), pages=4, per_page=60, shared=30)


async def test_a_job_with_a_bad_service(database_url: str, tmp_path: Path) -> None:
    """3 keywords x 4 pages x 60 products."""
    course = await run(database_url, tmp_path, seed=7, stock=STOCK)
    calls = Counter(order.reference for _, order in course.service.asked)
    assert max(calls.values()) == 1
    assert len(course.attempts) == len(course.service.asked) > 400
    check_outcome(course)
    check_pace(course)
    check_retries(course)
    check_order(course)


@pytest.mark.parametrize("seed", [3])
async def test_processes_that_die(database_url: str, tmp_path: Path, seed: int) -> None:
    """The same with a process that is killed about every 30th time that it orders or reads, and comes back after a while."""
    stock = Catalogue(STOCK.keywords, pages=3, per_page=20)
    course = await run(database_url, tmp_path, seed=seed, stock=stock, kills=0.03)
    assert min(course.kills[point] for point in ("before ordering", "after ordering", "reading")) > 0, course.kills
    assert max(Counter(order.reference for _, order in course.service.asked).values()) == 1
    check_outcome(course)
    check_pace(course)
    check_retries(course)


async def test_two_pacers_at_once(database_url: str, tmp_path: Path) -> None:
    """Two servers, each with its loops at work at the very same moments: nothing is ordered twice, nothing too soon."""
    clock = ManualClock(START)
    stock = Catalogue(("lamp", "mug"), pages=2, per_page=15)
    shop = Shop(stock)
    service = Service(clock, shop, random.Random(5), Manners(lost=0.05, failed=0, blocked=0, longest=60.0))
    async with open_pool(database_url) as one, open_pool(database_url) as other:
        async with one.connection() as conn, conn.transaction():
            for _ in range(2):
                await crawls.start(
                    conn, keywords=stock.keywords, sites={"shop": shop}, providers={"service": service}, now=clock.now()
                )
        pair = [Process(pool, clock, shop, service, tmp_path, n) for n, pool in enumerate((one, other))]
        while (at := await next_event(one, service)) is not None:
            clock.advance(max(at - clock.now(), timedelta(0)))
            await asyncio.gather(*(process.submit() for process in pair))
            for body in service.due():  # a balancer in front sends the call to both
                await asyncio.gather(*(process.take(body) for process in pair))
            await asyncio.gather(*(process.reader.step() for process in pair))
        jobs = await rows(one, "SELECT status FROM crawl_jobs")
        items = await rows(one, "SELECT * FROM crawl_queue")
    assert [job["status"] for job in jobs] == ["completed", "completed"]
    assert len(items) == 2 * len(stock.every_url())
    assert {item["status"] for item in items} == {"completed"}
    created = {item["id"]: item["created_at"] for item in items}
    assert max(Counter(order.reference for _, order in service.asked).values()) == 1
    for job in ("crawl-1-", "crawl-2-"):
        seen = [(at, order.reference) for at, order in service.asked if order.reference.startswith(job)]
        assert all(b - a >= timedelta(seconds=5) for (a, _), (b, _) in itertools.pairwise(seen))
        # A product that is asked for the first time was ready since its page of results was read: nothing else was to be waited for.
        first = 0
        for (before, _), (at, reference) in itertools.pairwise(seen):
            _, _, kind, item, attempt = reference.split("-")
            if (kind, attempt) == ("product", "1") and created[int(item)] <= before:
                assert at - before <= timedelta(seconds=15), reference
                first += 1
        assert first > 20


async def test_values_that_no_column_holds(pool: Pool, tmp_path: Path) -> None:
    """A page whose product is beyond all measure is a page that cannot be had; the others go on."""
    clock = ManualClock(START)
    stock = Catalogue(("lamp",), pages=1, per_page=4, shared=0)
    odd = iter(({"listed": 10**12}, {"name": "a\x00b"}, {"name": "\ud800"}, {"price_min": Decimal("1e200000")}))

    class Odd(Shop):
        def read(self, url_type: UrlType, url: str, body: bytes) -> Page:
            page = super().read(url_type, url, body)
            if page.product is None or not url.endswith("2"):
                return page
            return replace(page, product=replace(page.product, **next(odd)))  # type: ignore[arg-type]

    shop = Odd(stock)
    service = Service(clock, shop, random.Random(1), Manners(lost=0, doubled=0, failed=0, blocked=0))
    there: dict[str, Any] = {"sites": {shop.name: shop}, "providers": {service.name: service}}
    async with pool.connection() as conn, conn.transaction():
        await crawls.start(conn, keywords=["lamp"], now=START, **there)
    process = Process(pool, clock, shop, service, tmp_path, 1)
    while (at := await next_event(pool, service)) is not None:
        clock.advance(max(at - clock.now(), timedelta(0)))
        await process.turn()
    assert (await rows(pool, "SELECT status FROM crawl_jobs"))[0]["status"] == "completed"
    ended = await rows(pool, "SELECT url, attempt, error_message FROM crawl_queue WHERE status = 'failed'")
    assert [(one["url"][-1], one["attempt"]) for one in ended] == [("2", 4)]
    assert ended[0]["error_message"] == "the page holds a value that cannot be kept"
    assert len(await rows(pool, "SELECT FROM crawl_products")) == 3


class Slow(Service):
    """Takes orders when the gate is open."""

    def __init__(self, clock: ManualClock, shop: Shop) -> None:
        super().__init__(clock, shop, random.Random(1), Manners(lost=1.0))
        self.begun = 0
        self.at_gate, self.gate = asyncio.Event(), asyncio.Event()

    async def submit(self, order: Order) -> str | None:
        self.begun += 1
        self.at_gate.set()
        await self.gate.wait()
        return await super().submit(order)


async def test_an_order_that_takes_long_is_waited_for_by_every_server(database_url: str, tmp_path: Path) -> None:
    """When in that time it left nobody knows, so the next one leaves 5 s after its end; and a server that dies meanwhile holds
    nothing up for long."""
    clock = ManualClock(START)
    shop = Shop(Catalogue(tuple(f"k{n}" for n in range(20)), pages=1, per_page=1, shared=0))
    service = Slow(clock, shop)
    async with open_pool(database_url) as one, open_pool(database_url) as other:
        async with one.connection() as conn, conn.transaction():
            there: dict[str, Any] = {"sites": {shop.name: shop}, "providers": {service.name: service}}
            await crawls.start(conn, keywords=shop.stock.keywords, now=START, **there)
        pair = [Process(pool, clock, shop, service, tmp_path, n) for n, pool in enumerate((one, other))]
        await pair[0].pacer.step()
        await service.at_gate.wait()
        clock.advance(timedelta(seconds=20))
        await pair[1].pacer.step()
        await asyncio.sleep(0)
        assert (service.begun, pair[1].pacer._submitting) == (1, {}), "one at a time, whichever server asks"
        service.gate.set()
        await pair[0].pacer.settled()
        for step in (timedelta(seconds=4.9), timedelta(seconds=0.2)):
            clock.advance(step)
            for process in reversed(pair):
                await process.submit()
        assert [(at - START).total_seconds() for at, _ in service.asked] == [20.0, 25.1]
        service.gate.clear()
        service.at_gate.clear()
        clock.advance(timedelta(seconds=15))
        await pair[0].pacer.step()
        await service.at_gate.wait()
        for task in pair[0].pacer._submitting.values():
            task.cancel()
        service.gate.set()
        clock.advance(timedelta(seconds=64))
        await pair[1].submit()
        assert len(service.asked) == 2
        clock.advance(timedelta(seconds=1))
        await pair[1].submit()
        assert len(service.asked) == 3, "it asks for no longer than that, so it is gone"


async def test_what_came_while_nobody_read_is_no_failure(pool: Pool, tmp_path: Path) -> None:
    """The last attempt's page is taken in, and the server is away until long after the deadline; then its pacer looks first."""
    clock = ManualClock(START)
    shop = Shop(Catalogue(("lamp",), pages=1, per_page=1, shared=0))
    service = Service(clock, shop, random.Random(1), Manners(lost=0, doubled=0, failed=0, blocked=0, longest=60))
    there: dict[str, Any] = {"sites": {shop.name: shop}, "providers": {service.name: service}}
    async with pool.connection() as conn, conn.transaction():
        await crawls.start(conn, keywords=["lamp"], now=START, **there)
    process = Process(pool, clock, shop, service, tmp_path, 1)
    await process.submit()
    async with pool.connection() as conn:
        await conn.execute("UPDATE crawl_queue SET retry_count = 3")
    clock.advance(timedelta(minutes=2))
    for body in service.due():
        await process.take(body)
    clock.advance(timedelta(minutes=40))
    await process.submit()
    await process.reader.step()
    assert (await rows(pool, "SELECT status FROM crawl_jobs"))[0]["status"] == "running"
    items = await rows(pool, "SELECT url_type, status, attempt, error_message FROM crawl_queue ORDER BY id")
    assert [tuple(one.values()) for one in items] == [("search", "completed", 1, None), ("product", "pending", 0, None)]
