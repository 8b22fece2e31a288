"""A web server that fails in one way, over TCP or TLS: what a client of the real ones meets on a bad day.

HTTP/2 is spoken in frames of our own making (RFC 9113), just enough to be refused by.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import ssl
import struct
from functools import cache
from typing import Literal, get_args

Ill = Literal[
    "closed",  # nothing listens on the port
    "hang",  # takes the connection and says nothing, not even in TLS
    "tls_reset",  # resets the connection at the first bytes of the handshake
    "tls_alert",  # refuses every handshake
    "no_answer",  # takes the request and never answers
    "gone",  # takes the request and closes the connection
    "reset",  # takes the request and resets the connection
    "truncated",  # promises more than it sends
    "endless",  # sends a little, and then no more
    "no_http",  # answers with something else
    "garbled",  # says that the body is compressed, which it is not
    "large",  # a body above any limit, its length declared
    "large_chunked",  # the same with no word of its length
    "large_headers",  # headers without end
    "bomb",  # 200 MB of it in 200 KB of gzip
    "redirect",  # elsewhere
    "calm",  # HTTP/2: RST_STREAM, ENHANCE_YOUR_CALM
    "calm_goaway",  # HTTP/2: GOAWAY, ENHANCE_YOUR_CALM
    "refused_stream",  # HTTP/2: RST_STREAM, REFUSED_STREAM
    "stream_error",  # HTTP/2: RST_STREAM, INTERNAL_ERROR
    "goaway",  # HTTP/2: GOAWAY, NO_ERROR, and the connection closes
]

BOMB_BYTES = 200 * 1024 * 1024
_LARGE = 8 * 1024 * 1024
_OVER_HTTP2 = {"calm", "calm_goaway", "refused_stream", "stream_error", "goaway"}

_HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 1, 3, 4, 7
_END_STREAM = 1
_NO_ERROR, _INTERNAL_ERROR, _REFUSED_STREAM, _ENHANCE_YOUR_CALM = 0, 2, 7, 11
_PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


class FaultTarget:
    """Ill from `start` to `close`. `seen` counts the connections that were taken."""

    def __init__(self, ill: Ill, tls: ssl.SSLContext | None = None) -> None:
        """`tls` is needed for what happens in TLS or HTTP/2; the context is told here which protocols to offer."""
        if ill not in get_args(Ill):
            raise ValueError(f"{ill!r} is no illness: it is one of {', '.join(get_args(Ill))}")
        if tls is None and ill in _OVER_HTTP2:
            raise ValueError(f"{ill!r} needs a certificate: no browser speaks HTTP/2 without TLS")
        self.ill = ill
        self.port = 0
        self.seen = 0
        self._scheme = "http" if tls is None else "https"
        # These two never get as far as TLS.
        self._tls = None if ill in ("hang", "tls_reset", "tls_alert") else tls
        if tls is not None:
            tls.set_alpn_protocols(["h2"] if ill in _OVER_HTTP2 else ["http/1.1"])
        self._server: asyncio.Server | None = None
        self._held: socket.socket | None = None
        self._clients: set[asyncio.Task[None]] = set()

    def url(self, name: str = "127.0.0.1") -> str:
        """Where it is, by that name."""
        return f"{self._scheme}://{name}:{self.port}/"

    async def start(self) -> None:
        """Listens on a free port, or holds one on which nobody listens."""
        if self.ill == "closed":
            self._held = socket.socket()
            self._held.bind(("127.0.0.1", 0))
            self.port = int(self._held.getsockname()[1])
            return
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, ssl=self._tls)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stops to listen and drops every client."""
        if self._held is not None:
            self._held.close()
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
        self.seen += 1
        try:
            if self.ill == "hang":
                await reader.read()
            elif self.ill == "tls_reset":
                await reader.read(1)
                _reset(writer)
            elif self.ill == "tls_alert":
                await reader.read(1)
                writer.write(b"\x15\x03\x03\x00\x02\x02\x28")  # RFC 8446 section 6: fatal, handshake_failure
                await writer.drain()
            elif self.ill in _OVER_HTTP2:
                await self._http2(reader, writer)
            else:
                await reader.readuntil(b"\r\n\r\n")
                await self._http1(reader, writer)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # a client that has had enough
        finally:
            writer.close()

    async def _http1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match self.ill:
            case "no_answer":
                await reader.read()
            case "reset":
                _reset(writer)
            case "truncated":
                writer.write(_answer("Content-Length: 1000") + b'{"data":')
            case "endless":
                writer.write(_answer("Content-Length: 1000") + b'{"data":')
                await reader.read()
            case "no_http":
                writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
                await writer.drain()
                await reader.read()
            case "garbled":
                writer.write(_answer("Content-Length: 8", "Content-Encoding: gzip") + b'{"a": 1}')
            case "large":
                writer.write(_answer(f"Content-Length: {_LARGE}") + b"x" * _LARGE)
            case "large_chunked":
                writer.write(_answer("Transfer-Encoding: chunked"))
                for _ in range(_LARGE // 65_536):
                    writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
            case "large_headers":
                writer.write(_answer("Content-Length: 0")[:-2])
                for number in range(_LARGE // 65_536):
                    writer.write(f"X-{number}: ".encode() + b"x" * 65_536 + b"\r\n")
                    await writer.drain()
            case "bomb":
                packed = await asyncio.to_thread(bomb)
                writer.write(_answer(f"Content-Length: {len(packed)}", "Content-Encoding: gzip") + packed)
            case "redirect":
                writer.write(_answer("Location: http://192.0.2.1/", "Content-Length: 0", status="302 Found"))
        await writer.drain()

    async def _http2(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(_PREFACE)
        writer.write(_frame(_SETTINGS, 0, b""))
        while True:
            head = await reader.readexactly(9)
            await reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9], "big")
            if kind == _SETTINGS and not flags:
                writer.write(_frame(_SETTINGS, 0, b"", flags=1))
            if kind == _HEADERS and flags & _END_STREAM:
                break
        match self.ill:
            case "calm":
                writer.write(_frame(_RST_STREAM, stream, struct.pack("!I", _ENHANCE_YOUR_CALM)))
            case "refused_stream":
                writer.write(_frame(_RST_STREAM, stream, struct.pack("!I", _REFUSED_STREAM)))
            case "stream_error":
                writer.write(_frame(_RST_STREAM, stream, struct.pack("!I", _INTERNAL_ERROR)))
            case "calm_goaway":
                writer.write(_frame(_GOAWAY, 0, struct.pack("!II", 0, _ENHANCE_YOUR_CALM)))
            case _:
                writer.write(_frame(_GOAWAY, 0, struct.pack("!II", 0, _NO_ERROR)))
        await writer.drain()
        if self.ill not in ("goaway", "calm_goaway"):
            await reader.read()


@cache
def bomb(size: int = BOMB_BYTES) -> bytes:
    """So many bytes of nothing, a thousandth of that in gzip."""
    return gzip.compress(b"\0" * size, 9)


def _answer(*headers: str, status: str = "200 OK") -> bytes:
    lines = "".join(f"{line}\r\n" for line in headers)
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{lines}Connection: close\r\n\r\n".encode()


def _frame(kind: int, stream: int, payload: bytes, *, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes with a TCP reset."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
