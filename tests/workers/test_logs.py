"""Log lines of workers in the database: of tasks by attempt, of the worker, what is dropped, hidden and deleted."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.core import logging as telemetry
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import NotFound, Transient
from menuwatch.core.logging import ATTEMPT, capture, get_logger, outside_attempt
from menuwatch.db.pool import Pool
from menuwatch.ops.retention import Retention
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.workers import logs
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.log_writer import RESERVED, LogWriter
from menuwatch.workers.engine.metrics import WorkerMetrics
from menuwatch.workers.logs import LogGaps, LogLine, NewLine
from tests.workers.test_worker_metrics import figures
from tests.workers.waiting import look, put, until

FETCH = Role.PAYLOAD_FETCH
T0 = datetime(2026, 3, 1, tzinfo=UTC)
log = get_logger(__name__)

Rows = Callable[[], Awaitable[list[tuple[Any, ...]]]]


@pytest.fixture
def stderr() -> io.StringIO:
    """Logging as `menuwatch worker` sets it up with LOG_LEVEL=error; returns what it writes to standard error."""
    out = io.StringIO()
    telemetry.configure("json", "error", out)
    return out


@pytest.fixture
def rows(pool: Pool) -> Rows:
    """Reads what is stored of every worker."""

    async def read() -> list[tuple[Any, ...]]:
        async with pool.connection() as conn:
            cursor = await conn.execute(
                "SELECT level, action, message, task_id, attempt, details FROM log_lines ORDER BY worker_id, seq"
            )
            return await cursor.fetchall()

    return read


async def of_task(pool: Pool, task_id: int, **more: Any) -> list[LogLine]:
    """Oldest first."""
    async with pool.connection() as conn:
        return (await logs.list_task_lines(conn, task_id, limit=None, **more))[::-1]


async def test_lines_of_a_task_name_the_attempt_and_the_others_are_the_workers(
    pool: Pool, make: Any, rows: Rows, stderr: io.StringIO
) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        log.debug("not stored", action="whispered")
        log.info("menu fetched", action="menu_fetched", pages=3, host="dutchie.com")
        await asyncio.to_thread(log.warning, "from a thread", action="threaded")
        if task.attempt == 1:
            raise Transient("connection reset")
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=5))
    worker = make({FETCH: handler}, worker_id="w-1")
    await worker.run_until_idle(timeout=20)
    lines = await of_task(pool, task_id)
    assert [(line.attempt, line.level, line.action) for line in lines] == [
        (1, "info", "task_claimed"),
        (1, "info", "menu_fetched"),
        (1, "warning", "threaded"),
        (1, "warning", "task_error"),
        (1, "warning", "task_retried"),
        (2, "info", "task_claimed"),
        (2, "info", "menu_fetched"),
        (2, "warning", "threaded"),
        (2, "info", "task_completed"),
    ]
    assert {line.worker_id for line in lines} == {"w-1"}
    assert logs.split_details(lines[1]) == ([("pages", "3"), ("host", "dutchie.com")], None)
    done = await look(pool, task_id)
    assert done.completed_at is not None
    assert all(line.at <= done.completed_at + timedelta(seconds=5) for line in lines)
    every = await rows()
    assert every[0][1] == "worker_started"
    assert [row[1] for row in every][-2:] == ["worker_stopping", "worker_stopped"], "the last lines are stored too"
    async with pool.connection() as conn:
        assert [line.seq for line in await logs.list_worker_lines(conn, "w-1", limit=None)] == [
            *range(len(every), 0, -1)
        ]
        warnings = await logs.list_worker_lines(conn, "w-1", level="warning", limit=None)
        # Retries may also make the reaper or others speak up: of this task there are four.
        assert [line.action for line in warnings if line.task_id][::-1] == [
            "threaded", "task_error", "task_retried", "threaded",
        ]  # fmt: skip
        assert await logs.task_gaps(conn, task_id) == LogGaps(dropped=0, deleted=False)
    assert stderr.getvalue() == "", "standard error goes by LOG_LEVEL"


async def test_standard_error_has_the_same_ids(pool: Pool, make: Any) -> None:
    out = io.StringIO()
    telemetry.configure("json", "info", out)

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        log.info("mine", action="mine")
        log.info("of another task", action="other", task_id=task.id + 1)
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=5))
    await make({FETCH: handler}).run_until_idle(timeout=20)
    lines = {line["action"]: line for line in map(json.loads, out.getvalue().splitlines())}
    assert (lines["mine"]["task_id"], lines["mine"]["attempt"]) == (task_id, 1)
    assert lines["other"]["task_id"] == task_id + 1
    assert "attempt" not in lines["other"]
    assert "task_id" not in lines["worker_stopped"]


async def test_secrets_in_addresses_are_not_stored(pool: Pool, make: Any, rows: Rows, stderr: io.StringIO) -> None:
    secret = "p4ss-w0rd"
    address = f"http://someone:{secret}@203.0.113.7:8080"

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        log.warning(f"proxy {address} refused", action="refused", proxy={"url": address, "tried": [address]})
        raise ValueError(f"cannot connect to {address}")

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=5, max_retries=0))
    await make({FETCH: handler}).run_until_idle(timeout=20)
    lines = await of_task(pool, task_id)
    assert "http://…@203.0.113.7:8080" in lines[1].message
    (failed,) = [line for line in lines if line.action == "task_error"]
    _, trace = logs.split_details(failed)
    assert trace is not None
    assert trace.splitlines()[-1] == "ValueError: cannot connect to http://…@203.0.113.7:8080"
    stored = json.dumps(await rows())
    assert secret not in stored
    assert "someone" not in stored


async def test_a_flood_is_cut_and_counted_and_keeps_the_errors(pool: Pool, make: Any, stderr: io.StringIO) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        for n in range(5000):
            log.info("again", action="again", n=n)
        log.error("it is broken", action="broken")
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=5))
    measures = WorkerMetrics()
    worker = make({FETCH: handler}, worker_id="w-1", measures=measures)
    await worker.run_until_idle(timeout=20)
    lines = await of_task(pool, task_id)
    again = [line for line in lines if line.action == "again"]
    # Some were taken before it, and some lines may come back in while it logs.
    assert RESERVED - 20 <= len(again) <= RESERVED + 200
    assert [line.action for line in lines if line.level == "error"] == ["broken"]
    dropped = figures(measures)["menuwatch_worker_dropped_log_lines_total", ()]
    async with pool.connection() as conn:
        gaps = await logs.task_gaps(conn, task_id)
        told = [
            line for line in await logs.list_worker_lines(conn, "w-1", limit=None) if line.action == "log_lines_dropped"
        ]
    assert gaps == LogGaps(dropped=int(dropped), deleted=False)
    assert sum(line.dropped for line in told) == dropped
    assert dropped >= 5000 - len(again), "and perhaps lines of the engine"


async def test_tasks_do_not_wait_for_the_log(pool: Pool, start: Any, stderr: io.StringIO) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        log.info("at it", action="at_it")
        return Done()

    async with start({FETCH: handler}, worker_id="w-1"):
        async with pool.connection() as locking, locking.transaction():
            await locking.execute("LOCK TABLE log_lines IN ACCESS EXCLUSIVE MODE")
            ids = await put(pool, *(NewTask(role=FETCH, dispensary_id=n) for n in range(1, 41)))

            async def done() -> bool:
                return all([(await look(pool, one)).status is Status.COMPLETED for one in ids])

            await until(done)

        async def stored() -> bool:
            return all([[line.action for line in await of_task(pool, one)].count("at_it") == 1 for one in ids])

        await until(stored)


async def test_lines_of_two_workers_of_one_process_stay_apart(pool: Pool, make: Any, stderr: io.StringIO) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        return Done()

    ids = await put(pool, *(NewTask(role=FETCH, dispensary_id=n) for n in range(1, 21)))
    both = [make({FETCH: handler}, worker_id=name, slots=1) for name in ("a", "b")]
    await asyncio.gather(*(worker.run_until_idle(timeout=20) for worker in both))
    for one in ids:
        task = await look(pool, one)
        lines = await of_task(pool, one)
        assert {line.worker_id for line in lines} == {task.worker_id}
        assert [line.action for line in lines].count("task_completed") <= 1


async def test_a_restarted_worker_continues_its_log(pool: Pool, make: Any, stderr: io.StringIO) -> None:
    for _ in range(2):
        await make({}, worker_id="w-1").run_until_idle(timeout=20)
    async with pool.connection() as conn:
        lines = await logs.list_worker_lines(conn, "w-1", limit=None)
    assert [line.seq for line in lines] == [*range(len(lines), 0, -1)]
    assert [line.action for line in lines].count("worker_started") == 2


async def test_a_task_started_for_others_is_not_the_attempts() -> None:
    token = ATTEMPT.set((7, 1))

    async def of() -> tuple[int, int] | None:
        return ATTEMPT.get()

    assert await asyncio.create_task(of()) == (7, 1)
    assert await asyncio.create_task(of(), context=outside_attempt()) is None
    assert ATTEMPT.get() == (7, 1)
    ATTEMPT.reset(token)


async def _fill(pool: Pool, worker_id: str, *lines: NewLine) -> None:
    async with pool.connection() as conn:
        await logs.insert(conn, worker_id, lines)


def _line(at: datetime, **more: Any) -> NewLine:
    return NewLine(at=at, level="info", action="x", message="x", **more)


async def test_old_and_surplus_lines_are_deleted_and_the_log_says_so(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    monkeypatch.setattr(logs, "LINES", 10)
    old, young = now - timedelta(days=7, minutes=1), now - timedelta(days=7) + timedelta(minutes=1)
    await _fill(pool, "aged", *(_line(old) for _ in range(3)), _line(young))
    await _fill(pool, "chatty", *(_line(now) for _ in range(25)))
    await _fill(pool, "calm", *(_line(now) for _ in range(10)))
    async with pool.connection() as conn:
        for name in ("aged", "chatty", "calm"):
            assert not (await logs.worker_gaps(conn, name)).deleted
        counts = await Retention().prune(conn, now)
        assert counts["log_lines"] == 3 + 15
        left = {
            name: [line.seq for line in await logs.list_worker_lines(conn, name)] for name in ("aged", "chatty", "calm")
        }
        assert left == {"aged": [4], "chatty": [*range(25, 15, -1)], "calm": [*range(10, 0, -1)]}
        deleted = {name: (await logs.worker_gaps(conn, name)).deleted for name in left}
        assert deleted == {"aged": True, "chatty": True, "calm": False}
        assert (await Retention().prune(conn, now))["log_lines"] == 0
        with pytest.raises(NotFound, match="unknown worker 'ghost'"):
            await logs.worker_gaps(conn, "ghost")


@pytest.mark.parametrize(
    ("lines", "gaps"),
    [
        # Minutes of each line after the task was claimed, and lines dropped between that and another minute.
        ([(-1, 0, 0), (1, 0, 0)], LogGaps(dropped=0, deleted=False)),
        ([(1, 4, 0), (20, 3, 15)], LogGaps(dropped=4, deleted=False)),
        ([(-2, 9, -3), (20, 5, 4)], LogGaps(dropped=5, deleted=False)),
        ([], LogGaps(dropped=0, deleted=False)),
    ],
)
async def test_what_is_missing_of_a_task(
    pool: Pool, make: Any, lines: list[tuple[int, int, int]], gaps: LogGaps
) -> None:
    """The attempt lasted for ten minutes."""

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=5))
    await make({FETCH: handler}, worker_id="w-1").run_until_idle(timeout=20)
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE task_history SET completed_at = claimed_at + interval '10 minutes' WHERE id = %s", [task_id]
        )
    claimed = (await look(pool, task_id)).claimed_at
    assert claimed is not None

    def minute(n: int) -> datetime:
        return claimed + timedelta(minutes=n)

    await _fill(
        pool,
        "w-1",
        *(
            _line(minute(at), dropped=dropped, dropped_since=minute(since) if dropped else None)
            for at, dropped, since in lines
        ),
    )
    async with pool.connection() as conn:
        assert await logs.task_gaps(conn, task_id) == gaps
        # Once the worker's first line is gone, those of the task may be as well.
        await conn.execute("DELETE FROM log_lines WHERE seq = 1")
        late = bool(lines) and len(lines) > 1 and lines[1][0] > 0
        assert (await logs.task_gaps(conn, task_id)).deleted is late


async def test_a_database_that_refuses_every_line_gets_no_flood_about_it(
    pool: Pool, stderr: io.StringIO, rows: Rows
) -> None:
    measures = WorkerMetrics()
    writer = LogWriter(pool, worker_id="w", clock=ManualClock(T0), measures=measures)
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE log_lines RENAME TO elsewhere")
    with capture(writer.buffer.add):
        for n in range(20):
            log.warning(f"line {n}", action="spoken")
        for _ in range(5):
            await writer.step()
        assert len(writer.buffer.take()) <= 2, "one about what was refused, one with the number that was dropped"
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE elsewhere RENAME TO log_lines")
    assert await rows() == []
