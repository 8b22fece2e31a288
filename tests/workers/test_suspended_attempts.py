"""Attempts that wait hold no slot: others use it meanwhile, and an attempt that returns gets one before a new one starts."""

from __future__ import annotations

import asyncio
import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.core.errors import NotNow, Throttled
from menuwatch.db.pool import Pool
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.slots import MIN_SUSPEND_SECONDS, Attempt, Slots
from tests.workers.virtual_time import Sleeper, in_virtual_time
from tests.workers.waiting import look, put, until

FETCH = Role.PAYLOAD_FETCH
_serial = itertools.count(1)
_NOW = datetime(2026, 6, 1, tzinfo=UTC)


def attempt(slots: Slots) -> Attempt:
    task = Task(
        id=next(_serial), role=FETCH, dispensary_id=None, platform="dutchie", status=Status.RUNNING, priority=0, scheduled_for=None,
        worker_id="w", claimed_at=_NOW, started_at=_NOW, completed_at=None, last_heartbeat_at=None, result=None, error_message=None,
        retry_count=0, max_retries=3, created_at=_NOW, updated_at=_NOW, attempt=1,
    )  # fmt: skip
    return Attempt(task=task, ctx=TaskContext("w", slots.suspend), started=0.0)


async def turns(many: int = 5) -> None:
    """Lets everything that is ready run."""
    for _ in range(many):
        await asyncio.sleep(0)


@in_virtual_time
async def test_a_slot_is_free_at_once_and_taken_back_when_the_time_is_over() -> None:
    freed: list[int] = []
    slots = Slots(2, on_free=lambda: freed.append(slots.free_signed))
    slots.add(attempt(slots))
    slots.add(attempt(slots))
    assert slots.free_signed == 0
    resting = asyncio.create_task(slots.suspend(0.06))
    await turns()
    assert (slots.free_signed, freed, slots.suspended, len(slots)) == (1, [1], 1, 2)
    await resting
    assert (slots.free_signed, slots.suspended) == (0, 0)


@in_virtual_time
async def test_a_moment_is_not_worth_a_slot() -> None:
    slots = Slots(1)
    slots.add(attempt(slots))
    resting = asyncio.create_task(slots.suspend(MIN_SUSPEND_SECONDS / 2))
    await turns()
    assert slots.free_signed == 0
    await resting


@in_virtual_time
async def test_who_returns_has_the_next_slot_before_anything_new() -> None:
    slots = Slots(1)
    slots.add(attempt(slots))
    resting = asyncio.create_task(slots.suspend(0.05))
    await turns()
    new = attempt(slots)
    slots.add(new)
    await asyncio.sleep(0.07)
    assert not resting.done()
    assert slots.free_signed == -1, "the one that waits for its return is counted"
    slots.remove(new)
    assert slots.free_signed == 0, "nothing new may begin in the slot that it is given"
    await asyncio.wait_for(resting, 1)
    assert (slots.free_signed, slots.suspended) == (0, 0)


