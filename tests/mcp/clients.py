"""Clients of the SDK, over standard input and output and over HTTP."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.mcp.http import McpEndpoint
from menuwatch.web.dependencies import AppContext
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from tests.api.serving import serving

MODERN = "2026-07-28"
LEGACY = "legacy"


class Failed(Exception):
    """The tool answered with an error."""


class Asking:
    """A session: calls tools and gives their answers, with every number exact."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls = 0

    async def __call__(self, name: str, **arguments: Any) -> Any:
        """The answer of a tool. The client compares it with the output schema; the text says the same as the structure."""
        self.calls += 1
        result = await self.client.call_tool(name, arguments)
        (text,) = result.content
        if result.is_error:
            raise Failed(text.text)
        assert json.loads(text.text) == result.structured_content
        return json.loads(text.text, parse_float=Decimal)

    async def all(self, name: str, **arguments: Any) -> list[Any]:
        """The rows of all pages."""
        rows: list[Any] = []
        cursor = None
        while True:
            answer = await self(name, **{"limit": 200} | arguments, **({} if cursor is None else {"cursor": cursor}))
            rows += answer["items"]
            cursor = answer["limits"]["next"]
            if cursor is None:
                return rows


@asynccontextmanager
async def over_stdio(url: str, home: Path, *arguments: str, mode: str = "auto") -> AsyncIterator[Asking]:
    """A session with `menuwatch mcp` on that database."""
    env = {**os.environ, "DATABASE_URL": url, "MENUWATCH_HOME": str(home)}
    program = [str(Path(sys.executable).with_name("menuwatch")), "mcp", *arguments]
    transport = stdio_client(StdioServerParameters(command=program[0], args=program[1:], env=env))
    async with Client(transport, mode=mode) as client:
        yield Asking(client)


def context(pool: Pool, storage: Path, settings: Settings | None = None) -> AppContext:
    """What the server works with."""
    return AppContext(pool=pool, archive=FileArchive(storage), platforms={}, settings=settings or Settings())


@asynccontextmanager
async def endpoint(app: AppContext) -> AsyncIterator[int]:
    """A server with `/mcp`; gives its port."""

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("only /mcp is asked")

    async with (
        McpEndpoint(app, Traffic()).running() as mcp,
        serving(Apps(api=elsewhere, dashboard=elsewhere, site=elsewhere, mcp=mcp)) as port,
    ):
        yield port


@asynccontextmanager
async def over_http(port: int, headers: dict[str, str], mode: str = "auto") -> AsyncIterator[Asking]:
    """A session with the server at that port."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http), mode=mode) as client,
    ):
        yield Asking(client)
