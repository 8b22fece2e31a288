"""The pool keeps its connections whatever happens to the tasks that use them."""

from __future__ import annotations

import asyncio

import pytest

from menuwatch.db.pool import open_pool


@pytest.mark.parametrize("turns", range(5))
async def test_a_task_cancelled_while_it_returns_its_connection_loses_nothing(database_url: str, turns: int) -> None:
    """`turns`: of the event loop between the return and the cancellation."""
    async with open_pool(database_url, max_size=1) as pool:
        held, release = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with pool.connection():
                held.set()
                await release.wait()

        async def use() -> None:
            async with pool.connection() as conn:
                await conn.execute("SELECT 1")

        first = asyncio.create_task(hold())
        await held.wait()
        release.set()
        second = asyncio.create_task(use())
        for _ in range(turns):
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait_for(second, 10)
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.wait_for(use(), 10)
        assert pool.get_stats()["pool_available"] == pool.get_stats()["pool_size"] == 1