@in_virtual_time
async def test_the_slot_of_a_suspended_attempt_goes_to_the_one_that_waits() -> None:
    """Two slots: one works on for long. The other is not to stand empty while one waits to return."""
    slots = Slots(2)
    slots.add(attempt(slots))
    first = asyncio.create_task(slots.suspend(0.05))
    await turns()
    slots.add(attempt(slots))  # works for long
    slots.add(attempt(slots))
    await asyncio.sleep(0.07)
    assert not first.done()
    second = asyncio.create_task(slots.suspend(60))
    await asyncio.wait_for(first, 1)
    assert (slots.suspended, slots.free_signed) == (1, 0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert slots.suspended == 0


@in_virtual_time
async def test_as_many_rest_as_there_are_slots_and_no_more() -> None:
    slots = Slots(2)
    asleep = []
    for _ in range(4):
        slots.add(attempt(slots))
        asleep.append(asyncio.create_task(slots.suspend(30)))
        await turns()
    assert (slots.suspended, slots.free_signed) == (2, 0)
    for each in asleep:
        each.cancel()
    await asyncio.gather(*asleep, return_exceptions=True)
    assert slots.suspended == 0


@in_virtual_time
async def test_one_that_is_cancelled_while_it_is_let_back_is_counted_once() -> None:
    """Cancelled, and in the same breath a slot comes free: no attempt may count as suspended for ever."""
    slots = Slots(1)
    slots.add(attempt(slots))
    resting = asyncio.create_task(slots.suspend(0.05))
    await turns()
    other = attempt(slots)
    slots.add(other)
    await asyncio.sleep(0.07)
    resting.cancel()
    slots.remove(other)
    with pytest.raises(asyncio.CancelledError):
        await resting
    assert slots.suspended == 0
    assert slots.free_signed == 0


@in_virtual_time
async def test_two_wait_and_the_first_is_cancelled_as_a_slot_comes_free() -> None:
    slots = Slots(2)
    waiting = []
    for _ in range(2):
        slots.add(attempt(slots))
        waiting.append(asyncio.create_task(slots.suspend(0.05)))
    await turns()
    others = [attempt(slots), attempt(slots)]
    for other in others:
        slots.add(other)
    await asyncio.sleep(0.07)
    waiting[0].cancel()
    slots.remove(others[0])
    slots.remove(others[1])
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    await asyncio.wait_for(waiting[1], 1)
    assert slots.suspended == 0


@pytest.mark.parametrize("seed", range(12))
@in_virtual_time
async def test_random_rests_never_lose_a_slot_nor_use_one_too_many(seed: int) -> None:
    """Handlers that work, rest, are cancelled, at random; the slots are filled by `room`, as the producer does."""
    rng = random.Random(seed)
    limit = rng.choice([1, 2, 3, 7])
    slots = Slots(limit)
    working = 0
    most = 0
    running: dict[asyncio.Task[None], Attempt] = {}

    async def handler(mine: Attempt) -> None:
        nonlocal working, most

        def begin() -> None:
            nonlocal working, most
            working += 1
            most = max(most, working)

        begin()
        at_work = True
        try:
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(rng.choice([0, 0, 0.002]))
                working -= 1
                at_work = False
                seconds = rng.choice([0.0501, 0.052, 0.055])
                resting = slots.suspended < limit
                if not resting:
                    working += 1
                    at_work = True
                await slots.suspend(seconds)
                if resting:
                    begin()
                    at_work = True
        finally:
            if at_work:
                working -= 1
            slots.remove(mine)

    def ended(task: asyncio.Task[None]) -> None:
        running.pop(task, None)

    clock = asyncio.get_running_loop().time
    while clock() < 0.4:
        for _ in range(slots.free):
            mine = attempt(slots)
            slots.add(mine)
            task = asyncio.create_task(handler(mine))
            running[task] = mine
            task.add_done_callback(ended)
        if running and rng.random() < 0.1:
            # One that has begun: a task that never began does not free its slot.
            await asyncio.sleep(0)
            if running:
                rng.choice(list(running)).cancel()
        await asyncio.sleep(rng.choice([0, 0.0005, 0.001]))
    await asyncio.wait_for(asyncio.gather(*list(running), return_exceptions=True), 5)
    assert most <= limit
    assert (len(slots), slots.suspended, slots.free_signed, slots.free) == (0, 0, limit, limit)
    assert slots.idle.is_set()


# A real worker.


async def test_two_slots_stay_busy_while_their_tasks_wait(pool: Pool, start: Any) -> None:
    """Tasks that wait for their host let others work: eight of them are done before the wait is over."""
    sleeper = Sleeper()
    order: list[tuple[str, int]] = []

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        if task.payload["waits"]:
            await ctx.pause(30)
            order.append(("waited", task.id))
        else:
            order.append(("worked", task.id))
        return Done()

    await put(pool, *[NewTask(role=FETCH, dispensary_id=n, payload={"waits": True}, priority=50) for n in (1, 2)])
    ids = await put(pool, *[NewTask(role=FETCH, dispensary_id=n, payload={"waits": False}) for n in range(3, 11)])
    async with start({FETCH: handler}, slots=2) as worker:
        worker.slots.sleep = sleeper

        async def all_but_those() -> bool:
            return len(order) == 8

        await until(all_but_those)
        sleeper.release()

        async def all_done() -> bool:
            return len(order) == 10

        await until(all_done)
        assert [kind for kind, _ in order] == ["worked"] * 8 + ["waited"] * 2
        assert sorted(number for kind, number in order if kind == "worked") == ids

        async def empty() -> bool:
            return len(worker.slots) == 0

        await until(empty)
        assert worker.slots.suspended == 0


async def test_handlers_at_work_keep_to_the_slots(pool: Pool, start: Any) -> None:
    """An attempt that returns while a claim for its slot is under way is one too many until the next one ends or is suspended: there
    are never more than the slots and those that rested."""
    limit, at_work, most, done = 3, 0, 0, 0
    rng = random.Random(5)

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        nonlocal at_work, most, done
        at_work += 1
        most = max(most, at_work)
        for _ in range(3):
            await asyncio.sleep(rng.uniform(0, 0.01))
            at_work -= 1
            rested = len(resting()) < limit
            if not rested:
                at_work += 1
            await ctx.pause(rng.uniform(0.05, 0.08))
            if rested:
                at_work += 1
            most = max(most, at_work)
        at_work -= 1
        done += 1
        return Done()

    await put(pool, *[NewTask(role=FETCH, dispensary_id=n) for n in range(1, 31)])
    async with start({FETCH: handler}, slots=limit) as worker:

        def resting() -> range:
            return range(worker.slots.suspended)

        async def all_done() -> bool:
            return done == 30

        await until(all_done, seconds=20)
    assert most <= 2 * limit


async def test_a_stop_waits_for_who_rests_within_the_grace(pool: Pool, start: Any) -> None:
    begun, sleeper = asyncio.Event(), Sleeper()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        begun.set()
        await ctx.pause(30)
        return Done(result={"rested": True})

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with start({FETCH: handler}, slots=1, grace=60.0) as worker:
        worker.slots.sleep = sleeper
        await asyncio.wait_for(begun.wait(), 10)
        worker.stop()

        async def is_stopping() -> bool:
            return bool(worker.producer.closing)

        await until(is_stopping)
        assert worker.slots.suspended == 1
        sleeper.release()
    assert (await look(pool, task_id)).status is Status.COMPLETED


async def test_a_stop_gives_back_who_would_rest_longer_than_the_grace(pool: Pool, start: Any) -> None:
    begun = 0

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        nonlocal begun
        begun += 1
        await ctx.pause(3600)
        return Done()

    ids = await put(pool, *[NewTask(role=FETCH, dispensary_id=n) for n in range(1, 5)])
    async with asyncio.timeout(60), start({FETCH: handler}, slots=2, grace=0.1) as worker:

        async def all_begun() -> bool:
            return begun == 4

        await until(all_begun)
        assert len(worker.slots) == 4
    assert worker.slots.suspended == 0
    for task_id in ids:
        task = await look(pool, task_id)
        assert (task.status, task.worker_id, task.retry_count, task.postpone_count) == (Status.PENDING, None, 0, 0)


async def test_a_stop_while_one_waits_for_a_slot_to_return_to(pool: Pool, start: Any) -> None:
    """The one that works never ends; the one that wants back has none to return to: both go back to the queue."""
    begun, returned, sleeper = 0, False, Sleeper()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        nonlocal begun, returned
        begun += 1
        if begun == 1:
            await ctx.pause(30)
            returned = True
        else:
            await asyncio.sleep(3600)
        return Done()

    ids = await put(pool, *[NewTask(role=FETCH, dispensary_id=n) for n in (1, 2)])
    async with start({FETCH: handler}, slots=1, grace=0.2) as worker:
        worker.slots.sleep = sleeper

        async def both_begun() -> bool:
            return begun == 2

        async def one_waits() -> bool:
            return worker.slots.free_signed == -1

        await until(both_begun)
        sleeper.release()
        await until(one_waits)
    assert not returned
    assert worker.slots.suspended == 0
    assert [(await look(pool, task_id)).status for task_id in ids] == [Status.PENDING] * 2


async def test_nothing_was_asked_is_no_postponement_and_asked_in_vain_is_one(pool: Pool, start: Any) -> None:
    runs = 0

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        nonlocal runs
        runs += 1
        if runs <= 3:
            raise NotNow("menus.invalirequests to d are blocked", 0.01)
        if runs == 4:
            raise Throttled("menus.invalid rate-limited us", 0.01)
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=0))
    async with start({FETCH: handler}, slots=1):

        async def is_done() -> bool:
            return (await look(pool, task_id)).status is Status.COMPLETED

        await until(is_done)
    task = await look(pool, task_id)
    assert (task.attempt, task.retry_count, task.postpone_count) == (5, 0, 1)


@pytest.mark.parametrize("wait", [30.0, None])
async def test_a_task_is_not_claimed_before_it_is_due(
    wait: float | None, pool: Pool, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = claims = 0

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        nonlocal runs
        runs += 1
        raise NotNow("not now", wait)

    def count_claim(*_: object) -> None:
        nonlocal claims
        claims += 1

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with start({FETCH: handler}, slots=1, poll_interval=0.05) as worker:

        async def is_postponed() -> bool:
            return (await look(pool, task_id)).scheduled_for is not None

        await until(is_postponed)
        monkeypatch.setattr(worker.measures, "claimed", count_claim)

        async def claimed_again() -> bool:
            return claims >= 5

        await until(claimed_again)
    assert runs == 1
    task = await look(pool, task_id)
    assert task.scheduled_for is not None
    assert timedelta(0) < task.scheduled_for - datetime.now(UTC) <= timedelta(seconds=wait or 60)
    assert task.scheduled_for - task.updated_at > timedelta(seconds=25)
