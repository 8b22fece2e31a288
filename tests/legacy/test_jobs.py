"""The former schedules and jobs: what there is, and putting them to rest, over the API and at the terminal."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from menuwatch.cli import migrate_legacy
from menuwatch.core.errors import Conflict
from menuwatch.db.pool import Pool
from menuwatch.ops.legacy import jobs
from tests.api.conftest import app, archive, platforms, shop  # noqa: F401
from tests.api.shop import Shop
from tests.legacy.legacy_database import JOB_TABLES, OURS, fingerprint, rows

BASE = "/api/tasks/migration"


async def test_nothing_to_migrate(shop: Shop) -> None:  # noqa: F811
    found = await shop.ask(f"{BASE}/status")
    assert (found["found"], found["complete"], found["jobs"]) == (False, True, None)
    for step in ("disable-old-schedules", "cancel-pending-crawl-jobs", "create-resync-tasks", "full-migrate"):
        answer = await shop.http.post(f"{BASE}/{step}")
        assert (answer.status_code, answer.json()["found"]) == (200, False)
        assert answer.json()["message"].startswith("There is nothing to migrate")


async def test_step_by_step(shop: Shop) -> None:  # noqa: F811
    await shop.execute(JOB_TABLES)
    await shop.execute(OURS)
    found = await shop.ask(f"{BASE}/status")
    assert found["message"] == "Left to do: 2 schedules to disable and 2 crawl jobs to cancel."
    assert (found["schedules"], found["schedules_enabled"], found["run_logs"]) == (3, 2, 2)
    assert (found["jobs"], found["jobs_pending"], found["jobs_running"], found["stores"]) == (5, 2, 1, 3)
    assert [one["name"] for one in found["schedule_list"]] == ["menu_detection", "product_crawl", "analytics"]
    before = await fingerprint(shop.pool)
    trial = await shop.http.post(f"{BASE}/full-migrate", json={"dry_run": True})
    assert trial.json() == {
        "found": True, "dry_run": True, "schedules_disabled": 2, "jobs_cancelled": 2, "stores": 3, "tasks_created": 3,
        "discovery_created": 1, "analytics_created": 1,
        "message": "2 schedules would be disabled; 2 crawl jobs would be cancelled; "
        "3 tasks would be created for 3 stores that can be crawled; "
        "2 tasks would be created for store discovery and analytics.",
    }  # fmt: skip
    assert await fingerprint(shop.pool) == before
    done = (await shop.http.post(f"{BASE}/disable-old-schedules")).json()
    assert (done["schedules_disabled"], done["jobs_cancelled"]) == (2, None)
    # A key that is sent twice is one call.
    headers = {"Idempotency-Key": "once"}
    first, again = [await shop.http.post(f"{BASE}/cancel-pending-crawl-jobs", headers=headers) for _ in range(2)]
    assert first.json()["jobs_cancelled"] == again.json()["jobs_cancelled"] == 2
    assert again.headers["idempotent-replayed"] == "true"
    # `cancelled` is a word that the table does not take.
    found_rows = await rows(shop.pool, "SELECT id, status, error_message FROM dispensary_crawl_jobs ORDER BY id")
    assert found_rows == [
        (1, "failed", jobs.WHY), (2, "failed", jobs.WHY), (3, "running", None), (4, "completed", None), (5, "failed", None),
    ]  # fmt: skip
    made = (await shop.http.post(f"{BASE}/create-resync-tasks", json={"state_code": "az"})).json()
    assert (made["tasks_created"], made["discovery_created"], made["analytics_created"]) == (2, 1, 1)
    rest = (await shop.http.post(f"{BASE}/full-migrate")).json()
    assert (rest["schedules_disabled"], rest["jobs_cancelled"], rest["stores"], rest["tasks_created"]) == (0, 0, 3, 1)
    assert (rest["discovery_created"], rest["analytics_created"]) == (1, 0), "of every state"
    assert (await shop.ask(f"{BASE}/status"))["complete"] is True
    found_rows = await rows(
        shop.pool, "SELECT role, dispensary_id, priority, payload FROM worker_tasks ORDER BY dispensary_id, id"
    )
    assert found_rows == [
        ("payload_fetch", 1, 10, {}), ("payload_fetch", 2, 10, {}), ("payload_fetch", 3, 10, {}),
        ("store_discovery", None, 5, {"state": "AZ"}), ("analytics_refresh", None, 0, {}), ("store_discovery", None, 5, {}),
    ]  # fmt: skip
    again_all = await fingerprint(shop.pool)
    assert (await shop.http.post(f"{BASE}/full-migrate")).json()["tasks_created"] == 0
    after = await fingerprint(shop.pool)
    assert {name for name in after if after[name] != again_all[name]} <= {"public.audit_log", "public.api_tokens"}


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"state_code": "ZZ"}, 400, "unknown state 'ZZ'"),
        ({"state_code": "NY"}, 400, "no store in NY is known"),
        ({"state_code": 7}, 422, "state_code"),
        ({"strange": 1}, 422, "strange"),
    ],
)
async def test_what_cannot_be(shop: Shop, body: Any, status: int, word: str) -> None:  # noqa: F811
    await shop.execute(JOB_TABLES)
    answer = await shop.http.post(f"{BASE}/create-resync-tasks", json=body)
    assert (answer.status_code, word in answer.text) == (status, True), answer.text


async def test_half_of_the_tables(pool: Pool) -> None:
    """Some are gone, and what is left lies in another schema with other names of columns."""
    async with pool.connection() as conn:
        await conn.execute(
            "CREATE SCHEMA legacy; CREATE TABLE legacy.job_schedules (id int, name text, is_active boolean)"
        )
        await conn.execute("INSERT INTO legacy.job_schedules VALUES (1, 'x', true), (2, 'y', NULL)")
        found = await jobs.status(conn)
        assert (found.tables, found.missing) == (["legacy.job_schedules"], ["job_run_logs", "dispensary_crawl_jobs"])
        done = await jobs.migrate(conn)
        assert (done.schedules_disabled, done.jobs_cancelled, done.tasks_created) == (2, 0, 0)
        assert "there is no dispensary_crawl_jobs" in done.message
        await conn.execute("ALTER TABLE legacy.job_schedules DROP COLUMN is_active")
        with pytest.raises(Conflict, match=r"legacy\.job_schedules has no column enabled or is_enabled"):
            await jobs.status(conn)


async def test_at_the_terminal(
    database_url: str, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    async with pool.connection() as conn:
        await conn.execute(JOB_TABLES)
        await conn.execute(OURS)
    before = await fingerprint(pool)
    await asyncio.to_thread(migrate_legacy.run, dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "2 schedules would be disabled.",
        "2 crawl jobs would be cancelled.",
        (
            "3 tasks would be created for 3 stores that can be crawled; "
            "2 tasks would be created for store discovery and analytics."
        ),
    ]
    assert await fingerprint(pool) == before
    await asyncio.to_thread(migrate_legacy.run, "ca")
    capsys.readouterr()
    await asyncio.to_thread(migrate_legacy.status, json=True)
    assert json.loads(capsys.readouterr().out)["complete"]
    await asyncio.to_thread(migrate_legacy.status)
    assert capsys.readouterr().out.splitlines()[1] == "Schedules: 0 of 3 enabled."
