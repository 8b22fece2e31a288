"""Dispense from a menu's address to the catalog: added, crawled while the market moves and misbehaves, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from menuwatch import bootstrap
from menuwatch.cli.demo import market, settle
from menuwatch.pipeline.store_discovery import add_store
from menuwatch.platforms.dispense.adapter import Dispense
from menuwatch.sim.process import Simulator
from menuwatch.system import System
from tests.e2e.platform_crawl import MOODS, assert_history, crawl, ended, query, with_platform


async def add(sim: Simulator, system: System) -> None:
    for store in sim.market.on("dispense"):
        async with system.pool.connection() as conn:
            await add_store(conn, system.platforms, f"https://menus.dispenseapp.com/{store.id}/menu/categories/edibles")
    await settle(system)


@pytest.mark.parametrize("mood", MOODS)
async def test_added_stores_are_crawled_for_three_ticks(home: Path, mood: str) -> None:
    async with market(
        home, store_count=0, platform_counts={"dispense": 2}, product_count=210, seed=4, faults=MOODS[mood]
    ) as (sim, system):
        async with bootstrap.run_worker(system):
            await add(sim, system)
            for _ in range(2):
                await sim.tick()
                await crawl(system)
        assert await ended(system) == {"completed"}
        await assert_history(sim, system, 3)
        rows = await query(
            system, "SELECT platform_dispensary_id, slug, name, city, state FROM dispensaries ORDER BY id"
        )
        assert [tuple(row.values()) for row in rows] == [
            (s.id, s.slug, s.name, s.city, s.state) for s in sim.market.on("dispense")
        ]
        several = await query(system, "SELECT count(*) AS n FROM store_products WHERE jsonb_array_length(variants) > 1")
        assert several[0]["n"] > 20
        stats = await sim.stats()
        assert stats["direct"] == 0, "every request goes through a proxy"
        asked = {row["host"] for row in await query(system, "SELECT DISTINCT host FROM fetch_attempts")}
        assert asked == {sim.platforms["dispense"]["base_url"].removeprefix("http://")}


@pytest.mark.parametrize(("key", "requests"), [("an-old-one", 1), ("", 0)])
async def test_a_refused_key_names_the_setting_and_blames_no_identity(home: Path, key: str, requests: int) -> None:
    async with market(home, store_count=0, platform_counts={"dispense": 1}, product_count=5, seed=4) as (sim, system):
        adapter = Dispense(base_url=sim.platforms["dispense"]["base_url"], api_key=key)
        changed = with_platform(system, adapter)
        async with bootstrap.run_worker(changed):
            await add(sim, system)  # where the key is missing, no store is added
        (task,) = await query(system, "SELECT status, error_message FROM worker_tasks")
        assert task["status"] == "failed"
        assert "DISPENSE_API_KEY" in task["error_message"]
        verdicts = await query(system, "SELECT verdict FROM fetch_attempts")
        assert [row["verdict"] for row in verdicts if row["verdict"] in ("blocked", "challenge")] == []
        assert (await sim.stats())["invalid"] == requests
