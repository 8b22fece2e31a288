"""Every proxy dies while a worker runs: it stays up, waits, says so, and goes on by itself once one lives again. Their passwords
are sealed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import new_key
from menuwatch.db.pool import Pool
from menuwatch.ops import health
from menuwatch.proxies import passwords as proxy_passwords
from menuwatch.proxies import service as operations
from menuwatch.proxies import store
from menuwatch.queue import store as tasks
from menuwatch.queue.model import PRIORITY_DISCOVERY, NewTask, Role
from menuwatch.sim.process import Simulator
from tests.workers.waiting import until

SETTINGS = {
    "PROXY_PROBE_SECONDS": "0.2",
    "POLL_INTERVAL_MS": "100",
    "TASK_RETRY_BASE_SECONDS": "0.1",
    "FETCH_RETRY_BASE_SECONDS": "0.05",
    "FETCH_TIMEOUT_SECONDS": "10",
    # A busy machine is no reason to wait here.
    "CPU_BACKOFF_THRESHOLD": "1",
    "MEMORY_BACKOFF_THRESHOLD": "1",
    "EVENT_LOOP_LAG_BACKOFF_MS": "60000",
    "HOST_RATE": "100",
    "HOST_BURST": "20",
    "HOST_CONCURRENCY": "6",
    "HOST_MIN_GAP_SECONDS": "0",
}


@contextmanager
def _worker(log: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, **SETTINGS, "LOG_FORMAT": "json", **settings}
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "menuwatch.cli.main", "worker"], env=env, stderr=written, stdout=subprocess.DEVNULL
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)
    assert process.returncode == 0


def _logged(log: Path, action: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["action"] == action]


async def _rows(pool: Pool, query: str) -> list[dict[str, Any]]:
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query.encode())
        return await cur.fetchall()


async def test_work_waits_while_no_proxy_lives_and_goes_on_by_itself(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with Simulator(stores=2, products=20, seed=3, proxies=2) as simulator:
        for proxy in simulator.proxies:
            await operations.add(pool, proxy.url)
        for index in range(2):
            await simulator.break_proxy(index, "dead")
        async with pool.connection() as conn:
            await tasks.enqueue(conn, [NewTask(role=Role.STORE_DISCOVERY, priority=PRIORITY_DISCOVERY, max_retries=50)])
        key = new_key()
        await proxy_passwords.encrypt_all(pool, Settings(secret_key=(key,)))
        home = {"SECRET_KEY": key, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path / "home")}
        with _worker(log, DUTCHIE_BASE_URL=simulator.base_url, **home) as process:

            async def all_out() -> bool:
                async with pool.connection() as conn:
                    standing = await store.count(conn)
                return (standing.active, standing.inactive) == (0, 2)

            await until(all_out, seconds=30)
            assert all(line["reason"] for line in _logged(log, "proxy_deactivated"))

            async def tried_and_failed() -> bool:
                return all(
                    row["probe_failures"] >= 1 for row in await _rows(pool, "SELECT probe_failures FROM proxies")
                )

            await until(tried_and_failed, seconds=30)
            found = await health.check(pool, FileArchive(tmp_path / "storage"), {})
            assert found.checks.proxies.detail.startswith("no active proxy: 2 inactive, ")
            assert "network roles wait" in found.checks.proxies.detail
            assert found.ready, "the server works all the same"
            assert process.poll() is None, "the worker stays up"
            (task,) = await _rows(pool, "SELECT status FROM worker_tasks")
            assert task["status"] == "pending"

            for index in range(2):
                await simulator.break_proxy(index, None)

            async def done() -> bool:
                rows = await _rows(pool, "SELECT status FROM worker_tasks")
                return len(rows) > 1 and all(row["status"] == "completed" for row in rows)

            await until(done, seconds=60)
            assert process.poll() is None
            assert _logged(log, "proxy_reactivated")
    crawled = await _rows(pool, "SELECT DISTINCT dispensary_id FROM store_crawls")
    assert len(crawled) == 2
    assert not any(proxy.password in log.read_text() for proxy in simulator.proxies)
