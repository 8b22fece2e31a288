"""Someone who receives alerts over HTTP, on a real socket, and behaves as told."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Got:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def signed_with(self, secret: str) -> bool:
        """The check that the documentation gives to receivers, written anew. `secret` is a text, not `whsec_…`."""
        prefix = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode()
        expected = base64.b64encode(hmac.new(secret.encode(), prefix + self.body, hashlib.sha256).digest()).decode()
        return hmac.compare_digest(f"v1,{expected}", self.headers["webhook-signature"])


@dataclass
class Receiver:
    """`answer` gives the status for the n-th request (from 0); None closes without one, a float waits that long before 200."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    answer: Callable[[int], int | float | None] = lambda _n: 200
    location: str = ""

    def url(self, path: str = "/hook", scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.got.append(Got(method, path, headers, body))
            status = self.answer(len(self.got) - 1)
            if isinstance(status, float):
                await asyncio.sleep(status)
                status = 200
            if status is not None:
                where = f"Location: {self.location}\r\n" if self.location else ""
                writer.write(f"HTTP/1.1 {status} X\r\n{where}Content-Length: 2\r\nConnection: close\r\n\r\nok".encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving(ssl: Any = None) -> AsyncIterator[Receiver]:
    found = Receiver()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=ssl)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
