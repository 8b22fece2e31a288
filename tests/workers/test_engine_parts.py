"""The engine's smaller parts by themselves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import BadPayload, Refused, Throttled
from menuwatch.core.postpone import PostponeCode
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.ending import clean_reason
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Outcome, Postpone, Retry, outcome_of
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.slots import Attempt, Slots
from menuwatch.workers.engine.task_log import TaskLog
from menuwatch.workers.names import friendly_name
from tests.workers.waiting import look, put

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _task(task_id: int, attempt: int = 1) -> Task:
    return Task(
        id=task_id, role=Role.PAYLOAD_FETCH, dispensary_id=None, platform="dutchie", status=Status.CLAIMED, priority=0,
        scheduled_for=None, worker_id="w", claimed_at=NOW, started_at=None, completed_at=None, last_heartbeat_at=None, result=None,
        error_message=None, retry_count=0, max_retries=3, created_at=NOW, updated_at=NOW, attempt=attempt,
    )  # fmt: skip


def test_throttled_waits_as_long_as_it_was_told() -> None:
    assert outcome_of(Throttled("x", retry_after=7)) == Postpone(
        code=PostponeCode.THROTTLED, after=timedelta(seconds=7), reason="x"
    )
    assert outcome_of(Throttled("x")) == Postpone(code=PostponeCode.THROTTLED, after=timedelta(seconds=60), reason="x")


def test_a_bad_payload_is_tried_again_with_its_message() -> None:
    assert outcome_of(BadPayload("html", "HTML instead of JSON")) == Retry(reason="HTML instead of JSON")


@pytest.mark.parametrize(
    ("text", "kept"),
    [("a\x00b", "ab"), ("  ", "no reason given"), ("\ud800x", "?x"), ("x" * 5000, "x" * 4000)],
)
def test_reasons_are_made_fit_for_the_database(text: str, kept: str) -> None:
    assert clean_reason(text) == kept


def test_slots_know_attempts_not_only_tasks() -> None:
    slots = Slots(2)
    old, new = (Attempt(task=_task(1, n), ctx=TaskContext("w"), started=10.0) for n in (1, 2))
    slots.add(old)
    slots.add(new)
    assert (len(slots), slots.free, slots.idle.is_set()) == (2, 0, False)
    assert slots.held(12.5) == [tasks.Held(task_id=1, attempt=n, ran=2.5) for n in (1, 2)]
    assert slots.mark_lost(1, 1)
    assert (old.ctx.lost.is_set(), new.ctx.lost.is_set()) == (True, False)
    assert not slots.mark_lost(1, 1), "lost already"
    assert not slots.mark_lost(7, 1)
    new.settling = True
    assert not slots.mark_lost(1, 2), "the fence decides about what is settling"
    slots.remove(old)
    assert slots.is_running(1, 2)
    slots.remove(new)
    assert slots.idle.is_set()


class _Faulty(Loop):
    name: ClassVar[str] = "faulty"

    def __init__(self) -> None:
        super().__init__(interval=0.001)
        self.turns = 0

    async def step(self) -> float | None:
        self.turns += 1
        if self.turns == 1:
            raise ZeroDivisionError
        self.stop()
        return None


async def test_a_loop_outlives_a_step_that_fails() -> None:
    loop = _Faulty()
    await asyncio.wait_for(loop.run(), 5)
    assert loop.turns == 2


def test_names_go_on_for_ever() -> None:
    assert [friendly_name(n) for n in (0, 1, 2, 15, 31)] == ["Aethelgard", "Xylos", "Kryll", "Aethelgard 2", "Xylos 3"]
    assert len({friendly_name(n) for n in range(100)}) == 100


def test_options_come_from_the_settings() -> None:
    options = WorkerConfig.from_settings(
        Settings(worker_role=("product_resync",), max_concurrent_tasks=5, poll_interval_ms=200)
    )
    # The former role fetched a menu and applied it.
    assert options.roles == {Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH}
    assert (options.slots, options.poll_interval) == (5, 0.2)
    assert (options.heartbeat_interval, options.stale_after) == (30.0, timedelta(minutes=10))
    assert WorkerConfig.from_settings(Settings()).roles is None


def test_claims_are_logged_up_to_a_rate_and_the_others_counted() -> None:
    clock = ManualClock(NOW)
    claims = TaskLog("w", rate=2, clock=clock)
    with capture_logs() as lines:
        for number in range(1, 6):
            claims.claimed(_task(number))
        clock.advance(timedelta(seconds=0.5))
        claims.claimed(structs.replace(_task(6), dispensary_id=45))
        clock.advance(timedelta(hours=1))
        for number in (7, 8, 9):
            claims.claimed(_task(number))
    assert [(line["event"], line.get("unlogged")) for line in lines] == [
        ("Claimed task 1 (payload_fetch)", None),
        ("Claimed task 2 (payload_fetch)", None),
        ("Claimed task 6 (payload_fetch) for dispensary 45", 3),
        ("Claimed task 7 (payload_fetch)", None),
        ("Claimed task 8 (payload_fetch)", None),
    ]
    assert lines[2] | {"log_level": "info", "action": "task_claimed", "task_id": 6, "role": "payload_fetch",
                       "dispensary_id": 45, "attempt": 1, "worker_id": "w"} == lines[2]  # fmt: skip
    with capture_logs() as lines:
        TaskLog("w", rate=0, clock=clock).claimed(_task(1))
        slow = TaskLog("w", rate=0.1, clock=clock)
        slow.claimed(_task(2))
        slow.claimed(_task(3))
    assert [line["task_id"] for line in lines] == [2]


def test_heartbeats_come_several_times_before_a_worker_counts_as_silent() -> None:
    options = WorkerConfig.from_settings(Settings(stale_after_minutes=0.1))
    assert options.heartbeat_interval == pytest.approx(2.0)
    assert options.reap_interval == pytest.approx(3.0)


async def test_a_long_heartbeat_interval_never_makes_a_living_worker_count_as_gone(pool: Pool) -> None:
    interval = WorkerConfig.from_settings(Settings(heartbeat_interval_ms=3_600_000)).heartbeat_interval
    async with pool.connection() as conn:
        ((alive_for,),) = await (await conn.execute("SELECT worker_alive_for()")).fetchall()
    assert interval * 3 == alive_for.total_seconds()


def test_an_unknown_role_is_refused_with_the_list() -> None:
    with pytest.raises(Refused, match=r"unknown role 'dance'; use one of: store_discovery, "):
        WorkerConfig.from_settings(Settings(worker_role=("dance",)))


async def test_waiting_for_idle_has_an_end(pool: Pool, make: Any) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        await asyncio.Event().wait()
        return Done()

    (task_id,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=1))
    with pytest.raises(TimeoutError, match="still tasks to do"):
        await make({Role.PAYLOAD_FETCH: handler}).run_until_idle(timeout=0.3)
    task = await look(pool, task_id)
    assert (task.status, task.retry_count) == (Status.PENDING, 0)


async def test_tasks_of_a_worker_that_died_are_taken_up_by_the_next(pool: Pool, make: Any) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        return Done(result={"attempt": task.attempt})

    (task_id,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=1))
    async with pool.connection() as conn:
        assert len(await tasks.claim(conn, "dead", None, 1)) == 1
        await conn.execute("UPDATE task_live SET claimed_at = now() - interval '11 minutes'")
    await make({Role.PAYLOAD_FETCH: handler}).run_until_idle(timeout=20)
    task = await look(pool, task_id)
    assert (task.status, task.result, task.retry_count) == (Status.COMPLETED, {"attempt": 2}, 1)


async def test_roles_of_other_workers_are_not_waited_for(pool: Pool, make: Any) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        return Done()

    fetch, refresh = await put(
        pool,
        NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=1),
        NewTask(role=Role.PRODUCT_REFRESH, dispensary_id=2),
    )
    handlers = {Role.PAYLOAD_FETCH: handler, Role.PRODUCT_REFRESH: handler}
    await make(handlers, roles=frozenset({Role.PRODUCT_REFRESH})).run_until_idle(timeout=20)
    assert [(await look(pool, task_id)).status for task_id in (fetch, refresh)] == [Status.PENDING, Status.COMPLETED]
