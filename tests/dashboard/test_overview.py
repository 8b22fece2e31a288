"""The overview of an installation in which nothing has happened yet, and of one where something has."""

from __future__ import annotations

import httpx
import pytest

from menuwatch.db.pool import Pool
from tests.dashboard import tasks as given
from tests.dashboard.crew import enter


async def test_an_empty_installation_says_what_to_do_next(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool
) -> None:
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_schedules SET enabled = false")
    page = (await admin.get("/admin/")).text
    for said in (
        "2 things are wrong and need you now.",
        "No worker is running.",
        "There is no proxy yet: workers do not start without one.",
        "No work yet",
        "Nothing failed in the last day",
        "Nothing finished in the last day",
        "The backlog is empty: no more workers are needed.",
        "0 arrived",
    ):
        assert said in page, said
    assert 'href="/admin/job-queue/enqueue"' in page
    assert "/admin/job-queue/enqueue" not in (await viewer.get("/admin/")).text


async def test_what_failed_is_text_and_leads_to_its_group(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_task_history_partition(now())")
        await conn.execute(
            "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, "
            "max_retries, postpone_count, role, platform, status, worker_id, error_message, payload) "
            "SELECT nextval('task_ids'), now() - interval '9 minutes', now() - interval '8 minutes', now() - interval '8 minutes', "
            "now() - interval '7 minutes', 0, 4, 3, 3, 0, 'analytics_refresh', 'dutchie', 'failed', 'w', "
            "'<script>alert(' || n || ')</script>', '{}' FROM generate_series(1, 3) n"
        )
    page = (await admin.get("/admin/?hours=1")).text
    assert "3 tasks failed for good in the last hour, of 1 cause." in page
    assert "<script>alert(" not in page
    assert "&lt;script&gt;alert(" in page
    assert "3 arrived" in page
    assert "3 failed" in page
    assert "?q=role%3Aanalytics_refresh%20state%3Afailed" in page
    assert "took 1 min" in page


@pytest.mark.parametrize("hours", ["0", "25", "many"])
async def test_other_hours_are_refused(admin: httpx.AsyncClient, hours: str) -> None:
    assert (await admin.get(f"/admin/?hours={hours}")).status_code == 422


async def test_while_every_worker_is_paused_no_time_is_promised(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", status="paused", max_concurrent_tasks=3)
    await given.over(pool, "completed", role="analytics_refresh")
    await given.waiting(pool)
    page = (await admin.get("/admin/")).text
    assert "all workers are paused" in page
    assert "at the rate of the last hour" not in page
    assert "the only worker is paused: nothing is taken until it is resumed" in (await admin.get("/admin/workers")).text
