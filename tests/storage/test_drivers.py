"""Both drivers do what `storage.base.Storage` promises: a folder, and a real S3 server."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from menuwatch.archive.document import Document
from menuwatch.archive.files import Damaged, FileArchive, Missing
from menuwatch.core.errors import Refused, Transient
from menuwatch.images.files import ImageFiles, NoFile
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.storage.base import Storage, StorageUnavailable
from menuwatch.storage.local import LocalStorage
from menuwatch.storage.s3 import S3Storage
from tests.storage.server import KEY, SECRET, S3Server, proxied, running

PATH = "payloads/2026/03/01/store_7_20260301T000000000000Z.json.gz"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return LocalStorage(tmp_path / "storage")
    server: S3Server = request.getfixturevalue("server")
    found = server.storage()
    for path in server.objects():
        found.remove(path)
    assert server.objects() == set()
    return found


def _doc(*pages: bytes) -> Document:
    return Document(
        platform="dutchie",
        platform_dispensary_id="x",
        fetched_at=datetime(2026, 3, 1, tzinfo=UTC),
        pages=pages or (b"{}",),
    )


def _paths(storage: Storage, folder: str = "") -> set[str]:
    return {entry.path for entry in storage.walk(folder)}


def _in_memory(file: Path) -> bool:
    """Whether the operating system can read the file without the disk."""
    with file.open("rb", buffering=0) as opened:
        try:
            return os.preadv(opened.fileno(), [bytearray(4096)], 0, os.RWF_NOWAIT) > 0
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            pytest.skip("this file system does not tell what is in memory")


def test_an_evicted_file_is_whole_and_leaves_memory(tmp_path: Path) -> None:
    storage, file, data = LocalStorage(tmp_path), tmp_path / PATH, os.urandom(1 << 20)
    storage.put(PATH, data)
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if _in_memory(file):
        pytest.skip("this file system keeps everything in memory")
    assert storage.get(PATH) == data
    assert _in_memory(file)
    assert storage.get(PATH, evict=True) == data
    assert not _in_memory(file)
    assert storage.get(PATH, 10, evict=True) == data[:10]


def test_an_object_is_written_read_copied_moved_and_removed(storage: Storage) -> None:
    storage.check()
    storage.put("images/a/b.webp", b"12345")
    storage.put("images/a/b.webp", b"1234567")
    assert (storage.get("images/a/b.webp"), storage.get("images/a/b.webp", 3)) == (b"1234567", b"123")
    entry = storage.stat("images/a/b.webp")
    assert entry is not None
    assert entry.size == 7
    storage.copy("images/a/b.webp", "images/c/d.webp")
    storage.move("images/a/b.webp", "images/e.webp")
    storage.put("history/month=2026-03/x.parquet", io.BytesIO(b"from a file"))
    storage.put(".restore.json", b"hidden")
    assert _paths(storage, "images") == {"images/c/d.webp", "images/e.webp"}
    assert _paths(storage) == {"images/c/d.webp", "images/e.webp", "history/month=2026-03/x.parquet"}
    assert storage.get("history/month=2026-03/x.parquet") == b"from a file"
    for _ in range(2):
        storage.remove("images/c/d.webp")
    assert storage.stat("images/c/d.webp") is None
    assert _paths(storage, "nothing") == set()
    storage.put("crawls/7/1-1.html.gz", b"1")
    storage.put("crawls/7/2-1.html.gz", b"2")
    storage.put("crawls/71/3-1.html.gz", b"3")
    assert [storage.remove_folder("crawls/7") for _ in range(2)] == [2, 0]
    assert _paths(storage, "crawls") == {"crawls/71/3-1.html.gz"}


def test_many_objects_are_removed_also_missing_ones(storage: Storage) -> None:
    paths = [f"payloads/{number}.json.gz" for number in range(5)]
    for path in paths:
        storage.put(path, b"x")
    storage.remove_all([*paths[:4], "payloads/none.json.gz"])
    storage.remove_all([])
    assert _paths(storage, "payloads") == {paths[4]}


def test_a_bucket_removes_many_objects_with_few_requests(server: S3Server) -> None:
    for number in range(30):
        server.storage().put(f"payloads/many/{number}.json.gz", b"x")
        server.storage().put(f"crawls/88/{number}-1.html.gz", b"x")
    with proxied(server) as proxy:
        bucket = server.storage(proxy.endpoint)
        FileArchive(bucket).remove([f"payloads/many/{number}.json.gz" for number in range(30)])
        assert PageArchive(bucket).remove_job(88) == 30
        assert proxy.deletes == 2, "one request each"
    assert not [path for path in server.objects() if path.startswith(("payloads/many", "crawls/88"))]


def test_a_path_without_an_object_is_named_so(storage: Storage) -> None:
    for ask in (storage.get, storage.open):
        with pytest.raises(FileNotFoundError):
            ask("images/none.webp")
    with pytest.raises(FileNotFoundError):
        storage.copy("images/none.webp", "images/other.webp")


def test_a_file_of_several_megabytes_is_read_in_places(storage: Storage) -> None:
    rows = _store_large(storage)
    assert _row(storage, 31_234) == [rows[31_234]]


def test_only_the_needed_parts_of_a_file_are_requested(server: S3Server) -> None:
    rows = _store_large(server.storage())
    with proxied(server, ranges=True) as proxy:
        assert _row(server.storage(proxy.endpoint), 31_234) == [rows[31_234]]
        assert proxy.parts > 1


def _row(storage: Storage, number: int) -> list[dict[str, object]]:
    with storage.open("history/month=2026-03/states-1.parquet") as file:
        return parquet.read_table(file, filters=[("product_id", "=", number)]).to_pylist()


def _store_large(storage: Storage) -> list[dict[str, object]]:
    buffer = io.BytesIO()
    rows: list[dict[str, object]] = [{"product_id": number, "noise": os.urandom(64).hex()} for number in range(40_000)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), buffer, row_group_size=5_000)
    buffer.seek(0)
    storage.put("history/month=2026-03/states-1.parquet", buffer)
    assert buffer.getbuffer().nbytes > 3_000_000
    return rows


def test_a_payload_is_there_before_and_after_it_is_published(storage: Storage) -> None:
    archive = FileArchive(storage)
    staged = archive.stage(7, _doc(b'{"a":1}'))
    assert staged.path == PATH
    assert archive.read(PATH, staged.sha256) == _doc(b'{"a":1}')
    ((waiting, age),) = archive.staged()
    assert (waiting.path, waiting.name) == (staged.path, staged.name)
    assert -5 < age < 60
    assert archive.holds(waiting, staged.sha256)
    for _ in range(2):
        archive.publish(staged)
    assert list(archive.staged()) == []
    assert archive.read(PATH, staged.sha256) == _doc(b'{"a":1}')
    assert archive.has(PATH, staged.size)
    assert not archive.has(PATH, staged.size + 1)


def test_attempts_at_one_path_do_not_affect_each_other(storage: Storage) -> None:
    archive = FileArchive(storage)
    loser, winner = archive.stage(7, _doc(b"1")), archive.stage(7, _doc(b"2"))
    archive.discard(loser)
    archive.publish(winner)
    assert archive.read(PATH, winner.sha256) == _doc(b"2")
    # What is left of the loser never takes the winner's object away.
    for file, _ in archive.staged():
        archive.publish(file)
    assert archive.read(PATH, winner.sha256) == _doc(b"2")
    assert list(archive.staged()) == []


def test_a_payload_that_is_not_needed_leaves_nothing(storage: Storage) -> None:
    archive = FileArchive(storage)
    archive.discard(archive.stage(7, _doc()), unused=True)
    assert list(archive.staged()) == []
    assert _paths(storage) == set()
    with pytest.raises(Missing):
        archive.packed(PATH)


def test_a_damaged_payload_is_named_so(storage: Storage) -> None:
    archive = FileArchive(storage)
    staged = archive.stage(7, _doc())
    archive.publish(staged)
    storage.put(PATH, b"no gzip")
    with pytest.raises(Damaged):
        archive.read(PATH, staged.sha256)


def test_images_are_stored_once_found_and_shared(storage: Storage) -> None:
    files = ImageFiles(storage)
    path = f"images/products/az/one/two/17/image-{'0' * 32}.webp"
    other = path.replace("/17/", "/18/")
    assert files.store(path, b"picture")
    assert not files.store(path, b"picture")
    assert files.link(path, other)
    assert not files.link(path, other)
    for name in (path, other):
        with files.find(name) as found:
            assert (found.identity, found.hashed, found.size, found.read()) == ("0" * 32, True, 7, b"picture")
    assert {entry.path for entry in files.every()} == {path, other}
    half = f"images/products/az/.{'1' * 32}.webp~2"
    storage.put(half, b"pic")
    assert {entry.path for entry in files.every()} == {path, other, half}, "what a crash left is found"
    files.remove(path)
    with pytest.raises(NoFile), files.find(path):
        pass
    with pytest.raises(NoFile):
        files.link("images/products/none.webp", "images/products/x.webp")


def test_a_crash_between_the_note_and_the_object_leaves_nothing_to_keep(server: S3Server) -> None:
    """The server dies while it receives the object: the attempt fails, and the clean-up finds what is left."""
    storage = server.storage()
    for path in server.objects():
        storage.remove(path)
    with proxied(server) as proxy:
        archive = FileArchive(_impatient(server, proxy.endpoint))
        # The note passes (a small request), the object does not.
        proxy.cut_after, proxy.on_cut = 200_000, server.kill
        with pytest.raises(Transient, match="the payload could not be archived: the bucket s3://menus/one/two"):
            archive.stage(7, _doc(b'"' + os.urandom(900_000).hex().encode() + b'"'))
    server.start()
    after = FileArchive(server.storage())
    left = [file for file, _ in after.staged()]
    assert [file.path for file in left] == [PATH]
    after.discard(left[0], unused=True)
    assert server.objects() == set()


def _impatient(server: S3Server, endpoint: str) -> S3Storage:
    found = server.storage(endpoint)
    found.retries = 0
    return found


def test_a_busy_server_is_asked_again(server: S3Server) -> None:
    with proxied(server, busy=2) as proxy:
        server.storage(proxy.endpoint).put("payloads/x", b"1")
        assert proxy.refused == 2
    assert server.storage().get("payloads/x") == b"1"


def test_a_slow_server_is_waited_for(server: S3Server) -> None:
    with proxied(server, delay=0.3) as proxy:
        storage = server.storage(proxy.endpoint)
        storage.put("payloads/x", b"2")
        assert storage.get("payloads/x") == b"2"


def test_a_server_that_stays_busy_is_an_error_to_retry(server: S3Server) -> None:
    with proxied(server, busy=1_000) as proxy:
        storage = _impatient(server, proxy.endpoint)
        with pytest.raises(
            StorageUnavailable, match=r"the bucket s3://menus/one/two at http://127.0.0.1:\d+ failed: .*503"
        ):
            storage.get("payloads/x")
        with pytest.raises(Refused, match="check S3_ENDPOINT, S3_BUCKET and the AWS credentials"):
            storage.check()


def test_wrong_credentials_are_refused_without_showing_them(server: S3Server) -> None:
    storage = server.storage(secret_access_key="another-secret-value")
    with pytest.raises(Refused, match=r"403 Forbidden \(SignatureDoesNotMatch\); check S3_ENDPOINT") as refused:
        storage.check()
    for hidden in (KEY, SECRET, "another-secret-value"):
        assert hidden not in str(refused.value)


def test_credentials_come_from_the_files_of_aws(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = none\naws_secret_access_key = none\n"
        f"[menus]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / "config").write_text("[profile menus]\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "menus")
    S3Storage("menus", endpoint=server.endpoint).check()
    monkeypatch.setenv("AWS_PROFILE", "default")
    with pytest.raises(Refused, match="check S3_ENDPOINT"):
        S3Storage("menus", endpoint=server.endpoint).check()
