"""Incremental exports: together they are the complete one, whatever the order in which crawls are committed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pytest

from menuwatch.archive import store as payloads
from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import export, incremental
from menuwatch.ops.export import ExportRequest
from menuwatch.ops.incremental import Part
from menuwatch.pipeline import product_refresh
from tests.api.shop import START, Shop, at, item, menu
from tests.commands import menuwatch
from tests.exports.dataset_reader import market, normal

HISTORY = (ExportTable.SNAPSHOTS, ExportTable.CHANGES)


async def _export(shop: Shop, what: ExportTable, folder: Path, **more: Any) -> Part | None:
    request = ExportRequest(what=what, fmt=Format.PARQUET, **more)
    archived = ParquetPartitions(shop.archive.storage)
    async with shop.pool.connection() as conn:
        return await incremental.to_folder(conn, request, folder, archived, on_progress=lambda rows, size: None)


async def _complete(shop: Shop, what: ExportTable, file: Path) -> list[Any]:
    archived = ParquetPartitions(shop.archive.storage)
    async with shop.pool.connection() as conn:
        await export.to_file(conn, ExportRequest(what=what, fmt=Format.PARQUET), file, archived, overwrite=True)
    return _rows(file)


def _rows(path: Path) -> list[Any]:
    with duckdb.connect() as db:
        return normal(db.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall())


async def test_increments_are_the_complete_export(shop: Shop, tmp_path: Path) -> None:
    for crawls in (range(2), range(2, 5), range(5, 8)):
        await market(shop, crawls)
        for what in incremental.TIMES:
            assert await _export(shop, what, tmp_path / what) is not None
            assert await _export(shop, what, tmp_path / what) is None, "nothing is new"
    before = START.replace(month=6, day=1, hour=0)
    async with shop.pool.connection() as conn:
        assert await packing.pack(conn, ParquetPartitions(shop.archive.storage), before, now=START.replace(month=11))
    for what in HISTORY:
        assert await _export(shop, what, tmp_path / what) is None, "what is packed is not new"
        expected = await _complete(shop, what, tmp_path / "complete.parquet")
        assert _rows(tmp_path / what / "*.parquet") == expected
        assert len(list((tmp_path / what).glob("part-*.parquet"))) == 3
    assert len(_rows(tmp_path / "snapshots/*.parquet")) > 400
    newest = "SELECT product_id, max(updated_at), arg_max(price_rec, updated_at), arg_max(is_in_stock, updated_at)"
    async with shop.pool.connection() as conn:
        cursor = await conn.execute("SELECT product_id, updated_at, price_rec, is_in_stock FROM analyst.products")
        expected = normal(await cursor.fetchall())
    with duckdb.connect() as db:
        files = str(tmp_path / "products/*.parquet")
        found = db.execute(f"{newest} FROM read_parquet(?) GROUP BY product_id", [files]).fetchall()
    assert normal(found) == expected, "the newest row of each product is the current one"


async def test_crawls_committed_out_of_order_are_not_lost(shop: Shop, tmp_path: Path) -> None:
    slow, fast = await shop.store("slow"), await shop.store("fast")
    for store in (slow, fast):
        await shop.crawl(store, 0, [item(f"{store}", options=[("1g", 10, 5)])])
    assert await _export(shop, ExportTable.CHANGES, tmp_path / "out") is None, "first crawls are no changes"
    await shop.crawl(fast, 1, [item(f"{fast}", options=[("1g", 11, 5)])])
    body = menu([item(f"{slow}", options=[("1g", 12, 5)])])
    payload_id = await shop.archived(slow, 2, body, count=1)
    platform = shop.platforms["dutchie"]
    async with shop.pool.connection() as conn, conn.transaction():
        # The earlier crawl is open while a later one of another store is committed and exported.
        payload = await payloads.get(conn, payload_id)
        assert payload is not None
        await product_refresh.apply_payload(conn, payload, platform, platform.split(body))
        await asyncio.wait_for(shop.crawl(fast, 3, [item(f"{fast}", options=[("1g", 13, 5)])]), 20)
        first = await _export(shop, ExportTable.CHANGES, tmp_path / "out")
    second = await _export(shop, ExportTable.CHANGES, tmp_path / "out")
    assert first is not None
    assert second is not None
    assert (first.rows, second.rows) == (2, 1)
    with duckdb.connect() as db:
        found = db.execute(
            "SELECT dispensary_id, changed_at, price_rec_after::integer FROM read_parquet(?) ORDER BY changed_at",
            [str(tmp_path / "out/*.parquet")],
        ).fetchall()
    assert found == [(fast, at(1), 11), (slow, at(2), 12), (fast, at(3), 13)]
    assert await _export(shop, ExportTable.CHANGES, tmp_path / "out") is None


async def test_an_interrupted_run_is_repeated(shop: Shop, tmp_path: Path) -> None:
    out = tmp_path / "out"
    await market(shop, range(2))
    await _export(shop, ExportTable.SNAPSHOTS, out)
    state = (out / "export.json").read_bytes()
    await market(shop, range(2, 3))
    await _export(shop, ExportTable.SNAPSHOTS, out)
    (out / "export.json").write_bytes(state)  # as if it had ended between the two files
    (out / ".part-000003.parquet.0123.part").write_bytes(b"PAR1")
    await market(shop, range(3, 4))
    again = await _export(shop, ExportTable.SNAPSHOTS, out)
    assert again is not None
    assert again.file == "part-000002.parquet"
    assert _rows(out / "*.parquet") == await _complete(shop, ExportTable.SNAPSHOTS, tmp_path / "complete.parquet")


async def test_other_folders_and_filters_are_refused(shop: Shop, tmp_path: Path) -> None:
    await market(shop, range(1))
    await _export(shop, ExportTable.SNAPSHOTS, tmp_path / "out")
    for what, folder, more, reason in (
        (ExportTable.PRODUCTS, "out", {}, "what snapshots, not products"),
        (ExportTable.SNAPSHOTS, "out", {"states": ("AZ",)}, "with filters"),
        (ExportTable.BRANDS, "brands", {}, "export brands as a whole"),
        (ExportTable.SNAPSHOTS, "no/such", {}, "does not exist"),
    ):
        with pytest.raises(Refused, match=reason):
            await _export(shop, what, tmp_path / folder, **more)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").touch()
    with pytest.raises(Refused, match=r"letter\.txt"):
        await _export(shop, ExportTable.SNAPSHOTS, tmp_path / "mine")


async def test_the_command(shop: Shop, tmp_path: Path, database_url: str) -> None:
    env = {
        **os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "STORAGE_PATH": str(shop.storage),
    }  # fmt: skip

    async def run(*words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(
            menuwatch, "export", "snapshots", str(tmp_path / "out"), "--incremental", *words, env=env
        )

    await market(shop, range(1))
    first = json.loads((await run("--json")).stdout)
    assert (first["files"], first["file"]) == (1, "part-000001.parquet")
    assert first["rows"] == len(_rows(tmp_path / "out/part-000001.parquet"))
    again = await run()
    assert (again.returncode, "Nothing new" in again.stderr + again.stdout) == (0, True)
    assert (await run("--since", "7d")).returncode != 0
