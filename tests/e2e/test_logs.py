"""Logs of worker processes, as they are read elsewhere: by task and by worker, on the command line, without passwords."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg

from menuwatch.db.pool import Pool
from menuwatch.proxies import service as proxies
from menuwatch.queue import store as tasks
from menuwatch.queue.model import PRIORITY_DISCOVERY, NewTask, Role
from menuwatch.sim.process import Simulator
from tests.commands import menuwatch
from tests.e2e.test_proxies_down import SETTINGS
from tests.workers.waiting import put, until

WRONG = "n0t-the-right-0ne"


async def _rows(pool: Pool, query: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(query.encode())).fetchall()


async def test_what_two_worker_processes_did_is_read_from_elsewhere(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    async with Simulator(stores=2, products=20, seed=3, proxies=2) as simulator:
        good, bad = simulator.proxies
        await proxies.add(pool, good.url)
        # It refuses this login, and goes on being tried.
        await proxies.add(pool, f"{bad.protocol}://{bad.username}:{WRONG}@{bad.host}:{bad.port}")
        env = {
            **os.environ,
            **SETTINGS,
            "DUTCHIE_BASE_URL": simulator.base_url,
            "DATABASE_URL": database_url,
            "MENUWATCH_HOME": str(tmp_path / "home"),
            "LOG_LEVEL": "error",
        }
        workers = [
            subprocess.Popen([sys.executable, "-m", "menuwatch.cli.main", "worker"], env={**env, "WORKER_ID": name})
            for name in ("left", "right")
        ]
        try:

            async def both() -> bool:
                return len(await _rows(pool, "SELECT FROM worker_registry WHERE status = 'active'")) == 2

            await until(both, seconds=90)
            async with pool.connection() as conn:
                await tasks.enqueue(conn, [NewTask(role=Role.STORE_DISCOVERY, priority=PRIORITY_DISCOVERY)])

            async def done() -> bool:
                rows = await _rows(pool, "SELECT status FROM worker_tasks")
                return len(rows) > 1 and all(status == "completed" for (status,) in rows)

            await until(done, seconds=90)

            async def stored() -> bool:
                return not await _rows(
                    pool,
                    "SELECT FROM task_history h WHERE NOT EXISTS (SELECT FROM log_lines l WHERE l.task_id = h.id"
                    " AND l.attempt = h.attempt AND l.worker_id = h.worker_id AND l.action = 'task_completed')",
                )

            await until(stored)
            # What was stored stays when the process is killed.
            workers[0].kill()
            workers[1].send_signal(signal.SIGTERM)
            assert workers[1].wait(30) == 0
        finally:
            for process in workers:
                process.kill()
                process.wait()

    ends = dict(
        await _rows(
            pool, "SELECT DISTINCT ON (worker_id) worker_id, action FROM log_lines ORDER BY worker_id, seq DESC"
        )
    )
    assert ends["right"] == "worker_stopped"
    starts = await _rows(pool, "SELECT worker_id FROM log_lines WHERE action = 'worker_started' ORDER BY 1")
    assert starts == [("left",), ("right",)]
    refused = await _rows(pool, "SELECT count(*) FROM fetch_attempts WHERE blame = 'proxy'")
    assert refused[0][0] > 0, "the wrong login was tried"
    everything = json.dumps(await _rows(pool, "SELECT l::text FROM log_lines l"))
    for secret in (WRONG, *(proxy.password for proxy in simulator.proxies)):
        assert secret not in everything

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return menuwatch(*words, env=env, cwd=tmp_path)

    ((task_id, role),) = await _rows(pool, "SELECT id, role FROM task_history ORDER BY id LIMIT 1")
    said = run("tasks", "logs", str(task_id))
    assert (said.returncode, said.stderr) == (0, "")
    lines = said.stdout.splitlines()
    assert f"Claimed task {task_id} ({role})" in lines[0]
    assert "task done" in lines[-1]
    assert f" info     task done  task={task_id} attempt=1 " in lines[-1]
    said = run("workers", "logs", "right", "--limit", "2", "--json")
    assert [json.loads(line)["action"] for line in said.stdout.splitlines()] == ["worker_stopping", "worker_stopped"]
    (name,) = (await _rows(pool, "SELECT friendly_name FROM worker_registry WHERE worker_id = 'right'"))[0]
    by_name = run("workers", "logs", name.upper(), "--limit", "2", "--json")
    assert by_name.stdout == said.stdout, "its name leads to it after it stopped"
    said = run("workers", "logs", "right", "--level", "error")
    assert (said.stdout, said.stderr.strip()) == ("", "No log lines of this worker.")
    said = run("tasks", "logs", "999999")
    assert said.returncode == 2 or said.returncode == 1
    assert "task 999999" in said.stderr


async def test_following_ends_with_the_task(pool: Pool, database_url: str, tmp_path: Path) -> None:
    env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path)}
    (task_id,) = await put(pool, NewTask(role=Role.ANALYTICS_REFRESH))

    def speak(n: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute(
                "INSERT INTO log_lines (worker_id, seq, at, level, message, task_id) VALUES ('w', %s, now(), 'info', %s, %s)",
                [n, f"line {n}", task_id],
            )

    speak(1)
    follow = subprocess.Popen(
        [sys.executable, "-m", "menuwatch.cli.main", "tasks", "logs", str(task_id), "-f"],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert follow.stdout is not None
        assert "line 1" in follow.stdout.readline()
        speak(2)
        assert "line 2" in follow.stdout.readline()
        async with pool.connection() as conn:
            await conn.execute("UPDATE worker_tasks SET status = 'cancelled' WHERE id = %s", [task_id])
        # It ends once the last lines have been stored, not before.
        speak(3)
        late = threading.Timer(30, follow.kill)
        late.start()
        rest = follow.stdout.read()
        assert follow.wait() == 0
        late.cancel()
        assert [line.rpartition("  ")[0].rpartition("  ")[2] for line in rest.splitlines()] == ["line 3"]
    finally:
        follow.kill()
        follow.wait()
