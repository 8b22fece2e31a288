"""Workers of one machine, scaled: real processes, real PostgreSQL, and a ledger of effects that the queue knows nothing of."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import psutil
import pytest

from menuwatch.cluster.base import NOBODY, Limits, Standing
from menuwatch.cluster.crew import Crew
from menuwatch.cluster.hold import Holder
from menuwatch.cluster.local import LocalScaler, limits
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.operations import audit, scaling, workers
from menuwatch.operations.refusals import Conflict, Unusable
from menuwatch.tasks.model import NewTask, Role
from menuwatch.workers import registry
from menuwatch.workers.commands import Command
from tests.cluster.head import LIMITS, PACE, hand
from tests.engine.waiting import put
from tests.engine.waiting import until as until_in_time

SCALER = LocalScaler(Settings())
NAMES = ["Ada", "Bruno", "Cleo", "Dario", "Edda", "Finn"]


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Processes that start need a processor, of which a busy machine has none to spare."""
    await until_in_time(condition, seconds=30)


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
        await until(steady(pool, 6))
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
            await workers.died(conn, host=socket.gethostname(), pid=pid, pod=None, since=since)

    async with at_work(crew_of(pool, database_url, on_end=on_end)) as crew:
        await until(steady(pool, 1))
        ((first, pid),) = (await pids(pool)).items()
        os.kill(pid, signal.SIGKILL)

        async def another() -> bool:
            return set(await pids(pool)) - {first} != set() and await steady(pool, 1)()

        await until(another)
        assert ended == [pid]
        assert [(post.name, post.crashes) for post in crew.posts] == [("Ada", 1)]
        assert (await standing(pool)).desired == 1


async def test_who_is_decommissioned_is_no_longer_wanted_and_can_be_had_again(
    pool: Pool, database_url: str, effects: None
) -> None:
    async with at_work(crew_of(pool, database_url, asked=2)) as crew:
        await until(steady(pool, 2))
        bruno = crew.posts[1].worker_id
        assert bruno is not None
        async with pool.connection() as conn, conn.transaction():
            await workers.tell(conn, bruno, Command.DECOMMISSION)
        await until(steady(pool, 1))
        assert [post.name for post in crew.posts] == ["Ada"]
        async with pool.connection() as conn, conn.transaction():
            found = await scaling.scale(conn, SCALER, Settings(), 2)
        assert (found.current, found.desired, found.doing) == (1, 2, "1 starting")
        await until(steady(pool, 2))
        assert [post.name for post in crew.posts] == ["Ada", "Bruno"]
        assert crew.posts[1].worker_id != bruno
    assert await scalar(pool, "SELECT count(*) FROM worker_registry WHERE status <> 'stopped'") == 0


async def test_killed_it_leaves_no_worker_behind_and_the_next_one_takes_over_at_once(
    pool: Pool, database_url: str, effects: None
) -> None:
    """The one that stands by sees that the process is gone: the first one's time (here a minute) need not be over."""
    head = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.cluster.head", database_url, "2", "60")
    await until(steady(pool, 2))
    orphans = await pids(pool)
    second = crew_of(pool, database_url, first=1)
    async with at_work(second):

        async def has_looked() -> bool:
            return second.standing_by

        await until(has_looked)
        assert second.posts == []
        head.kill()
        await head.wait()

        async def theirs_are_over() -> bool:
            return not any(_runs(pid) for pid in orphans.values())

        await until(theirs_are_over)
        await until(steady(pool, 2))
        assert second.holding
        assert set(await pids(pool)).isdisjoint(orphans), "the number outlives whoever obeyed it"
    assert (await standing(pool)).why_not is not None


def _runs(pid: int) -> bool:
    """Whether it runs; what nobody has asked for its exit code does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


IDLE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); sys.stdin.read()"


def idle(pool: Pool, **changes: object) -> Crew:
    """A supervisor whose processes never register: they start at once."""
    given: dict[str, object] = {"pace": PACE, **changes}
    return Crew(pool, lambda _: (sys.executable, "-c", IDLE), LIMITS, **given)  # type: ignore[arg-type]


def other() -> Holder:
    """Another supervisor than this process: of its parent, which lives as long."""
    return Holder(pid=os.getppid())


async def test_one_of_two_holds_the_number_and_gives_it_up_when_it_stops(pool: Pool) -> None:
    one, two = idle(pool, asked=1), idle(pool, asked=5, who=other())
    await one.step()
    await two.step()
    assert (one.holding, len(one.posts)) == (True, 1)
    assert (two.holding, two.posts) == (False, []), "what the other one was asked is no order while somebody holds it"
    await order(pool, 2)
    await one.step()
    await two.step()
    assert (len(one.posts), two.posts) == (2, [])
    one.stop()
    await one.run()
    assert one.processes == []
    await two.step()
    assert (two.holding, len(two.posts)) == (True, 5)
    two.stop()
    await two.run()


async def test_one_whose_time_was_over_has_its_workers_leave_when_somebody_else_took_it(pool: Pool) -> None:
    one = idle(pool, first=2)
    await one.step()
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_supervision SET held_until = clock_timestamp()")
    assert (await standing(pool)).why_not == NOBODY
    await one.step()
    assert (await standing(pool)).desired == 2, "nobody took it: it keeps it"
    two = idle(pool, who=other(), first=2)
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_supervision SET held_until = clock_timestamp()")
    await two.step()
    await one.step()
    assert (one.holding, two.holding) == (False, True)
    assert [post.leaving for post in one.posts] == [True, True]
    for crew in (one, two):
        crew.stop()
        await crew.run()


async def test_what_keeps_workers_from_starting_is_told_and_they_start_without_it(pool: Pool) -> None:
    why: str | None = "no proxy is active"

    async def may_start() -> str | None:
        return why

    crew = idle(pool, first=2, may_start=may_start)
    await crew.step()
    found = await standing(pool)
    assert (found.current, found.desired, found.doing) == (0, 2, "none can start now: no proxy is active")
    why = None
    await crew.step()
    assert (await standing(pool)).doing == "2 starting"
    crew.stop()
    await crew.run()


async def test_orders_are_held_to_the_limits_of_whoever_runs_the_workers(pool: Pool) -> None:
    async with pool.connection() as conn:
        with pytest.raises(Conflict, match="menuwatch up"):
            await scaling.scale(conn, SCALER, Settings(), 2)
        crew = idle(pool)
        await crew.step()
        for wanted in (-1, 0, 9, 1000, 2**40):
            with pytest.raises(Unusable, match="from 1 to 8 are allowed"):
                await scaling.scale(conn, SCALER, Settings(workers_min=5, workers_max=2000), wanted)
        assert (await standing(pool)).desired == 1
        with audit.acting(audit.Actor.at_terminal()):
            await scaling.scale(conn, SCALER, Settings(), 8)
        await order(pool, 100)  # by hand, past every limit
        await crew.step()
        assert len(crew.posts) == 8
    crew.stop()
    await crew.run()
    again = idle(pool)
    await again.step()
    assert (await standing(pool)).desired == 8, "what it cannot run is not wanted of whoever takes over"
    again.stop()
    await again.run()
    assert await scalar(pool, "SELECT (details ->> 'wanted')::int FROM audit_log WHERE action = 'workers_scaled'") == 8


def test_limits_of_this_machine() -> None:
    found = limits(Settings())
    assert found.low == 1
    assert found.high == max(8, 2 * len(os.sched_getaffinity(0)))
    assert limits(Settings(workers_min=2, workers_max=3)) == Limits(2, 3)
    assert limits(Settings(workers_min=100)) == Limits(100, 100)
