"""Workers of one machine, scaled: real processes, real PostgreSQL, and a ledger of effects that the queue knows nothing of."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psutil
import pytest

from menuwatch.cluster import hold
from menuwatch.cluster.base import Standing
from menuwatch.cluster.crew import Crew
from menuwatch.cluster.hold import Holder
from menuwatch.cluster.local import LocalScaler
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.operations import workers
from menuwatch.tasks.model import NewTask, Role
from menuwatch.workers import registry
from menuwatch.workers.commands import Command
from tests.cluster.head import LIMITS, PACE, hand
from tests.engine.waiting import put, until

SCALER = LocalScaler(Settings())
NAMES = ["Ada", "Bruno", "Cleo", "Dario", "Edda", "Finn"]


@asynccontextmanager
async def at_work(crew: Crew) -> AsyncIterator[Crew]:
    run = asyncio.create_task(crew.run())
    try:
        yield crew
    finally:
        crew.stop()
        await asyncio.wait_for(run, 20)


@pytest.fixture
async def effects(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("CREATE UNLOGGED TABLE effects (task_id bigint, what text, worker_id text)")


def crew_of(pool: Pool, url: str, **changes: object) -> Crew:
    given: dict[str, object] = {"first": 1, "pace": PACE, **changes}
    return Crew(pool, lambda _: hand(url), LIMITS, **given)  # type: ignore[arg-type]


async def standing(pool: Pool) -> Standing:
    async with pool.connection() as conn:
        return await SCALER.replicas(conn)


async def order(pool: Pool, wanted: int) -> None:
    async with pool.connection() as conn:
        await SCALER.scale(conn, wanted)


def steady(pool: Pool, count: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        found = await standing(pool)
        return (found.current, found.desired, found.doing) == (count, count, None)

    return look


async def pids(pool: Pool) -> dict[str, int]:
    async with pool.connection() as conn:
        return {one.worker_id: one.pid or 0 for one in await registry.list_workers(conn)}


async def scalar(pool: Pool, query: str) -> int:
    async with pool.connection() as conn:
        row = await (await conn.execute(query.encode())).fetchone()
    assert row is not None
    return int(row[0])


def load(first: int, count: int) -> list[NewTask]:
    return [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=n) for n in range(first, first + count)]


async def test_one_to_six_to_two_under_load_loses_and_doubles_nothing(
    pool: Pool, database_url: str, effects: None
) -> None:
    """There is work for all six when they are there, and some is left when four of them are told to leave."""
    async with at_work(crew_of(pool, database_url)) as crew:
        await until(steady(pool, 1))
        await put(pool, *load(1, 150))
        await order(pool, 6)
        said = await standing(pool)
        assert (said.current, said.desired, said.doing) == (1, 6, "5 starting")
        await until(steady(pool, 6), seconds=20)
        assert [post.name for post in crew.posts] == NAMES
        await put(pool, *load(151, 350))

        async def all_six() -> bool:
            return await scalar(pool, "SELECT count(DISTINCT worker_id) FROM effects") == 6

        await until(all_six)
        await order(pool, 2)
        said = await standing(pool)
        assert (said.current, said.desired) == (6, 2)
        assert said.doing == "4 finish what they have and then leave"
        assert await scalar(pool, "SELECT count(*) FROM worker_tasks WHERE status = 'pending'") > 100, "under load"
        await until(steady(pool, 2))
        assert len(await pids(pool)) == 2

        async def done() -> bool:
            return await scalar(pool, "SELECT count(*) FROM worker_tasks WHERE status <> 'completed'") == 0

        await until(done, seconds=20)
    for what in ("began", "ended"):
        assert await scalar(pool, f"SELECT count(*) FROM effects WHERE what = '{what}'") == 500
        assert await scalar(pool, f"SELECT count(DISTINCT task_id) FROM effects WHERE what = '{what}'") == 500
    assert await scalar(pool, "SELECT count(*) FROM worker_tasks WHERE retry_count > 0") == 0
    assert await scalar(pool, "SELECT count(*) FROM worker_commands WHERE command = 'decommission'") == 4
