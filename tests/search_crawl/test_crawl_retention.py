"""Ended crawls past CRAWL_HISTORY_DAYS go with their rows and archived pages; running and younger ones stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool
from menuwatch.ops.janitor import Janitor
from menuwatch.ops.retention import Retention
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl.pages import PageArchive
from tests.dashboard.crawl_rows import half_done

TABLES = ("crawl_jobs", "crawl_queue", "crawl_attempts", "crawl_products", "crawl_variants")


async def ended(pool: Pool, pages: PageArchive, *, status: str, days: float) -> int:
    """A crawl with rows in every table and two archived pages, which ended so many days ago."""
    job = await half_done(pool)
    column = "completed_at" if status == "completed" else "cancelled_at"
    async with pool.connection() as conn:
        await conn.execute(
            f"UPDATE crawl_jobs SET status = %s, next_submission_at = NULL, {column} = now() - %s * interval '1 day'"
            " WHERE id = %s".encode(),
            (status, days, job.id),
        )
    archive(pages, job.id)
    return job.id


def archive(pages: PageArchive, job_id: int) -> None:
    for item in (1, 2):
        pages.put(job_id, item, 1, b"<html>")


async def jobs(pool: Pool, table: str = "crawl_jobs") -> set[int]:
    column = {"crawl_jobs": "id", "crawl_variants": "(SELECT job_id FROM crawl_products p WHERE p.id = product_id)"}
    async with pool.connection() as conn:
        rows = await (await conn.execute(f"SELECT {column.get(table, 'job_id')} FROM {table}".encode())).fetchall()
    return {row[0] for row in rows}


def folders(root: Path) -> set[int]:
    return {int(folder.name) for folder in (root / "crawls").iterdir()}


def janitor(pool: Pool, pages: PageArchive, days: int | None, clock: ManualClock | None = None) -> Janitor:
    keep = Retention(crawls=None if days is None else timedelta(days=days))
    return Janitor(pool, retention=keep, pages=pages, clock=clock)


async def test_ended_crawls_go_with_rows_and_files(pool: Pool, tmp_path: Path) -> None:
    pages = PageArchive(tmp_path)
    old = await ended(pool, pages, status="completed", days=8)
    cancelled = await ended(pool, pages, status="cancelled", days=7.1)
    young = await ended(pool, pages, status="completed", days=6.9)
    running = (await half_done(pool)).id
    archive(pages, running)
    async with pool.connection() as conn:
        await conn.execute("UPDATE crawl_jobs SET created_at = now() - interval '1 year' WHERE id = %s", (running,))
    everything = {old, cancelled, young, running}
    await janitor(pool, pages, None).step()
    assert (await jobs(pool), folders(tmp_path)) == (everything, everything), "0 days: forever"
    await run(pool, pages, 7)
    for table in TABLES:
        assert await jobs(pool, table) == {young, running}, table
    assert folders(tmp_path) == {young, running}
    assert len(list((tmp_path / "crawls" / str(running)).iterdir())) == 2


async def run(pool: Pool, pages: PageArchive, days: int, clock: ManualClock | None = None) -> None:
    """One run of the job, whenever the last one was."""
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM maintenance_runs WHERE job = 'crawls'")
    await janitor(pool, pages, days, clock).step()


async def test_nothing_goes_while_the_clock_is_in_doubt(pool: Pool, tmp_path: Path) -> None:
    pages = PageArchive(tmp_path)
    kept = await ended(pool, pages, status="completed", days=1)
    clock = ManualClock(datetime.now(UTC))
    await run(pool, pages, 7, clock)
    clock.advance(timedelta(days=4000))
    await run(pool, pages, 7, clock)
    assert (await jobs(pool), folders(tmp_path)) == ({kept}, {kept})
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT error FROM maintenance_runs WHERE job = 'crawls'")).fetchone()
    assert row is not None
    assert str(row[0]).startswith("retention refused: the database's clock shows")


async def test_a_crash_before_the_commit_leaves_no_file_without_a_job(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = PageArchive(tmp_path)
    first = await ended(pool, pages, status="completed", days=9)
    second = await ended(pool, pages, status="completed", days=9)

    class Crash(Exception):
        pass

    remove = pages.remove_job

    def crash(job_id: int) -> int:
        removed = remove(job_id)
        if job_id == second:
            raise Crash
        return removed

    before = datetime.now(UTC) - timedelta(days=7)
    monkeypatch.setattr(pages, "remove_job", crash)
    async with pool.connection() as conn:
        with pytest.raises(Crash):
            await crawls.prune(conn, pages, before)
    assert (await jobs(pool), folders(tmp_path)) == ({second}, set()), "rows without files, never the reverse"
    monkeypatch.undo()
    async with pool.connection() as conn:
        assert await crawls.prune(conn, pages, before) == (1, 0)
        assert await crawls.prune(conn, pages, before) == (0, 0)
    assert await jobs(pool) == set()
    assert first != second


async def test_the_setting_is_in_days_and_off_by_default() -> None:
    assert Retention.configured(Settings()).crawls is None
    assert Retention.configured(Settings(crawl_history_days=30)).crawls == timedelta(days=30)
