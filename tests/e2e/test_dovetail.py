"""Menus on shops' own sites through the Dovetail plugin: added by address, crawled while the market drifts and misbehaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from menuwatch import bootstrap
from menuwatch.cli.demo import market, settle
from menuwatch.core.errors import Refused
from menuwatch.pipeline.store_discovery import add_store
from menuwatch.system import System
from tests.e2e.platform_crawl import MOODS, assert_history, crawl, ended, query


async def add(system: System, store_id: str) -> None:
    """Adds a menu by the address of the plugin."""
    host, retailer, menu_type = store_id.split("/")
    url = f"https://{host}/wp-json/dovetail-api/v1/products?retailer={retailer}&menutype={menu_type}"
    async with system.pool.connection() as conn:
        await add_store(conn, system.platforms, url)


@pytest.mark.parametrize("mood", MOODS)
async def test_a_market_of_own_sites(home: Path, mood: str) -> None:
    async with market(
        home, store_count=1, platform_counts={"dovetail": 2}, product_count=110, seed=5, faults=MOODS[mood]
    ) as (sim, system):
        stores = sim.market.on("dovetail")
        async with bootstrap.run_worker(system):
            for store in stores:
                await add(system, store.id)
            await settle(system)
            async with system.pool.connection() as conn:
                url = f"https://dutchie.com/dispensary/{sim.market.on('dutchie')[0].slug}"
                await add_store(conn, system.platforms, url)
            await settle(system)
            for _ in range(2):
                await sim.tick()
                await crawl(system)
        assert await ended(system) == {"completed"}
        await assert_history(sim, system, 3)
        rows = await query(
            system,
            "SELECT platform_dispensary_id, is_recreational, is_medical FROM dispensaries WHERE platform = 'dovetail' ORDER BY id",
        )
        assert rows == [
            {
                "platform_dispensary_id": store.id,
                "is_recreational": True if store.id.endswith("/recreational") else None,
                "is_medical": True if store.id.endswith("/medical") else None,
            }
            for store in stores
        ]
        canon = {row["c"] for row in await query(system, "SELECT DISTINCT category_canon AS c FROM store_products")}
        assert None not in canon


async def test_the_type_of_menu_is_found(home: Path) -> None:
    """An address without a type of menu is of the first one that has products; a retailer that is not there is refused."""
    async with market(home, store_count=0, platform_counts={"dovetail": 2}, product_count=5, seed=3) as (sim, system):
        store = sim.market.stores[0]
        host, retailer, _ = store.id.split("/")
        async with bootstrap.run_worker(system):
            async with system.pool.connection() as conn:
                await add_store(conn, system.platforms, f"https://{host}/{retailer}/shop/", "dovetail")
                await add_store(conn, system.platforms, f"https://{host}/nobody/shop/", "dovetail")
                await add_store(conn, system.platforms, "https://nowhere.example/nobody/shop/", "dovetail")
                with pytest.raises(Refused):
                    await add_store(conn, system.platforms, f"https://{host}/", "dovetail")
            await settle(system)
        rows = await query(system, "SELECT platform_dispensary_id, product_count FROM dispensaries ORDER BY id")
        assert [row["platform_dispensary_id"] for row in rows] == [store.id, None, None]
        assert rows[0]["product_count"] == 5
        failed = await query(system, "SELECT error_message FROM worker_tasks WHERE status = 'failed' ORDER BY id")
        assert [row["error_message"] for row in failed] == [
            f"store '{host}/nobody' not found on dovetail",
            "store 'nowhere.example/nobody' not found on dovetail",
        ]
