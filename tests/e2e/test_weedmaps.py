"""A second platform through the whole house: found, crawled while it drifts and misbehaves, and beside the first in one catalogue."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from menuwatch import bootstrap
from menuwatch.cli.demo import market, settle
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from menuwatch.queue.schedules import store as schedules
from menuwatch.system import ensure_default_schedules
from tests.commands import menuwatch
from tests.e2e.platform_crawl import MOODS, assert_history, crawl, discover, ended, query


async def test_one_store_is_found_and_crawled_twice_with_a_change(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"weedmaps": 1}, product_count=130, seed=3) as (sim, system):
        (shop,) = sim.market.stores
        async with bootstrap.run_worker(system):
            found = await discover(system, "weedmaps", state=shop.state)
            assert (len(found["newStoreIds"]), found["found"], found["rejected"]) == (1, 1, 0)
            await sim.tick()
            await crawl(system)
        assert await ended(system) == {"completed"}
        await assert_history(sim, system, 2)
        before, now = (sim.expected.rows(shop.slug, tick) for tick in (0, 1))
        assert any(before[i].options != now[i].options for i in before.keys() & now.keys()), "the market has moved"
        (row,) = await query(system, "SELECT * FROM dispensaries")
        assert [row[name] for name in ("platform", "platform_dispensary_id", "slug", "name", "city", "state", "is_medical")] == [
            "weedmaps", shop.id, shop.slug, shop.name, shop.city, shop.state, shop.medical,
        ]  # fmt: skip
        (place,) = await query(system, "SELECT * FROM dutchie_discovery_locations")
        assert (place["platform"], place["platform_dispensary_id"], place["dispensary_id"]) == (
            "weedmaps",
            shop.id,
            row["id"],
        )
        payloads = await query(
            system, "SELECT platform, status, page_count, product_count FROM raw_crawl_payloads ORDER BY id"
        )
        assert payloads == [
            {"platform": "weedmaps", "status": "ok", "page_count": -(-count // 100), "product_count": count}
            for count in (len(before), len(now))
        ]
        stats = await sim.stats()
        assert stats["direct"] == 0, "every request goes through a proxy"
        assert stats["requests"]["menu_items"] >= 4
        asked = {row["host"] for row in await query(system, "SELECT DISTINCT host FROM fetch_attempts")}
        assert asked == {sim.platforms["weedmaps"]["base_url"].removeprefix("http://")}


async def test_a_platform_that_is_asked_has_schedules_of_its_own(home: Path) -> None:
    async with market(home, store_count=1, platform_counts={"weedmaps": 1}, product_count=5, seed=3) as (sim, system):
        await ensure_default_schedules(system)
        rows = await query(
            system, "SELECT id, name, role, platform FROM task_schedules WHERE platform <> 'dutchie' ORDER BY id"
        )
        assert [(row["name"], row["role"], row["platform"]) for row in rows] == [
            ("payload_fetch_weedmaps", "payload_fetch", "weedmaps"),
            ("store_discovery_weedmaps", "store_discovery", "weedmaps"),
        ]
        async with bootstrap.run_worker(system):
            async with system.pool.connection() as conn:
                now = system.clock.now()
                await schedules.fire(conn, rows[1]["id"], fire_at=now, now=now, next_run_at=None)
            await settle(system)
        (store,) = await query(system, "SELECT platform, slug, product_count FROM dispensaries")
        assert store == {"platform": "weedmaps", "slug": sim.market.on("weedmaps")[0].slug, "product_count": 5}


async def test_a_region_without_stores_and_a_slug(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"weedmaps": 2}, product_count=5, seed=3) as (sim, system):
        first, second = sim.market.stores
        async with bootstrap.run_worker(system):
            assert (await discover(system, "weedmaps", state="NM"))["found"] == 0
            assert (await discover(system, "weedmaps", city=second.city))["found"] == 1
            # A store that is known by its address alone.
            async with system.pool.connection() as conn:
                await conn.execute(
                    "INSERT INTO dispensaries (platform, slug, name, name_raw) VALUES ('weedmaps', %s, 'x', 'x')",
                    (first.slug,),
                )
                number = (await (await conn.execute("SELECT max(id) FROM dispensaries")).fetchone() or (0,))[0]
                new = NewTask(role=Role.ENTRY_POINT_DISCOVERY, dispensary_id=number, platform="weedmaps")
                await tasks.enqueue(conn, [new])
            await settle(system)
        rows = await query(system, "SELECT platform_dispensary_id, name, product_count FROM dispensaries ORDER BY id")
        assert rows == [{"platform_dispensary_id": s.id, "name": s.name, "product_count": 5} for s in (second, first)]


@pytest.mark.parametrize("mood", MOODS)
async def test_a_market_of_both_platforms(home: Path, mood: str) -> None:
    async with market(
        home, store_count=2, platform_counts={"weedmaps": 3}, product_count=110, seed=5, faults=MOODS[mood]
    ) as (
        sim,
        system,
    ):
        async with bootstrap.run_worker(system):
            assert (await discover(system, "dutchie"))["found"] == 2
            assert (await discover(system, "weedmaps"))["found"] == 3
            for _ in range(2):
                await sim.tick()
                await crawl(system)
        assert await ended(system) == {"completed"}
        await assert_history(sim, system, 3)
        # What the market calls one thing is one canonical category, whichever platform's words it came in.
        kinds = {
            state.product.id: state.product.category
            for store in sim.market.stores
            for tick in range(3)
            for state in sim.market.menu(store, tick)
        }
        canon: dict[str, set[str]] = defaultdict(set)
        raw: dict[str, set[str]] = defaultdict(set)
        for row in await query(
            system, "SELECT provider, provider_product_id, category, category_canon FROM store_products"
        ):
            canon[kinds[row["provider_product_id"]]].add(row["category_canon"])
            raw[row["provider"]].add(row["category"])
        assert canon == {
            "Flower": {"flower"}, "Pre-Rolls": {"preroll"}, "Vaporizers": {"vaporizer"}, "Concentrate": {"concentrate"},
            "Edible": {"edible"}, "Tincture": {"tincture"}, "Topicals": {"topical"}, "Oral": {"oral"}, "Accessories": {"accessory"},
        }  # fmt: skip
        assert {"Pre-Rolls", "Accessories"} <= raw["dutchie"]
        assert {"Vape Pens", "Gear"} <= raw["weedmaps"], "the platform's own words stay beside them"
        # An eighth is 3.5 grams on either.
        eighths = await query(
            system,
            "SELECT DISTINCT p.provider, v ->> 'weight_g' AS grams FROM store_products p, jsonb_array_elements(p.variants) v"
            " WHERE p.category_canon = 'flower' AND v ->> 'option' IN ('1/8oz', '1/8 oz', '3.5g')",
        )
        assert {(row["provider"], float(row["grams"])) for row in eighths} == {("dutchie", 3.5), ("weedmaps", 3.5)}


def test_a_store_is_added_by_its_address_where_the_platform_is_asked(database_url: str, tmp_path: Path) -> None:
    def run(*args: str, **setting: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path / "home"), **setting}
        return menuwatch("stores", *args, env=env)

    def add(**setting: str) -> subprocess.CompletedProcess[str]:
        return run("add", "https://weedmaps.com/dispensaries/a-shop", **setting)

    refused = add()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is a menu of weedmaps, which is not configured: set WEEDMAPS_BASE_URL" in refused.stderr
    added = add(WEEDMAPS_BASE_URL="http://127.0.0.1:9")
    assert added.returncode == 0, added.stderr
    assert "(a-shop)" in added.stdout
    assert run("set", "a-shop", "--interval", "0.5").stdout == "Crawled every 30 min.\n"
    assert run("set", "a-shop", "--no-crawl").stdout == "Crawling disabled.\n"
    assert "from 0.25 to 720" in run("set", "a-shop", "--interval", "0.1").stderr
    (listed,) = json.loads(
        run("list", "--no-crawl", "--freshness", "off", "--search", "SHOP", "--format", "json").stdout
    )
    assert (listed["slug"], listed["crawl_enabled"]) == ("a-shop", False)
    assert json.loads(run("list", "--crawl", "--format", "json").stdout) == []
