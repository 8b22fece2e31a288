"""Batches, lab values and sold counts in exports, the API and the commands, over the crawls of one store."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
from datetime import UTC, date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest
from menuwatch.platforms.base import Platform
from tests.api.shop import Shop, at, item
from tests.commands import menuwatch
from tests.rebuild.random_histories import WithBatches

LABS = '[{"name": "Myrcene", "value": 2, "unit": "%"}]'


@pytest.fixture
def platforms() -> dict[str, Platform]:
    return {"dutchie": WithBatches()}


async def _story(shop: Shop) -> int:
    """`a` is of batch 1, of which 4 and then 6 are sold, and then of batch 2; `b` has no details. Returns the id of `a`."""
    store = await shop.store(state="AZ")
    for hour, (lot, sold) in enumerate([(1, 4), (1, 6), (2, 7)]):
        await shop.crawl(store, hour, [item("a", "Aye", lot=lot, sold=sold), item("b", "Bee")])
    async with shop.pool.connection() as conn:
        row = await (await conn.execute("SELECT id FROM catalog_products WHERE provider_product_id = 'a'")).fetchone()
    assert row is not None
    return int(row[0])


async def _bytes(shop: Shop, what: ExportTable, fmt: Format, **more: Any) -> bytes:
    request = ExportRequest(what=what, fmt=fmt, **more)
    async with (
        shop.pool.connection() as conn,
        export.read_snapshot(conn, request, ParquetPartitions(shop.archive.storage)),
    ):
        return b"".join([piece async for piece in export.stream(conn, request)])


async def test_exported_products_have_flat_columns_of_the_batch(shop: Shop) -> None:
    await _story(shop)
    rows = parquet.read_table(io.BytesIO(await _bytes(shop, ExportTable.PRODUCTS, Format.PARQUET))).to_pylist()
    aye, bee = sorted(rows, key=lambda row: str(row["name"]))
    said = ("batch_id", "package_tag", "tested_on", "packaged_on", "certificate_url", "quantity_sold")
    assert [aye[name] for name in said] == ["L-2", None, date(2026, 1, 2), None, "https://lab.test/2", 7]
    assert json.loads(aye["terpenes"]) == json.loads(LABS)
    assert [bee[name] for name in (*said, "terpenes")] == [None] * 7
    text = (await _bytes(shop, ExportTable.PRODUCTS, Format.CSV)).decode()
    cells = sorted(csv.DictReader(io.StringIO(text, newline="")), key=lambda row: row["name"])
    assert [cells[0][name] for name in said] == ["L-2", "", "2026-01-02", "", "https://lab.test/2", "7"]
    assert json.loads(cells[0]["terpenes"]) == json.loads(LABS)
    lines = [json.loads(line) for line in (await _bytes(shop, ExportTable.PRODUCTS, Format.JSONL)).splitlines()]
    assert {line["name"]: line["terpenes"] for line in lines} == {"Aye": json.loads(LABS), "Bee": None}


async def test_exported_details_are_periods(shop: Shop) -> None:
    await _story(shop)
    rows = parquet.read_table(io.BytesIO(await _bytes(shop, ExportTable.DETAILS, Format.PARQUET))).to_pylist()
    rows.sort(key=lambda row: row["seen_from"])
    assert [(r["seen_from"], r["ended_at"], r["batch_id"], r["tested_on"], r["quantity_sold"]) for r in rows] == [
        (at(0).astimezone(UTC), at(1).astimezone(UTC), "L-1", date(2026, 1, 1), 4),
        (at(1).astimezone(UTC), at(2).astimezone(UTC), "L-1", date(2026, 1, 1), 6),
        (at(2).astimezone(UTC), None, "L-2", date(2026, 1, 2), 7),
    ]
    assert [json.loads(row["terpenes"])[0]["value"] for row in rows] == [1, 1, 2]
    assert {(row["name"], row["state"], row["provider"]) for row in rows} == {("Aye", "AZ", "dutchie")}
    cut = await _bytes(shop, ExportTable.DETAILS, Format.JSONL, since=at(1), until=at(2), platforms=["dutchie"])
    assert [json.loads(line)["quantity_sold"] for line in cut.splitlines()] == [6]
    answer = await shop.http.get("/api/export/details", params={"format": "jsonl"})
    assert sorted(json.loads(line)["quantity_sold"] for line in answer.text.splitlines()) == [4, 6, 7]


async def test_the_api_has_details_and_their_history(shop: Shop) -> None:
    number = await _story(shop)
    product = await shop.ask(f"/api/products/{number}")
    assert product["batch"] == {"batch_id": "L-2", "tested_on": "2026-01-02", "certificate_url": "https://lab.test/2"}
    assert product["terpenes"] == json.loads(LABS)
    assert (product["quantity_sold"], product["cannabinoids"]) == (7, [])
    bare = await shop.ask(f"/api/products/{number + 1}")
    assert (bare["batch"], bare["terpenes"], bare["quantity_sold"]) == (None, [], None)
    rows = await shop.walk(f"/api/products/{number}/details", limit=1)
    assert [(row["quantity_sold"], row["batch"]["batch_id"], row["to"] is None) for row in rows] == [
        (7, "L-2", True),
        (6, "L-1", False),
        (4, "L-1", False),
    ]
    assert await shop.walk(f"/api/products/{number + 1}/details") == []
    cut = await shop.ask(f"/api/products/{number}/details", params={"until": at(1).isoformat()})
    assert [row["quantity_sold"] for row in cut["items"]] == [4]
    await shop.refused("/api/products/999/details", 404)


async def test_the_command_lists_details(shop: Shop, database_url: str, tmp_path: Path) -> None:
    number = await _story(shop)
    env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "STORAGE_PATH": str(tmp_path)}

    async def run(*words: str) -> str:
        done = await asyncio.to_thread(menuwatch, "history", "details", str(number), *words, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    rows = json.loads(await run("--json"), parse_float=Decimal)
    assert [(row["quantity_sold"], row["batch"]["tested_on"]) for row in rows] == [
        (7, "2026-01-02"),
        (6, "2026-01-01"),
        (4, "2026-01-01"),
    ]
    table = await run("--limit", "1")
    assert [text in table for text in ("L-2", "2026-01-02", "L-1")] == [True, True, False]
