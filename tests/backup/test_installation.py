"""An installation that works is backed up beside its work, destroyed, and brought back as it was; then it goes on."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from menuwatch import bootstrap
from menuwatch.archive import verify
from menuwatch.cli.demo import crawl_all, first_crawl, pictures
from menuwatch.config.settings import Settings
from menuwatch.core import logging as telemetry
from menuwatch.proxies import service as proxy_operations
from menuwatch.queue.task_list import TaskFilter, count_tasks
from menuwatch.sim.config import IMAGE_BASE
from menuwatch.sim.process import Simulator
from menuwatch.system import open_system
from tests.backup import evidence
from tests.commands import menuwatch


async def test_destroyed_and_brought_back(database_url: str, folder: Path) -> None:
    telemetry.configure("console", "error")
    into = str(folder / "backup")
    async with Simulator(stores=2, products=15, seed=11, proxies=2) as market:
        settings = Settings(
            home=folder / "first",
            database_url=database_url,
            secret_key=("Ir8v0n0m0Wc5bPjTqZJ7c0bHk3g1k4m2o6s8u0w2y4A=",),
            dutchie_base_url=market.base_url,
            fetch_retry_base_seconds=0.05,
            host_rate=1000,
            host_burst=100,
            poll_interval_ms=200,
            image_hosts=(str(urlsplit(IMAGE_BASE).hostname),),
            image_downloads=4,
            image_retry_seconds=0.05,
        )
        async with open_system(settings) as system:
            for proxy in market.proxies:
                await proxy_operations.add(system.pool, proxy.url, state=proxy.state, timezone=proxy.timezone)
            async with bootstrap.run_worker(system):
                await first_crawl(system)
                work = asyncio.create_task(_work(system))
                beside = await asyncio.to_thread(menuwatch, "backup", into, "--json", env=settings.to_env())
                assert (beside.returncode, json.loads(beside.stdout)["missing"]) == (0, []), beside.stderr
                await work
        rows, files = evidence.rows(database_url), evidence.files(settings.storage)
        again = menuwatch("backup", into, "--json", env=settings.to_env())
        said = json.loads(again.stdout)
        assert said["files"] == len(files) > said["copied"], "what the first has is not copied again"
        with psycopg.connect(database_url) as conn:
            ((at, count, size),) = conn.execute("SELECT folder, rows, bytes FROM backups").fetchall()
        assert (at, count, size) == (str(into), said["rows"], said["bytes"]), "the newest into that folder"

        shutil.rmtree(folder / "first")
        env = {name: text for name, text in settings.to_env().items() if name not in ("DATABASE_URL", "SECRET_KEY")}
        env["MENUWATCH_HOME"] = str(folder / "second")
        back = menuwatch("restore", into, env=env)
        assert (back.returncode, "SECRET_KEY" in back.stderr) == (0, True), back.stderr

        # Into another server than it came from: the embedded one.
        second = Settings.from_env(settings.to_env() | {"DATABASE_URL": "", "MENUWATCH_HOME": str(folder / "second")})
        async with open_system(second) as system:
            assert evidence.differences(rows, evidence.rows(system.database_url)) == []
            assert evidence.differences(files, evidence.files(second.storage)) == []
            found = await verify.verify(
                system.pool, system.archive, system.platforms, repair=False, progress=lambda *_: None
            )
            assert (found.faults, found.payloads > 3) == ((), True)
            async with bootstrap.run_worker(system):
                await crawl_all(system)
            async with system.pool.connection() as conn:
                counts = await count_tasks(conn, TaskFilter())
            assert {status for by_status in counts.values() for status, n in by_status.items() if n} == {"completed"}
            after = await verify.verify(
                system.pool, system.archive, system.platforms, repair=False, progress=lambda *_: None
            )
            assert (after.faults, after.payloads >= found.payloads) == ((), True)
        doctor = menuwatch("doctor", env=second.to_env())
        assert not re.search("^problem", doctor.stdout, re.MULTILINE), doctor.stdout


async def _work(system: bootstrap.System) -> None:
    await crawl_all(system)
    await pictures(system)
