"""`crawl_enabled = false` always wins: no role contacts such a store, and one that is disabled while it is asked is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from menuwatch import bootstrap
from menuwatch.cli.demo import first_crawl, market
from menuwatch.queue.model import NewTask, Role
from menuwatch.stores import store as stores
from menuwatch.system import System
from tests.host_rows import change_limits
from tests.workers.waiting import look, put, until


async def disable(system: System, store_id: int) -> None:
    async with system.pool.connection() as conn:
        await stores.set_crawl_enabled(conn, store_id, False)


async def only_store(system: System) -> int:
    async with system.pool.connection() as conn:
        row = await (await conn.execute("SELECT id FROM dispensaries")).fetchone()
    assert row is not None
    return int(row[0])


async def test_no_role_asks_for_a_store_that_is_disabled(home: Path) -> None:
    async with market(home, store_count=1, product_count=20, seed=3) as (sim, system):
        async with bootstrap.run_worker(system):
            await first_crawl(system)
        store_id = await only_store(system)
        # Waiting when it is disabled, and put there afterwards.
        new = [
            NewTask(role=role, dispensary_id=store_id, platform="dutchie", unique=False)
            for role in (Role.PAYLOAD_FETCH, Role.PRODUCT_DISCOVERY, Role.ENTRY_POINT_DISCOVERY)
        ]
        waiting = await put(system.pool, *new)
        await disable(system, store_id)
        waiting += await put(system.pool, *new)
        before = len(await sim.arrivals())
        assert before, "the first crawl"

        async def ended() -> bool:
            return {(await look(system.pool, task_id)).status for task_id in waiting} == {"failed"}

        async with bootstrap.run_worker(system):
            await until(ended, seconds=30)
        for task_id in waiting:
            task = await look(system.pool, task_id)
            assert task.error_message is not None
            assert task.error_message.startswith("crawling of store")
            assert task.error_message.endswith("is disabled")
        assert len(await sim.arrivals()) == before


@pytest.mark.parametrize("role", [Role.PAYLOAD_FETCH, Role.PRODUCT_DISCOVERY])
async def test_one_that_is_disabled_between_two_pages_is_asked_for_no_more(role: Role, home: Path) -> None:
    async with market(home, store_count=1, product_count=600, seed=3) as (sim, system):
        async with bootstrap.run_worker(system):
            await first_crawl(system)
        store_id = await only_store(system)
        async with system.pool.connection() as conn:
            await change_limits(conn, sim.base_url.removeprefix("http://"), min_gap=1.2)
        before = len(await sim.arrivals())
        async with bootstrap.run_worker(system):
            (task_id,) = await put(system.pool, NewTask(role=role, dispensary_id=store_id, platform="dutchie"))

            async def begun() -> bool:
                return len(await sim.arrivals(before)) >= 2

            await until(begun, seconds=30)
            await disable(system, store_id)
            asked = len(await sim.arrivals(before))

            async def ended() -> bool:
                return (await look(system.pool, task_id)).status == "failed"

            await until(ended, seconds=30)
        task = await look(system.pool, task_id)
        assert task.error_message is not None
        assert "was disabled after this task started" in task.error_message
        # A request may have been on its way while the store was disabled; the menu has six pages.
        assert len(await sim.arrivals(before)) <= asked + 1 < 6
