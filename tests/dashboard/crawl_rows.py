"""A search crawl in the midst of its work, written as rows."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from menuwatch.db.pool import Connection, Pool
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl import store
from menuwatch.search_crawl.model import Job
from menuwatch.search_crawl.protocols import CrawledProduct, Found, UrlType, Variant
from menuwatch.search_crawl.providers.serpwatch import SerpWatch
from menuwatch.search_crawl.sites.cj import CJDropshipping

SITES = {"cj": CJDropshipping()}
PROVIDERS = {"serpwatch": SerpWatch("token-of-a-test")}
BLOCKED = "the site refused: a page of 812 bytes; valid ones have more than 50000; titled Just a moment..."


async def half_done(pool: Pool, *, found: int = 60, keywords: tuple[str, ...] = ("led lamp", "dog leash")) -> Job:
    """A running job: its first search came, and so did every second product that it led to; of the others one is under way, one has
    failed for good, and two wait for their next try. It began two hours ago."""
    now = datetime.now(UTC)
    async with pool.connection() as conn, conn.transaction():
        job = await crawls.start(
            conn, keywords=keywords, sites=SITES, providers=PROVIDERS, now=now - timedelta(hours=2)
        )
        search = await _submit(conn, job.id, now - timedelta(hours=2))
        urls = [Found(url=SITES["cj"].product_url(str(7000 + n)), url_type=UrlType.PRODUCT) for n in range(found)]
        added = await store.add_found(conn, search, urls, now - timedelta(hours=2))
        await store.complete_item(
            conn, search.id, search.attempt, found=added, removed=False, now=now - timedelta(minutes=119), path=None
        )
        for n in range(found // 2):
            at = now - timedelta(minutes=110) + timedelta(minutes=n * 100 / (found // 2))
            item = await _submit(conn, job.id, at, priority=2)
            if n in (3, 4):
                await store.end_attempt(conn, item.id, item.attempt, ok=False, error=BLOCKED, now=at)
                await store.put_back(conn, item.id, BLOCKED, now + timedelta(minutes=10))
            elif n == 5:
                await store.end_attempt(conn, item.id, item.attempt, ok=False, error="no answer", now=at)
                await store.give_up(conn, item.id, "no answer", at)
            elif n != 6:
                await store.put_product(conn, item, "cj", _product(n), at)
                done = at + timedelta(seconds=20)
                await store.complete_item(conn, item.id, item.attempt, found=0, removed=n == 7, now=done, path=None)
        found_job = await store.find(conn, job.id)
    assert found_job is not None
    return found_job


async def _submit(conn: Connection, job_id: int, at: datetime, *, priority: int = 1) -> store.Item:
    return await store.submit(
        conn,
        job_id,
        priority=priority,
        skip=0,
        now=at,
        deadline_at=datetime.now(UTC) + timedelta(minutes=30),
        next_submit_after=at + timedelta(seconds=8),
        submitting_until=at,
        mixing=True,
    )


def _product(n: int) -> CrawledProduct:
    rng = random.Random(n)
    low = Decimal(rng.randrange(99, 9000)) / 100
    names = ("Set of 4 <Rechargeable> Lamp", "Größe & Co. Lamp", "Lamp " + "with a very long name " * 8)
    return CrawledProduct(
        site_product_id=str(7000 + n),
        name=f"{names[n % 3]} {n}",
        url=f"https://cjdropshipping.com/product/lamp-{n}-p-{7000 + n}.html",
        price_min=low,
        price_max=low * (1 + n % 3),
        currency="USD",
        weight_g=Decimal(rng.randrange(20, 5000)),
        listed=rng.randrange(5000),
        variants=tuple(
            Variant(variant_id=f"{n}-{v}", sku=f"CJ{n}{v}", name=f"Red-{v}", price=low, weight_g=Decimal(120 + v))
            for v in range(n % 4)
        ),
        images=(f"https://img.example/{n}.jpg",),
    )
