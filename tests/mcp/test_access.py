"""Who is let in, over HTTP: tokens with their scopes, origins, and no sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from menuwatch.accounts import credentials, users
from menuwatch.accounts.model import ALLOWED, Permission, Role
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.mcp import http
from menuwatch.mcp.tools import TOOLS
from menuwatch.web.cookie import cookie_of
from tests.mcp.clients import LEGACY, MODERN, Failed, context, endpoint, over_http, over_stdio
from tests.users_fixture import NO_PASSWORD, bearer, token

OPERATORS = {
    "get_queue": "tasks:write",
    "list_failed_tasks": "tasks:write",
    "list_workers": "workers:write",
    "list_hosts": "hosts:write",
}
LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CALLING = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "search_stores", "arguments": {}}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def _post(
    port: int, headers: Mapping[str, str], message: Any = LISTING, method: str = "POST", path: str = "/mcp"
) -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as client:
        return await client.request(
            method, f"http://127.0.0.1:{port}{path}", headers=ACCEPT | dict(headers), json=message
        )


async def _names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_without_a_valid_token_nothing_is_answered(pool: Pool, tmp_path: Path) -> None:
    async with endpoint(context(pool, tmp_path)) as port:
        for headers in ({}, {"Authorization": "Bearer mw_1_00"}, {"Authorization": "Basic eDp5"}):
            for message in (LISTING, CALLING):
                answer = await _post(port, headers, message)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.headers["content-type"] == "application/problem+json"
                assert "tools" not in answer.text
        assert (await _post(port, await bearer(pool))).status_code == 200


async def test_a_session_of_the_dashboard_is_no_token(pool: Pool, tmp_path: Path) -> None:
    settings = Settings()
    await token(pool)
    async with pool.connection() as conn:
        user = await users.find_user(conn, "tester")
        opened = await credentials.open_session(
            conn, user.id, password_hash=NO_PASSWORD, idle_seconds=3600, longest_seconds=3600
        )
        assert opened is not None
        _, secret = opened
        principal = await credentials.of_session(conn, secret)
    assert principal is not None, "the dashboard would let it in"
    name = cookie_of(settings).name
    cookie = {"Cookie": f"{name}={secret}", "Sec-Fetch-Site": "same-origin"}
    async with endpoint(context(pool, tmp_path, settings)) as port:
        assert (await _post(port, cookie)).status_code == 401


async def test_a_token_without_the_scope_to_read_is_refused(pool: Pool, tmp_path: Path) -> None:
    async with endpoint(context(pool, tmp_path)) as port:
        answer = await _post(port, await bearer(pool, scopes=["tasks:write"]))
        assert (answer.status_code, "read" in answer.json()["detail"]) == (403, True)


async def test_a_revoked_token_is_refused_at_once(pool: Pool, tmp_path: Path) -> None:
    headers = await bearer(pool)
    async with endpoint(context(pool, tmp_path)) as port:
        assert (await _post(port, headers)).status_code == 200
        async with pool.connection() as conn:
            await conn.execute("UPDATE api_tokens SET revoked_at = now()")
        answer = await _post(port, headers)
        assert (answer.status_code, "revoked" in answer.json()["detail"]) == (401, True)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_tools_for_operators_need_their_scopes(pool: Pool, tmp_path: Path, mode: str) -> None:
    everything = set(TOOLS)
    async with endpoint(context(pool, tmp_path)) as port:
        viewer = await bearer(pool, name="viewer", role="viewer", scopes=["read"])
        async with over_http(port, viewer, mode) as asking:
            assert await _names(asking.client) == everything - OPERATORS.keys()
            for name in OPERATORS:
                with pytest.raises(MCPError, match="no tool") as refused:
                    await asking(name)
                assert name not in str(refused.value).partition(";")[2]
        # Scopes beyond the role of the owner give nothing.
        async with over_http(port, await bearer(pool, name="viewer", role="viewer"), mode) as asking:
            assert await _names(asking.client) == everything - OPERATORS.keys()
        for name, scope in OPERATORS.items():
            only = await bearer(pool, name="operator", role="operator", scopes=["read", scope])
            async with over_http(port, only, mode) as asking:
                shown = {one for one, needed in OPERATORS.items() if needed == scope}
                assert await _names(asking.client) & OPERATORS.keys() == shown
                assert (await asking(name))["items"] is not None


async def test_the_command_hides_tools_for_operators_from_viewers(database_url: str, tmp_path: Path) -> None:
    async with over_stdio(database_url, tmp_path, "--role", "viewer") as asking:
        assert await _names(asking.client) == set(TOOLS) - OPERATORS.keys()
        with pytest.raises(MCPError, match="no tool 'get_queue'"):
            await asking("get_queue")


def test_every_role_that_reads_has_the_tools_of_its_permissions() -> None:
    assert {tool.permissions - {Permission.READ} for tool in TOOLS.values() if tool.name in OPERATORS} == {
        frozenset({Permission(scope)}) for scope in OPERATORS.values()
    }
    assert all(Permission.READ in tool.permissions for tool in TOOLS.values())
    assert all(tool.permissions <= ALLOWED[Role.OPERATOR] for tool in TOOLS.values())


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        (None, "menus.example", 200),
        ("https://menus.example", "menus.example", 200),
        ("http://localhost:6274", "127.0.0.1", 200),
        ("http://[::1]:6274", "127.0.0.1", 200),
        ("http://menus.example", "menus.example", 403),
        ("https://evil.example", "menus.example", 403),
        # DNS rebinding: a name of theirs that points here.
        ("http://evil.example:8640", "evil.example:8640", 403),
        ("http://localhost.evil.example", "127.0.0.1", 403),
        ("null", "menus.example", 403),
        ("http://[", "menus.example", 403),
    ],
)
async def test_origins(pool: Pool, tmp_path: Path, origin: str | None, host: str, status: int) -> None:
    settings = Settings.from_env({"PUBLIC_URL": "https://menus.example"})
    headers = {"Host": host, **await bearer(pool), **({} if origin is None else {"Origin": origin})}
    async with endpoint(context(pool, tmp_path, settings)) as port:
        assert (await _post(port, headers)).status_code == status


async def test_requests_need_no_session_and_any_replica_answers(pool: Pool, tmp_path: Path) -> None:
    headers = await bearer(pool)
    start = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }  # fmt: skip
    async with endpoint(context(pool, tmp_path)) as one, endpoint(context(pool, tmp_path)) as other:
        begun = await _post(one, headers, start)
        assert (begun.status_code, "mcp-session-id" in begun.headers) == (200, False)
        later = {**headers, "MCP-Protocol-Version": "2025-06-18"}
        answers = [await _post(port, later, CALLING) for port in (other, one)]
        assert [answer.json()["result"]["structuredContent"]["items"] for answer in answers] == [[], []]


async def test_other_methods_and_paths(pool: Pool, tmp_path: Path) -> None:
    headers = await bearer(pool)
    async with endpoint(context(pool, tmp_path)) as port:
        for method in ("GET", "DELETE", "PUT"):
            answer = await _post(port, headers, None, method)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        async with httpx.AsyncClient() as http:
            body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "x": "' + b"x" * 1_100_000 + b'"}'
            more = {"Content-Type": "application/json", **ACCEPT, **headers}
            assert (await http.post(f"http://127.0.0.1:{port}/mcp", content=body, headers=more)).status_code == 413
            junk = await http.post(f"http://127.0.0.1:{port}/mcp", content=b"{", headers=more)
            assert junk.status_code == 400


async def test_many_first_requests_at_once(pool: Pool, tmp_path: Path) -> None:
    headers = await bearer(pool)
    async with endpoint(context(pool, tmp_path)) as port:
        answers = await asyncio.gather(*(_post(port, headers, CALLING) for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}


async def test_calls_beyond_a_few_wait_and_are_then_refused(
    pool: Pool, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_PATIENCE_SECONDS", 0.3)
    headers = await bearer(pool)
    async with endpoint(context(pool, tmp_path)) as port:
        async with await psycopg.AsyncConnection.connect(database_url) as other:
            await other.execute("LOCK TABLE dispensaries")
            calls = [asyncio.create_task(_post(port, headers, CALLING)) for _ in range(5)]
            done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            (refused,) = [task.result() for task in done]
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
            await other.rollback()
        assert [(await task).status_code for task in waiting] == [200] * 4
        assert (await _post(port, headers, CALLING)).status_code == 200


async def test_arguments_are_named_in_errors(pool: Pool, tmp_path: Path) -> None:
    async with endpoint(context(pool, tmp_path)) as port, over_http(port, await bearer(pool)) as asking:
        with pytest.raises(Failed) as refused:
            await asking("search_products", limit=900, state="Texas", colour="red")
        message = str(refused.value)
        assert "limit: must be at most 200, not 900" in message
        assert "state: unknown state 'Texas'" in message
        assert "did you mean TX?" in message
        assert "colour: no such argument; this tool takes: limit, cursor, q" in message
        with pytest.raises(Failed, match="product 77 does not exist"):
            await asking("get_product", product_id=77)
        with pytest.raises(Failed, match="near: unknown place 'Nowhere': give a city with its state"):
            await asking("search_stores", near="Nowhere")
        first = json.dumps(["x", [1]])
        with pytest.raises(Failed, match="cursor: not valid"):
            await asking("search_stores", cursor=first)
