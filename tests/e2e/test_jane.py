"""Jane through the whole system: found or added, crawled while it changes and misbehaves, and with a key that is refused."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from menuwatch import bootstrap
from menuwatch.cli.demo import market, settle
from menuwatch.pipeline.store_discovery import add_store
from menuwatch.platforms.jane.adapter import Jane
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from tests.commands import menuwatch
from tests.e2e.platform_crawl import MOODS, assert_history, crawl, discover, ended, query


@pytest.mark.parametrize("mood", MOODS)
async def test_three_ticks_of_a_market_beside_dutchie(home: Path, mood: str) -> None:
    async with market(
        home, store_count=1, platform_counts={"jane": 3}, product_count=110, seed=5, faults=MOODS[mood]
    ) as (sim, system):
        async with bootstrap.run_worker(system):
            assert (await discover(system, "dutchie"))["found"] == 1
            found = await discover(system, "jane")
            assert (found["found"], found["rejected"]) == (3, 0)
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
        for row in await query(system, "SELECT provider_product_id, category_canon FROM store_products"):
            canon[kinds[row["provider_product_id"]]].add(row["category_canon"])
        assert canon == {
            "Flower": {"flower"}, "Pre-Rolls": {"preroll"}, "Vaporizers": {"vaporizer"}, "Concentrate": {"concentrate"},
            "Edible": {"edible"}, "Tincture": {"tincture"}, "Topicals": {"topical"}, "Oral": {"oral"}, "Accessories": {"accessory"},
        }  # fmt: skip
        stats = await sim.stats()
        assert stats["direct"] == 0, "every request goes through a proxy"


async def test_a_store_added_by_its_address(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"jane": 2}, product_count=30, seed=3) as (sim, system):
        shop = sim.market.stores[1]
        async with bootstrap.run_worker(system):
            async with system.pool.connection() as conn:
                await add_store(conn, system.platforms, f"https://www.iheartjane.com/embed/stores/{shop.id}/menu")
            await settle(system)
        (row,) = await query(system, "SELECT * FROM dispensaries")
        assert [row[name] for name in ("platform", "platform_dispensary_id", "slug", "name", "state", "is_medical", "zipcode")] == [
            "jane", shop.id, shop.slug, shop.name, shop.state, shop.medical, shop.zipcode,
        ]  # fmt: skip
        assert row["timezone"] == "America/New_York", "Ann Arbor, as Jane's record of it names its zone"
        payloads = await query(system, "SELECT platform, status, page_count, product_count FROM raw_crawl_payloads")
        assert payloads == [{"platform": "jane", "status": "ok", "page_count": 1, "product_count": 30}]
        assert row["product_count"] == 30


async def test_stores_of_a_state_and_a_city(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"jane": 3}, product_count=2, seed=3) as (sim, system):
        first, second, _ = sim.market.stores
        async with bootstrap.run_worker(system):
            assert (await discover(system, "jane", state="NM"))["found"] == 0
            assert (await discover(system, "jane", city=second.city))["found"] == 1
            assert (await discover(system, "jane", state=first.state))["found"] == sum(
                store.state == first.state for store in sim.market.stores
            )
        rows = await query(system, "SELECT DISTINCT state FROM dispensaries ORDER BY state")
        assert [row["state"] for row in rows] == sorted({first.state, second.state})


async def test_a_refused_key_fails_the_task_and_no_identity(home: Path) -> None:
    async with market(home, store_count=0, platform_counts={"jane": 1}, product_count=5, seed=3) as (sim, system):
        shop = sim.market.stores[0]
        known = system.platforms["jane"]
        assert isinstance(known, Jane)
        async with bootstrap.run_worker(system):
            await discover(system, "jane")
            known.api_key = "a key of yesterday"
            await crawl(system)
        (task,) = await query(
            system,
            "SELECT status, error_message FROM worker_tasks WHERE role = 'payload_fetch' ORDER BY id DESC LIMIT 1",
        )
        assert task["status"] == "failed"
        for part in ("Invalid Application-ID or API key", "JANE_API_KEY", "HTTP 403"):
            assert part in task["error_message"]
        attempts = await query(system, "SELECT verdict, rotated FROM fetch_attempts WHERE status = 403 ORDER BY id")
        assert attempts == [{"verdict": "client_bug", "rotated": False}]
        (store,) = await query(system, "SELECT platform_dispensary_id, product_count FROM dispensaries")
        assert store == {"platform_dispensary_id": shop.id, "product_count": 5}


async def test_a_store_that_is_gone_is_an_empty_menu(home: Path) -> None:
    """The index answers for an unknown store as for an empty one."""
    async with market(home, store_count=0, platform_counts={"jane": 1}, product_count=5, seed=3) as (_, system):
        async with bootstrap.run_worker(system):
            await discover(system, "jane")
            async with system.pool.connection() as conn:
                await conn.execute("UPDATE dispensaries SET platform_dispensary_id = '999999'")
                number = (await (await conn.execute("SELECT max(id) FROM dispensaries")).fetchone() or (0,))[0]
                new = NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=number, platform="jane", max_retries=0)
                await tasks.enqueue(conn, [new])
            await settle(system)
        payloads = await query(system, "SELECT status, reason FROM raw_crawl_payloads ORDER BY id")
        assert payloads[0]["status"] == "ok"
        assert {row["status"] for row in payloads[1:]} == {"rejected"}
        assert "empty: the menu of store 999999 has no products" in payloads[-1]["reason"]
        products = await query(
            system, "SELECT DISTINCT stock_status = 'oos' AND consecutive_misses > 0 AS lost FROM store_products"
        )
        assert products == [{"lost": False}]


def test_a_store_is_added_by_its_address_where_the_platform_is_configured(database_url: str, tmp_path: Path) -> None:
    def run(*args: str, **setting: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path / "home"), **setting}
        return menuwatch("stores", *args, env=env)

    address = "https://www.iheartjane.com/stores/477/people-s-kush/menu"
    refused = run("add", address)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is a menu of jane, which is not configured: set JANE_BASE_URL" in refused.stderr
    keyless = run("add", address, JANE_BASE_URL="http://127.0.0.1:9")
    assert keyless.returncode == 2
    assert "JANE_API_KEY" in keyless.stderr
    settings: dict[str, Any] = {"JANE_BASE_URL": "http://127.0.0.1:9", "JANE_API_KEY": "abc"}
    added = run("add", address, **settings)
    assert added.returncode == 0, added.stderr
    assert "(477-people-s-kush)" in added.stdout
    (listed,) = json.loads(run("list", "--format", "json").stdout)
    assert (listed["slug"], listed["platform"]) == ("477-people-s-kush", "jane")
