"""A row and its file outside of a task: what is left of them when the transaction ends in each of the ways it can."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive, Staged
from menuwatch.archive.service import recover_archive
from menuwatch.archive.store import NewPayload
from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Pool, open_pool
from menuwatch.pipeline.archive_transaction import archive_transaction
from tests.conftest import in_memory
from tests.market import add_store

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
DOC = Document(platform="dutchie", platform_dispensary_id="x", fetched_at=AT, pages=(b"{}",))


def _row(store_id: int, staged: Staged, status: str = "ok") -> NewPayload:
    return NewPayload(
        task_id=None, dispensary_id=store_id, platform="dutchie", status=status, fetched_at=AT, path=staged.path,
        bytes=staged.size, raw_bytes=staged.raw_size, sha256=staged.sha256, content_sha256=staged.content_sha256,
    )  # fmt: skip


async def _shelve(pool: Pool, archive: FileArchive, *, fail: BaseException | None = None, status: str = "ok") -> None:
    async with pool.connection() as conn:
        store_id = await add_store(conn)
    async with archive_transaction(pool, archive) as (conn, shelf):
        staged = await shelf.put(store_id, DOC)
        await payloads.insert(conn, _row(store_id, staged, status))
        if fail is not None:
            raise fail


async def _rows(pool: Pool) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute("SELECT path, sha256 FROM raw_crawl_payloads")).fetchall()


def _files(root: Path) -> list[str]:
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


async def test_committed_is_published(pool: Pool, tmp_path: Path) -> None:
    await _shelve(pool, FileArchive(tmp_path))
    assert [path for path, _ in await _rows(pool)] == _files(tmp_path)


@pytest.mark.parametrize("error", [ValueError("in the work"), KeyboardInterrupt(), psycopg.OperationalError("gone")])
async def test_an_error_before_commit_leaves_neither(pool: Pool, tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        await _shelve(pool, FileArchive(tmp_path), fail=error)
    assert (await _rows(pool), _files(tmp_path)) == ([], [])


async def test_a_row_that_the_database_refuses_leaves_neither(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        await _shelve(pool, FileArchive(tmp_path), status="odd")
    assert (await _rows(pool), _files(tmp_path)) == ([], [])


async def test_a_commit_that_is_refused_leaves_neither(pool: Pool, tmp_path: Path) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE check_violation; END $$;"
            "CREATE CONSTRAINT TRIGGER no AFTER INSERT ON raw_crawl_payloads DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION no()"
        )
    with pytest.raises(psycopg.errors.CheckViolation):
        await _shelve(pool, FileArchive(tmp_path))
    assert (await _rows(pool), _files(tmp_path)) == ([], [])


async def test_the_second_of_two_rows_for_one_path_loses_only_its_own_file(pool: Pool, tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    await _shelve(pool, archive)
    with pytest.raises(psycopg.errors.UniqueViolation):
        await _shelve(pool, archive)
    ((path, sha256),) = await _rows(pool)
    assert (archive.read(path, sha256), _files(tmp_path)) == (DOC, [path])


async def _shelve_slowly(pool: Pool, archive: FileArchive, store_id: int) -> None:
    async with archive_transaction(pool, archive) as (conn, shelf):
        await conn.execute("SET LOCAL synchronous_commit = on")
        staged = await shelf.put(store_id, DOC)
        await payloads.insert(conn, _row(store_id, staged))


def _write_until_one_waits(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        notices: list[str] = []
        conn.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        conn.execute("CREATE TABLE probe (n integer)")
        conn.execute("SET synchronous_commit = on")
        while not any("wait for synchronous replication" in notice for notice in notices):
            conn.execute("INSERT INTO probe VALUES (1)")


@pytest.fixture
def no_standby() -> Iterator[str]:
    """The address of a database on a server of its own where a synchronous COMMIT waits for a standby that never comes."""
    with (
        tempfile.TemporaryDirectory(prefix="menuwatch-shelving-", dir=in_memory()) as folder,
        contextlib.ExitStack() as running,
    ):
        url, stack = embedded.start(Path(folder) / "data")
        running.enter_context(stack)
        migrate.migrate(url)
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("ALTER DATABASE postgres SET synchronous_commit = off")
            conn.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            conn.execute("SELECT pg_reload_conf()")
            # The server's processes read their settings anew one by one; it is so when a write is seen to wait.
            probe = threading.Thread(target=_write_until_one_waits, args=(url,), daemon=True)
            probe.start()
            while probe.is_alive():
                conn.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        yield url


async def test_cancelled_during_a_commit_that_holds_keeps_the_file(no_standby: str, tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    async with open_pool(no_standby) as pool, pool.connection() as watcher:
        task = asyncio.create_task(_shelve_slowly(pool, archive, await add_store(watcher)))
        waiting: tuple[Any, ...] | None = (0,)
        while waiting == (0,) and not task.done():
            cursor = await watcher.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            waiting = await cursor.fetchone()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ((path, sha256),) = await _rows(pool)
        assert archive.read(path, sha256) == DOC, "the row was committed, so its file is there"
        assert _files(tmp_path) != [path], "nobody knew, so it was not published"
        assert await recover_archive(pool, archive) == (1, 0)
        assert (archive.read(path, sha256), _files(tmp_path)) == (DOC, [path])
