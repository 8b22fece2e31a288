"""How many connections may be open, and who has to go: uvicorn with our protocol before an app that answers when it is let."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

import uvicorn
from starlette.types import Receive, Scope, Send

from menuwatch.cli.serving import Server, listening
from menuwatch.config.settings import Settings
from menuwatch.web.connections import Connection, Connections, Limits
from menuwatch.web.request_middleware import Traffic

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\n"


class World:
    def __init__(self, port: int) -> None:
        self.port = port
        self.writers: list[asyncio.StreamWriter] = []
        self.traffic = Traffic()
        self.go = asyncio.Event()
        self.asked = asyncio.Semaphore(0)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.release()
        if scope["path"] != "/at-once":
            await self.go.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def client(self, data: bytes, source: str = "127.0.0.1") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))
        self.writers.append(writer)
        writer.write(data)
        await writer.drain()
        return reader

    def ended(self, reason: str) -> float:
        return self.traffic.registry.get_sample_value("menuwatch_http_connections_ended_total", {"reason": reason}) or 0


@contextlib.asynccontextmanager
async def world(most: int) -> AsyncIterator[World]:
    with listening(Settings(port=0)) as listener:
        found = World(listener.getsockname()[1])
        config = uvicorn.Config(
            found.app, http=Connection, lifespan="off", interface="asgi3", log_config=None, timeout_graceful_shutdown=1
        )
        server = Server(config, Connections(found.traffic, Limits(connections=most)))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            async with asyncio.timeout(20):
                yield found
        finally:
            found.go.set()
            for writer in found.writers:
                writer.close()
            server.end()
            await serving


async def status(reader: asyncio.StreamReader) -> int:
    line = re.match(rb"HTTP/1\.1 (\d+)", await reader.readuntil(b"\r\n\r\n"))
    assert line is not None
    return int(line[1])


async def test_a_new_connection_takes_the_place_of_a_half_sent_one_of_the_address_that_has_most() -> None:
    async with world(6) as here:
        answering = await here.client(ASK)
        await here.asked.acquire()
        idle = await here.client(ASK.replace(b"/", b"/at-once", 1), "127.0.0.3")
        assert await status(idle) == 204
        patient = await here.client(HALF, "127.0.0.2")
        flood = [await here.client(HALF) for _ in range(20)]
        # The first ones of the flood made room for its last ones: three of 20 are left beside the other three.
        for reader in flood[:17]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        assert here.ended("evicted") == 17
        assert not any(reader.at_eof() for reader in (answering, idle, patient, *flood[17:]))
        here.writers[2].write(b"Host: x\r\n\r\n")
        here.go.set()
        assert await status(patient) == 204
        assert await status(answering) == 204
        assert here.ended("refused") == 0


async def test_where_all_connections_are_being_answered_a_new_one_is_refused_at_once() -> None:
    async with world(3) as here:
        answering = [await here.client(ASK) for _ in range(3)]
        for _ in answering:
            await here.asked.acquire()
        refused = await here.client(ASK)
        assert await status(refused) == 503
        await refused.read()
        assert refused.at_eof()
        assert here.ended("refused") == 1
        here.go.set()
        assert [await status(reader) for reader in answering] == [204] * 3
