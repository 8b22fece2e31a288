"""HEAD is GET without the body, in process and over a real socket."""

from __future__ import annotations

import asyncio

import httpx
import uvicorn
from fastapi import FastAPI

from tests.api.shop import Shop, item


async def test_head_is_get_without_a_body(shop: Shop) -> None:
    store = await shop.store()
    payload = await shop.crawl(store, 0, [item("a")])
    paths = (
        "/api/tasks",
        "/api/tasks/counts",
        "/api/stores",
        f"/api/payloads/{payload}/data",
        "/docs",
        "/healthz",
        "/api/tasks/99",
        "/nowhere",
    )
    for path in (*paths, "/api/tasks?limit=0"):
        full = await shop.http.get(path)
        head = await shop.http.head(path)
        assert (head.status_code, head.content) == (full.status_code, b""), path
        for name in ("content-type", "content-length", "etag", "cache-control"):
            if full.status_code == 200 and path != "/healthz":
                assert head.headers.get(name) == full.headers.get(name), (path, name)
    tag = (await shop.http.get("/api/stores")).headers["etag"]
    assert (await shop.http.head("/api/stores", headers={"If-None-Match": tag})).status_code == 304
    assert (await shop.http.head("/api/job-queue/enqueue")).status_code == 405
    assert 'method="HEAD",route="/api/stores"' in (await shop.http.get("/metrics")).text


async def test_over_a_socket_the_connection_goes_on(app: FastAPI, shop: Shop) -> None:
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=shop.http.headers) as http:
            for path in ("/api/products", "/api/tasks/99", "/docs"):
                head = await http.head(path)
                full = await http.get(path)
                assert (head.status_code, head.headers["content-length"]) == (full.status_code, str(len(full.content)))
    finally:
        server.should_exit = True
        await serving
