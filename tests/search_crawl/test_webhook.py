"""What a stranger, a mistaken service and a hostile one get at the door for webhooks: nothing changes, and it is logged, without the
secret."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import zlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
import structlog
import uvicorn
from fastapi import FastAPI
from structlog.testing import capture_logs

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.encryption import new_key
from menuwatch.db.pool import Pool
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl import webhook as crawl_webhook
from tests.search_crawl.world import Catalogue, Process, Service, Shop

START = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)


class Door:
    """A server with one crawl whose first page is awaited."""

    def __init__(self, pool: Pool, app: FastAPI, http: httpx.AsyncClient, process: Process, path: str) -> None:
        self.pool, self.app, self.http, self.process, self.path = pool, app, http, process, path

    async def post(self, body: Any, path: str | None = None, **more: Any) -> httpx.Response:
        content = body if isinstance(body, bytes) or hasattr(body, "__aiter__") else json.dumps(body).encode()
        return await self.http.post(path or self.path, content=content, **more)

    async def kept(self) -> list[Any]:
        """Everything that a webhook could change."""
        found = []
        async with self.pool.connection() as conn:
            for table in ("crawl_jobs", "crawl_queue", "crawl_attempts", "crawl_deliveries", "crawl_products"):
                found += await (await conn.execute(f"SELECT '{table}', t::text FROM {table} t ORDER BY 2")).fetchall()
        return found


@pytest.fixture
async def door(pool: Pool, tmp_path: Path) -> AsyncIterator[Door]:
    clock = ManualClock(START)
    shop = Shop(Catalogue(("lamp",), pages=1, per_page=3, shared=0))
    service = Service(clock, shop, Random(1))
    service.manners.lost = 1.0
    process = Process(pool, clock, shop, service, tmp_path, 1)
    there = {"sites": {shop.name: shop}, "providers": {service.name: service}}
    async with pool.connection() as conn, conn.transaction():
        await crawls.start(conn, keywords=["lamp"], now=START, **there)  # type: ignore[arg-type]
        (key,) = await crawl_webhook.secret_keys(conn, ())
    await process.submit()
    settings = Settings(home=tmp_path)
    app = create_app(AppContext(pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=settings, **there))  # type: ignore[arg-type]
    path = f"/api/crawl/webhook/{crawl_webhook.secret_for(key, service.name)}"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch") as http:
        yield Door(pool, app, http, process, path)


def result(reference: str, **more: Any) -> dict[str, Any]:
    return {"post_id": reference, "request_id": "r1", "success": True, "html": '{"keyword": "lamp", "page": 1}'} | more


GOOD = "crawl-1-search-1-1"


async def test_what_is_awaited_is_kept_and_read(door: Door) -> None:
    answer = await door.post([result(GOOD)])
    assert (answer.status_code, answer.json()) == (200, {"taken": 1, "ignored": 0, "unknown": 0})
    again = await door.post([result(GOOD), result("crawl-1-search-99-1")])
    assert again.json() == {"taken": 1, "ignored": 0, "unknown": 1}
    # Received by the machine's clock, which is ahead of the one here.
    async with door.pool.connection() as conn:
        await conn.execute("UPDATE crawl_deliveries SET visible_at = %s", [START])
    await door.process.reader.step()
    async with door.pool.connection() as conn:
        cursor = await conn.execute("SELECT status, count(*) FROM crawl_queue GROUP BY 1 ORDER BY 1")
        assert await cursor.fetchall() == [("completed", 1), ("pending", 3)]
    late = await door.post([result(GOOD)])
    assert late.json() == {"taken": 0, "ignored": 1, "unknown": 0}


async def test_a_wrong_secret(door: Door) -> None:
    before = await door.kept()
    for wrong in ("x", "a" * 43, "%00", "ä" * 43, door.path.rpartition("/")[2][:-1]):
        with capture_logs() as logs:
            answer = await door.post([result(GOOD)], path=f"/api/crawl/webhook/{wrong}")
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), wrong
        assert [one["action"] for one in logs if one["log_level"] == "warning"] == ["crawl_webhook_refused"]
    other = crawl_webhook.secret_for("another installation", "service")
    assert (await door.post([result(GOOD)], path=f"/api/crawl/webhook/{other}")).status_code == 401
    assert await door.kept() == before


async def test_the_secret_is_in_no_log(door: Door) -> None:
    own = door.path.rpartition("/")[2]
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, structlog.processors.JSONRenderer()])
    with capture_logs() as logs:
        answers = [await door.post([result(GOOD)]), await door.post(b"{"), await door.post({"a": 1})]
    assert [one.status_code for one in answers] == [200, 400, 400]
    assert len(logs) >= 6
    async with door.pool.connection() as conn:
        await conn.execute("ALTER TABLE app_secrets RENAME TO app_secrets_gone")
        await conn.execute("ALTER TABLE crawl_deliveries RENAME TO crawl_deliveries_gone")
    with capture_logs() as faults:
        assert (await door.post([result(GOOD)])).status_code == 500
    logs += faults
    assert "http_database_error" in str(faults)
    assert own not in str(logs)
    assert any(one.get("route") == "/api/crawl/webhook/{secret}" for one in logs)


STRANGE = (
    "crawl-1-search-2-1",
    "crawl-1-product-1-1",
    "crawl-2-search-1-1",
    "crawl-1-search-1-2",
    "crawl-1-search-1",
    "crawl-1-search-1-1-1",
    "crawl-1-search-01-1",
    "crawl-1-search-1-0",
    "crawl--1-search-1-1",
    "crawl-1-search-1-1\n",
    "crawl-١-search-1-1",
    "crawl-999999999999999999-search-999999999999999999-9999",
    "crawl-99999999999999999999999-search-1-1",
    "x" * 100_000,
    "",
    "\x00",
)


async def test_an_unknown_id(door: Door) -> None:
    before = await door.kept()
    for reference in STRANGE:
        with capture_logs() as logs:
            answer = await door.post([result(reference)])
        assert (answer.status_code, answer.json()["title"]) == (404, "Not found"), reference[:100]
        assert [one["why"] for one in logs if one["action"] == "crawl_webhook_refused"] == ["unknown id"]
    assert await door.kept() == before


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "half": b'[{"post_id": "crawl-1-sea',
    "no JSON": b"<html>",
    "not text": b"\xff\xfe\x00",
    "another shape": b'{"a": 1}',
    "a number": b"7",
    "no result": b"[]",
    "too many": json.dumps([result(GOOD)] * 101).encode(),
    "deep": b"[" * 200_000,
    "deep and closed": b"[" * 50_000 + b"]" * 50_000,
}


async def test_a_broken_body(door: Door) -> None:
    before = await door.kept()
    for name, body in BROKEN.items():
        with capture_logs() as logs:
            answer = await door.post(body)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), name
        assert len(answer.content) < 1000
        assert [one["action"] for one in logs if one["log_level"] == "warning"] == ["crawl_webhook_refused"], name
    assert await door.kept() == before


async def test_odd_texts_are_kept_as_far_as_they_can_be(door: Door) -> None:
    odd = result(GOOD, success=False, html=None, error="a\x00b" + "x" * 100_000, request_id="r" * 5000)
    odd["html"] = ""
    answer = await door.post([odd])
    assert answer.status_code == 200
    async with door.pool.connection() as conn:
        row = await (await conn.execute("SELECT error, request_id FROM crawl_deliveries")).fetchone()
    assert row is not None
    assert row[0].startswith("ab")
    assert (len(row[0]), len(row[1])) == (499, 200), "cut, and without the NUL"


async def test_a_hundred_megabytes(door: Door) -> None:
    before = await door.kept()
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b" " * 1_000_000

    answer = await door.post(endless())
    assert (answer.status_code, answer.json()["title"]) == (413, "Body too large")
    assert sent < 20, "no more is read than is taken"
    assert await door.kept() == before


async def test_bombs(door: Door) -> None:
    """Small bodies that unpack to much more than is read; and packed ones that are fine."""
    before = await door.kept()
    bomb = gzip.compress(b" " * 50_000_000, 1)
    assert len(bomb) < 300_000
    answer = await door.post(bomb, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 413
    # Many small members in one file, and one that is cut.
    members = gzip.compress(b" " * 1_000_000) * 30
    assert (await door.post(members, headers={"Content-Encoding": "gzip"})).status_code == 413
    assert (await door.post(bomb[:1000], headers={"Content-Encoding": "gzip"})).status_code == 400
    assert (await door.post(zlib.compress(b"{}"), headers={"Content-Encoding": "deflate"})).status_code == 400
    assert (await door.post(b"\x8b\x00\x80", headers={"Content-Encoding": "br"})).status_code == 400
    assert await door.kept() == before
    fine = gzip.compress(json.dumps([result(GOOD)]).encode())
    assert (await door.post(fine, headers={"Content-Encoding": "gzip"})).status_code == 200


async def test_a_crawl_that_was_cancelled_takes_nothing_more(door: Door) -> None:
    async with door.pool.connection() as conn, conn.transaction():
        await crawls.cancel(conn, 1, now=START)
    before = await door.kept()
    assert (await door.post([result(GOOD)])).json() == {"taken": 0, "ignored": 1, "unknown": 0}
    assert await door.kept() == before


def test_secrets_of_two_keys_and_two_providers() -> None:
    old, new = new_key(), new_key()
    given = crawl_webhook.secret_for(old, "serpwatch")
    assert crawl_webhook.provider_of(given, (new, old), ("serpwatch", "other")) == "serpwatch"
    assert crawl_webhook.provider_of(given, (new,), ("serpwatch", "other")) is None
    assert crawl_webhook.provider_of(given, (new, old), ("other",)) is None
    assert given.isascii()
    assert given.replace("-", "").replace("_", "").isalnum()
    assert len(given) == 43


_PROBE = """
import http.client, sys, threading, time
port, path, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def ask(method, target, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, target, body)
    answer = connection.getresponse()
    answer.read()
    return answer.status

def healthz():
    started = time.monotonic()
    assert ask("GET", "/healthz") == 200
    return time.monotonic() - started

healthz()
statuses = []
posting = threading.Thread(target=lambda: statuses.append(ask("POST", path, b"[" + b"[]," * (size // 3) + b"[]]")))
posting.start()
slowest = 0.0
while posting.is_alive():
    slowest = max(slowest, healthz())
print(statuses[0], slowest)
"""


async def test_the_loop_goes_on_while_a_large_body_is_read(door: Door) -> None:
    """15 MB of `[],` took 13 s on the event loop; here they come over a real socket, from another process."""
    server = uvicorn.Server(uvicorn.Config(door.app, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        probe = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _PROBE, str(port), door.path, "15000000", stdout=asyncio.subprocess.PIPE
        )
        output, _ = await probe.communicate()
    finally:
        server.should_exit = True
        await serving
    status, slowest = output.split()
    assert (probe.returncode, int(status)) == (0, 400)
    assert float(slowest) < 1.5, "about 0.05 s on a machine that does nothing else"
    assert memory("VmHWM") - before < 100_000_000


def memory(name: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
