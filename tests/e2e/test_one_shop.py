"""A shop that people add and discovery finds is one store in the end, with one crawl and one catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from menuwatch import bootstrap
from menuwatch.cli.demo import first_crawl, market, settle
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from menuwatch.stores import store as stores
from menuwatch.system import System


async def _query(system: System, query: Any) -> list[dict[str, Any]]:
    async with system.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query)
        return await cur.fetchall()


async def _add(system: System, url: str) -> int:
    """Adds a store by its address, and leaves it unresolved."""
    slug = system.platforms["dutchie"].slug_of(url)
    assert slug is not None
    async with system.pool.connection() as conn:
        return (await stores.add_by_url(conn, platform="dutchie", slug=slug, menu_url=url)).id


async def test_added_then_found(home: Path) -> None:
    async with market(home, store_count=2, product_count=20, seed=3) as (sim, system):
        shop = sim.market.stores[0]
        added = await _add(system, f"{sim.base_url}/dispensary/{shop.slug}")
        async with bootstrap.run_worker(system):
            await first_crawl(system)
        rows = await _query(system, "SELECT id, platform_dispensary_id, product_count FROM dispensaries ORDER BY id")
        assert [(row["id"], row["platform_dispensary_id"]) for row in rows] == [
            (added, shop.id),
            (rows[1]["id"], sim.market.stores[1].id),
        ]
        assert all(row["product_count"] for row in rows), "each had its first crawl"


async def test_a_second_row_for_a_known_shop_is_closed_and_says_why(home: Path) -> None:
    """Added under an old name: only asking the platform shows that the shop is known."""
    async with market(home, store_count=1, product_count=20, seed=3) as (sim, system):
        shop = sim.market.stores[0]
        # The platform answers to the id as well as to the slug; discovery knows the shop by its slug.
        second = await _add(system, f"{sim.base_url}/dispensary/{shop.id}")
        async with bootstrap.run_worker(system):
            await first_crawl(system)
            async with system.pool.connection() as conn:
                new = NewTask(role=Role.ENTRY_POINT_DISCOVERY, dispensary_id=second, platform="dutchie")
                await tasks.enqueue(conn, [new])
            await settle(system)
        (first,) = await _query(system, "SELECT * FROM dispensaries WHERE platform_dispensary_id IS NOT NULL")
        (duplicate,) = await _query(system, "SELECT * FROM dispensaries WHERE platform_dispensary_id IS NULL")
        (task,) = await _query(system, "SELECT * FROM worker_tasks WHERE role = 'entry_point_discovery'")
        assert (duplicate["id"], duplicate["crawl_enabled"]) == (second, False)
        assert task["status"] == "failed"
        assert f"is a duplicate of store {first['id']} ({first['name']})" in task["error_message"]
        assert duplicate["last_error"] == task["error_message"]
        attempts = await _query(system, f"SELECT 1 FROM fetch_attempts WHERE task_id = {task['id']}")
        assert attempts, "what was asked is on record all the same"
        crawled = await _query(system, "SELECT dispensary_id FROM store_crawls")
        assert [row["dispensary_id"] for row in crawled] == [first["id"]]
