"""Joint from the address of a shop's site to the catalog: added, crawled while the market moves and misbehaves, and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from menuwatch import bootstrap
from menuwatch.cli.demo import market, settle
from menuwatch.core.http import Response
from menuwatch.pipeline.store_discovery import add_store
from menuwatch.platforms.joint.adapter import Joint
from menuwatch.sim.platforms.joint import has_old_route, wants_nonce
from menuwatch.sim.process import Simulator
from menuwatch.system import System
from tests.e2e.platform_crawl import MOODS, assert_history, crawl, ended, query, with_platform


async def add(sim: Simulator, system: System) -> None:
    for store in sim.market.on("joint"):
        async with system.pool.connection() as conn:
            await add_store(conn, system.platforms, f"https://{store.slug}/?utm_source=x", "joint")
    await settle(system)


@pytest.mark.parametrize("mood", MOODS)
async def test_added_sites_are_crawled_for_three_ticks(home: Path, mood: str) -> None:
    async with market(
        home, store_count=0, platform_counts={"joint": 3}, product_count=130, seed=4, faults=MOODS[mood]
    ) as (sim, system):
        stores = sim.market.on("joint")
        assert {has_old_route(store) for store in stores} == {wants_nonce(store) for store in stores} == {True, False}
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
        assert [tuple(row.values()) for row in rows] == [(s.id, s.slug, s.name, s.city, s.state) for s in stores]
        capped = await query(system, "SELECT count(*) AS n FROM store_products WHERE quantity_capped")
        assert capped[0]["n"] > 20
        stats = await sim.stats()
        assert stats["direct"] == 0, "every request goes through a proxy"
        asked = {row["host"] for row in await query(system, "SELECT DISTINCT host FROM fetch_attempts")}
        assert asked == {sim.platforms["joint"]["base_url"].removeprefix("http://")}


class WithoutNonce(Joint):
    """A site whose pages come from a cache, with an old nonce."""

    async def _page(self, session: Any, address: str, usable: Any) -> Any:
        class Cached:
            async def request(self, *args: Any, **options: Any) -> Response:
                answer = await session.request(*args, **options)
                return replace(answer, body=answer.body.replace(b'"nonce":"', b'"nonce":"00'))

        return await super()._page(Cached(), address, usable)  # type: ignore[arg-type]


async def test_a_nonce_that_stays_refused_blames_no_identity(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"joint": 1}, product_count=5, seed=4) as (sim, system):
        (store,) = sim.market.on("joint")
        assert wants_nonce(store)
        adapter = WithoutNonce(base_url=sim.platforms["joint"]["base_url"], retry_base_seconds=0)
        changed = with_platform(system, adapter)
        async with bootstrap.run_worker(changed):
            await add(sim, changed)
        rows = await query(system, "SELECT role, status, error_message FROM worker_tasks ORDER BY id")
        assert [(row["role"], row["status"]) for row in rows] == [
            ("entry_point_discovery", "completed"), ("product_discovery", "failed"),
        ]  # fmt: skip
        assert "rest_cookie_invalid_nonce" in rows[1]["error_message"]
        verdicts = await query(system, "SELECT DISTINCT verdict FROM fetch_attempts")
        assert {row["verdict"] for row in verdicts} == {"ok", "client_bug"}
