"""Names on menus that a spreadsheet would run: harmless in every CSV, exact in the other formats."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from psycopg import sql
from pyarrow import parquet

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core import csv_cells
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest
from menuwatch.ops.legacy.columns import PRODUCTS
from menuwatch.ops.legacy.sources import CsvFiles
from tests.api.shop import Shop, item

NAMES = ["=HYPERLINK(\"http://x\",\"y\")", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "'=quoted", "Blue Dream", "-5.2"]  # fmt: skip
TEXTS = [
    *NAMES,
    "\t=x",
    "\r=x",
    "\n=x",
    "\uff1dx",
    "''-x",
    "'-5",
    "-",
    "+1e5",
    "-1e",
    "",
    "'",
    "a=b",
    "-٣",
    "-5\n",
    "\u202e=x",
]


async def _bytes(shop: Shop, fmt: Format) -> bytes:
    async with (
        shop.pool.connection() as conn,
        export.read_snapshot(
            conn, request := ExportRequest(what=ExportTable.PRODUCTS, fmt=fmt), ParquetPartitions(shop.archive.storage)
        ),
    ):
        return b"".join([piece async for piece in export.stream(conn, request)])


async def test_the_database_writes_cells_as_the_rule_has_it(shop: Shop) -> None:
    query = sql.SQL("SELECT {} FROM unnest(%s::text[]) WITH ORDINALITY AS x (name, at) ORDER BY x.at")
    async with shop.pool.connection() as conn:
        cursor = await conn.execute(query.format(sql.SQL(csv_cells.sql("x.name"))), [TEXTS])  # type: ignore[arg-type]
        assert [row[0] for row in await cursor.fetchall()] == [csv_cells.safe(text) for text in TEXTS]


async def test_formulas_are_texts_in_csv_and_as_they_came_elsewhere(shop: Shop, tmp_path: Path) -> None:
    store = await shop.store()
    await shop.crawl(store, 0, [item(f"i{n}", name, brandName=name) for n, name in enumerate(NAMES)])
    raw = sorted(NAMES)

    made = await _bytes(shop, Format.CSV)
    rows = list(csv.DictReader(io.StringIO(made.decode(), newline="")))
    for column in ("name", "name_raw", "brand_name_raw"):
        cells = [row[column] for row in rows]
        assert sorted(cells) == sorted(csv_cells.safe(name) for name in NAMES), column
        assert sorted(csv_cells.original(cell) for cell in cells) == raw, column
    assert sorted(json.loads(line)["name_raw"] for line in (await _bytes(shop, Format.JSONL)).splitlines()) == raw
    table: list[dict[str, Any]] = parquet.read_table(io.BytesIO(await _bytes(shop, Format.PARQUET))).to_pylist()
    assert sorted(row["name_raw"] for row in table) == raw

    file = tmp_path / "products.csv"
    file.write_bytes(made)
    assert sorted([line.record["name"] or "" async for line in CsvFiles({PRODUCTS: [file]}).lines(PRODUCTS)]) == raw
