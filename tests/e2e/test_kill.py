"""`kill -9` of the worker at any moment of a crawl, then starting it again, ends in the catalogue of an undisturbed run."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from menuwatch.archive.files import FileArchive
from menuwatch.archive.service import recover_archive
from menuwatch.cli.demo import crawl_all, first_crawl, market
from menuwatch.system import System
from tests.e2e.expected_catalog import assert_catalogue, snapshot_of, snapshots

STORES, PRODUCTS = 6, 60
CYCLES = int(os.environ.get("KILL_CYCLES", "3"))
"""Crawls of every store; `make chaos` makes more."""
KILLS_PER_CYCLE = 2
"""A task survives three deaths of its worker (`max_retries`); the fourth would rightly fail it."""


class Worker:
    """`menuwatch worker` as a process of its own."""

    def __init__(self, system: System) -> None:
        settings = system.settings
        self._env = {
            **os.environ,
            "MENUWATCH_HOME": str(settings.home),
            "DATABASE_URL": system.database_url,
            "STORAGE_PATH": str(settings.storage),
            "DUTCHIE_BASE_URL": settings.dutchie_base_url,
            "TASK_RETRY_BASE_SECONDS": "0.1",
            "FETCH_RETRY_BASE_SECONDS": "0.02",
            "BLOCKED_WAIT_SECONDS": "0.2",
            "HOST_RATE": "1000",
            "HOST_BURST": "100",
            "HOST_COOLDOWN_SECONDS": "0.2",
            "CIRCUIT_SECONDS": "0.5",
            "POLL_INTERVAL_MS": "100",
            "HEARTBEAT_INTERVAL_MS": "100",
            "STALE_AFTER_MINUTES": "0.01",
            "CPU_BACKOFF_THRESHOLD": "1",
            "LOG_LEVEL": "error",
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "menuwatch.cli.main", "worker", env=self._env
        )

    async def kill(self) -> None:
        """SIGKILL: nothing of it gets to tidy up."""
        assert self._process is not None
        assert self._process.returncode is None, "it was alive"
        self._process.kill()
        await self._process.wait()


async def _alive(system: System) -> None:
    """Until the worker has something in hand or nothing is left: a kill before that would only test the start."""
    async with asyncio.timeout(30):
        while True:
            async with system.pool.connection() as conn:
                cursor = await conn.execute(
                    "SELECT count(*) FILTER (WHERE status IN ('claimed', 'running')), count(*) FILTER (WHERE status = 'pending')"
                    "  FROM worker_tasks"
                )
                active, waiting = (await cursor.fetchone()) or (0, 0)
            if active or not waiting:
                return
            await asyncio.sleep(0.01)


async def _under_fire(system: System, rng: random.Random, crawl: Coroutine[Any, Any, None]) -> None:
    """One crawl of all stores, its worker killed on the way at random moments."""
    work = asyncio.create_task(crawl)
    await asyncio.sleep(0)
    worker = Worker(system)
    for _ in range(KILLS_PER_CYCLE):
        await worker.start()
        await _alive(system)
        await asyncio.sleep(rng.uniform(0, 0.6))
        await worker.kill()
    await worker.start()
    await work
    await worker.kill()


def _files(archive_root: Path) -> set[str]:
    return {str(path.relative_to(archive_root)) for path in archive_root.rglob("*.json.gz")}


async def test_killed_workers_leave_the_same_catalogue(home: Path) -> None:
    rng = random.Random(4)
    faults: dict[str, Any] = {"slow": {"rate": 0.6, "seconds": 0.3}, "forbidden": {"rate": 0.03, "lasts": 10}}
    async with market(home, store_count=STORES, product_count=PRODUCTS, seed=11, faults=faults) as (
        simulator,
        system,
    ):
        await _under_fire(system, rng, first_crawl(system))
        for _ in range(CYCLES - 1):
            await simulator.tick()
            await _under_fire(system, rng, crawl_all(system))
        async with system.pool.connection() as conn:
            cursor = await conn.execute(
                "SELECT status, count(*) FILTER (WHERE retry_count > 0) FROM worker_tasks GROUP BY status"
            )
            ((status, interrupted),) = await cursor.fetchall()
        assert status == "completed", "every task ended well"
        assert interrupted >= CYCLES - 1, "workers died with tasks in hand"
        ticks = {store.slug: list(range(CYCLES)) for store in simulator.market.stores}
        expected, counts = simulator.expect(ticks)
        await assert_catalogue(system.pool, expected)
        history = await snapshots(system.pool)
        for slug in ticks:
            served = [simulator.expected.rows(slug, tick) for tick in range(CYCLES)]
            assert history[slug] == [{i: snapshot_of(row) for i, row in rows.items()} for rows in served]
        assert sum(len(crawl) for crawls in history.values() for crawl in crawls) == counts.snapshots
        # The archive holds a file for every row and a row for every file.
        archive = FileArchive(system.settings.storage)
        await recover_archive(system.pool, archive, older_than=0)
        async with system.pool.connection() as conn:
            rows = {
                str(path) for (path,) in await (await conn.execute("SELECT path FROM raw_crawl_payloads")).fetchall()
            }
        assert _files(system.settings.storage) == rows
        assert list(archive.staged()) == []
