"""The overview of an installation in which nothing has happened yet, and of one where something has."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from menuwatch.db.pool import Pool
from tests.dashboard import task_rows as given
from tests.dashboard.worker_rows import enter


def charts_of(page: str) -> list[tuple[str, dict[str, Any]]]:
    """(label, data) of the charts of a page."""
    found = re.findall(
        r'aria-label="([^"]+?); the table below[^>]*></div>\s*<script type="application/json"[^>]*>(.*?)</script>', page
    )
    return [(label, json.loads(data)) for label, data in found]


async def test_an_empty_installation_says_what_to_do_next(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool
) -> None:
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_schedules SET enabled = false")
    page = (await admin.get("/admin/")).text
    for said in (
        "Set up Menuwatch: 0 of 6 done",
        "No tasks yet",
        "No open failures in the last day",
        "No finished tasks in the last day",
        "Queue empty: no more workers needed.",
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
    assert "1 task failed in the last hour and did not succeed since (1 cause)." in page, "thrice the same work"
    assert "<script>alert(" not in page
    assert "&lt;script&gt;alert(" in page
    (chart,) = [data for label, data in charts_of(page) if label.startswith("Tasks enqueued and finished per 1 min")]
    assert [sum(one["values"]) for one in chart["series"]] == [0, 3, 3], "completed, failed, enqueued"
    assert "?q=role%3Aanalytics_refresh%20state%3Afailed" in page
    assert "took 1 min" in page


async def test_charts_are_split_by_role_host_and_pod(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "w-1", pod="<Xylos>")
    async with pool.connection() as conn:
        await conn.execute('UPDATE queue_settings SET platform_hosts = \'{"dutchie": ["dutchie.com"]}\'')
    for role, times in (("payload_fetch", 3), ("analytics_refresh", 1)):
        for _ in range(times):
            await given.over(pool, "completed", role=role)

    async def split(by: str) -> dict[str, list[tuple[str, float]]]:
        page = (await admin.get(f"/admin/?hours=1&by={by}")).text
        assert f">{by}</a>" in page
        return {
            label: [(one["label"], sum(value or 0 for value in one["values"])) for one in data["series"]]
            for label, data in charts_of(page)
        }

    charts = await split("role")
    # Each ran from ten minutes ago to five minutes ago, and was enqueued twenty minutes ago.
    assert charts == {
        "Tasks finished per 1 min, by role": [("payload_fetch", 3), ("analytics_refresh", 1)],
        "Time from due to claimed, of tasks that ended, by role": [("payload_fetch", 600), ("analytics_refresh", 600)],
        "Time from start to end, of completed tasks, by role": [("payload_fetch", 300), ("analytics_refresh", 300)],
    }
    assert (await split("host"))["Tasks finished per 1 min, by host"] == [("dutchie.com", 3), ("no host", 1)]
    assert (await split("pod"))["Tasks finished per 1 min, by pod"] == [("<Xylos>", 4)]
    assert (await admin.get("/admin/?by=weather")).status_code == 422


async def test_small_parts_are_one_series_without_percentiles(admin: httpx.AsyncClient, pool: Pool) -> None:
    for n in range(8):
        await enter(pool, f"w-{n}", pod=f"p{n}")
        number = await given.over(pool, "completed")
        async with pool.connection() as conn:
            await conn.execute("UPDATE task_history SET worker_id = %s WHERE id = %s", [f"w-{n}", number])
    page = (await admin.get("/admin/?hours=1&by=pod")).text
    finished, wait, took = [[one["label"] for one in data["series"]] for _, data in charts_of(page)]
    assert finished == ["p0", "p1", "p2", "p3", "p4", "other"]
    assert wait == took == finished[:-1]


@pytest.mark.parametrize("hours", ["0", "25", "many"])
async def test_other_hours_are_refused(admin: httpx.AsyncClient, hours: str) -> None:
    assert (await admin.get(f"/admin/?hours={hours}")).status_code == 422


async def test_while_every_worker_is_paused_no_time_is_promised(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", status="paused", max_concurrent_tasks=3)
    await given.over(pool, "completed", role="analytics_refresh")
    await given.waiting(pool)
    page = (await admin.get("/admin/")).text
    assert "all workers paused" in page
    assert "based on the last hour" not in page
    assert "the only worker is paused: resume it to continue" in (await admin.get("/admin/workers")).text


async def test_the_checklist_follows_the_installation_and_can_be_dismissed(
    admin: httpx.AsyncClient, pool: Pool
) -> None:
    def steps(page: str) -> list[tuple[str, str]]:
        return re.findall(r'<li class="(done|open)"><span class="mark"[^>]*>[^<]*</span><span><strong>([^<]+)<', page)

    page = (await admin.get("/admin/")).text
    assert {state for state, _ in steps(page)} == {"open"}
    assert "Critical" not in page, "a fresh installation has no alarms"
    for path in ("/admin/proxies/import", "/admin/stores/new", "/admin/schedules/discovery", "/admin/alerts/new"):
        assert f'href="{path}"' in page
        assert (await admin.get(path)).status_code == 200
    store = await given.store(pool)
    page = (await admin.get("/admin/")).text
    assert "No worker is running: workers start once a proxy is active." in page, "a store waits to be crawled"
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO proxies (host, port, is_active) VALUES ('127.0.0.9', 9, true)")
        await conn.execute(
            "INSERT INTO store_crawls (dispensary_id, crawled_at, products, new_products, changed, unchanged, returned, missing,"
            " out_of_stock, price_changes, stock_changes) VALUES (%s, now(), 9, 9, 0, 0, 0, 0, 0, 0, 0)",
            [store],
        )
    page = (await admin.get("/admin/")).text
    assert [state for state, _ in steps(page)] == ["done"] * 3 + ["open"] * 3
    assert "No worker is running." in page, "an installation that crawled has alarms"
    assert (await admin.post("/admin/setup/dismiss", headers={"Origin": "http://menuwatch"})).status_code == 303
    page = (await admin.get("/admin/")).text
    assert steps(page) == []
