"""A payload's file and its row: together or not at all, whatever happens between."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from menuwatch.archive import document
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.core.errors import Refused, Transient
from menuwatch.search_crawl.pages import PageArchive

AT = datetime(2026, 3, 5, 7, 8, 9, 123456, tzinfo=UTC)
PAGES = (b'{"data":{"products":[{"price":12.50,"n":"\xce\x949"}]}}', b'{ "spaced" : [1,  2] }')


def _doc(pages: tuple[bytes, ...] = PAGES, broken: tuple[bytes, ...] = ()) -> Document:
    return Document(platform="dutchie", platform_dispensary_id="abc", fetched_at=AT, pages=pages, broken=broken)


def test_a_path_has_four_digits_for_the_year(tmp_path: Path) -> None:
    early = Document(platform="dutchie", platform_dispensary_id="abc", fetched_at=AT.replace(year=7), pages=PAGES)
    assert FileArchive(tmp_path).stage(1, early).path == "payloads/0007/03/05/store_1_00070305T070809123456Z.json.gz"
    assert FileArchive(tmp_path).stage(1, _doc()).path == "payloads/2026/03/05/store_1_20260305T070809123456Z.json.gz"


def test_bodies_come_back_byte_for_byte() -> None:
    broken = b"<html>\xff\x00 not text"
    doc = document.decode(document.encode(_doc(broken=(broken,))))
    assert doc == _doc(broken=(broken,))


STRANGE = (
    b'{"name":"cut \\ud83d"}',
    b'\xef\xbb\xbf{"products":[]}',
    b"[" * 5000 + b"]" * 5000,
    b'{"name":"\xff"}',
    b"",
    b" \n",
    b'{"a":1} {"b":2}',
)
"""Pages that are no strict JSON, some of which a lenient reader takes all the same."""

_json_pages = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
_space = st.text(" \t\n\r\x0b", max_size=3).map(str.encode)
_pages = st.lists(
    st.binary() | st.builds(lambda a, b, c: a + b + c, _space, _json_pages, _space) | st.sampled_from(STRANGE)
)


@given(pages=_pages, broken=st.lists(st.binary(), max_size=3))
@example(pages=list(STRANGE), broken=[])
@example(pages=[b"1", STRANGE[0], b" 2\n", STRANGE[1], b"3"], broken=[b"4"])
def test_any_bytes_come_back_in_their_place(pages: list[bytes], broken: list[bytes]) -> None:
    doc = _doc(tuple(pages), tuple(broken))
    data = document.encode(doc)
    assert document.decode(data) == doc
    assert isinstance(json.loads(data.decode("utf-8")), dict), "a document is plain JSON, whatever its pages are"


def test_a_page_that_is_strict_json_stands_in_the_document_as_it_is() -> None:
    data = document.encode(_doc((b' {"price": 1.50}\n', STRANGE[0], b'{"a":2}')))
    assert b'"pages":[{"price": 1.50},{"a":2}]' in data
    assert [position for position, _ in json.loads(data)["encoded"]] == [1]
    assert "broken" not in json.loads(data), "a page that is no strict JSON is a page all the same"


@pytest.mark.parametrize(
    "change",
    [
        {"encoded": [[5, "e30="]]},
        {"encoded": [[0, "e30="], [0, "e30="]]},
        {"encoded": [[-1, "e30="]]},
        {"encoded": [[0, "not base64!"]]},
        {"margins": [[7, " ", ""]]},
        {"format": "menuwatch-payload/2"},
    ],
)
def test_a_document_that_does_not_fit_together_is_refused(change: dict[str, Any]) -> None:
    raw = json.loads(document.encode(_doc())) | change
    with pytest.raises(Refused):
        document.decode(json.dumps(raw).encode())


def test_equal_bodies_have_an_equal_content_hash_and_others_do_not() -> None:
    later = Document(
        platform="dutchie", platform_dispensary_id="abc", fetched_at=datetime(2027, 1, 1, tzinfo=UTC), pages=PAGES
    )
    assert later.content_sha256 == _doc().content_sha256
    assert _doc((PAGES[0] + PAGES[1],)).content_sha256 != _doc().content_sha256


def test_stage_then_publish(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    staged = archive.stage(7, _doc())
    assert staged.path == "payloads/2026/03/05/store_7_20260305T070809123456Z.json.gz"
    final = tmp_path / staged.path
    assert not final.exists()
    assert archive.read(staged.path) == _doc(), "a row committed a moment before the rename has its file already"
    archive.publish(staged)
    archive.publish(staged)
    assert staged.size == final.stat().st_size
    raw = gzip.decompress(final.read_bytes())
    assert (len(raw), PAGES[0] in raw) == (staged.raw_size, True)
    assert json.loads(raw)["platform"] == "dutchie"
    assert archive.read(staged.path) == _doc()
    assert list(archive.staged()) == []


@pytest.mark.parametrize("level", range(1, 10))
def test_every_level_is_gzip_and_reads_alike(tmp_path: Path, level: int) -> None:
    archive = FileArchive(tmp_path, level=level)
    staged = archive.stage(7, _doc())
    archive.publish(staged)
    data = gzip.decompress((tmp_path / staged.path).read_bytes())
    assert data == document.encode(_doc())
    assert (len(data), hashlib.sha256(data).hexdigest()) == (staged.raw_size, staged.sha256)
    assert FileArchive(tmp_path).read(staged.path, staged.sha256) == _doc()


def test_pages_known_to_be_strict_are_archived_as_others_are(tmp_path: Path) -> None:
    pages = (b' {"a":1}\n', STRANGE[0], b"[2]")
    first, second = (FileArchive(tmp_path).stage(7, _doc(pages), strict=known) for known in ((), {0, 2}))
    assert (first.sha256, first.content_sha256) == (second.sha256, second.content_sha256)
    assert first.content_sha256 == _doc(pages).content_sha256


def test_discard_leaves_nothing(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    staged = archive.stage(7, _doc())
    archive.discard(staged)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    with pytest.raises(Refused, match="has no file"):
        archive.read(staged.path)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "payloads/../../x", "images/x"])
def test_nothing_outside_the_archive_is_read(tmp_path: Path, path: str) -> None:
    with pytest.raises(Refused, match="is not an archive path"):
        FileArchive(tmp_path).packed(path)


def test_two_stagings_of_one_path_never_touch_each_other(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    loser, winner = archive.stage(7, _doc((b"1",))), archive.stage(7, _doc((b"2",)))
    assert loser.path == winner.path
    assert archive.read(winner.path, winner.sha256) == _doc((b"2",)), "the row's hash tells which one is meant"
    assert archive.read(loser.path, loser.sha256) == _doc((b"1",))
    archive.discard(loser)
    archive.publish(winner)
    assert archive.read(winner.path, winner.sha256) == _doc((b"2",))
    assert list(archive.staged()) == []


def test_a_staged_file_names_the_path_it_is_for(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    staged = [archive.stage(store, _doc()) for store in (7, 8, 8)]
    found = [file for file, _ in archive.staged()]
    assert sorted((f.path, f.name) for f in found) == sorted((s.path, s.name) for s in staged)
    assert [archive.holds(found[0], staged[0].sha256), archive.holds(found[0], "0" * 64)] == [True, False]
    archive.publish(found[0])
    assert archive.read(staged[0].path, staged[0].sha256) == _doc()


@pytest.mark.parametrize("at", [0, 12, 40, -6])
def test_a_file_with_a_changed_byte_says_so(tmp_path: Path, at: int) -> None:
    archive = FileArchive(tmp_path)
    staged = archive.stage(7, _doc())
    archive.publish(staged)
    final = tmp_path / staged.path
    damaged = bytearray(final.read_bytes())
    damaged[at] ^= 0xFF
    final.write_bytes(damaged)
    with pytest.raises(Refused, match="is damaged"):
        archive.read(staged.path, staged.sha256)


def test_a_file_that_was_cut_off_says_so(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    staged = archive.stage(7, _doc())
    archive.publish(staged)
    final = tmp_path / staged.path
    final.write_bytes(final.read_bytes()[:-20])
    with pytest.raises(Refused, match="is damaged"):
        archive.read(staged.path)


def test_another_documents_file_is_not_taken_for_this_one(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path)
    staged = archive.stage(7, _doc())
    archive.publish(staged)
    (tmp_path / staged.path).write_bytes(gzip.compress(document.encode(_doc((b"3",)))))
    assert archive.read(staged.path) == _doc((b"3",))
    with pytest.raises(Refused, match="not what was archived"):
        archive.read(staged.path, staged.sha256)


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    """A child process that may write no more than 64 kB to a file stands for a disk that is full: the kernel refuses the rest."""
    code = """
