"""A small HTTP/1.1 server for loopback: keep-alive, Content-Length and chunked requests.

It is written by hand because responses must be truncated and reset at a given byte. Not for public use: it trusts its clients.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from menuwatch.sim.tcp import Reset, TcpServer

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
class Response:
    """`wait` seconds pass before it is sent; with `cut`, only so many bytes of the body are, and then the connection is reset."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: int | None = None


Handler = Callable[[Request], Awaitable[Response]]


class HttpServer(TcpServer):
    """One listening socket on 127.0.0.1."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(self._serve_requests, limit=_HEAD_LIMIT, tls=tls)
        self._handler = handler
        self._scheme = "http" if tls is None else "https"

    @property
    def url(self) -> str:
        """Scheme, address and port."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    async def _serve_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer_port = int(writer.get_extra_info("peername")[1])
        while (request := await _read(reader, writer, peer_port)) is not None:
            response = await self._handler(request)
            if response.wait:
                await asyncio.sleep(response.wait)
            keep = request.headers.get("connection", "").lower() != "close"
            await _write(writer, request.method, response, keep=keep)
            if not keep:
                break


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


async def _write(writer: asyncio.StreamWriter, method: str, response: Response, *, keep: bool) -> None:
    """Raises Reset after the part of a response that is to be cut off."""
    extra = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    head = (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\nContent-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n{extra}Connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
    )
    writer.writelines((head.encode("latin-1"), b"" if method == "HEAD" else response.body[: response.cut]))
    await writer.drain()
    if response.cut is not None:
        raise Reset
