"""A small HTTP/1.1 server for loopback: keep-alive, Content-Length and chunked requests, answers written in parts as they are.

Not for the open: it trusts its clients to be no worse than clumsy, which those of a simulator are.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

_HEAD_LIMIT = 256 * 1024
_BODY_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """`headers` has lower-case names, `query` the first value of each parameter; `peer_port` is the client's side."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    peer_port: int


@dataclass(frozen=True, slots=True)
class Answer:
    """`wait` seconds pass before it is sent; with `cut`, only so many bytes of the body are, and then the connection is reset."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: int | None = None


Handler = Callable[[Request], Awaitable[Answer]]


class HttpServer:
    """One listening socket on 127.0.0.1."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None, "started"
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """Scheme, address and port."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self, port: int = 0) -> None:
        """Listens; 0 takes a free port. Raises OSError where the port is taken."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", port, limit=_HEAD_LIMIT, backlog=1024)

    async def close(self) -> None:
        """Stops to listen and drops every client."""
        if self._server is not None:
            self._server.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer_port = int(writer.get_extra_info("peername")[1])
        try:
            while True:
                request = await _read(reader, writer, peer_port)
                if request is None:
                    break
                answer = await self._handler(request)
                if answer.wait:
                    await asyncio.sleep(answer.wait)
                keep = request.headers.get("connection", "").lower() != "close"
                if not await _write(writer, request.method, answer, keep=keep) or not keep:
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that breaks off or talks nonsense is its own business
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer_port: int) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    method, target, _version = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _chunks(reader)
    elif length := int(headers.get("content-length", "0")):
        if not 0 < length <= _BODY_LIMIT:
            raise ValueError(length)
        body = await reader.readexactly(length)
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    return Request(method, parts.path, query, headers, body, peer_port)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        if size + sum(map(len, parts)) > _BODY_LIMIT:
            raise ValueError(size)
        parts.append((await reader.readexactly(size + 2))[:-2])
    while (await reader.readline()).strip():
        pass
    return b"".join(parts)


async def _write(writer: asyncio.StreamWriter, method: str, answer: Answer, *, keep: bool) -> bool:
    """Whether the connection can be used again."""
    extra = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n{extra}Connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
    )
    body = b"" if method == "HEAD" else answer.body
    if answer.cut is not None:
        writer.write(head.encode("latin-1") + body[: answer.cut])
        await writer.drain()
        _reset(writer)
        return False
    writer.writelines((head.encode("latin-1"), body))
    await writer.drain()
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes with a TCP reset, once what was written has left."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