import errno, os, resource, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.core.errors import Transient
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64_000, 64_000))
body = b'"' + os.urandom(300_000).hex().encode() + b'"'
doc = Document(platform="dutchie", platform_dispensary_id="a", fetched_at=datetime.now(UTC), pages=(body,))
try:
    FileArchive(Path(sys.argv[1])).stage(1, doc)
except Transient as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("the payload could not be archived:")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_device_without_space_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # File systems that allocate late say so only now.
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Transient, match="the disk is full"):
        FileArchive(tmp_path).stage(7, _doc())
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_check_names_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "payloads").write_text("a file where a folder must be")
    with pytest.raises(Refused, match="cannot be written"):
        FileArchive(tmp_path).check()


def test_names_of_crawled_pages_are_on_disk_before_rows_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, real = [], os.fsync

    def spy(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink())
        real(handle)

    monkeypatch.setattr(os, "fsync", spy)
    pages = PageArchive(tmp_path)
    assert pages.read(pages.put(7, 1, 1, b"<p>")) == b"<p>"
    assert synced[1:] == [tmp_path / "crawls/7", tmp_path / "crawls", tmp_path], "after the page itself"
    synced.clear()
    pages.put(7, 2, 1, b"<p>")
    assert synced[1:] == [tmp_path / "crawls/7"]
