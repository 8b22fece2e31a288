"""Backups of a small installation with rows and files of every kind: whole, cut off, damaged, beside writes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import psycopg
import pytest

from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.db import migrate
from menuwatch.ops.backup.folder import Folder, Step
from menuwatch.ops.backup.make import make
from menuwatch.ops.backup.manifest import Manifest
from menuwatch.ops.backup.restore import restore
from tests.backup import evidence
from tests.backup.conftest import Place, add_payload
from tests.commands import menuwatch
from tests.conftest import NextSchema

NOT_TAKEN = {"history/month=2024-03/states-2.parquet"}


def _same(before: Place, after: Place, rows: dict[str, list[str]] | None = None) -> None:
    """What was backed up is there; `rows` are those of the backup's moment, where some were written since."""
    rows = evidence.rows(before.url) if rows is None else rows
    assert rows.pop("somebody_elses") == []
    assert evidence.differences(rows, evidence.rows(after.url)) == []
    files = {path: about for path, about in evidence.files(before.storage).items() if path not in NOT_TAKEN}
    assert evidence.differences(files, evidence.files(after.storage)) == []


def _killed(what: str, done: int, act: Callable[[Callable[[Step], None]], object]) -> bool:
    """Does it in a process that is killed when it is told that so much of that is done; whether it was."""
    pid = os.fork()
    if pid == 0:

        def kill(step: Step) -> None:
            if step.what.startswith(what) and step.done == done:
                os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            act(kill)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def test_every_row_and_file_comes_back(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    add_payload(
        small,
        50,
        "payloads/2026/02/01/late.json.gz",
        b"late",
        file="payloads/.incoming/payloads__2026__02__01__late.json.gz~1",
    )
    (small.storage / "payloads/2026/01/01/without-a-row.json.gz").write_bytes(b"of a transaction that is open")
    rows = evidence.rows(small.url)
    backup = menuwatch("backup", str(folder / "b"), "--json", env=small.env | {"SECRET_KEY": ""})
    assert backup.returncode == 0, backup.stderr
    said = json.loads(backup.stdout)
    assert (said["files"], said["copied"], said["missing"], said["left_out"]) == (16, 12, [], ["somebody_elses"])
    assert "somebody_elses" in backup.stderr
    (small.storage / "payloads/2026/01/01/without-a-row.json.gz").unlink()
    there = nowhere()
    back = menuwatch("restore", str(folder / "b"), env=there.env)
    assert (back.returncode, "16 files" in back.stdout) == (0, True), back.stderr
    _same(small, there, rows)
    pictures = there.storage / "images/products/az"
    assert (pictures / "image-1.webp").samefile(pictures / "image-2.webp"), "one file with two names, as it was"
    with psycopg.connect(there.url) as conn:
        for rows_of_a_day in ("visitor_salts", f"app_secrets WHERE {evidence.LOGIN_KEY}"):
            assert conn.execute(f"SELECT count(*) FROM {rows_of_a_day}").fetchone() == (0,), (
                "what is of a day is in no backup"
            )
        assert conn.execute("SELECT cause IS NOT NULL FROM task_history").fetchone() == (True,), (
            "generated columns follow"
        )
        assert conn.execute("SELECT nextval('task_ids')").fetchone() == (8,)
        conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('c', 'c')")
    again = menuwatch("restore", str(folder / "b"), env=there.env)
    assert (again.returncode, "is not empty" in again.stderr, "payloads/" in again.stderr) == (2, True, True)


def test_kill_during_backup(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    into, there, copied = folder / "b", nowhere(), set[int]()
    for what, done in (
        ("Reading", 1),
        ("Reading", 60),
        ("Copying", 1),
        ("Copying", 6),
        ("Copying", 14),
        ("Writing", 0),
    ):
        assert _killed(what, done, lambda told: make(small.url, small.storage, into, progress=told))
        with pytest.raises(Refused, match="is unfinished"):
            restore(there.url, there.storage, into)
        now = {place.stat().st_ino for place in Folder(into).objects()}
        assert copied <= now, "what was copied stays, and is not copied again"
        copied = now
        # A kill within a write leaves these.
        (into / "objects" / ".torn.part").write_bytes(b"half of a fi")
        with (into / "journal").open("ab") as journal:
            journal.write(b'{"path": "payloads/20')
    assert _killed("Removing", 0, lambda told: make(small.url, small.storage, into, progress=told)), "it is whole then"
    assert {place.stat().st_ino for place in Folder(into).objects()} == copied
    restore(there.url, there.storage, into)
    _same(small, there)
    assert not list((into / "objects").glob(".*"))


def test_a_new_backup_leaves_the_old_one_usable_until_it_is_whole(
    small: Place, folder: Path, nowhere: Callable[[], Place]
) -> None:
    into = folder / "b"
    first = make(small.url, small.storage, into)
    was = evidence.rows(small.url)
    add_payload(small, 99, "payloads/2026/03/01/new.json.gz", b"new")
    (small.storage / "payloads/2026/01/01/store_0.json.gz").write_bytes(b"mended")
    assert _killed("Writing", 0, lambda told: make(small.url, small.storage, into, progress=told))
    old = nowhere()
    restore(old.url, old.storage, into)
    was.pop("somebody_elses")
    assert evidence.differences(was, evidence.rows(old.url)) == []
    assert (old.storage / "payloads/2026/01/01/store_0.json.gz").read_bytes() == b"menu 0"
    second = make(small.url, small.storage, into)
    assert (second.files, second.copied) == (first.files + 1, 0), "the one that was cut off had copied both"
    assert len(list(Folder(into).objects())) == len(Folder(into).finished().objects()), "nothing is kept for nobody"
    new = nowhere()
    restore(new.url, new.storage, into)
    _same(small, new)


def test_kill_during_restore(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    into, there = folder / "b", nowhere()
    make(small.url, small.storage, into)
    for what, done in (
        ("Reading the backup", 3),
        ("Restoring files", 4),
        ("Files restored", 0),
        ("Filling", 5),
        ("Filling", 70),
        ("The database is filled", 0),
        ("Bringing", 0),
    ):
        assert _killed(what, done, lambda told: restore(there.url, there.storage, into, progress=told)), what
    worker = menuwatch("stores", "list", env=there.env)
    assert (worker.returncode, "menuwatch restore" in worker.stderr) == (2, True), "half an installation is none"
    assert "restore" in {
        line.split()[1] for line in menuwatch("doctor", env=there.env).stdout.splitlines() if line.startswith("problem")
    }
    assert _killed("Done", 0, lambda told: restore(there.url, there.storage, into, progress=told))
    restore(there.url, there.storage, into)
    _same(small, there)
    with pytest.raises(Refused, match="not empty"):
        restore(there.url, there.storage, into)


def test_a_restore_never_goes_on_in_another_database(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    there = nowhere()
    make(small.url, small.storage, folder / "b")
    assert _killed("Restoring files", 6, lambda told: restore(there.url, there.storage, folder / "b", progress=told))
    rows = evidence.rows(small.url)
    with pytest.raises(Refused, match="database is not empty"):
        restore(small.url, there.storage, folder / "b")
    assert evidence.rows(small.url) == rows


def test_damaged_missing_and_extra_files_are_named(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    into, there = folder / "b", nowhere()
    make(small.url, small.storage, into)
    files = {file.path: file for file in Folder(into).finished().files}
    damaged, missing = "payloads/2026/01/01/store_3.json.gz", "payloads/2026/01/02/store_4.json.gz"
    Folder(into).place(files[damaged].sha256).write_bytes(b"menu X")
    Folder(into).place(files[missing].sha256).unlink()
    (into / "objects" / "ab").mkdir(exist_ok=True)
    (into / "objects" / "ab" / "stranger").write_bytes(b"?")
    checked = menuwatch("restore", str(into), "--check", "--json", env=there.env)
    found = {(fault["kind"], fault["path"]) for fault in json.loads(checked.stdout)["faults"]}
    assert checked.returncode == 1
    assert found == {("damaged", damaged), ("missing", missing), ("extra", "objects/ab/stranger")}
    with pytest.raises(MenuwatchError, match=f"{damaged}: damaged") as refused:
        restore(there.url, there.storage, into)
    assert "Nothing was restored" in str(refused.value)
    assert evidence.files(there.storage) == {}
    healed = make(small.url, small.storage, into, reread=True)
    assert (healed.copied, healed.files) == (2, len(files))
    restore(there.url, there.storage, into)
    _same(small, there)


def test_what_rows_name_and_is_gone_is_said(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    gone = "payloads/2026/01/01/store_0.json.gz"
    (small.storage / gone).unlink()
    assert make(small.url, small.storage, folder / "b").missing == [gone]
    there = nowhere()
    restore(there.url, there.storage, folder / "b")
    _same(small, there)


def test_beside_writes_rows_and_files_agree(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    stop, wrote = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            number = 1000 + len(wrote)
            staged = f"payloads/.incoming/payloads__9__{number}.gz~x"
            add_payload(small, number, f"payloads/9/{number}.gz", b"%d" % number, file=staged)
            (small.storage / "payloads/9").mkdir(exist_ok=True)
            (small.storage / staged).rename(small.storage / f"payloads/9/{number}.gz")
            wrote.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            made = make(small.url, small.storage, folder / "b")
            assert made.missing == []
    finally:
        stop.set()
        writer.join()
    there = nowhere()
    restore(there.url, there.storage, folder / "b")
    with psycopg.connect(there.url) as conn:
        named = {row[0] for row in conn.execute("SELECT path FROM raw_crawl_payloads")}
    stored = {path for path in evidence.files(there.storage) if path.startswith("payloads/")}
    staged = {path for path in stored if ".incoming" in path}
    assert (
        stored - staged | {path.partition("/.incoming/")[2].partition("~")[0].replace("__", "/") for path in staged}
        == named
    )
    assert len(wrote) > 10


def test_an_older_schema_is_migrated_and_a_newer_one_refused(
    empty_database: str, folder: Path, nowhere: Callable[[], Place], small: Place, next_schema: NextSchema
) -> None:
    before = migrate.migrate(empty_database).after
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('old', 'old')")
    (folder / "old").mkdir()
    assert make(empty_database, folder / "old", folder / "b").revision == before
    next_schema("ALTER TABLE dispensaries ADD COLUMN motto text NOT NULL DEFAULT 'none yet'")
    there = nowhere()
    done = restore(there.url, there.storage, folder / "b")
    assert before < migrate.newest()
    assert (done.before, done.revision, migrate.current(there.url)) == (before, migrate.newest(), migrate.newest())
    with psycopg.connect(there.url) as conn:
        assert conn.execute("SELECT name, motto FROM dispensaries").fetchall() == [("old", "none yet")]
    with psycopg.connect(small.url, autocommit=True) as conn:
        conn.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Refused, match="9999"):
        make(small.url, small.storage, folder / "c")


def test_what_is_no_backup_is_refused(small: Place, folder: Path, nowhere: Callable[[], Place]) -> None:
    there, into = nowhere(), folder / "b"
    make(small.url, small.storage, into)
    manifest = into / "manifest.json"
    good = manifest.read_text()
    for text, said in (
        ("{", "is damaged"),
        (good.replace("store_3", "store_x"), "is damaged"),
        (good.replace('"format": 1', '"format": 99'), "newer Menuwatch"),
    ):
        manifest.write_text(text)
        with pytest.raises(Refused, match=said):
            restore(there.url, there.storage, into)
    manifest.unlink()
    done = menuwatch("restore", str(into), "--check", env=there.env)
    assert (done.returncode, "is unfinished" in done.stderr) == (2, True), done.stderr
    for place, said in ((folder / "nowhere", "is not a directory"), (small.storage, "is not a backup")):
        with pytest.raises(Refused, match=said):
            restore(there.url, there.storage, place)
    outside = msgspec.json.decode(good.encode(), type=Manifest)
    files = [msgspec.structs.replace(outside.files[0], path="../../etc/passwd")]
    manifest.write_bytes(msgspec.structs.replace(outside, files=files).sealed().encoded())
    with pytest.raises(Refused, match="unexpected entry"):
        restore(there.url, there.storage, into)
    later = good.replace('"format": 1,', '"format": 1, "of a later version": [1],')
    head = later.rpartition('"sha256":')[0]
    manifest.write_text(f'{head}"sha256": "{hashlib.sha256(head.encode()).hexdigest()}"}}')
    assert Folder(into).finished().files == outside.files
    newer = msgspec.structs.replace(outside, revision="9999").sealed()
    manifest.write_bytes(newer.encoded())
    with pytest.raises(Refused, match="schema 9999, which this version does not know"):
        restore(there.url, there.storage, into)


def test_where_no_backup_can_be_made(small: Place, folder: Path, empty_database: str) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "thesis.doc").write_text("")
    for place, said in (
        (folder / "full", "thesis.doc"),
        (folder / "full" / "thesis.doc", "is a file"),
        (folder / "nowhere" / "b", "create it first"),
        (small.storage / "b", "overlaps the storage folder"),
    ):
        with pytest.raises(Refused, match=said):
            make(small.url, small.storage, place)
    with pytest.raises(Refused, match="nothing to back up"):
        make(empty_database, folder / "s", folder / "b")
    alone = {name: text for name, text in os.environ.items() if name != "DATABASE_URL"}
    done = menuwatch("backup", str(folder / "b"), env=alone | {"MENUWATCH_HOME": str(folder / "no-home")})
    assert (done.returncode, "holds no installation" in done.stderr, (folder / "no-home").exists()) == (2, True, False)


def test_no_room(small: Place, folder: Path) -> None:
    """A limit on the size of files stands for a full disk: the kernel refuses the write."""
    import resource

    (small.storage / "images/products/az/image-1.webp").write_bytes(os.urandom(200_000))

    def act(_: Callable[[Step], None]) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with pytest.raises(MenuwatchError, match=r"no space left.*Run `menuwatch backup .*` again to continue"):
            make(small.url, small.storage, folder / "b")

    assert not _killed("never", 0, act)
    assert not list((folder / "b" / "objects").glob(".*"))
    assert make(small.url, small.storage, folder / "b").missing == []


def test_names_are_on_disk_before_a_backup_or_a_restore_is_done(
    small: Place, folder: Path, nowhere: Callable[[], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those too that a try brought which was killed: after a power cut every name is there that the manifest needs."""
    into, there, synced = folder / "b", nowhere(), set[str]()
    real = os.fsync

    def spy(handle: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    assert _killed("Writing", 0, lambda told: make(small.url, small.storage, into, progress=told))
    monkeypatch.setattr(os, "fsync", spy)
    make(small.url, small.storage, into)
    assert {str(place.parent.resolve()) for place in Folder(into).objects()} <= synced
    monkeypatch.undo()
    assert _killed("Files restored", 0, lambda told: restore(there.url, there.storage, into, progress=told))
    monkeypatch.setattr(os, "fsync", spy)
    restore(there.url, there.storage, into)
    made = {place.parent for place in there.storage.rglob("*") if place.is_file()}
    above = {one for place in made for one in place.parents if one.is_relative_to(there.storage)}
    assert {str(place.resolve()) for place in made | above} <= synced
