"""What operators tell a worker, and what it says of itself while it does not claim."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Pool
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.workers import commands, registry
from menuwatch.workers.commands import Command
from menuwatch.workers.engine.claimable_roles import Claimable
from menuwatch.workers.engine.handler import TaskContext
from tests.workers.waiting import look, put, until

FETCH, REFRESH = Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH


class Hands:
    """A handler that works until it is let go."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, task: Task, ctx: TaskContext) -> Outcome:
        self.began.set()
        await self.go.wait()
        return Done()


async def quick(task: Task, ctx: TaskContext) -> Outcome:
    return Done()


async def tell(pool: Pool, worker: Any, command: Command, by: str | None = None) -> int:
    async with pool.connection() as conn:
        return (await commands.send(conn, worker.worker_id, command, by)).id


async def row(pool: Pool, worker: Any) -> registry.RegistryEntry:
    async with pool.connection() as conn:
        found = await registry.get(conn, worker.worker_id)
    assert found is not None
    return found


async def acknowledged(pool: Pool, number: int) -> bool:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT acknowledged_at IS NOT NULL FROM worker_commands WHERE id = %s", [number])
        return bool((await cursor.fetchone() or (False,))[0])


async def shows(pool: Pool, worker: Any, status: str) -> bool:
    return (await row(pool, worker)).status == status


async def is_(pool: Pool, task_id: int, status: Status) -> bool:
    return (await look(pool, task_id)).status == status


