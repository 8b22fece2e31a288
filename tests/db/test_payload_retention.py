"""Payloads past PAYLOAD_DAYS: the first and last of each day and store remain, and all that something still needs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from menuwatch.archive import retention
from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.archive.store import NewPayload
from menuwatch.archive.verify import verify
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.ops import doctor
from menuwatch.ops.janitor import Janitor
from menuwatch.ops.retention import Retention
from menuwatch.pipeline.archive_transaction import DeduplicatedFile
from tests.market import add_store

START = datetime(2026, 3, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=40)
BEFORE = NOW - timedelta(days=30)


class Archive:
    """Payloads of stores, as crawls write them."""

    def __init__(self, pool: Pool, root: Path) -> None:
        self.pool, self.root, self.files = pool, root, FileArchive(root)

    async def store(self, name: str = "store-1") -> int:
        async with self.pool.connection() as conn:
            return await add_store(conn, name)

    async def add(self, store: int, at: datetime, page: bytes | None = None, *, status: str = "ok") -> int:
        """A payload archived when it was fetched, and applied if it is ok. Without a page its answer is its own."""
        page = page or at.isoformat().encode()
        doc = Document(platform="dutchie", platform_dispensary_id="x", fetched_at=at, pages=(page,))
        staged = self.files.stage(store, doc)
        file = DeduplicatedFile(self.files, staged)
        new = NewPayload(
            task_id=None, dispensary_id=store, platform="dutchie", status=status, fetched_at=at, path=staged.path,
            bytes=staged.size, raw_bytes=staged.raw_size, sha256=staged.sha256, content_sha256=staged.content_sha256,
            reason=None if status == "ok" else "odd",
        )  # fmt: skip
        async with self.pool.connection() as conn, conn.transaction():
            number = await file.insert(conn, new)
            await conn.execute(
                "UPDATE raw_crawl_payloads SET created_at = fetched_at, applied_at = CASE status WHEN 'ok' THEN fetched_at END"
                " WHERE id = %s",
                (number,),
            )
        file.settle(True)
        return number

    async def day(self, store: int, count: int, *, start: datetime = START, hours: int = 2) -> list[int]:
        return [await self.add(store, start + timedelta(hours=hours * n)) for n in range(count)]

    async def recent(self, store: int, count: int = 10) -> list[int]:
        """Its newest payloads, after the limit."""
        return [await self.add(store, NOW - timedelta(days=1, hours=n)) for n in range(count)]

    async def do(self, query: str, *values: Any) -> list[Any]:
        async with self.pool.connection() as conn:
            return await (await conn.execute(query.encode(), values)).fetchall()

    async def prune(self) -> tuple[int, int]:
        async with self.pool.connection() as conn:
            return await retention.prune(conn, self.files, BEFORE)

    async def left(self, ids: Collection[int]) -> set[int]:
        return set(ids) & {row[0] for row in await self.do("SELECT id FROM raw_crawl_payloads")}

    def paths(self) -> set[str]:
        return {file.relative_to(self.root).as_posix() for file in self.root.rglob("*") if file.is_file()}

    async def named(self) -> set[str]:
        return {row[0] for row in await self.do("SELECT path FROM raw_crawl_payloads")}


@pytest.fixture
def archive(pool: Pool, tmp_path: Path) -> Archive:
    return Archive(pool, tmp_path)


async def test_first_and_last_of_each_day_remain(archive: Archive, pool: Pool) -> None:
    stores = [await archive.store(f"store-{n}") for n in range(2)]
    times: dict[int, tuple[int, datetime]] = {}
    for store in stores:
        for n in range(11 * 6):  # the limit falls into the last day
            at = START + timedelta(hours=4 * n)
            times[await archive.add(store, at)] = (store, at)
        await archive.recent(store)
    made = len(
        await archive.do(
            "INSERT INTO store_crawls SELECT dispensary_id, fetched_at, id, 1, 0, 0, 1, 0, 0, 0, 0, 0"
            " FROM raw_crawl_payloads RETURNING 1"
        )
    )
    days: dict[tuple[int, Any], list[int]] = {}
    for number, (store, at) in times.items():
        days.setdefault((store, at.date()), []).append(number)
    kept = {number for of_day in days.values() for number in (of_day[0], of_day[-1])}
    expected = kept | {number for number, (_, at) in times.items() if at >= BEFORE}
    assert len(expected) < len(times) / 2
    janitor = Janitor(
        pool, retention=Retention(payloads=timedelta(days=30)), archive=archive.files, clock=ManualClock(NOW)
    )
    await janitor.step()
    assert await archive.left(times) == expected
    assert archive.paths() == await archive.named()
    assert [row[0] for row in await archive.do("SELECT count(*) FROM store_crawls")] == [made], "history stays"
    assert (await verify(pool, archive.files, {})).faults == ()
    assert await archive.prune() == (0, 0)


async def test_nothing_goes_by_default_or_while_the_clock_is_in_doubt(archive: Archive, pool: Pool) -> None:
    store = await archive.store()
    ids = await archive.day(store, 5) + await archive.recent(store)
    clock = ManualClock(START + timedelta(days=1))
    for keep in (None, timedelta(days=30)):
        await archive.do("DELETE FROM maintenance_runs WHERE job = 'payloads' RETURNING 1")
        await Janitor(pool, retention=Retention(payloads=keep), archive=archive.files, clock=clock).step()
        assert await archive.left(ids) == set(ids)
        clock.advance(timedelta(days=39))
    error = await archive.do("SELECT error FROM maintenance_runs WHERE job = 'payloads'")
    assert str(error[0][0]).startswith("retention refused: the database's clock shows")


async def test_what_is_still_needed_stays(archive: Archive) -> None:
    store = await archive.store()
    first, quarantined, partial, released, waiting, newest, rejected, plain, last = [
        await archive.add(store, START + timedelta(hours=n), status={1: "quarantined", 6: "rejected"}.get(n, "ok"))
        for n in range(9)
    ]
    for column, number in (
        ("is_partial = true", partial),
        ("released_at = now()", released),
        ("applied_at = NULL", waiting),
    ):
        await archive.do(f"UPDATE raw_crawl_payloads SET {column} WHERE id = %s RETURNING 1", number)
    await archive.do("UPDATE dispensaries SET last_payload_id = %s RETURNING 1", newest)
    recent = await archive.recent(store)
    imported = await archive.add(store, START + timedelta(hours=3, minutes=30))
    await archive.do("UPDATE raw_crawl_payloads SET created_at = %s WHERE id = %s RETURNING 1", NOW, imported)
    for _ in range(10):  # payloads that were not applied have their own newest ten
        recent.append(await archive.add(store, NOW - timedelta(minutes=len(recent)), status="rejected"))
    assert await archive.prune() == (2, 2)
    gone = {rejected, plain}
    everything = {first, quarantined, partial, released, waiting, newest, rejected, plain, last, imported, *recent}
    assert await archive.left(everything) == everything - gone
    await archive.do("UPDATE dispensaries SET last_crawled_at = %s RETURNING 1", START + timedelta(hours=8))
    assert await archive.prune() == (1, 1), "a payload older than the store's last crawl is never applied"
    assert await archive.left([waiting]) == set()


async def test_the_newest_ten_of_a_store_stay(archive: Archive) -> None:
    store = await archive.store()
    ids = await archive.day(store, 12, hours=1)
    assert await archive.prune() == (1, 1)
    assert await archive.left(ids) == set(ids) - {ids[1]}


async def test_a_shared_file_goes_with_its_last_payload(archive: Archive) -> None:
    store = await archive.store()
    pages = [b"a", b"b", b"a", b"c", b"c", b"d"]
    ids = [await archive.add(store, START + timedelta(hours=n), page) for n, page in enumerate(pages)]
    await archive.recent(store)
    before = archive.paths()
    assert await archive.prune() == (4, 2), "b, a again, c twice; the files of b and c"
    assert await archive.left(ids) == {ids[0], ids[-1]}
    assert len(before - archive.paths()) == 2
    assert archive.paths() == await archive.named()


async def test_a_file_that_another_transaction_is_about_to_share_stays(archive: Archive, pool: Pool) -> None:
    store = await archive.store()
    ids = [await archive.add(store, START + timedelta(hours=n), page) for n, page in enumerate((b"a", b"b", b"c"))]
    await archive.recent(store)
    at = NOW - timedelta(minutes=5)
    doc = Document(platform="dutchie", platform_dispensary_id="x", fetched_at=at, pages=(b"b",))
    staged = archive.files.stage(store, doc)
    new = NewPayload(
        task_id=None, dispensary_id=store, platform="dutchie", status="ok", fetched_at=at, path=staged.path,
        bytes=staged.size, raw_bytes=staged.raw_size, sha256=staged.sha256, content_sha256=staged.content_sha256,
    )  # fmt: skip
    file = DeduplicatedFile(archive.files, staged)
    async with pool.connection() as conn, conn.transaction():
        shared = await payloads.get(conn, await file.insert(conn, new))
        assert await archive.prune() == (0, 0)
    file.settle(True)
    assert shared is not None
    assert shared.path in archive.paths()
    assert await archive.prune() == (1, 0)
    assert await archive.left(ids) == {ids[0], ids[2]}
    assert archive.paths() == await archive.named()


async def test_a_crash_leaves_no_file_without_a_row(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await archive.store()
    ids = await archive.day(store, 6)
    await archive.recent(store)
    remove = archive.files.remove

    def crash(paths: Collection[str]) -> None:
        remove(list(paths)[:2])
        raise OSError("the disk is gone")

    monkeypatch.setattr(archive.files, "remove", crash)
    with pytest.raises(OSError, match="the disk is gone"):
        await archive.prune()
    assert await archive.left(ids) == set(ids)
    assert archive.paths() < await archive.named(), "rows without files, never the reverse"
    monkeypatch.undo()
    assert await archive.prune() == (4, 4)
    assert archive.paths() == await archive.named()


async def test_the_doctor_reports_the_archive_and_what_goes_next(archive: Archive, pool: Pool) -> None:
    async def said(days: int) -> str:
        found = await doctor.work(pool, Settings(payload_days=days))
        return next(one.detail for one in found if one.check == "payloads")

    assert await said(0) == "none archived yet"
    store = await archive.store()
    ids = await archive.day(store, 5)
    await archive.recent(store)
    ((total, due),) = await archive.do(
        "SELECT sum(bytes)::integer, sum(bytes) FILTER (WHERE id = ANY (%s))::integer FROM raw_crawl_payloads", ids[1:4]
    )
    assert total < 10_000
    text = f"15 payloads ({total / 1000:.1f} kB), the oldest of 2026-03-01 01:00:00 UTC"
    assert await said(0) == f"{text}; kept forever (PAYLOAD_DAYS)"
    assert (await said(30)).endswith(
        f"; kept 30 days, then the first and last of each day; to be removed next: 3 ({due} B)"
    )


def test_the_setting_leaves_analytics_its_days() -> None:
    assert Retention.configured(Settings()).payloads is None
    assert Retention.configured(Settings(payload_days=90)).payloads == timedelta(days=90)
    with pytest.raises(Refused, match=r"^invalid PAYLOAD_DAYS='3': analytics needs 7 days"):
        Settings.from_env({"PAYLOAD_DAYS": "3"})
