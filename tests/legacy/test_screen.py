"""The former system on the dashboard: there only where its tables are."""

from __future__ import annotations

import httpx

from menuwatch.db.pool import Pool
from tests.dashboard.conftest import ORIGIN, admin, apps, viewer  # noqa: F401
from tests.legacy.legacy_database import JOB_TABLES, OURS, rows


async def test_the_screen(admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool) -> None:  # noqa: F811
    assert "Legacy migration" not in (await admin.get("/admin/system")).text
    assert "Nothing to migrate" in (await admin.get("/admin/system/former")).text
    async with pool.connection() as conn:
        await conn.execute(JOB_TABLES)
        await conn.execute(OURS)
    for path in ("", "/settings", "/doctor"):
        assert "Legacy migration" in (await admin.get(f"/admin/system{path}")).text
    page = (await admin.get("/admin/system/former")).text
    assert "Left to do: 2 schedules to disable and 2 crawl jobs to cancel." in page
    assert "Disable 2 legacy schedules, cancel 2 legacy crawl jobs, create 3 tasks?" in page
    looked = (await viewer.get("/admin/system/former")).text
    assert ("product_crawl" in looked, "data-confirm" in looked) == (True, False)
    assert (await viewer.post("/admin/system/former/all")).status_code == 403
    for step in ("disable", "create"):
        answer = await admin.post(f"/admin/system/former/{step}", headers={"Origin": ORIGIN})
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/system/former")
    assert await rows(pool, "SELECT count(*) FILTER (WHERE enabled) FROM job_schedules") == [(0,)]
    counted = "SELECT role, count(*) FROM worker_tasks GROUP BY role ORDER BY role"
    assert await rows(pool, counted) == [("analytics_refresh", 1), ("payload_fetch", 3), ("store_discovery", 1)]
    page = (await admin.get("/admin/system/former")).text
    assert "Left to do: 2 crawl jobs to cancel." in page
    assert "Cancel 2 legacy crawl jobs?" in page
    await admin.post("/admin/system/former/all", headers={"Origin": ORIGIN})
    assert (
        "No legacy schedule is enabled, and no legacy job is pending." in (await admin.get("/admin/system/former")).text
    )
