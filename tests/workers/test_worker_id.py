"""WORKER_ID: the id as given, of one living worker at a time."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.ops import doctor
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.scaling.desired_count import SupervisorLease
from menuwatch.scaling.local import limits
from menuwatch.workers import commands
from menuwatch.workers.commands import Command
from menuwatch.workers.engine.handler import TaskContext
from tests.commands import menuwatch
from tests.db.queue_calls import claim
from tests.workers.waiting import look, put, until

FETCH = Role.PAYLOAD_FETCH


async def done(task: Task, ctx: TaskContext) -> Outcome:
    return Done()


async def _ask(pool: Pool, statement: str, *values: Any) -> Any:
    async with pool.connection() as conn:
        cursor = await conn.execute(statement.encode(), values)
        return await cursor.fetchall() if cursor.description else None


async def _present(pool: Pool, *, host: str, pid: int, silent: str = "0 s", status: str = "active") -> None:
    """A worker `resync-1` of that process."""
    await _ask(
        pool,
        "INSERT INTO worker_registry (worker_id, friendly_name, host, pid, status, started_at, last_heartbeat_at)"
        " VALUES ('resync-1', 'Ada', %s, %s, %s, now() - interval '1 hour', now() - %s::interval)",
        host, pid, status, silent,
    )  # fmt: skip


def _ended_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


async def test_the_id_is_the_one_given(pool: Pool, start: Any) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    with capture_logs() as lines:
        async with start({FETCH: done}, worker_id="resync-1"):
            await until(lambda: _is_completed(pool, task_id))
    assert (await look(pool, task_id)).worker_id == "resync-1"
    assert await _ask(pool, "SELECT worker_id, status FROM worker_registry") == [("resync-1", "stopped")]
    (said,) = [line for line in lines if line.get("action") == "task_claimed"]
    assert said["event"] == f"Claimed task {task_id} (payload_fetch) for dispensary 1"
    async with start({FETCH: done}, worker_id="resync-1"):
        await until(lambda: _ask(pool, "SELECT 1 FROM worker_registry WHERE status = 'active'"))


async def _is_completed(pool: Pool, task_id: int) -> bool:
    return (await look(pool, task_id)).status == Status.COMPLETED


def test_workers_of_a_pod_add_their_place(make: Any) -> None:
    ids = [make({FETCH: done}, worker_id="resync", ordinal=place).worker_id for place in range(3)]
    assert ids == ["resync-1", "resync-2", "resync-3"]


@pytest.mark.parametrize("text", ["a/b", "", "x" * 201])
def test_an_id_that_cannot_be_one_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="invalid WORKER_ID"):
        Settings.from_env({"WORKER_ID": text or " "})


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_the_id_of_another_living_worker_is_refused(pool: Pool, make: Any, elsewhere: bool) -> None:
    host = "other-machine" if elsewhere else socket.gethostname()
    await _present(pool, host=host, pid=os.getppid(), silent="100 s")
    with pytest.raises(
        Refused, match=rf"another running worker has the id 'resync-1' \(machine {host}, process .*WORKER_ID"
    ):
        await make({FETCH: done}, worker_id="resync-1").run()
    assert await _ask(pool, "SELECT pid, status FROM worker_registry") == [(os.getppid(), "active")]


@pytest.mark.parametrize("other_first", [True, False])
async def test_of_two_that_start_at_once_one_is_refused(
    pool: Pool, make: Any, monkeypatch: pytest.MonkeyPatch, other_first: bool
) -> None:
    one = make({FETCH: done}, worker_id="resync-1", heartbeat_interval=0.05)
    # Two processes of one machine have different process ids; within one process only the machine tells two workers apart.
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "other-machine")
        two = make({FETCH: done}, worker_id="resync-1", heartbeat_interval=0.05)
    if other_first:
        one, two = two, one
    runs = [asyncio.create_task(worker.run()) for worker in (one, two)]
    finished, running = await asyncio.wait(runs, timeout=20, return_when=asyncio.FIRST_COMPLETED)
    assert [type(run.exception()) for run in finished] == [Refused]
    one.stop()
    two.stop()
    await asyncio.gather(*running)


@pytest.mark.parametrize(
    "known",
    [
        {"host": "other-machine", "pid": 1, "silent": "3 minutes"},
        {"host": "other-machine", "pid": 1, "status": "stopped"},
        {"host": socket.gethostname(), "pid": _ended_process()},
        {"host": socket.gethostname(), "pid": os.getpid()},
    ],
    ids=["silent", "stopped", "process ended", "container restarted"],
)
async def test_a_successor_takes_over_at_once(pool: Pool, start: Any, known: dict[str, Any]) -> None:
    await _present(pool, **known)
    async with pool.connection() as conn:
        await commands.send(conn, "resync-1", Command.DECOMMISSION, "somebody")
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await claim(pool, worker="resync-1")
    async with start({FETCH: done}, worker_id="resync-1"):
        await until(lambda: _is_completed(pool, task_id))
        task = await look(pool, task_id)
        assert (task.attempt, task.retry_count) == (2, 1)
        lease = SupervisorLease(pool, limits(Settings()), first=1)
        async with pool.connection() as conn:
            (row,) = await _ask(pool, "SELECT host, pid, status, started_at FROM worker_registry")
            assert row[:3] == (socket.gethostname(), os.getpid(), "active"), "the old command is void"
            members = await lease.list_members(conn, [(os.getpid(), row[3])])
        assert not members[os.getpid()].decommissioned


async def test_a_worker_whose_id_was_taken_over_stops_and_leaves_the_successor_alone(pool: Pool, make: Any) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        began.set()
        await go.wait()
        return Done(result={"by": "the old one"})

    (first,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    worker = make({FETCH: handler}, worker_id="resync-1", slots=1, heartbeat_interval=0.05)
    run = asyncio.create_task(worker.run())
    with suppress(TimeoutError):
        await asyncio.wait_for(began.wait(), 20)
    # It was suspended for long; meanwhile its successor on another machine entered and claimed a task.
    await _ask(pool, "UPDATE worker_registry SET host = 'other-machine', started_at = now(), status = 'active'")
    await put(pool, NewTask(role=FETCH, dispensary_id=2))
    (second,) = await claim(pool, worker="resync-1")
    await until(lambda: _drains(worker))
    go.set()
    await asyncio.wait_for(run, 20)
    assert await _ask(pool, "SELECT host, status FROM worker_registry") == [("other-machine", "active")]
    assert (await look(pool, second.id)).status == Status.CLAIMED
    assert (await look(pool, first)).result == {"by": "the old one"}, "it still owned that task"


async def _drains(worker: Any) -> bool:
    return bool(worker._draining)


def test_a_worker_of_a_former_role_says_what_it_does(database_url: str, tmp_path: Path) -> None:
    env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "WORKER_ROLE": "product_resync"}
    worker = menuwatch("worker", env=env, timeout=60)
    assert worker.returncode == 2, "there is no proxy"
    said = "WORKER_ROLE=product_resync is a former role: this worker does payload_fetch and product_refresh"
    assert said in worker.stdout + worker.stderr
    (warning,) = [one for one in doctor.machine(Settings.from_env(env)) if one.check == "roles"]
    assert (warning.level, warning.mend) == ("warning", "set WORKER_ROLE=payload_fetch,product_refresh")
    assert "roles" not in [one.check for one in doctor.machine(Settings(home=tmp_path))]
