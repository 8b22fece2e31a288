"""The same answers are stored once, whatever becomes of the transaction."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.archive.service import recover_archive
from menuwatch.archive.store import NewPayload, Payload
from menuwatch.db.pool import Pool
from menuwatch.pipeline.archive_transaction import DeduplicatedFile
from tests.db.test_archive_transaction import AT
from tests.market import add_store


class _Story:
    def __init__(self, pool: Pool, root: Path, store_id: int) -> None:
        self.pool, self.archive, self.store_id, self.root = pool, FileArchive(root), store_id, root

    async def crawl(
        self, hour: int, page: bytes = b"{}", *, status: str = "ok", fail: bool = False, settle: bool = True
    ) -> Payload:
        at = AT + timedelta(hours=hour)
        staged = self.archive.stage(
            self.store_id, Document(platform="dutchie", platform_dispensary_id="x", fetched_at=at, pages=(page,))
        )
        file = DeduplicatedFile(self.archive, staged)
        new = NewPayload(
            task_id=None, dispensary_id=self.store_id, platform="dutchie", status=status, fetched_at=at, path=staged.path,
            bytes=staged.size, raw_bytes=staged.raw_size, sha256=staged.sha256, content_sha256=staged.content_sha256,
            reason=None if status == "ok" else "odd",
        )  # fmt: skip
        async with self.pool.connection() as conn:
            async with conn.transaction(force_rollback=fail):
                found = await payloads.get(conn, await file.insert(conn, new))
            if settle:
                file.settle(not fail)
        assert found is not None
        return found

    def files(self) -> list[str]:
        return sorted(file.relative_to(self.root).as_posix() for file in self.root.rglob("*") if file.is_file())


@pytest.fixture
async def story(pool: Pool, tmp_path: Path) -> _Story:
    async with pool.connection() as conn:
        return _Story(pool, tmp_path, await add_store(conn))


async def test_one_file_for_the_same_answers(story: _Story) -> None:
    first, again = await story.crawl(0), await story.crawl(4)
    assert (again.path, again.sha256, again.bytes) == (first.path, first.sha256, first.bytes)
    assert (again.fetched_at, again.content_sha256) == (AT + timedelta(hours=4), first.content_sha256)
    assert story.files() == [first.path]
    assert story.archive.read(again.path, again.sha256).pages == (b"{}",)
    other = await story.crawl(8, b'{"a":1}')
    suspect = await story.crawl(12, status="quarantined")
    assert story.files() == sorted({first.path, other.path, suspect.path})
    assert len(story.files()) == 3, "other answers, and another fate, have files of their own"


async def test_a_file_that_is_not_in_its_place_is_not_referred_to(story: _Story) -> None:
    first = await story.crawl(0)
    (story.root / first.path).write_bytes(b"short")
    again = await story.crawl(4)
    assert again.path != first.path
    assert story.archive.read(again.path, again.sha256).pages == (b"{}",)


async def test_a_rollback_and_a_crash_leave_one_file(story: _Story) -> None:
    first = await story.crawl(0)
    await story.crawl(4, fail=True)
    assert story.files() == [first.path]
    await story.crawl(8, settle=False)  # as if the process had died after its commit
    assert len(story.files()) == 2
    assert await recover_archive(story.pool, story.archive, older_than=0) == (0, 1)
    assert story.files() == [first.path]
