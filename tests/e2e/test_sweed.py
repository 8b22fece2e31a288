"""Sweed from discovery to the catalog: stores found by counting, crawled while the market moves and misbehaves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from menuwatch import bootstrap
from menuwatch.cli.demo import market, settle
from menuwatch.pipeline.store_discovery import add_store
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from menuwatch.sim.platforms.sweed.rows import listed, shop_url
from tests.commands import menuwatch
from tests.e2e.platform_crawl import MOODS, assert_history, crawl, discover, ended, query


async def test_a_store_is_found_by_counting_and_crawled_twice(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"sweed": 1}, product_count=90, seed=3) as (sim, system):
        (shop,) = sim.market.stores
        async with bootstrap.run_worker(system):
            found = await discover(system, "sweed", state=shop.state)
            assert (len(found["newStoreIds"]), found["found"], found["rejected"]) == (1, 1, 0)
            await sim.tick()
            await crawl(system)
        assert await ended(system) == {"completed"}
        await assert_history(sim, system, 2)
        (row,) = await query(system, "SELECT * FROM dispensaries")
        assert [row[name] for name in ("platform", "platform_dispensary_id", "slug", "name", "city", "state", "zipcode")] == [
            "sweed", shop.id, shop.slug, shop.name, shop.city, shop.state, shop.zipcode,
        ]  # fmt: skip
        assert (row["is_recreational"], row["is_medical"]) == (shop.recreational, shop.medical)
        (place,) = await query(system, "SELECT raw FROM dutchie_discovery_locations")
        assert place["raw"]["licenseCode"] == f"{shop.state}-{int(shop.id):05d}"
        # A row of a page is an option; a product may have several, on several pages.
        menus = [[listed(state) for state in sim.market.menu(shop, tick) if listed(state)] for tick in (0, 1)]
        assert all(len(menu) < 100 < sum(map(len, menu)) for menu in menus)
        payloads = await query(
            system, "SELECT status, page_count, product_count, total_count FROM raw_crawl_payloads ORDER BY id"
        )
        assert payloads == [
            {"status": "ok", "page_count": 2, "product_count": len(menu), "total_count": sum(map(len, menu))}
            for menu in menus
        ]
        stats = await sim.stats()
        assert stats["direct"] == 0, "every request goes through a proxy"
        # One product list for each 100 rows, one configuration for the store that was found, and no terpenes by variant.
        assert stats["requests"] == {
            "GetStoreInfo": 1,
            "GetStoreConfig": 1,
            "GetProductList": stats["requests"]["GetProductList"],
        }
        asked = {row["host"] for row in await query(system, "SELECT DISTINCT host FROM fetch_attempts")}
        assert asked == {sim.platforms["sweed"]["base_url"].removeprefix("http://")}


async def test_a_shop_for_patients_alone_has_medical_prices(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"sweed": 6}, product_count=20, seed=3) as (sim, system):
        shops = [shop for shop in sim.market.stores if not shop.recreational]
        assert shops, "the market has such a shop"
        async with bootstrap.run_worker(system):
            assert (await discover(system, "sweed"))["found"] == 6
        assert await ended(system) == {"completed"}
        await assert_history(sim, system, 1)
        rows = await query(
            system,
            "SELECT DISTINCT d.slug FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id"
            " WHERE p.price_med IS NOT NULL AND p.price_rec IS NULL",
        )
        assert {row["slug"] for row in rows} == {shop.slug for shop in shops}


@pytest.mark.parametrize("mood", MOODS)
async def test_three_ticks(home: Path, mood: str) -> None:
    async with market(
        home, store_count=1, platform_counts={"sweed": 3}, product_count=110, seed=5, faults=MOODS[mood]
    ) as (sim, system):
        async with bootstrap.run_worker(system):
            assert (await discover(system, "dutchie"))["found"] == 1
            assert (await discover(system, "sweed"))["found"] == 3
            for _ in range(2):
                await sim.tick()
                await crawl(system)
        assert await ended(system) == {"completed"}
        await assert_history(sim, system, 3)


async def test_stores_are_added_by_number_and_by_their_own_address(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"sweed": 3}, product_count=5, seed=3) as (sim, system):
        first, second, third = sim.market.stores
        base = sim.platforms["sweed"]["base_url"]
        async with bootstrap.run_worker(system):
            async with system.pool.connection() as conn:
                await add_store(conn, system.platforms, f"{base}/s{first.id}/medical")
                await add_store(conn, system.platforms, shop_url(second), "sweed")
                await conn.execute(
                    "INSERT INTO dispensaries (platform, slug, name, name_raw) VALUES ('sweed', %s, 'x', 'x')",
                    (third.slug,),
                )
                number = (await (await conn.execute("SELECT max(id) FROM dispensaries")).fetchone() or (0,))[0]
                await tasks.enqueue(
                    conn, [NewTask(role=Role.ENTRY_POINT_DISCOVERY, dispensary_id=number, platform="sweed")]
                )
            await settle(system)
        rows = await query(system, "SELECT platform_dispensary_id, name, slug, menu_url FROM dispensaries ORDER BY id")
        assert [(row["platform_dispensary_id"], row["name"]) for row in rows] == [
            (shop.id, shop.name) for shop in (first, second, third)
        ]
        await assert_history(sim, system, 1)


async def test_an_unknown_number_is_not_found(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"sweed": 1}, product_count=5, seed=3) as (sim, system):
        async with bootstrap.run_worker(system):
            async with system.pool.connection() as conn:
                await add_store(conn, system.platforms, f"{sim.platforms['sweed']['base_url']}/s999")
            await settle(system)
        (task,) = await query(system, "SELECT status, error_message FROM worker_tasks")
        assert task["status"] == "failed"
        assert "'999' not found on sweed" in task["error_message"]


def test_an_address_needs_the_platform_to_be_configured(database_url: str, tmp_path: Path) -> None:
    def add(*args: str, **setting: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path / "home"), **setting}
        return menuwatch("stores", "add", *args, env=env)

    refused = add("https://web-ui-production.sweedpos.com/s376")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is a menu of sweed, which is not configured: set SWEED_BASE_URL" in refused.stderr
    added = add("https://web-ui-production.sweedpos.com/s376", SWEED_BASE_URL="https://web-ui-production.sweedpos.com")
    assert added.returncode == 0, added.stderr
    assert "(376)" in added.stdout
