"""A web server with one fault, over TCP or TLS.

HTTP/2 frames (RFC 9113) are written by hand, just enough to refuse requests.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
from functools import cache
from typing import Literal, get_args

from menuwatch.sim.tcp import Reset, TcpServer

TargetFault = Literal[
    "closed",  # nothing listens on the port
    "hang",  # accepts the connection and sends nothing, not even a TLS handshake
    "tls_reset",  # resets the connection at the first bytes of the handshake
    "tls_alert",  # refuses every handshake
    "no_answer",  # takes the request and never answers
    "gone",  # takes the request and closes the connection
    "reset",  # takes the request and resets the connection
    "truncated",  # promises more than it sends
    "endless",  # sends a little, and then no more
    "no_http",  # answers with something else
    "garbled",  # declares a compressed body, but it is not compressed
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
_HTTP2_FAULTS = {"calm", "calm_goaway", "refused_stream", "stream_error", "goaway"}

_HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 1, 3, 4, 7
_END_STREAM = 1
_NO_ERROR, _INTERNAL_ERROR, _REFUSED_STREAM, _ENHANCE_YOUR_CALM = 0, 2, 7, 11
_PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


class FaultTarget:
    """Faulty from `start` to `close`. `seen` counts the connections accepted."""

    def __init__(self, fault: TargetFault, tls: ssl.SSLContext | None = None) -> None:
        """`tls` is needed for faults in TLS or HTTP/2; its ALPN protocols are set here."""
        if fault not in get_args(TargetFault):
            raise ValueError(f"{fault!r} is not a fault; use one of: {', '.join(get_args(TargetFault))}")
        if tls is None and fault in _HTTP2_FAULTS:
            raise ValueError(f"{fault!r} needs a certificate: no browser speaks HTTP/2 without TLS")
        self.fault = fault
        self.port = 0
        self.seen = 0
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            tls.set_alpn_protocols(["h2"] if fault in _HTTP2_FAULTS else ["http/1.1"])
        before_tls = fault in ("hang", "tls_reset", "tls_alert")
        self._server = TcpServer(self._serve, tls=None if before_tls else tls)
        self._reserved: socket.socket | None = None

    def url(self, name: str = "127.0.0.1") -> str:
        """Where it is, by that name."""
        return f"{self._scheme}://{name}:{self.port}/"

    async def start(self) -> None:
        """Listens on a free port, or reserves one without listening."""
        if self.fault == "closed":
            self._reserved = socket.socket()
            self._reserved.bind(("127.0.0.1", 0))
            self.port = int(self._reserved.getsockname()[1])
            return
        await self._server.start()
        self.port = self._server.port

    async def close(self) -> None:
        """Stops listening and drops every client."""
        if self._reserved is not None:
            self._reserved.close()
        await self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        if self.fault == "hang":
            await reader.read()
        elif self.fault == "tls_reset":
            await reader.read(1)
            raise Reset
        elif self.fault == "tls_alert":
            await reader.read(1)
            writer.write(b"\x15\x03\x03\x00\x02\x02\x28")  # RFC 8446 section 6: fatal, handshake_failure
            await writer.drain()
        elif self.fault in _HTTP2_FAULTS:
            await self._http2(reader, writer)
        else:
            await reader.readuntil(b"\r\n\r\n")
            await self._http1(reader, writer)

    async def _http1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match self.fault:
            case "no_answer":
                await reader.read()
            case "reset":
                raise Reset
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
        match self.fault:
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
        if self.fault not in ("goaway", "calm_goaway"):
            await reader.read()


@cache
def bomb(size: int = BOMB_BYTES) -> bytes:
    """`size` zero bytes, gzipped to about a thousandth."""
    return gzip.compress(b"\0" * size, 9)


def _answer(*headers: str, status: str = "200 OK") -> bytes:
    lines = "".join(f"{line}\r\n" for line in headers)
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{lines}Connection: close\r\n\r\n".encode()


def _frame(kind: int, stream: int, payload: bytes, *, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
