"""The stream of what changes, over a real socket: what is written shows up under its topic, whoever wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from menuwatch.db.pool import Pool
from tests.api.shop import Shop
from tests.people import bearer


@pytest.fixture
async def address(app: FastAPI) -> AsyncIterator[str]:
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task


async def _heard(lines: AsyncIterator[str], topic: str) -> list[str]:
    """The events up to that one."""
    seen = []
    async with asyncio.timeout(10):
        async for line in lines:
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
                if seen[-1] == topic:
                    return seen
    raise AssertionError(f"the stream ended with {seen}")


async def test_a_change_is_heard_by_its_topic_and_only_what_was_asked_for(address: str, pool: Pool) -> None:
    headers = await bearer(pool)
    async with httpx.AsyncClient(base_url=address, headers=headers) as http:
        url = "/api/events?topics=tasks&topics=schedules"
        async with http.stream("GET", url) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.aiter_lines()
            await _heard(lines, "hello")
            # Until it has looked once there is nothing to compare with: what is written goes on until it is heard.
            writing = asyncio.create_task(_write(pool))
            seen = await _heard(lines, "tasks")
            writing.cancel()
            assert set(seen) <= {"tasks", "schedules"}
        late = await http.get("/api/events?seconds=0")
        assert (late.status_code, late.text.splitlines()[1]) == (200, "event: hello")


async def _write(pool: Pool) -> None:
    while True:
        async with pool.connection() as conn:
            await conn.execute(_ENQUEUE)
            await conn.execute("UPDATE dispensaries SET updated_at = now()")
        await asyncio.sleep(0.2)


_ENQUEUE = "INSERT INTO worker_tasks (role, payload) VALUES ('analytics_refresh', jsonb_build_object('n', random()))"


async def test_an_unknown_topic_is_refused_with_those_there_are(shop: Shop) -> None:
    answer = await shop.http.get("/api/events", params={"topics": "taks"})
    assert answer.status_code == 422
    assert "'tasks'" in answer.json()["errors"][0]["detail"]


async def test_head_ends_at_once(shop: Shop) -> None:
    answer = await shop.http.head("/api/events")
    assert (answer.status_code, answer.text) == (200, "")
