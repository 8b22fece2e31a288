"""Exports: the rows that the views have, in every format, with their types; whole or not there at all."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from menuwatch.exports.atomic_files import atomic_file, atomic_folder
from menuwatch.exports.tables import TABLES, ExportTable, Format, Kind
from menuwatch.geo import states
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest, PartitionBy
from tests.api.shop import Shop, at, item
from tests.workers.waiting import until

AWKWARD = 'He said "hi",\nthen \\n left\ttab, Blüte'


async def _story(shop: Shop) -> tuple[int, int]:
    """Two stores in two states; the first is crawled three times, in two months."""
    await shop.execute("SELECT ensure_product_history_partition(%s)", [at(24 * 31)])
    one, two = await shop.store("one", state="AZ"), await shop.store("two")
    await shop.crawl(one, 0, [item("a", AWKWARD, options=[("1g", "40.10", 5)], brandName=""), item("b", "Berry")])
    await shop.crawl(one, 1, [item("a", AWKWARD, options=[("1g", "35.5", 5)], brandName=""), item("b", "Berry")])
    await shop.crawl(one, 24 * 31, [item("a", AWKWARD, options=[("1g", "35.5", 0)], brandName="")])
    await shop.crawl(two, 2, [item("c", "Cherry", thc=None)])
    return one, two


async def _bytes(shop: Shop, what: ExportTable, fmt: Format, **more: Any) -> bytes:
    request = ExportRequest(what=what, fmt=fmt, **more)
    async with (
        shop.pool.connection() as conn,
        export.read_snapshot(conn, request, ParquetPartitions(shop.archive.storage)),
    ):
        return b"".join([piece async for piece in export.stream(conn, request)])


async def _select(shop: Shop, query: str) -> list[dict[str, Any]]:
    async with shop.pool.connection() as conn, conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        await cursor.execute(query)
        return await cursor.fetchall()


def _table(data: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(data)).to_pylist()
    return rows


async def test_snapshots_are_the_rows_of_the_view_in_every_format(shop: Shop) -> None:
    await _story(shop)
    view = await _select(
        shop,
        "SELECT crawled_at, payload_id, store_product_id AS product_id, dispensary_id, provider_product_id, price_rec, thc_lo,"
        " is_in_stock, stock_status, quantity, quantity_capped, prices, state_since FROM store_product_snapshots",
    )
    assert len(view) == 6
    key = ("crawled_at", "product_id")
    expected = sorted(view, key=lambda row: tuple(row[k] for k in key))

    found = sorted(
        _table(await _bytes(shop, ExportTable.SNAPSHOTS, Format.PARQUET)), key=lambda row: tuple(row[k] for k in key)
    )
    assert [{name: row[name] for name in view[0]} | {"prices": json.loads(row["prices"])} for row in found] == [
        row | {"prices": row["prices"]} for row in expected
    ]
    assert {row["name"] for row in found} == {" ".join(AWKWARD.split()), "Berry", "Cherry"}
    assert {row["state"] for row in found} == {"AZ", None}

    lines = [
        json.loads(line, parse_float=Decimal)
        for line in (await _bytes(shop, ExportTable.SNAPSHOTS, Format.JSONL)).splitlines()
    ]
    lines.sort(key=lambda row: (row["crawled_at"], row["product_id"]))
    assert [(row["name"], row["price_rec"], row["prices"][0][0]) for row in lines] == [
        (row["name"], row["price_rec"], json.loads(row["prices"])[0][0]) for row in found
    ]
    assert [datetime.fromisoformat(row["crawled_at"]) for row in lines] == [row["crawled_at"] for row in found]

    text = (await _bytes(shop, ExportTable.SNAPSHOTS, Format.CSV)).decode()
    cells = sorted(
        csv.DictReader(io.StringIO(text, newline="")), key=lambda row: (row["crawled_at"], int(row["product_id"]))
    )
    assert [row["name"] for row in cells] == [row["name"] for row in found]
    assert [row["price_rec"] for row in cells] == ["40.1", "40", "35.5", "40", "40", "35.5"], "one form"
    assert cells[0]["crawled_at"] == "2026-03-01T12:00:00.000000Z"
    assert {row["is_in_stock"] for row in cells} == {"true", "false"}


async def test_types_and_null_are_kept_apart(shop: Shop) -> None:
    await _story(shop)
    data = await _bytes(shop, ExportTable.PRODUCTS, Format.PARQUET)
    schema = parquet.read_schema(io.BytesIO(data))
    for column in TABLES[ExportTable.PRODUCTS]:
        kinds = {
            Kind.NUMBER: pa.decimal128(18, 6),
            Kind.TIME: pa.timestamp("us", tz="UTC"),
            Kind.WHOLE: pa.int64(),
            Kind.FLAG: pa.bool_(),
            Kind.DATE: pa.date32(),
        }
        assert schema.field(column.name).type == kinds.get(column.kind, pa.string()), column.name
    rows = {row["provider_product_id"]: row for row in _table(data)}
    assert rows["a"]["price_rec"] == Decimal("35.5")
    assert rows["c"]["thc_lo"] is None
    assert rows["a"]["name_raw"] == AWKWARD
    cells = csv.DictReader(io.StringIO((await _bytes(shop, ExportTable.PRODUCTS, Format.CSV)).decode(), newline=""))
    lines = (await _bytes(shop, ExportTable.PRODUCTS, Format.JSONL)).splitlines()
    for others in (list(cells), [json.loads(line) for line in lines]):
        assert {row["provider_product_id"]: row["name_raw"] for row in others} == {
            k: r["name_raw"] for k, r in rows.items()
        }
    assert rows["a"]["first_seen_at"] == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert (rows["a"]["is_in_stock"], rows["b"]["consecutive_misses"]) == (False, 1)
    stored = {r["provider_product_id"]: r for r in await _select(shop, "SELECT * FROM store_products")}
    for name in ("brand_name", "brand_name_raw", "subcategory", "description"):
        assert {k: row[name] for k, row in rows.items()} == {k: row[name] for k, row in stored.items()}, name


async def test_changes_and_states(shop: Shop) -> None:
    await _story(shop)
    changes = sorted(_table(await _bytes(shop, ExportTable.CHANGES, Format.PARQUET)), key=lambda row: row["changed_at"])
    assert [(c["price_changed"], c["stock_changed"], c["price_rec_before"], c["price_rec_after"]) for c in changes] == [
        (True, False, Decimal("40.1"), Decimal("35.5")),
        (False, True, Decimal("35.5"), Decimal("35.5")),
    ]
    assert [(c["quantity_before"], c["quantity_after"]) for c in changes] == [(5, 5), (5, 0)]
    states = _table(await _bytes(shop, ExportTable.STATES, Format.PARQUET))
    assert len(states) == (await _select(shop, "SELECT count(*) AS n FROM product_states"))[0]["n"] == 5


async def test_filters(shop: Shop) -> None:
    one, two = await _story(shop)

    async def seen(**more: Any) -> list[tuple[str, int]]:
        rows = _table(await _bytes(shop, ExportTable.SNAPSHOTS, Format.PARQUET, **more))
        return sorted(
            (row["provider_product_id"], int((row["crawled_at"] - at(0)).total_seconds() // 3600)) for row in rows
        )

    everything = [("a", 0), ("a", 1), ("a", 744), ("b", 0), ("b", 1), ("c", 2)]
    assert await seen() == everything
    assert await seen(since=at(1), until=at(2)) == [("a", 1), ("b", 1)]
    assert await seen(states=["AZ"]) == [row for row in everything if row[0] != "c"]
    assert await seen(stores=[two]) == [("c", 2)]
    assert await seen(stores=[one], states=["NM"]) == []
    assert await seen(platforms=["weedmaps"]) == []
    assert len(_table(await _bytes(shop, ExportTable.PRODUCTS, Format.PARQUET, since=at(24)))) == 1, (
        "that changed since"
    )


async def test_offers_have_a_row_for_each_option_on_a_menu(shop: Shop) -> None:
    arizona, ontario = await shop.store("one", state="AZ"), await shop.store("two", state="ON")
    options = [("1g", "40.10", 5), ("1/8oz", "90", 0)]
    await shop.crawl(arizona, 0, [item("a", "Alpha", options=options), item("gone", "Beta")])
    await shop.crawl(arizona, 1, [item("a", "Alpha", options=options)])
    await shop.crawl(ontario, 2, [item("c", "Cherry", options=[("1g", "12", 3)])])
    rows = _table(await _bytes(shop, ExportTable.OFFERS, Format.PARQUET))
    found = sorted(
        (r["provider_product_id"], r["position"], r["option"], r["weight_g"], r["price"], r["price_rec"]) for r in rows
    )
    assert found == [
        ("a", 1, "1/8oz", Decimal("3.5"), Decimal(90), Decimal(90)),
        ("a", 2, "1g", Decimal(1), Decimal("40.1"), Decimal("40.1")),
        ("c", 1, "1g", Decimal(1), Decimal(12), Decimal(12)),
    ]
    assert {(r["option"], r["stock_status"], r["quantity"]) for r in rows if r["dispensary_id"] == arizona} == {
        ("1g", "in_stock", 5),
        ("1/8oz", "oos", 0),
    }
    assert {r["dispensary_id"]: r["currency"] for r in rows} == {arizona: "USD", ontario: "CAD"}
    assert len(_table(await _bytes(shop, ExportTable.OFFERS, Format.PARQUET, states=["ON"]))) == 1
    listed = _table(await _bytes(shop, ExportTable.STORES, Format.PARQUET))
    assert {(r["dispensary_id"], r["state"], r["currency"], r["product_count"]) for r in listed} == {
        (arizona, "AZ", "USD", 1),
        (ontario, "ON", "CAD", 1),
    }
    by_state = _table(await _bytes(shop, ExportTable.STORES, Format.PARQUET, states=["AZ"], platforms=["dutchie"]))
    assert [r["dispensary_id"] for r in by_state] == [arizona]


async def test_the_currency_is_that_of_the_country(shop: Shop) -> None:
    codes = sorted(states.CODES)
    rows = await _select(
        shop, f"SELECT c AS code, currency_of(c) AS currency FROM unnest('{{{','.join(codes)}}}'::text[]) c"
    )
    assert {row["code"] for row in rows if row["currency"] == "CAD"} == set(states.PROVINCES)
    assert await _select(shop, "SELECT currency_of(NULL) AS currency") == [{"currency": "USD"}]


@pytest.mark.parametrize("what", list(ExportTable))
async def test_nothing_to_export_still_has_columns(shop: Shop, what: ExportTable) -> None:
    names = [column.name for column in TABLES[what]]
    assert (await _bytes(shop, what, Format.CSV)).decode() == ",".join(names) + "\n"
    assert await _bytes(shop, what, Format.JSONL) == b""
    assert parquet.read_schema(io.BytesIO(await _bytes(shop, what, Format.PARQUET))).names == names


async def test_duckdb_reads_what_was_cut_by_state_and_by_month(shop: Shop, tmp_path: Path) -> None:
    await _story(shop)
    by_state, by_month = tmp_path / "by-state", tmp_path / "by-month"
    request, archived = (
        ExportRequest(what=ExportTable.SNAPSHOTS, fmt=Format.PARQUET),
        ParquetPartitions(shop.archive.storage),
    )
    async with shop.pool.connection() as conn:
        assert await export.to_folder(conn, request, PartitionBy.STATE, by_state, archived) == 2
        assert await export.to_folder(conn, request, PartitionBy.MONTH, by_month, archived) == 2
    with duckdb.connect() as db:
        rows = db.execute(
            f"SELECT state, count(*), sum(price_rec) FROM read_parquet('{by_state}/**/*.parquet', hive_partitioning = true)"
            " GROUP BY state ORDER BY state NULLS LAST"
        ).fetchall()
        assert rows == [("AZ", 5, Decimal("191.1")), (None, 1, Decimal(40))]
        rows = db.execute(
            f"SELECT month, count(*), epoch(min(crawled_at)) FROM read_parquet('{by_month}/*/*.parquet', hive_partitioning = true,"
            " hive_types = {'month': VARCHAR}) GROUP BY month ORDER BY month"
        ).fetchall()
        assert rows == [("2026-03", 5, at(0).timestamp()), ("2026-04", 1, at(744).timestamp())]
    for refused in (
        ExportRequest(what=ExportTable.PRODUCTS, fmt=Format.PARQUET),
        ExportRequest(what=ExportTable.CHANGES, fmt=Format.CSV),
    ):
        async with shop.pool.connection() as conn:
            with pytest.raises(Refused, match="--partition month"):
                await export.to_folder(conn, refused, PartitionBy.MONTH, tmp_path / "no", archived)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["by-month", "by-state", "storage"]


def test_what_is_there_is_not_written_over_unless_asked(tmp_path: Path) -> None:
    file, folder, part = tmp_path / "file", tmp_path / "folder", "state=AZ/part-0.parquet"
    for content in (b"first", b"second"):
        with atomic_file(file, overwrite=True) as out:
            out.write(content)
        with atomic_folder(folder, overwrite=True) as filled, filled.file(part) as out:
            out.write(content)
    with pytest.raises(Refused, match="already exists"), atomic_file(file):
        raise AssertionError("it was refused before")
    with pytest.raises(Refused, match="already exists"), atomic_folder(folder):
        raise AssertionError("it was refused before")
    with pytest.raises(Refused, match="does not exist"), atomic_file(tmp_path / "gone" / "file"):
        raise AssertionError("it was refused before")
    with pytest.raises(KeyboardInterrupt), atomic_file(file, overwrite=True) as out:
        _interrupted(out)
    assert (file.read_bytes(), (folder / part).read_bytes()) == (b"second", b"second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def _everything(folder: Path) -> dict[str, bytes | str | None]:
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


def test_a_folder_of_anything_but_an_export_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_of_mine = tmp_path / "mine"
    with atomic_folder(export_of_mine) as filled, filled.file("month=2026-03/part-0.parquet") as out:
        out.write(b"first")
    menus, other, linked = tmp_path / "menus", tmp_path / "other", tmp_path / "linked"
    menus.mkdir()
    for n in range(5):
        (menus / f"{n}.json").write_text("{}")
    (other / "state=NM" / "more").mkdir(parents=True)
    (other / "state=NM" / "part-0.parquet").write_bytes(b"")
    (linked).mkdir()
    (linked / "state=NM").symlink_to(menus)
    (tmp_path / "to-menus").symlink_to(menus)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "file").write_text("mine")
    before = _everything(tmp_path)
    monkeypatch.chdir(menus)
    for place, said in (
        (menus.parent / "menus", "is the current directory or a parent of it"),
        (Path(), "is the current directory or a parent of it"),
        (tmp_path, "or a parent of it"),
        (other, r"earlier export \(state=NM/more\)"),
        (linked, r"earlier export \(state=NM\)"),
        (tmp_path / "nowhere", "is a dangling symbolic link"),
        (tmp_path / "file", "is a file: give a directory"),
    ):
        with pytest.raises(Refused, match=said), atomic_folder(place, overwrite=True):
            raise AssertionError("it was refused before")
    monkeypatch.chdir("/")
    for place in (menus, tmp_path / "to-menus"):
        with (
            pytest.raises(Refused, match=r"0\.json, 1\.json, 2\.json and more"),
            atomic_folder(place, overwrite=True),
        ):
            raise AssertionError("it was refused before")
    for place in (menus, tmp_path / "to-menus"):
        with (
            pytest.raises(Refused, match="is a directory: give a file name"),
            atomic_file(place, overwrite=True),
        ):
            raise AssertionError("it was refused before")
    with pytest.raises(Refused, match="is not a regular file"), atomic_file(Path("/dev/null"), overwrite=True):
        raise AssertionError("it was refused before")
    assert _everything(tmp_path) == before

    with (
        pytest.raises(Refused, match=r"earlier export \(late\)"),
        atomic_folder(export_of_mine, overwrite=True) as filled,
        filled.file("month=2026-03/part-0.parquet"),
    ):
        (export_of_mine / "late").write_text("put there meanwhile")
    assert _everything(tmp_path) == {**before, "mine/late": b"put there meanwhile"}


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.symlink_to("far/folder")
    file.symlink_to("far/file")
    (tmp_path / "far" / "folder").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    for content in (b"first", b"second"):
        with atomic_folder(folder, overwrite=True) as filled, filled.file("state=AZ/part-0.parquet") as out:
            out.write(content)
        with atomic_file(file, overwrite=True) as out:
            out.write(content)
    assert _everything(tmp_path) == {
        "far": None,
        "far/file": b"second",
        "far/folder": None,
        "far/folder/state=AZ": None,
        "far/folder/state=AZ/part-0.parquet": b"second",
        "file": "far/file",
        "folder": "far/folder",
    }


def _interrupted(out: BinaryIO) -> None:
    out.write(b"third")
    raise KeyboardInterrupt


def _run(database_url: str, folder: Path, *args: str, largest: int | None = None) -> subprocess.Popen[str]:
    def limit() -> None:
        # Whatever runs the tests in the background has it ignored, and children inherit that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    env = {**os.environ, "DATABASE_URL": database_url, "STORAGE_PATH": str(folder / "storage"), "LOG_LEVEL": "error"}
    return subprocess.Popen(
        [sys.executable, "-m", "menuwatch.cli.main", "export", *args],
        cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit,
    )  # fmt: skip


async def _many(shop: Shop, count: int) -> None:
    store = await shop.store("many", state="NM")
    await shop.crawl(store, 0, [item(f"p{n}", f"Product {n} {os.urandom(300).hex()}") for n in range(count)])


async def test_the_command(shop: Shop, database_url: str, tmp_path: Path) -> None:
    await _story(shop)
    done = await asyncio.to_thread(
        lambda: _run(database_url, tmp_path, "snapshots", "out.csv", "--state", "az", "--json").communicate(timeout=60)
    )
    assert json.loads(done[0]) == {
        "what": "snapshots", "format": "csv", "rows": 5, "bytes": (tmp_path / "out.csv").stat().st_size, "files": 1
    }, done  # fmt: skip
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))) == 5
    again = _run(database_url, tmp_path, "snapshots", "out.csv")
    assert "already exists" in (await asyncio.to_thread(again.communicate, timeout=60))[1]
    assert again.returncode == 2
    nowhere = _run(database_url, tmp_path, "snapshots", "nowhere.csv", "--state", "NewMexico")
    assert "--state: unknown state 'NewMexico'" in (await asyncio.to_thread(nowhere.communicate, timeout=60))[1]
    assert nowhere.returncode == 2
    (tmp_path / "menus").mkdir()
    (tmp_path / "menus" / "1.json").write_text("{}")
    for args in (("--partition", "state"), ("--format", "csv")):
        refused = _run(database_url, tmp_path, "products", "menus", *args, "--overwrite")
        said = (await asyncio.to_thread(refused.communicate, timeout=60))[1]
        assert ("earlier export (1.json)" if args[0] == "--partition" else "is a directory") in " ".join(
            said.split()
        ), said
        assert refused.returncode == 2
    assert (tmp_path / "menus" / "1.json").read_text() == "{}"


async def test_a_disk_that_is_full_leaves_nothing(shop: Shop, database_url: str, tmp_path: Path) -> None:
    await _many(shop, 300)
    running = _run(database_url, tmp_path, "products", "out.csv", largest=50_000)
    _, said = await asyncio.to_thread(running.communicate, timeout=60)
    assert "no space left; no file was created" in said
    assert running.returncode == 1
    assert [path.name for path in tmp_path.iterdir() if path.name != "storage"] == []


async def test_an_interruption_leaves_nothing(shop: Shop, database_url: str, tmp_path: Path) -> None:
    await _many(shop, 50)
    async with shop.pool.connection() as conn, conn.transaction():
        # The export waits for this lock with its file begun.
        await conn.execute("LOCK TABLE catalog_products IN ACCESS EXCLUSIVE MODE")
        running = _run(database_url, tmp_path, "products", "out.csv")

        async def begun() -> bool:
            waiting = await conn.execute(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'catalog_products'::regclass)"
            )
            return await waiting.fetchone() == (True,) and any(
                path.name.startswith(".out.csv") for path in tmp_path.iterdir()
            )

        await until(begun)
        running.send_signal(signal.SIGINT)
        await asyncio.to_thread(running.communicate, timeout=60)
    assert running.returncode == 130
    assert [path.name for path in tmp_path.iterdir() if path.name != "storage"] == []
