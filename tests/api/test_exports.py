"""Whole tables over HTTP."""

from __future__ import annotations

import csv
import io
import json

from fastapi import FastAPI
from pyarrow import parquet

from menuwatch.api.routes import exports
from tests.api.shop import Shop, at, item


async def test_every_format_is_streamed(shop: Shop) -> None:
    one = await shop.store("one", state="AZ")
    await shop.crawl(one, 0, [item("a"), item("b", options=[("1g", "7.10", 3)])])
    await shop.crawl(one, 1, [item("a"), item("b", options=[("1g", "6.90", 3)])])

    answer = await shop.http.get("/api/export/snapshots")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="menuwatch-snapshots.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert sorted(row["price_rec"] for row in rows) == ["40", "40", "6.9", "7.1"]

    answer = await shop.http.get("/api/export/changes?format=jsonl&state=az")
    (change,) = [json.loads(line) for line in answer.text.splitlines()]
    assert (change["changed_at"], change["price_rec_before"], change["price_rec_after"]) == (
        "2026-03-01T13:00:00.000000Z",
        7.1,
        6.9,
    )
    answer = await shop.http.get("/api/export/products", params={"format": "parquet", "store": one})
    assert parquet.read_table(io.BytesIO(answer.content)).num_rows == 2
    assert (await shop.http.get("/api/export/states?format=jsonl&platform=weedmaps")).content == b""


async def test_what_cannot_be_exported(shop: Shop, app: FastAPI) -> None:
    assert "store 99 does not exist" in (await shop.refused("/api/export/products?store=99", 422))["detail"]
    span = {"since": at(1).isoformat(), "until": at(1).isoformat()}
    assert "until: must be after since" in (await shop.refused("/api/export/products", 422, params=span))["detail"]
    assert "what" in (await shop.refused("/api/export/everything", 422))["detail"]
    assert "format" in (await shop.refused("/api/export/products?format=xlsx", 422))["detail"]
    assert "as AZ or ON" in (await shop.refused("/api/export/products?state=NewMexico", 422))["detail"]
    await shop.http.get("/api/export/products")
    assert app.state.exports.busy == 0
    app.state.exports.busy = exports.MOST_AT_ONCE
    assert "come again" in (await shop.refused("/api/export/products", 503))["detail"]
