"""Folders of exports that are continued: what they may hold, and one process at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from menuwatch.exports.destination_folder import check_folder, lock_folder
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import incremental
from menuwatch.ops.export import ExportRequest
from menuwatch.ops.publish import LOCK, open_destination
from tests.api.shop import Shop
from tests.exports.dataset_reader import market

HOLDER = """
import sys
from pathlib import Path
from menuwatch.exports.destination_folder import lock_folder
with lock_folder(Path(sys.argv[1]), sys.argv[2], "export"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def _holder(folder: Path, name: str) -> subprocess.Popen[str]:
    """Another process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_another_process_is_locked_out_until_the_first_one_dies(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with _holder(folder, ".lock") as holder:
        with (
            pytest.raises(Refused, match=f"^another export to {folder} is running: wait until it ends$"),
            lock_folder(folder, ".lock", "export"),
        ):
            raise AssertionError("it has the lock")
        with lock_folder(folder, ".other.lock", "export"):
            pass
        holder.kill()
    with lock_folder(folder, ".lock", "export"):
        assert [entry.name for entry in folder.glob(".lock")] == [".lock"]


async def test_incremental_exports_use_it(shop: Shop, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    await market(shop, range(1))
    request = ExportRequest(what=ExportTable.CHANGES, fmt=Format.PARQUET)

    async def run() -> object:
        async with shop.pool.connection() as conn:
            return await incremental.to_folder(
                conn, request, folder, ParquetPartitions(shop.archive.storage), on_progress=lambda rows, size: None
            )

    with _holder(folder, ".export.lock") as holder:
        with pytest.raises(Refused, match="another export"):
            await run()
        holder.kill()
    await run()


def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / "out" / ".lock").mkdir(parents=True)
    with (
        pytest.raises(Refused, match=f"^{tmp_path}/out cannot be written to: Is a directory$"),
        lock_folder(tmp_path / "out", ".lock", "export"),
    ):
        raise AssertionError("it has the lock")


def test_a_folder_holds_nothing_else(tmp_path: Path) -> None:
    def check(folder: Path) -> None:
        check_folder(folder, {"data"}.__contains__, "a dataset")

    check(tmp_path / "new")
    assert not (tmp_path / "new").exists(), "a check creates nothing"
    with pytest.raises(Refused, match=f"^{tmp_path}/no/new: directory {tmp_path}/no does not exist$"):
        check(tmp_path / "no" / "new")
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=r"/file is a file: give a directory$"):
        check(tmp_path / "file")
    folder = tmp_path / "full"
    for name in ("data", ".hidden"):
        (folder / name).mkdir(parents=True)
    check(folder)
    for name in ("b", "a", "c"):
        (folder / name).touch()
    with pytest.raises(
        Refused, match=r"/full contains other files than a dataset \(a, b, c\): choose another directory$"
    ):
        check(folder)
    (folder / "d").touch()
    with pytest.raises(Refused, match=r"\(a, b, c and more\)"):
        check(folder)
    with pytest.raises(Refused, match="other files than a dataset"):
        open_destination(str(folder), None)
    assert LOCK.startswith("."), "a lock is no other file"