async def test_pause_lets_what_runs_go_on_and_claims_nothing(pool: Pool, start: Any) -> None:
    hands = Hands()
    (first,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with start({FETCH: hands, REFRESH: quick}) as worker:
        await hands.began.wait()
        # Heard through the notice: the next poll is in 30 seconds.
        number = await tell(pool, worker, Command.PAUSE, "Ada")
        await until(lambda: shows(pool, worker, "paused"))
        assert await acknowledged(pool, number)
        assert worker.gate.reason == "paused by Ada"
        (second,) = await put(pool, NewTask(role=REFRESH, dispensary_id=2))
        hands.go.set()
        await until(lambda: is_(pool, first, Status.COMPLETED))
        assert await is_(pool, second, Status.PENDING)
        await tell(pool, worker, Command.RESUME)
        await until(lambda: is_(pool, second, Status.COMPLETED))
        await until(lambda: shows(pool, worker, "active"))
    assert (await row(pool, worker)).status == "stopped"


async def test_decommission_finishes_what_runs_however_long_that_takes(pool: Pool, make: Any) -> None:
    hands = Hands()
    (first,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    worker = make({FETCH: hands}, slots=2, grace=0.0)
    run = asyncio.create_task(worker.run())
    await hands.began.wait()
    number = await tell(pool, worker, Command.DECOMMISSION)
    await until(lambda: shows(pool, worker, "stopping"))
    assert await acknowledged(pool, number)
    (second,) = await put(pool, NewTask(role=FETCH, dispensary_id=2))
    assert not run.done()
    hands.go.set()
    await asyncio.wait_for(run, 10)
    assert await is_(pool, first, Status.COMPLETED)
    waiting = await look(pool, second)
    assert (waiting.status, waiting.attempt) == (Status.PENDING, 0)
    assert (await row(pool, worker)).status == "stopped"


async def test_a_stop_cuts_a_decommission_short(pool: Pool, make: Any) -> None:
    hands = Hands()
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    worker = make({FETCH: hands}, grace=0.05)
    run = asyncio.create_task(worker.run())
    await hands.began.wait()
    await tell(pool, worker, Command.DECOMMISSION)
    await until(lambda: shows(pool, worker, "stopping"))
    worker.stop()
    await asyncio.wait_for(run, 10)
    task = await look(pool, task_id)
    assert (task.status, task.retry_count) == (Status.PENDING, 0)


async def test_an_idle_worker_leaves_at_once(pool: Pool, make: Any) -> None:
    worker = make({FETCH: quick})
    run = asyncio.create_task(worker.run())
    await until(lambda: _registered(pool, worker))
    await tell(pool, worker, Command.DECOMMISSION)
    await asyncio.wait_for(run, 10)


async def _registered(pool: Pool, worker: Any) -> bool:
    async with pool.connection() as conn:
        return await registry.get(conn, worker.worker_id) is not None


async def test_a_notice_that_was_missed_is_made_up_for(pool: Pool, start: Any) -> None:
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE worker_commands DISABLE TRIGGER worker_commands_tell")
    async with start({FETCH: quick}, heartbeat_interval=0.1) as worker:
        await until(lambda: _registered(pool, worker))
        number = await tell(pool, worker, Command.PAUSE)
        await until(lambda: acknowledged(pool, number))


async def test_several_are_taken_in_their_order(pool: Pool, start: Any) -> None:
    async with start({FETCH: quick}) as worker:
        await until(lambda: _registered(pool, worker))
        async with pool.connection() as conn, conn.transaction():
            for command in (Command.PAUSE, Command.RESUME, Command.PAUSE):
                last = await commands.send(conn, worker.worker_id, command)
        await until(lambda: acknowledged(pool, last.id))
        await until(lambda: shows(pool, worker, "paused"))


async def test_what_others_are_told_is_not_ours(pool: Pool, start: Any) -> None:
    async with start({FETCH: quick}) as one, start({FETCH: quick}) as other:
        await until(lambda: _registered(pool, one))
        await until(lambda: _registered(pool, other))
        number = await tell(pool, one, Command.PAUSE)
        await until(lambda: acknowledged(pool, number))
        assert (one.gate.is_paused, other.gate.is_paused) == (True, False)


async def test_an_overload_is_in_the_heartbeat_and_claims_nothing(pool: Pool, start: Any) -> None:
    async with start({FETCH: quick}, backing_off=0.05) as worker:
        await until(lambda: _registered(pool, worker))
        worker.gate.report_pressure("memory at 91 % of its limit (threshold 85 %)")
        await worker.heartbeat.step()
        said = await row(pool, worker)
        assert said.status == said.heartbeat["status"] == "backing_off"
        assert said.heartbeat["resources"]["is_backing_off"] is True
        assert said.heartbeat["resources"]["backoff_reason"] == "memory at 91 % of its limit (threshold 85 %)"
        (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
        assert await worker.producer.step() is not None
        assert (await look(pool, task_id)).attempt == 0

        async def opened() -> bool:
            return worker.gate.report_pressure(None) is not None

        await until(opened)
        worker.producer.wake()
        await until(lambda: is_(pool, task_id, Status.COMPLETED))


async def test_roles_that_are_closed_for_want_of_a_proxy_are_in_the_heartbeat(pool: Pool, start: Any) -> None:
    async def refreshes_only() -> Claimable:
        return Claimable(frozenset({REFRESH}), "no proxy is active", None, PostponeCode.NO_PROXY)

    (task_id,) = await put(pool, NewTask(role=REFRESH, dispensary_id=1))
    async with start({FETCH: quick, REFRESH: quick}, may_claim=refreshes_only) as worker:
        await until(lambda: is_(pool, task_id, Status.COMPLETED))
        await worker.heartbeat.step()
        said = (await row(pool, worker)).heartbeat
    assert (said["status"], said["paused_roles"]) == ("active", ["payload_fetch"])
    assert (said["paused_roles_code"], said["paused_roles_reason"]) == ("no_proxy", "no proxy is active")


@pytest.mark.parametrize("status", ["asleep", ""])
async def test_the_registry_knows_only_its_states(pool: Pool, status: str) -> None:
    async with pool.connection() as conn:
        with pytest.raises(psycopg.errors.CheckViolation):
            await conn.execute(
                "INSERT INTO worker_registry (worker_id, friendly_name, host, status) VALUES ('w', 'W', 'h', %s)",
                [status],
            )
