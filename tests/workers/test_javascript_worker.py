"""The worker of docs/how-to/worker.mjs, with Node, against a server on a real socket: it loses its tasks, is killed and started again,
and in the end every task is completed once. `make chaos` runs it with more tasks and kills (JS_TASKS, JS_KILLS)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from tests.api.conftest import app, archive, platforms  # noqa: F401
from tests.api.serving import serving
from tests.conftest import ROOT
from tests.users_fixture import token

WORKER = ROOT / "docs" / "how-to" / "worker.mjs"
TASKS = int(os.environ.get("JS_TASKS", "200"))
KILLS = int(os.environ.get("JS_KILLS", "1"))
SLOTS = 5
SILENT = 15.0
"""Seconds without a heartbeat after which tasks are taken back; the worker sends one every ten seconds."""
STANDSTILL = 60.0
"""Seconds without a completion after which the run has failed."""

HANDLER = """
import { appendFileSync, existsSync } from "node:fs";

export default async function (task) {
  appendFileSync(process.env.LEDGER, `${task.id} ${task.attempt}\\n`);
  const stuck = existsSync("stuck");
  if (stuck) appendFileSync("stuck", "x");
  await new Promise((resolve) => setTimeout(resolve, stuck ? 3600_000 : 5 * Math.random()));
  const { n, follows } = task.payload;
  if (task.attempt === 1 && n % 50 === 1) throw new Error("not this time");
  if (task.attempt === 1 && n % 50 === 2) throw Object.assign(new Error("not now"), { postpone: 0.1 });
  if (n % 50 === 3) throw Object.assign(new Error("never"), { permanent: true });
  if (n % 50 === 4) return { follow_ups: [{ role: "dance" }] };
  return { result: { n }, follow_ups: follows ? [] : [{ role: "analytics_refresh", payload: { follows: task.id } }] };
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the worker is started: in a folder, for a server, with a token that is good for nothing else."""

    folder: Path
    url: str
    token: str
    processes: list[asyncio.subprocess.Process]

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    async def start(self, worker_id: str) -> asyncio.subprocess.Process:
        node = shutil.which("node")
        if node is None:
            pytest.skip("this machine has no Node")
        (self.folder / "handler.mjs").write_text(HANDLER)
        self.ledger.touch()
        values = {
            "MENUWATCH_URL": self.url, "MENUWATCH_TOKEN": self.token, "WORKER_ID": worker_id, "SLOTS": str(SLOTS),
            "LEDGER": str(self.ledger), "PATH": os.environ["PATH"],
        }  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            node, str(WORKER), "analytics_refresh", "handler.mjs", cwd=self.folder, env=values
        )
        self.processes.append(process)
        return process


@pytest.fixture
async def bench(app: FastAPI, pool: Pool, tmp_path: Path) -> AsyncIterator[Bench]:  # noqa: F811
    async with serving(app) as port:
        secret = await token(pool, name="robot", role="operator", scopes=["workers:run"])
        made = Bench(folder=tmp_path, url=f"http://127.0.0.1:{port}", token=secret, processes=[])
        yield made
        for process in made.processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _rows(pool: Pool, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(statement.encode(), values)).fetchall()


async def _number(pool: Pool, statement: str, *values: Any) -> int:
    ((number,),) = await _rows(pool, statement, *values)
    return int(number)


async def _ended(pool: Pool, at_least: int | None, process: asyncio.subprocess.Process) -> None:
    """Returns when so many tasks have ended; with None when no task is left."""
    seen, since = -1, time.monotonic()
    while True:
        assert process.returncode is None, "the worker ended by itself"
        # As the reaper does: the server may carry out the last claim of a worker after its death.
        await _rows(pool, "SELECT recover_stale_tasks(%s::numeric)", SILENT / 60)
        ended = await _number(pool, "SELECT count(*) FROM task_history")
        if ended >= at_least if at_least is not None else not await _number(pool, "SELECT count(*) FROM task_live"):
            return
        if ended != seen:
            seen, since = ended, time.monotonic()
        assert time.monotonic() - since < STANDSTILL, f"nothing ended for {STANDSTILL} seconds, after {ended} tasks"
        await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_nothing_is_lost_and_nothing_doubled(pool: Pool, bench: Bench) -> None:
    new = [NewTask(role=Role.ANALYTICS_REFRESH, payload={"n": n}, max_retries=50) for n in range(TASKS)]
    async with pool.connection() as conn:
        fed = [task.id for task in await tasks.enqueue(conn, new)]
        await tasks.set_retry_base(conn, 0.1)
    began = time.monotonic()
    process = await bench.start("js")
    held = 0
    for kill in range(KILLS):
        # It is taken for dead while it works: what it then sends for these attempts is refused.
        await _ended(pool, TASKS * (2 * kill + 1) // (2 * KILLS + 1), process)
        await _rows(pool, "SELECT recover_stale_tasks(0)")
        await _ended(pool, TASKS * (2 * kill + 2) // (2 * KILLS + 1), process)
        stuck = bench.folder / "stuck"  # from now on it ends no task that it begins
        stuck.touch()
        while not stuck.stat().st_size:
            assert process.returncode is None
            await asyncio.sleep(0.01)
        process.kill()
        await process.wait()
        stuck.unlink()
        held += await _number(pool, "SELECT count(*) FROM task_live WHERE state = 'a'")
        if kill % 2:
            # Under another id: what the dead one had is free when it counts as stale.
            process = await bench.start(f"js-{kill}")
            await _rows(pool, "SELECT recover_stale_tasks(0)")
        else:
            process = await bench.start("js")
    await _ended(pool, None, process)
    took = time.monotonic() - began
    process.terminate()
    assert await process.wait() == 0
    assert held >= KILLS, "it had tasks each time that it was killed"

    ended = await _rows(
        pool, "SELECT id, status, payload ->> 'n', payload ->> 'follows', result ->> 'n' FROM task_history"
    )
    assert max(Counter(row[0] for row in ended).values()) == 1, "no task ended twice"
    status = {row[0]: row[1] for row in ended}
    refused = {fed[n] for n in range(TASKS) if n % 50 in (3, 4)}
    assert {task for task in fed if status[task] == "failed"} == refused
    assert {task for task, what in status.items() if what != "completed"} == refused, "everything else is completed"
    assert all(row[2] == row[4] for row in ended if row[0] not in refused), "with its own result"
    followed = Counter(int(row[3]) for row in ended if row[3] is not None)
    assert followed == Counter(set(fed) - refused), "one follow-up for each completion"

    attempts = [line.split() for line in bench.ledger.read_text().splitlines()]
    assert {int(task) for task, _ in attempts} == set(status), "everything was worked on"
    assert max(Counter((task, attempt) for task, attempt in attempts).values()) == 1, "no attempt was made twice"
    print(
        f"{len(ended)} tasks in {took:.1f} s, {len(attempts) - len(ended)} attempts more than tasks, {held} held when killed"
    )


async def test_it_obeys(pool: Pool, bench: Bench) -> None:
    process = await bench.start("js")
    async with asyncio.timeout(60):
        while not await _number(pool, "SELECT count(*) FROM worker_registry"):
            await asyncio.sleep(0.05)
        await _rows(pool, "INSERT INTO worker_commands (worker_id, command) VALUES ('js', 'decommission') RETURNING id")
        assert await process.wait() == 0
    assert await _rows(pool, "SELECT status FROM worker_registry") == [("stopped",)]
    assert await _number(pool, "SELECT count(*) FROM worker_commands WHERE acknowledged_at IS NULL") == 0
