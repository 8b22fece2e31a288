"""Whole tables over HTTP."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import socket

import httpx
from fastapi import FastAPI
from pyarrow import parquet

from menuwatch.db.pool import Pool
from menuwatch.web import downloads
from tests.api.serving import serving
from tests.api.shop import Shop, at, item
from tests.users_fixture import bearer


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
    app.state.exports.users = {"tester"}
    assert "another export of yours is running" in (await shop.refused("/api/export/products", 503))["detail"]
    app.state.exports.users, app.state.exports.busy = set(), downloads.MAX_CONCURRENT
    assert "2 exports are running, the maximum" in (await shop.refused("/api/export/products", 503))["detail"]


async def test_a_slow_reader_gives_its_place_back(shop: Shop, app: FastAPI, pool: Pool) -> None:
    """One that reads nothing has the grace time; one that reads fast enough has all the time it takes."""
    await shop.crawl(await shop.store("one"), 0, [item(str(number)) for number in range(40)])
    async with pool.connection() as conn:
        # More than the sockets of both sides take in.
        await conn.execute("UPDATE catalog_products SET description = repeat('x', 250000)")
    desk = app.state.exports = downloads.ActiveExports(grace_seconds=1.5, min_rate=10_000_000)
    async with serving(app) as port:
        headers = await bearer(pool, name="slow", role="viewer")
        request = f"GET /api/export/products HTTP/1.1\r\nHost: x\r\nAuthorization: {headers['Authorization']}\r\n\r\n"
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.connect(("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=small, limit=1024)
        writer.write(request.encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert (desk.busy, desk.users) == (1, {"slow"})
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            refused = await http.get("/api/export/products", headers=headers)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
            whole = await http.get("/api/export/products", headers=await bearer(pool, name="other"))
            assert (whole.status_code, len(whole.content) > 10_000_000) == (200, True)
            async with asyncio.timeout(10):
                while desk.busy:
                    await asyncio.sleep(0.02)
            assert (await http.get("/api/export/products", headers=headers)).status_code == 200
        assert not (await reader.read()).endswith(b"\r\n0\r\n\r\n"), "the file is not whole, and that shows"
        writer.close()
