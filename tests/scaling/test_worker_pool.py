"""Workers of one machine, scaled: real processes, real PostgreSQL, and a table of effects outside the queue."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import psutil
import pytest

from menuwatch.accounts import audit
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Conflict, InvalidField
from menuwatch.db.pool import Pool
from menuwatch.queue.model import NewTask, Role
from menuwatch.scaling import service as scaling
from menuwatch.scaling.desired_count import LeaseHolder, SupervisorLease
from menuwatch.scaling.local import LocalScaler, limits
from menuwatch.scaling.model import NO_SUPERVISOR, Limits, ScaleStatus
from menuwatch.scaling.worker_pool import WorkerPool
from menuwatch.workers import registry
from menuwatch.workers import service as workers
from menuwatch.workers.commands import Command
from tests.scaling.supervisor_process import LEASE_SECONDS, LIMITS, TIMING, worker_command
from tests.workers.waiting import put
from tests.workers.waiting import until as until_in_time

SCALER = LocalScaler(Settings())
NAMES = ["Ada", "Bruno", "Cleo", "Dario", "Edda", "Finn"]


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Processes that start need a processor, of which a busy machine has none to spare."""
    await until_in_time(condition, seconds=30)


@asynccontextmanager
async def at_work(workers_pool: WorkerPool) -> AsyncIterator[WorkerPool]:
    run = asyncio.create_task(workers_pool.run())
    try:
        yield workers_pool
    finally:
        workers_pool.stop()
        await asyncio.wait_for(run, 20)


