"""A client that goes away while it sends: no fault of ours, whatever it was sending, and to which face."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn
from structlog.testing import capture_logs

from menuwatch.db.pool import Pool
from tests.api.whole_server import Whole, whole
from tests.users_fixture import bearer
from tests.workers.waiting import until

FORMS = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=x"
BODIES = (
    (FORMS, b"a="),
    (PARTS, b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb'),
    ("application/json", b'{"a":'),
)
READ = {
    "/p/{address}/watch", "/admin/login", "/admin/alerts/new", "/admin/job-queue/enqueue", "/admin/stores/new", "/admin/crawls",
    "/admin/proxies/import", "/api/session", "/api/tasks", "/api/alerts", "/api/crawl/jobs",
}  # fmt: skip
"""Some of those that read what is sent, of every face."""


@pytest.fixture
def server(pool: Pool, tmp_path: Path) -> Whole:
    return whole(pool, tmp_path)


@pytest.fixture
async def port(server: Whole) -> AsyncIterator[int]:
    web = uvicorn.Server(uvicorn.Config(server.asgi, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    serving = asyncio.create_task(web.serve())
    try:

        async def started() -> bool:
            return web.started

        await until(started)
        yield web.servers[0].sockets[0].getsockname()[1]
    finally:
        web.should_exit = True
        await serving


async def _begin(port: int, path: str, kind: str, sent: bytes, headers: dict[str, str]) -> None:
    """Sends the beginning of a request and goes away."""
    said = {"Host": "x", "Sec-Fetch-Site": "same-origin", "Content-Type": kind, "Content-Length": "500", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + sent)
    await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_it_is_no_fault_for_any_route_or_kind_of_body(server: Whole, port: int, pool: Pool) -> None:
    admin = await bearer(pool)
    posts = sorted({path for method, path in server.routes() if method == "POST"})
    assert len(posts) > 80
    wanted = len(posts) * len(BODIES)
    with capture_logs() as logs:
        for kind, sent in BODIES:
            for start in range(0, len(posts), 10):
                more = {"Idempotency-Key": f"{kind}-{start}"} if kind == "application/json" and start % 20 else {}
                await asyncio.gather(
                    *(_begin(port, path, kind, sent, admin | more) for path in posts[start : start + 10])
                )

        async def all_counted() -> bool:
            return sum(server.counted().values()) >= wanted

        await until(all_counted, seconds=30)
    counted = server.counted()
    assert {key: count for key, count in counted.items() if not "200" <= key[1] < "500"} == {}
    assert [line for line in logs if line["log_level"] in ("error", "critical")] == []
    for route in READ:
        # A form that is sent as JSON is not read.
        assert counted.get((route, "499"), 0) >= 2, (route, {k: v for k, v in counted.items() if k[0] == route})
