"""The attempts at a task: what is kept of each, and what the task page, the API and the command line say of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import httpx
import msgspec

from menuwatch.cli.explain import _lines as explain_lines
from menuwatch.cli.tasks import _task_lines
from menuwatch.db.pool import Pool
from menuwatch.queue.explain.service import explain_with_trace, get_task_with_reason
from menuwatch.queue.task_attempts import TaskAttempt, list_task_attempts
from menuwatch.queue.task_list import get_task
from tests.dashboard import task_rows as given
from tests.dashboard.worker_rows import enter


async def end(
    pool: Pool, task: int, attempt: int, verb: str, reason: str | None, ran: float, worker: str = "w-1"
) -> None:
    """Ends an attempt as a worker does; the task is due again at once."""
    ended = await given.one(
        pool,
        "SELECT count(*) FROM finish_tasks(%s, ARRAY[%s::bigint], ARRAY[%s], ARRAY[%s], ARRAY[%s::text], ARRAY[NULL::jsonb],"
        " ARRAY[0::float8], ARRAY[NULL::timestamptz], ARRAY[%s::float8])",
        [worker, task, attempt, verb, reason, ran],
    )
    assert ended == 1


async def began(pool: Pool, task: int, seconds: float) -> None:
    """The attempt that runs was claimed that long ago, and started a tenth of a second later."""
    await given.one(
        pool,
        "UPDATE task_live SET claimed_at = now() - make_interval(secs => %(s)s),"
        " started_at = now() - make_interval(secs => %(s)s - 0.1) WHERE id = %(id)s RETURNING 1",
        {"s": seconds, "id": task},
    )


async def sent(pool: Pool, task: int, attempt: int, **more: Any) -> None:
    row = {
        "task_id": task, "task_attempt": attempt, "host": "dutchie.com", "proxy_id": 7, "profile": "chrome_131",
        "verdict": "target_down", "blame": "target", "reaction": "again", "status": 502,
        "rotated": False, "waited_ms": 250, "bytes": 1000, "elapsed_ms": 120,
        "error": "HTTP 502", "attempted_at": datetime.now(UTC), **more,
    }  # fmt: skip
    async with pool.connection() as conn:
        await conn.execute(
            f"INSERT INTO fetch_attempts ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})",  # type: ignore[arg-type]
            list(row.values()),
        )


async def attempts(pool: Pool, task: int) -> list[TaskAttempt]:
    async with pool.connection() as conn:
        return await list_task_attempts(conn, await get_task(conn, task))


async def tried_four_times(pool: Pool) -> int:
    """Retried, taken from a silent worker, released and failed; with three equal requests in the first, one in the last."""
    task = await given.waiting(pool, "payload_fetch", await given.store(pool))
    await enter(pool, "w-1")
    await given.claimed(pool)
    await began(pool, task, 5)
    for n in range(3):
        await sent(pool, task, 1, attempted_at=datetime.now(UTC) - timedelta(seconds=4 - n))
    await end(pool, task, 1, "retry", "HTTP 502 by dutchie.com", 5)
    await given.claimed(pool, "w-2")
    await began(pool, task, 3600)
    assert await given.one(pool, "SELECT recover_stale_tasks(10)") == 1
    await given.claimed(pool)
    await end(pool, task, 3, "release", None, 0.25)
    await given.claimed(pool)
    await began(pool, task, 2)
    await sent(pool, task, 4, error="HTTP 403", verdict="blocked", status=403, reaction="give_up")
    await end(pool, task, 4, "fail", "refused for good", 2)
    return task


async def test_every_attempt_is_kept_with_its_worker_times_and_end(pool: Pool) -> None:
    task = await tried_four_times(pool)
    first, lost, released, last = await attempts(pool, task)
    assert [one.attempt for one in (first, lost, released, last)] == [1, 2, 3, 4]
    assert (first.outcome, first.error, first.worker_id) == ("retried", "HTTP 502 by dutchie.com", "w-1")
    assert first.worker is not None, "as the registry calls it"
    assert (first.requests, first.errors) == (3, 3)
    assert first.duration_ms is not None
    assert 4_900 <= first.duration_ms < 60_000, "it started 4.9 s before its end"
    assert (lost.outcome, lost.worker_id, lost.worker, lost.requests) == ("lost", "w-2", None, 0)
    assert "w-2 fell silent" in (lost.error or "")
    assert (released.outcome, released.error) == ("released", None)
    assert released.duration_ms is not None
    assert (last.outcome, last.error, last.requests) == ("failed", "refused for good", 1)
    times = [moment for one in (first, lost, released, last) for moment in (one.claimed_at, one.ended_at)]
    assert all(moment is not None for moment in times)
    # The second one's claim was moved into the past for the test.
    assert [first.claimed_at, first.ended_at, released.claimed_at, released.ended_at] == sorted(
        [first.claimed_at, first.ended_at, released.claimed_at, released.ended_at]  # type: ignore[type-var]
    )


async def test_a_running_a_cancelled_and_a_waiting_task(pool: Pool) -> None:
    task = await given.waiting(pool, "payload_fetch", await given.store(pool))
    assert await attempts(pool, task) == []
    await given.claimed(pool)
    (running,) = await attempts(pool, task)
    assert (running.outcome, running.ended_at, running.duration_ms) == ("running", None, None)
    await end(pool, task, 1, "postpone", "the host cools down", 0.1)
    (postponed,) = await attempts(pool, task)
    assert (postponed.outcome, postponed.error) == ("postponed", "the host cools down")
    assert await given.one(pool, "SELECT count(*) FROM cancel_tasks(ARRAY[%s::bigint], 'enough')", [task]) == 1
    assert [one.outcome for one in await attempts(pool, task)] == ["postponed"], (
        "no worker had it when it was cancelled"
    )


async def test_the_newest_fifty_earlier_attempts_are_kept(pool: Pool) -> None:
    task = await given.waiting(pool, "payload_fetch", await given.store(pool))
    for n in range(1, 54):
        await given.claimed(pool)
        await end(pool, task, n, "wait", f"try {n}", 0.0)
    found = await attempts(pool, task)
    assert [one.attempt for one in found] == list(range(4, 54))
    assert found[-1].error == "try 53"


async def test_the_page_shows_each_attempt_with_its_requests_folded(admin: httpx.AsyncClient, pool: Pool) -> None:
    task = await tried_four_times(pool)
    page = (await admin.get(f"/admin/tasks/{task}")).text
    blocks = dict(re.findall(r'<li class="\w+" id="attempt-(\d)">(.*?)</li>', page, re.DOTALL))
    assert sorted(blocks) == ["1", "2", "3", "4"]
    first = unescape(blocks["1"])
    assert first.count("<tr>") == 2, "its head and one line"
    assert "×3" in first
    assert 'href="/admin/proxies/7"' in first
    assert 'href="/admin/hosts/dutchie.com"' in first
    assert "360 ms" in first, "three times 120 ms"
    assert "750 ms" in first, "three waits of 250 ms"
    assert len(re.findall(r'<rect class="bad"', first)) == 3
    assert "HTTP 502 by dutchie.com" in first
    assert "lost" in blocks["2"]
    assert "released" in blocks["3"]
    assert "abort: HTTP 403" in blocks["4"]


async def test_the_page_of_a_task_that_is_retried_counts_down(admin: httpx.AsyncClient, pool: Pool) -> None:
    task = await given.waiting(pool, "payload_fetch", await given.store(pool))
    await given.claimed(pool)
    await end(pool, task, 1, "retry", "HTTP 502", 1)
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_live SET state = 's', scheduled_for = now() + interval '10 minutes'")
    page = (await admin.get(f"/admin/tasks/{task}")).text
    steps = page.partition('id="timeline"')[2].partition("</ol>")[0]
    retry = steps[steps.index("Retry, attempt 2") :]
    assert "data-ago>in 9 min" in retry


async def test_api_and_command_line_have_the_same_attempts(pool: Pool) -> None:
    task = await tried_four_times(pool)
    async with pool.connection() as conn:
        shown = await get_task_with_reason(conn, task)
        why = await explain_with_trace(conn, task)
    assert [one.attempt for one in shown.attempts] == [1, 2, 3, 4]
    assert shown.attempts == why.story.attempts
    assert [one.task_attempt for one in why.story.requests] == [1, 1, 1, 4]
    assert b'"outcome":"retried"' in msgspec.json.encode(shown)
    lines = _task_lines(shown, "Green Leaf")
    rows = lines[lines.index("Attempts") + 1 :][:4]
    assert [
        (row.split()[0], word in row) for row, word in zip(rows, ("retried", "lost", "released", "failed"), strict=True)
    ] == [
        ("1", True),
        ("2", True),
        ("3", True),
        ("4", True),
    ]
    told = "\n".join(explain_lines(await _task(pool, task), why, "Green Leaf", everything=False, width=200))
    for said in (
        "attempt 1 retried after",
        "3 requests: HTTP 502 by dutchie.com",
        "claimed by w-2, attempt 2",
        "attempt 3 released",
    ):
        assert said in told, told


async def _task(pool: Pool, task: int) -> Any:
    async with pool.connection() as conn:
        return await get_task(conn, task)
