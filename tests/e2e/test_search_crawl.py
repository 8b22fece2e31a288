"""A whole search crawl over real sockets: our server, a service that fetches and calls back, a shop. Products come to the shop's own
catalogue, field by field, although the service loses, doubles, delays and fails, and the shop refuses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from psycopg.rows import dict_row

from menuwatch.cli.serving import open_app
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.sim import shop as shop_module
from menuwatch.sim.config import ServiceQuality
from menuwatch.sim.fetching_service import FetchingService
from menuwatch.sim.shop import Refusals, Shop
from menuwatch.sim.shop_catalog import ShopCatalog, ShopProduct
from menuwatch.system import open_system
from tests.users_fixture import bearer
from tests.workers.waiting import until

TOKEN = "token-of-the-service"


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds and minutes become moments; what is done in them stays."""
    monkeypatch.setattr(shop_module, "PER_PAGE", 10)


@dataclass
class World:
    """Everything that takes part; `http` asks the server as an admin does."""

    http: httpx.AsyncClient
    pool: Pool
    shop: Shop
    service: FetchingService

    async def ended(self, job_id: int) -> dict[str, Any]:
        """The job, once it is complete."""

        async def complete() -> bool:
            return bool((await self.http.get(f"/api/crawl/jobs/{job_id}")).json()["status"] == "completed")

        await until(complete, seconds=100)
        found: dict[str, Any] = (await self.http.get(f"/api/crawl/jobs/{job_id}")).json()
        return found

    async def products(self, job_id: int) -> dict[str, dict[str, Any]]:
        """All that the API tells of the products, and their variants, by the shop's number."""
        found: dict[str, dict[str, Any]] = {}
        variants: dict[int, list[dict[str, Any]]] = {}
        async with self.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
            await cur.execute("SELECT * FROM crawl_variants ORDER BY product_id, place")
            for one in await cur.fetchall():
                one.pop("place")
                variants.setdefault(one.pop("product_id"), []).append(one)
        cursor: str | None = None
        while True:
            query = {"limit": "50"} | ({"cursor": cursor} if cursor else {})
            page = (await self.http.get(f"/api/crawl/jobs/{job_id}/products", params=query)).json()
            for row in page["items"]:
                assert row["site_product_id"] not in found
                found[row["site_product_id"]] = row | {"variants": variants.get(row["id"], [])}
            cursor = page["next"]
            if cursor is None:
                return found


@asynccontextmanager
async def world(
    url: str, home: Path, *, quality: ServiceQuality, refusals: Refusals, deadline_minutes: float
) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        shop = Shop(ShopCatalog(("led lamp", "dog leash"), products=25, removed=0.1, seed=5), refusals=refusals, seed=5)
        service = FetchingService(TOKEN, quality=quality, seed=5)
        for one in (shop, service):
            await one.start()
            stack.push_async_callback(one.close)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = Settings(
            home=home,
            database_url=url,
            public_url=address,
            cj_base_url=shop.url,
            serpwatch_url=service.url,
            serpwatch_token=TOKEN,
            crawl_result_hosts=(service.url.removeprefix("http://"),),
            crawl_deadline_minutes=deadline_minutes,
            crawl_gap_min_seconds=0.01,
            crawl_gap_max_seconds=0.05,
            crawl_max_retries=12,  # so that chance makes no page fail
            crawl_retry_base_minutes=0.05 / 60,
        )
        system = await stack.enter_async_context(open_system(settings))
        app = await stack.enter_async_context(open_app(system))
        web = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", lifespan="off", log_config=None, timeout_graceful_shutdown=1)
        )
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        http = httpx.AsyncClient(base_url=address, headers=await bearer(system.pool), trust_env=False, timeout=30)
        await stack.enter_async_context(http)
        yield World(http, system.pool, shop, service)
        web.should_exit = True
        await serving


def as_shown(good: ShopProduct, home: str) -> dict[str, Any]:
    """What the API should tell of a product of the shop."""
    return {
        "site_product_id": good.id,
        "name": good.name,
        "url": home + good.path,
        "price_min": good.price_min,
        "price_max": good.price_max,
        "currency": "USD",
        "weight_g": good.weight,
        "listed": good.listed,
        "images": list(good.images),
        "variants": [
            {"variant_id": v.vid, "sku": v.sku, "name": v.name, "price": v.price, "weight_g": v.grams}
            for v in good.variants
        ],
    }


def exact(shown: Any) -> Any:
    """The same with its amounts as they were written."""
    if isinstance(shown, dict):
        return {key: exact(value) for key, value in shown.items()}
    if isinstance(shown, list):
        return [exact(value) for value in shown]
    return Decimal(str(shown)) if isinstance(shown, float) else shown


async def test_a_crawl_comes_to_what_the_shop_has(database_url: str, new_home: Path) -> None:
    bad = ServiceQuality(lose=0.05, double=0.1, fail=0.05, refuse=0.05, retry_after=0.05, slow=0.1)
    async with world(database_url, new_home, quality=bad, refusals=Refusals(rate=0.05), deadline_minutes=0.04) as there:
        started = await there.http.post("/api/crawl/jobs", json={"keywords": ["LED Lamp", "dog leash"]})
        assert started.status_code == 201, started.text
        job = await there.ended(started.json()["id"])
        wanted = there.shop.expected("led lamp", "dog leash")
        sold = {i: good for i, good in wanted.items() if not good.removed}
        found = await there.products(job["id"])
        assert found.keys() == sold.keys()
        for number, good in sold.items():
            expected = as_shown(good, there.shop.url)
            assert {key: exact(found[number][key]) for key in expected} == expected
            assert 0 <= found[number]["score"] <= 100
        stats = there.service.stats
        assert min(stats.lost, stats.doubled, stats.failed, stats.refused) > 0
        assert (job["pages"], job["failed"]) == (2 * 3 + len(wanted), 0)
        assert job["completed"] == job["pages"]
        assert there.service.answers.keys() == {"200"}
        removed = sum(one["removed"] for one in job["by_type"])
        assert removed == len(wanted) - len(sold) > 0
        shown = (await there.http.get("/admin/crawls")).text
        assert "led lamp" in shown.lower()
