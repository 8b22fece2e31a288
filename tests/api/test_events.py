"""The stream of what changes, over a real socket: what is written shows up under its topic, whoever wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
from fastapi import FastAPI

from menuwatch.accounts import credentials, users
from menuwatch.accounts.model import Role
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Pool
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from tests.api.serving import serving
from tests.api.shop import Shop
from tests.users_fixture import NO_PASSWORD, bearer


@pytest.fixture
async def address(app: FastAPI) -> AsyncIterator[str]:
    dashboard = create_dashboard(app.state.system, Traffic(), app.state.live)
    async with serving(Apps(api=app, dashboard=dashboard, site=app)) as port:
        yield f"http://127.0.0.1:{port}"


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
            # After `hello` no change is missed, so one is enough.
            async with pool.connection() as conn:
                await conn.execute("UPDATE dispensaries SET updated_at = now()")
                await conn.execute(_ENQUEUE)
            assert await _heard(lines, "tasks") == ["tasks"]
        late = await http.get("/api/events?seconds=0")
        assert (late.status_code, late.text.splitlines()) == (
            200,
            ["retry: 1000", "", "event: hello", "data: live", ""],
        )


_ENQUEUE = "INSERT INTO worker_tasks (role, payload) VALUES ('analytics_refresh', jsonb_build_object('n', random()))"


async def test_an_unknown_topic_is_refused_with_those_there_are(shop: Shop) -> None:
    answer = await shop.http.get("/api/events", params={"topics": "taks"})
    assert answer.status_code == 422
    assert "tasks" in answer.json()["errors"][0]["detail"]


async def test_head_ends_at_once(shop: Shop) -> None:
    answer = await shop.http.head("/api/events")
    assert (answer.status_code, answer.text) == (200, "")


ENDINGS = {
    "logout": ("session", "DELETE FROM sessions WHERE user_id = %s"),
    "disabled": ("session", "UPDATE users SET disabled_at = now() WHERE id = %s"),
    "disabled_token": ("token", "UPDATE users SET disabled_at = now() WHERE id = %s"),
    "password_due": ("session", "UPDATE users SET must_change_password = true WHERE id = %s"),
    "expired": ("session", "UPDATE sessions SET expires_at = now() WHERE user_id = %s"),
    "idle": ("session", "UPDATE sessions SET seen_at = now() - interval '2 hours' WHERE user_id = %s"),
    "revoked": ("token", "UPDATE api_tokens SET revoked_at = now() WHERE user_id = %s"),
    "token_expired": ("token", "UPDATE api_tokens SET expires_at = now() WHERE user_id = %s"),
    "removed": ("token", "DELETE FROM users WHERE id = %s"),
    "unchanged": ("session", "SELECT %s"),
    "demoted": ("token", "UPDATE users SET role = 'viewer' WHERE id = %s"),
}
STAY = {"unchanged", "demoted"}
"""A viewer may listen, too."""


async def test_a_stream_ends_with_its_session_or_token(address: str, pool: Pool) -> None:
    async with AsyncExitStack() as stack:
        streams: dict[str, AsyncIterator[str]] = {}
        for name, (kind, _) in ENDINGS.items():
            headers = await (_session(pool, name) if kind == "session" else bearer(pool, name=name, role="operator"))
            http = await stack.enter_async_context(httpx.AsyncClient(base_url=address, headers=headers, timeout=30))
            path = "/admin/live?topics=images" if kind == "session" else "/api/events?topics=images"
            answer = await stack.enter_async_context(http.stream("GET", path))
            assert answer.status_code == 200, name
            streams[name] = answer.aiter_lines()
            await _heard(streams[name], "hello")
        async with pool.connection() as conn:
            for name, (_, change) in ENDINGS.items():
                cursor = await conn.execute("SELECT id FROM users WHERE name = %s", [name])
                await conn.execute(change, await cursor.fetchone())
        rest = {name: asyncio.create_task(_drained(lines)) for name, lines in streams.items()}
        done, _ = await asyncio.wait([rest[name] for name in rest.keys() - STAY], timeout=5)
        assert {name for name, task in rest.items() if task in done} == rest.keys() - STAY
        assert not any(rest[name].done() for name in STAY)
        for task in rest.values():
            task.cancel()


async def _session(pool: Pool, name: str) -> dict[str, str]:
    async with pool.connection() as conn, conn.transaction():
        user = await users.insert(conn, name, Role.OPERATOR, NO_PASSWORD, must_change=False)
        assert user is not None
        opened = await credentials.open_session(
            conn, user.id, password_hash=NO_PASSWORD, idle_seconds=3600, longest_seconds=3600
        )
    assert opened is not None
    return {"Cookie": f"menuwatch={opened[1]}"}


async def _drained(lines: AsyncIterator[str]) -> None:
    async for _ in lines:
        pass
