"""Duties: once when due, by one janitor at a time, and one that fails hinders no other."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from menuwatch.db import partitions
from menuwatch.db.pool import Connection, Pool, connect
from menuwatch.ops import janitor as module
from menuwatch.ops.janitor import Janitor


async def _do(pool: Pool, query: str, *values: Any) -> list[Any]:
    async with pool.connection() as conn:
        cursor = await conn.execute(query.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def _done(pool: Pool) -> dict[str, Any]:
    return dict(await _do(pool, "SELECT job, succeeded_at FROM maintenance_runs"))


async def test_a_duty_is_done_once_when_it_is_due(pool: Pool) -> None:
    await asyncio.gather(*(Janitor(pool).step() for _ in range(5)))
    first = await _done(pool)
    assert set(first) == {
        "names", "totals", "horizon", "history", "records", "visitors", "statistics", "crawls", "payloads", "quality", "audit",
    }  # fmt: skip
    assert first["visitors"] < min(first["payloads"], first["crawls"]), "removing files may take long"
    await Janitor(pool).step()
    assert await _done(pool) == first, "none is due again"
    await _do(pool, "UPDATE maintenance_runs SET succeeded_at = now() - interval '61 minutes'")
    before = await _done(pool)
    await Janitor(pool).step()
    after = await _done(pool)
    assert {job for job in after if after[job] != before[job]} == {
        "names",
        "totals",
        "horizon",
        "history",
        "records",
        "visitors",
        "crawls",
        "quality",
    }


@pytest.mark.parametrize("error", [None, "boom"])
async def test_counting_rests_for_ten_times_as_long_as_it_took(pool: Pool, error: str | None) -> None:
    await Janitor(pool).step()
    await _do(
        pool,
        "UPDATE maintenance_runs SET succeeded_at = now() - interval '61 minutes', attempted_at = now() - interval '61 minutes'",
    )
    await _do(pool, "UPDATE maintenance_runs SET duration = interval '7 minutes', error = %s", error)
    before = await _done(pool)
    await Janitor(pool).step()
    after = await _done(pool)
    assert (after["records"] > before["records"], after["totals"] == before["totals"]) == (True, True)
    ((took,),) = await _do(pool, "SELECT duration FROM maintenance_runs WHERE job = 'records'")
    assert timedelta(0) < took < timedelta(minutes=1)
    await _do(pool, "UPDATE maintenance_runs SET duration = interval '6 minutes' WHERE job = 'totals'")
    await Janitor(pool).step()
    assert (await _done(pool))["totals"] > before["totals"]


async def test_each_job_has_its_own_time_limit(pool: Pool) -> None:
    async def sleep(conn: Connection, _: Any) -> None:
        await conn.execute("SELECT pg_sleep(0.5)")

    janitor = Janitor(pool)
    janitor.jobs = {
        "short": module._Job(every=timedelta(0), run=sleep, statement_seconds=0.1),
        "long": module._Job(every=timedelta(0), run=sleep),
    }
    await janitor.step()
    rows = await _do(pool, "SELECT job, error FROM maintenance_runs ORDER BY job")
    assert rows == [("long", None), ("short", "QueryCanceled: canceling statement due to statement timeout")]


async def test_while_one_is_at_it_others_pass_over(pool: Pool, database_url: str) -> None:
    async with await connect(database_url) as other:
        await other.execute(module._q.lock_maintenance)
        await Janitor(pool).step()
        assert await _done(pool) == {}
        await other.execute(module._q.unlock_maintenance)
    await Janitor(pool).step()
    assert await _done(pool) != {}


async def test_the_session_is_handed_back_as_it_was(pool: Pool) -> None:
    async with pool.connection() as conn:
        before = await (await conn.execute("SHOW statement_timeout")).fetchone()
    await Janitor(pool).step()
    rows = await asyncio.gather(
        *(_do(pool, "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')") for _ in range(4))
    )
    assert before is not None
    assert all(row == [("0", before[0])] for row in rows)
    assert await _do(pool, "SELECT pid FROM pg_locks WHERE locktype = 'advisory'") == []


async def test_one_that_fails_hinders_no_other_and_is_tried_again(pool: Pool) -> None:
    await _do(
        pool,
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES ('x', 'payload_fetch', 4, now())",
    )
    for days in (1, 100):
        await _do(pool, "INSERT INTO schedule_runs VALUES (1, now() - make_interval(days => %s), now())", days)
    await _do(
        pool,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'out of order'; END $$",
    )
    await _do(pool, "CREATE TRIGGER refuse BEFORE DELETE ON schedule_runs FOR EACH ROW EXECUTE FUNCTION refuse()")
    with capture_logs() as logs:
        await Janitor(pool).step()
    assert [line["job"] for line in logs if line["action"] == "maintenance_failed"] == ["records"]
    rows = await _do(pool, "SELECT job, succeeded_at IS NOT NULL, error FROM maintenance_runs ORDER BY job")
    assert rows == [
        ("audit", True, None), ("crawls", True, None), ("history", True, None), ("horizon", True, None), ("names", True, None),
        ("payloads", True, None), ("quality", True, None), ("records", False, "RaiseException: out of order"),
        ("statistics", True, None),
        ("totals", True, None), ("visitors", True, None),
    ]  # fmt: skip
    await _do(pool, "DROP TRIGGER refuse ON schedule_runs")
    await Janitor(pool).step()
    assert await _do(pool, "SELECT succeeded_at IS NOT NULL, error FROM maintenance_runs WHERE job = 'records'") == [
        (True, None)
    ]


async def test_who_holds_old_rows_back_is_named(pool: Pool, database_url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "LONG_TRANSACTION", timedelta(0))
    monkeypatch.setattr(module, "LONG_IDLE_TRANSACTION", timedelta(0))
    async with (
        await connect(database_url, name="reader") as reader,
        await connect(database_url, name="harmless") as harmless,
        reader.transaction(),
        harmless.transaction(),
    ):
        pid = reader.info.backend_pid
        await reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await reader.execute("SELECT 1 FROM task_live")
        await harmless.execute("SELECT 1 FROM task_live")  # read committed: between statements it holds nothing back
        async with pool.connection() as conn:
            held = await partitions.horizon(conn)
        assert [(one.pid, one.state, one.application) for one in held] == [(pid, "idle in transaction", "reader")]
        assert 0 <= held[0].seconds < 30
        with capture_logs() as logs:
            await Janitor(pool).step()
    (line,) = [line for line in logs if line["action"] == "horizon_held"]
    assert (line["pid"], line["log_level"]) == (pid, "warning")
    with capture_logs() as logs:
        await Janitor(pool, interval=0.01).step()
    assert [line for line in logs if line["action"] == "horizon_held"] == []
