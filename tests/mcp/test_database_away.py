"""Clients while the database is away: every call says so, names nothing of the installation, and works again afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import psycopg
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from menuwatch.db import embedded, migrate
from menuwatch.db.pool import open_pool
from menuwatch.mcp.resources import DICTIONARY, GLOSSARY
from tests.conftest import in_memory
from tests.mcp.clients import Asking, Failed, context, endpoint, over_stdio
from tests.users_fixture import bearer

AWAY = "the database cannot be reached at the moment: try again in a minute"
READING = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": DICTIONARY}}


class Server:
    """A database server of one test, which it may stop and start again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self.url = ""

    async def start(self) -> None:
        self.url, self._stack = await asyncio.to_thread(embedded.start, self._folder)

    async def stop(self) -> None:
        await asyncio.to_thread(self._stack.close)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(self.url)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory(prefix="menuwatch-tests-", dir=in_memory()) as place:
        own = Server(Path(place) / "data")
        await own.start()
        try:
            await asyncio.to_thread(migrate.migrate, own.url)
            yield own
        finally:
            await own.stop()


async def _read(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    return contents.text


async def _until(ready: Callable[[], Any]) -> Any:
    """The result once the call succeeds; each call waits for the database itself."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(MCPError, AssertionError):
                return await ready()


async def _refuse_read(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as refused:
        await _read(client, uri)
    assert (refused.value.code, refused.value.message, refused.value.data) == (types.INTERNAL_ERROR, AWAY, None)


async def _refuse_call(asking: Asking) -> None:
    with pytest.raises(Failed) as refused:
        await asking("search_stores")
    assert str(refused.value) == AWAY


@pytest.mark.slow
async def test_resources_over_both_transports(server: Server, tmp_path: Path) -> None:
    """Of one database, as each call waits for it for ten seconds."""
    async with (
        open_pool(server.url) as pool,
        endpoint(context(pool, tmp_path)) as port,
        httpx.AsyncClient(timeout=60) as http,
        over_stdio(server.url, tmp_path) as asking,
    ):
        client = asking.client
        used, unused = await bearer(pool), await bearer(pool)

        async def post(token: dict[str, str]) -> httpx.Response:
            headers = {"Accept": "application/json, text/event-stream", **token}
            return await http.post(f"http://127.0.0.1:{port}/mcp", json=READING, headers=headers)

        async def read() -> str:
            answer = (await post(used)).json()
            assert "result" in answer
            text: str = answer["result"]["contents"][0]["text"]
            return text

        dictionary, glossary = await _read(client, DICTIONARY), await _read(client, GLOSSARY)
        assert "menuwatch://dictionary/changes" in dictionary
        assert await read() == dictionary

        await server.stop()
        uris = (DICTIONARY, f"{DICTIONARY}/changes", f"{DICTIONARY}/nothing", DICTIONARY)
        known, unknown, *_ = await asyncio.gather(
            post(used), post(unused), _refuse_call(asking), *(_refuse_read(client, uri) for uri in uris)
        )
        assert known.json()["error"] == {"code": types.INTERNAL_ERROR, "message": AWAY}
        assert (unknown.status_code, unknown.json()["detail"]) == (503, AWAY), "nothing says whether the token is valid"
        assert await _read(client, GLOSSARY) == glossary, "it needs no database"
        assert DICTIONARY in {str(one.uri) for one in (await client.list_resources()).resources}
        with pytest.raises(MCPError, match="no such resource; use one of: ") as refused:
            await _read(client, "menuwatch://nothing")
        assert refused.value.code == types.INVALID_PARAMS

        before = server.url
        await server.start()
        assert server.url == before
        assert await _until(lambda: _read(client, DICTIONARY)) == dictionary
        assert await _until(read) == dictionary
        assert (await asking("search_stores"))["items"] == []
