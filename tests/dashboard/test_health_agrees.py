"""The overview, the doctor, System, `/readyz` and the metrics find the same, before and after it is mended."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import httpx

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.ops import doctor, health
from menuwatch.ops.metrics import Reader
from tests.dashboard import task_rows as given

FAULTS = {
    "workers": "critical",
    "tasks": "warning",
    "proxies": "warning",
    "hosts": "critical",
    "failures": "critical",
    "schedules": "warning",
    "stores": "warning",
    "quarantine": "warning",
}

_BREAK = """
INSERT INTO proxies (host, port, is_active, probe_at) VALUES ('a', 1, true, NULL), ('b', 1, true, NULL), ('c', 1, false, now());
INSERT INTO hosts (host, rate, burst, concurrency, current_rate, paused_at, paused_reason)
  VALUES ('menus.test', 1, 1, 1, 1, now(), 'lawyers');
INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES ('late', 'payload_fetch', 4, now() - interval '1 hour');
UPDATE dispensaries SET platform_dispensary_id = 'p1', last_crawled_at = now() - interval '9 hours';
INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, reason, fetched_at, path, bytes, raw_bytes, sha256, content_sha256)
  SELECT id, 'dutchie', 'quarantined', 'odd', now(), 'x', 1, 1, 'x', 'x' FROM dispensaries;
INSERT INTO task_live (role, state, worker_id, claimed_at, attempt)
  VALUES ('analytics_refresh', 'a', 'gone', now() - interval '1 hour', 1)
"""
_MEND = """
INSERT INTO worker_registry (worker_id, friendly_name, host, status, heartbeat) VALUES ('w', 'W', 'h', 'active', '{}');
DELETE FROM task_live;
UPDATE proxies SET is_active = true, probe_at = NULL;
UPDATE hosts SET paused_at = NULL, paused_reason = NULL;
UPDATE task_schedules SET next_run_at = now() + interval '1 hour';
UPDATE dispensaries SET last_crawled_at = now();
DELETE FROM raw_crawl_payloads
"""


async def _execute(pool: Pool, statements: str) -> None:
    async with pool.connection() as conn:
        for statement in statements.split(";\n"):
            await conn.execute(statement.encode())


async def _faces(admin: httpx.AsyncClient, pool: Pool, archive: FileArchive) -> dict[str, str]:
    """What all of them find, by check."""
    figures = await Reader(pool, fresh_seconds=0).read()
    assert figures.assessment is not None
    readiness = await health.check(pool, archive, {})
    assert readiness.health is not None
    examined = [one for one in await doctor.work(pool, Settings()) if one.check in FAULTS]
    found = {one.check: str(one.level) for one in figures.assessment.findings}
    assert readiness.health.findings == found
    assert {one.check: one.level for one in examined if one.level != "ok"} == found
    assert {one.check for one in examined} == set(FAULTS), "what is all right is said as well"
    overview = unescape((await admin.get("/admin/")).text)
    system = unescape((await admin.get("/admin/system/doctor")).text)
    assert figures.assessment.sentence in overview
    for one in figures.assessment.findings:
        assert one.detail in overview
    for one in examined:
        assert one.detail in system
    return found


async def test_every_face_finds_the_same_and_recovers(admin: httpx.AsyncClient, pool: Pool, tmp_path: Path) -> None:
    archive = FileArchive(tmp_path / "files")
    # Before the first crawl a checklist stands in place of the banner, until it is dismissed.
    await admin.post("/admin/setup/dismiss")
    store = await given.store(pool, "shop")
    await given.over(pool, of=store)
    await _execute(pool, _BREAK)
    assert await _faces(admin, pool, archive) == FAULTS

    # The store succeeded again; everything else is mended by hand. What failed an hour ago stays in the history.
    await given.over(pool, "completed", of=store)
    await _execute(pool, _MEND)
    assert await _faces(admin, pool, archive) == {}
    assert "Healthy: 1 worker online" in (await admin.get("/admin/")).text


async def test_the_doctor_names_a_missing_key_and_backup(pool: Pool) -> None:
    async def levels(settings: Settings) -> dict[str, str]:
        return {one.check: str(one.level) for one in await doctor.work(pool, settings)}

    found = await levels(Settings())
    assert (found["secret key"], found["backup"]) == ("warning", "warning")
    await _execute(
        pool,
        "INSERT INTO backups (host, folder, backup, made_at, rows, files, bytes, missing) VALUES ('h', '/b', 'x', now(), 1, 1, 1, 0)",
    )
    found = await levels(Settings(secret_key="k" * 43 + "="))
    assert (found["secret key"], found["backup"]) == ("ok", "ok")
    await _execute(pool, "UPDATE backups SET made_at = now() - interval '8 days'")
    assert (await levels(Settings()))["backup"] == "warning"