@pytest.fixture
async def effects(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("CREATE UNLOGGED TABLE effects (task_id bigint, what text, worker_id text)")


def make_lease(pool: Pool, **changes: Any) -> SupervisorLease:
    return SupervisorLease(pool, LIMITS, **{"lease_seconds": LEASE_SECONDS, **changes})


def make_pool(lease: SupervisorLease, url: str, **changes: Any) -> WorkerPool:
    return WorkerPool(lambda _: worker_command(url), lease=lease, timing=TIMING, **changes)


async def standing(pool: Pool) -> ScaleStatus:
    async with pool.connection() as conn:
        return await SCALER.replicas(conn)


async def order(pool: Pool, wanted: int) -> None:
    async with pool.connection() as conn:
        await SCALER.scale(conn, wanted)


def steady(pool: Pool, count: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        found = await standing(pool)
        return (found.current, found.desired, found.progress) == (count, count, None)

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
    """There is work for all six when they are there, and some is left when four of them are decommissioned."""
    async with at_work(make_pool(make_lease(pool), database_url)) as workers_pool:
        await until(steady(pool, 1))
        await put(pool, *load(1, 150))
        await order(pool, 6)
        said = await standing(pool)
        assert (said.current, said.desired, said.progress) == (1, 6, "5 starting")
        await until(steady(pool, 6))
        assert [post.name for post in workers_pool.slots] == NAMES
        await put(pool, *load(151, 350))

        async def all_six() -> bool:
            return await scalar(pool, "SELECT count(DISTINCT worker_id) FROM effects") == 6

        await until(all_six)
        await order(pool, 2)
        said = await standing(pool)
        assert (said.current, said.desired) == (6, 2)
        assert said.progress == "4 are finishing their tasks"
        assert await scalar(pool, "SELECT count(*) FROM worker_tasks WHERE status = 'pending'") > 100, "under load"
        await until(steady(pool, 2))
        assert len(await pids(pool)) == 2

        async def done() -> bool:
            return await scalar(pool, "SELECT count(*) FROM worker_tasks WHERE status <> 'completed'") == 0

        await until(done)
    for what in ("began", "ended"):
        assert await scalar(pool, f"SELECT count(*) FROM effects WHERE what = '{what}'") == 500
        assert await scalar(pool, f"SELECT count(DISTINCT task_id) FROM effects WHERE what = '{what}'") == 500
    assert await scalar(pool, "SELECT count(*) FROM worker_tasks WHERE retry_count > 0") == 0
    assert await scalar(pool, "SELECT count(*) FROM worker_commands WHERE command = 'decommission'") == 4


async def test_one_that_is_killed_comes_back_under_its_name(pool: Pool, database_url: str, effects: None) -> None:
    ended: list[int] = []

    async def on_end(*, pid: int, since: datetime) -> None:
        ended.append(pid)
        async with pool.connection() as conn, conn.transaction():
            await workers.mark_dead(conn, host=socket.gethostname(), pid=pid, pod=None, since=since)

    async with at_work(make_pool(make_lease(pool), database_url, on_end=on_end)) as workers_pool:
        await until(steady(pool, 1))
        ((first, pid),) = (await pids(pool)).items()
        os.kill(pid, signal.SIGKILL)

        async def another() -> bool:
            return set(await pids(pool)) - {first} != set() and await steady(pool, 1)()

        await until(another)
        assert ended == [pid]
        assert [(post.name, post.crashes) for post in workers_pool.slots] == [("Ada", 1)]
        assert (await standing(pool)).desired == 1


async def test_who_is_decommissioned_is_no_longer_wanted_and_can_be_had_again(
    pool: Pool, database_url: str, effects: None
) -> None:
    async with at_work(make_pool(make_lease(pool, requested=2), database_url)) as workers_pool:
        await until(steady(pool, 2))
        bruno = workers_pool.slots[1].worker_id
        assert bruno is not None
        async with pool.connection() as conn, conn.transaction():
            await workers.send_command(conn, bruno, Command.DECOMMISSION)
        await until(steady(pool, 1))
        assert [post.name for post in workers_pool.slots] == ["Ada"]
        async with pool.connection() as conn, conn.transaction():
            found = await scaling.scale(conn, SCALER, Settings(), 2)
        assert (found.current, found.desired, found.doing) == (1, 2, "1 starting")
        await until(steady(pool, 2))
        assert [post.name for post in workers_pool.slots] == ["Ada", "Bruno"]
        assert workers_pool.slots[1].worker_id != bruno
    assert await scalar(pool, "SELECT count(*) FROM worker_registry WHERE status <> 'stopped'") == 0


async def test_killed_it_leaves_no_worker_behind_and_the_next_one_takes_over_at_once(
    pool: Pool, database_url: str, effects: None
) -> None:
    """The one that stands by sees that the process is gone: the first one's time (here a minute) need not be over."""
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.scaling.supervisor_process", database_url, "2", "60"
    )
    await until(steady(pool, 2))
    orphans = await pids(pool)
    lease = make_lease(pool, first=1)
    second = make_pool(lease, database_url)
    async with at_work(second):

        async def has_looked() -> bool:
            return lease.is_standby

        await until(has_looked)
        assert second.slots == []
        supervisor.kill()
        await supervisor.wait()

        async def theirs_are_over() -> bool:
            return not any(_runs(pid) for pid in orphans.values())

        await until(theirs_are_over)
        await until(steady(pool, 2))
        assert lease.is_held
        assert set(await pids(pool)).isdisjoint(orphans), "the number outlives its supervisor"
    assert (await standing(pool)).unavailable_reason is not None


def _runs(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


IDLE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); sys.stdin.read()"


def idle(lease: SupervisorLease, **changes: Any) -> WorkerPool:
    """A supervisor whose processes never register: they start at once."""
    return WorkerPool(lambda _: (sys.executable, "-c", IDLE), lease=lease, timing=TIMING, **changes)


def other() -> LeaseHolder:
    """Another supervisor than this process: of its parent, which lives as long."""
    return LeaseHolder(pid=os.getppid())


async def test_one_of_two_holds_the_number_and_gives_it_up_when_it_stops(pool: Pool) -> None:
    leases = make_lease(pool, requested=1), make_lease(pool, requested=5, holder=other())
    one, two = (idle(lease) for lease in leases)
    await one.step()
    await two.step()
    assert (leases[0].is_held, len(one.slots)) == (True, 1)
    assert (leases[1].is_held, two.slots) == (False, []), "a requested number counts only for the holder"
    await order(pool, 2)
    await one.step()
    await two.step()
    assert (len(one.slots), two.slots) == (2, [])
    one.stop()
    await one.run()
    assert one.processes == []
    await two.step()
    assert (leases[1].is_held, len(two.slots)) == (True, 5)
    two.stop()
    await two.run()


async def test_a_supervisor_that_lost_its_lease_decommissions_its_workers(pool: Pool) -> None:
    leases = make_lease(pool, first=2), make_lease(pool, holder=other(), first=2)
    one, two = (idle(lease) for lease in leases)
    await one.step()
    async with pool.connection() as conn:
        await conn.execute("UPDATE supervisor_lease SET expires_at = clock_timestamp()")
    assert (await standing(pool)).unavailable_reason == NO_SUPERVISOR
    await one.step()
    assert (await standing(pool)).desired == 2, "it was not taken, so it is kept"
    async with pool.connection() as conn:
        await conn.execute("UPDATE supervisor_lease SET expires_at = clock_timestamp()")
    await two.step()
    await one.step()
    assert (leases[0].is_held, leases[1].is_held) == (False, True)
    assert [post.leaving for post in one.slots] == [True, True]
    for workers_pool in (one, two):
        workers_pool.stop()
        await workers_pool.run()


async def test_what_keeps_workers_from_starting_is_told_and_they_start_without_it(pool: Pool) -> None:
    why: str | None = "no proxy is active"

    async def may_start() -> str | None:
        return why

    workers_pool = idle(make_lease(pool, first=2), may_start=may_start)
    await workers_pool.step()
    found = await standing(pool)
    assert (found.current, found.desired, found.progress) == (0, 2, "none can start now: no proxy is active")
    why = None
    await workers_pool.step()
    assert (await standing(pool)).progress == "2 starting"
    workers_pool.stop()
    await workers_pool.run()


async def test_requests_are_held_to_the_limits_of_the_lease_holder(pool: Pool) -> None:
    async with pool.connection() as conn:
        with pytest.raises(Conflict, match="menuwatch up"):
            await scaling.scale(conn, SCALER, Settings(), 2)
        workers_pool = idle(make_lease(pool))
        await workers_pool.step()
        for wanted in (-1, 0, 9, 1000, 2**40):
            with pytest.raises(InvalidField, match="allowed are 1 to 8"):
                await scaling.scale(conn, SCALER, Settings(workers_min=5, workers_max=2000), wanted)
        assert (await standing(pool)).desired == 1
        with audit.actor_context(audit.Actor.at_terminal()):
            await scaling.scale(conn, SCALER, Settings(), 8)
        await order(pool, 100)  # by worker_command, past every limit
        await workers_pool.step()
        assert len(workers_pool.slots) == 8
    workers_pool.stop()
    await workers_pool.run()
    again = idle(make_lease(pool))
    await again.step()
    assert (await standing(pool)).desired == 8, "the next holder does not get more than it can run"
    again.stop()
    await again.run()
    assert await scalar(pool, "SELECT (details ->> 'wanted')::int FROM audit_log WHERE action = 'workers_scaled'") == 8


def test_limits_of_this_machine() -> None:
    found = limits(Settings())
    assert found.low == 1
    assert found.high == max(8, 2 * len(os.sched_getaffinity(0)))
    assert limits(Settings(workers_min=2, workers_max=3)) == Limits(2, 3)
    assert limits(Settings(workers_min=100)) == Limits(100, 100)
