"""An installation whose files are in a bucket: replay, crash, verify, move and back, backup and restore."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.archive.service import recover_archive
from menuwatch.archive.verify import verify
from menuwatch.core.errors import Refused
from menuwatch.ops.storage_move import MoveFailed, move
from menuwatch.storage.local import LocalStorage
from tests.api.shop import Shop
from tests.storage.server import S3Server, proxied, running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with running(tmp_path / "s3") as found:
        yield found


def _doc(number: int) -> Document:
    return Document(
        platform="dutchie", platform_dispensary_id="x", fetched_at=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=number),
        pages=(b'{"n":%d}' % number,),
    )  # fmt: skip


async def _verified(shop: Shop, archive: FileArchive, *, repair: bool = False) -> list[tuple[str, str | None]]:
    result = await verify(shop.pool, archive, {}, repair=repair)
    return sorted((fault.kind, fault.repaired) for fault in result.faults)


async def _move(shop: Shop, source: Any, target: Any, **more: Any) -> Any:
    async with shop.pool.connection() as conn:
        return await move(conn, source, target, progress=lambda done, of: None, **more)


async def test_files_move_to_a_bucket_and_back(shop: Shop, server: S3Server, tmp_path: Path) -> None:
    store = await shop.store(state="AZ")
    for number in range(3):
        await shop.archived(store, number, b'{"n":%d}' % number)
    local, bucket = shop.archive.storage, server.storage()
    before = {entry.path: local.get(entry.path) for entry in local.walk("")}
    assert len(before) >= 3
    # The bucket dies in between: the next run goes on.
    with proxied(server) as proxy:
        proxy.cut_after, proxy.on_cut = 3_000, server.kill
        dying = server.storage(proxy.endpoint)
        dying.retries = 0
        with pytest.raises(MoveFailed, match="Run it again to continue"):
            await _move(shop, local, dying)
    server.start()
    done = await _move(shop, local, bucket)
    assert (done.objects, done.bytes) == (len(before), sum(map(len, before.values())))
    assert {entry.path: bucket.get(entry.path) for entry in bucket.walk("")} == before
    assert await _verified(shop, FileArchive(bucket)) == []
    assert (await _move(shop, local, bucket)).copied == 0
    # One was damaged on its way: it is copied again.
    bucket.put(next(iter(before)), b"x" * len(next(iter(before.values()))))
    assert (await _move(shop, local, bucket)).copied == 1
    other = LocalStorage(tmp_path / "again")
    back = await _move(shop, bucket, other, delete=True)
    assert (back.copied, back.removed) == (len(before), len(before))
    assert {entry.path: other.get(entry.path) for entry in other.walk("")} == before
    assert server.objects() == set()


async def test_nothing_moves_while_workers_run(shop: Shop, server: S3Server) -> None:
    await shop.execute(
        "INSERT INTO worker_registry (worker_id, friendly_name, host, pid) VALUES ('w', 'Ada', 'here', 1)"
    )
    with pytest.raises(Refused, match=r"workers are running \(1\): stop them first"):
        await _move(shop, shop.archive.storage, server.storage())


async def test_files_written_during_a_move_are_moved_too(shop: Shop, server: S3Server, tmp_path: Path) -> None:
    source, target = LocalStorage(tmp_path / "source"), server.storage()
    source.put("crawls/1/1-1.html.gz", b"first")
    later = {"crawls/1/2-1.html.gz": b"second", "crawls/1/3-1.html.gz": b"third"}
    waiting = list(later.items())

    def write(done: int, of: int) -> None:
        if done == of and waiting:
            source.put(*waiting.pop(0))

    async with shop.pool.connection() as conn:
        result = await move(conn, source, target, delete=True, progress=write)
    assert (result.objects, result.bytes, result.copied, result.removed) == (3, 16, 3, 3)
    assert {entry.path: target.get(entry.path) for entry in target.walk("crawls")} == {
        "crawls/1/1-1.html.gz": b"first",
        **later,
    }
    assert list(source.walk("")) == []


async def test_a_worker_that_starts_during_a_move_keeps_the_source(
    shop: Shop, server: S3Server, tmp_path: Path
) -> None:
    source, loop = LocalStorage(tmp_path / "source"), asyncio.get_running_loop()
    source.put("crawls/1/1-1.html.gz", b"first")

    def start(done: int, of: int) -> None:
        added = shop.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, host, pid) VALUES ('w', 'Ada', 'here', 1)"
        )
        asyncio.run_coroutine_threadsafe(added, loop).result(10)

    async with shop.pool.connection() as conn:
        with pytest.raises(Refused, match=r"workers are running \(1\): stop them first"):
            await move(conn, source, server.storage(), delete=True, progress=start)
    assert [entry.path for entry in source.walk("")] == ["crawls/1/1-1.html.gz"]


async def test_what_a_crash_leaves_in_a_bucket_is_resolved(shop: Shop, server: S3Server) -> None:
    archive = FileArchive(server.storage())
    shop = replace(shop, archive=archive)
    store = await shop.store(state="AZ")
    await shop.archived(store, 1, b"{}")
    kept = server.objects()
    # Died before its row was committed: for an hour it may be in progress, after that nothing is left.
    lost = archive.stage(store, _doc(5))
    assert await _verified(shop, archive) == [("staged", None)]
    assert await recover_archive(shop.pool, archive) == (0, 0)
    assert lost.path in server.objects()
    assert await recover_archive(shop.pool, archive, older_than=-60) == (0, 1)
    assert server.objects() == kept
    assert await _verified(shop, archive) == []


async def test_a_lost_object_is_named_and_a_moved_one_put_back(shop: Shop, server: S3Server) -> None:
    archive = FileArchive(server.storage())
    shop = replace(shop, archive=archive)
    store = await shop.store(state="AZ")
    await shop.archived(store, 1, b"{}")
    (path,) = [path for path in server.objects() if path.endswith(".json.gz")]
    archive.storage.move(path, "payloads/elsewhere.json.gz")
    assert [kind for kind, _ in await _verified(shop, archive)] == ["missing"]
    assert await _verified(shop, archive, repair=True) == [("missing", "moved back from payloads/elsewhere.json.gz")]
    assert await _verified(shop, archive) == []
    archive.storage.remove(path)
    assert await _verified(shop, archive) == [("missing", None)]


async def test_slow_answers_do_not_lose_a_payload(shop: Shop, server: S3Server) -> None:
    with proxied(server, delay=0.2) as proxy:
        archive = FileArchive(server.storage(proxy.endpoint))
        began = time.monotonic()
        staged = archive.stage(7, _doc(1))
        archive.publish(staged)
        assert archive.read(staged.path, staged.sha256) == _doc(1)
        assert time.monotonic() - began > 0.6
