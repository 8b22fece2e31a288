"""A target server that does as it is told and remembers who asked, through which proxy, with which headers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from menuwatch.sim.proxies import ProxyFarm

NAME = "menus.invalid"
"""A name that no resolver knows (RFC 2606): only the simulated proxies give it an address."""


@dataclass(frozen=True)
class Seen:
    """One request as it arrived. `proxy` is the number of the proxy that it came through, None for a direct connection."""

    proxy: int | None
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:
        return next(value for key, value in self.headers if key.lower() == name)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.headers]


@dataclass(frozen=True)
class Reply:
    """What to answer. `how`: whole, never, cut off in the middle, or nothing at all."""

    status: int = 200
    body: bytes = b'{"ok": true}'
    headers: Mapping[str, str] = field(default_factory=dict)
    how: Literal["whole", "hang", "short", "close"] = "whole"


class Target:
    """Answers with what `script` returns for each request, by default 200."""

    def __init__(self, farm: ProxyFarm, scheme: str) -> None:
        self.farm = farm
        self.scheme = scheme
        self.port = 0
        self.script: Callable[[Seen], Reply] = lambda _seen: Reply()
        self.seen: list[Seen] = []
        self.peers: list[int] = []
        self.arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def url(self, path: str = "/") -> str:
        return f"{self.scheme}://{NAME}:{self.port}{path}"

    def replies(self, *replies: Reply) -> None:
        """These in turn, then 200 for ever."""
        left = list(replies)
        self.script = lambda _seen: left.pop(0) if left else Reply()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        self.peers.append(port)
        try:
            while await self._one(reader, writer, port):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        method, path, _ = first.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        seen = Seen(self.farm.origin_of(port), method, path, headers, await reader.readexactly(length))
        self.seen.append(seen)
        self.arrived.set()
        reply = self.script(seen)
        if reply.how == "hang":
            await reader.read()
        if reply.how in ("hang", "close"):
            return False
        answer = {"Content-Length": str(len(reply.body)), "Content-Type": "application/json"} | dict(reply.headers)
        top = f"HTTP/1.1 {reply.status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in answer.items())
        body = reply.body[: len(reply.body) // 2] if reply.how == "short" else reply.body
        writer.write(top.encode() + b"\r\n" + body)
        await writer.drain()
        return reply.how == "whole"

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def serving(farm: ProxyFarm, context: ssl.SSLContext | None = None) -> AsyncIterator[Target]:
    target = Target(farm, "https" if context else "http")
    server = await asyncio.start_server(target.accept, "127.0.0.1", 0, ssl=context)
    target.port = server.sockets[0].getsockname()[1]
    try:
        yield target
    finally:
        server.close()
        await target.close()
