"""One forward proxy of the simulator: a real server that speaks HTTP (CONNECT and absolute URIs), the same within TLS, or SOCKS5,
and breaks on demand.

It relays to loopback addresses only, whatever it is asked for: nothing simulated ever reaches another machine.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote

from menuwatch.sim.proxy_faults import SOCKS_REPLIES, Planned, Reset, abort, misbehave
from menuwatch.sim.proxy_tunnel import Refused, relay, tunnel

Protocol = Literal["http", "https", "socks5"]
_HEAD_LIMIT = 65_536
_REASONS = {
    403: "Forbidden",
    429: "Too Many Requests",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
_SOCKS_REPLY = {403: 2, 429: 2, 502: 5, 503: 1, 504: 4}
"""The reply of RFC 1928 section 6 that is nearest to a status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyInfo:
    """How to reach one proxy, and where it claims to stand."""

    protocol: Protocol
    host: str
    port: int
    username: str
    password: str = field(repr=False)
    state: str
    timezone: str

    @property
    def url(self) -> str:
        """Its address with the login, percent-encoded, as a provider would hand it out."""
        login = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}"
        return f"{self.protocol}://{login}@{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyCounts:
    """What one proxy has done so far. `tunnels` counts connections to a target, `bytes_down` what came back through them."""

    connections: int = 0
    tunnels: int = 0
    refused_logins: int = 0
    faults: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class SimProxy:
    """One proxy. State: listening → (fault "dead": not listening → listening on the same port again) → closed."""

    def __init__(
        self,
        info: ProxyInfo,
        names: Mapping[str, str],
        opened: Callable[[int], Callable[[], None]],
        *,
        tls: ssl.SSLContext | None = None,
        mitm: ssl.SSLContext | None = None,
    ) -> None:
        """`tls` is the certificate that an https proxy shows its clients, `mitm` the one that the fault "mitm" shows for any
        target."""
        if info.protocol == "https" and tls is None:
            raise ValueError("an https proxy needs a certificate")
        self.info = info
        self._tls = tls if info.protocol == "https" else None
        self._mitm = mitm
        self.counts = ProxyCounts()
        self._names = names
        self._opened = opened
        self._planned: Planned | None = None
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Starts to listen; with port 0 in `info` a free port is taken and noted."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._accepted, self.info.host, self.info.port, limit=_HEAD_LIMIT, reuse_address=True, ssl=self._tls
            )
            self.info = replace(self.info, port=self._server.sockets[0].getsockname()[1])

    async def silence(self) -> None:
        """Stops to listen and drops every client."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    def plan(self, planned: Planned | None) -> None:
        """The fault from now on, None for none. Raises ValueError for one that this proxy cannot have."""
        if planned is not None:
            if planned.kind in SOCKS_REPLIES and self.info.protocol != "socks5":
                raise ValueError(
                    f"{planned.kind!r} is what a SOCKS proxy answers; this one speaks {self.info.protocol}"
                )
            if planned.kind == "mitm" and self._mitm is None:
                raise ValueError("'mitm' needs a certificate to show")
        self._planned = planned

    def _fault(self) -> Planned | None:
        """The fault of the request at hand, used up once."""
        planned = self._planned
        if planned is None:
            return None
        self._count(faults=1)
        if planned.times is not None:
            planned.times -= 1
            if planned.times == 0:
                self._planned = None
        return planned

    def _count(self, **more: int) -> None:
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + by for name, by in more.items()})

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(connections=1)
        try:
            if self.info.protocol == "socks5":
                await self._serve_socks(reader, writer)
            else:
                await self._serve_http(reader, writer)
        except Reset:
            abort(writer)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that breaks off or talks nonsense is its own business
        finally:
            writer.close()

    async def _serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        method, target, _version = first.split(b" ", 2)
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        fault = self._fault()
        if fault is not None:
            await misbehave(fault.kind, reader, writer)
        credentials = f"{self.info.username}:{self.info.password}".encode()
        expected = b"Basic " + base64.b64encode(credentials)
        given = next((value for name, value in headers if name == b"proxy-authorization"), b"")
        if given != expected or (fault is not None and fault.kind == "auth"):
            self._count(refused_logins=1)
            await _answer(writer, 407, "Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="proxy"\r\n')
            return
        if fault is not None and fault.kind.startswith("connect_"):
            status = int(fault.kind.removeprefix("connect_"))
            await _answer(writer, status, _REASONS[status])
            return
        if method == b"CONNECT":
            host, port, opening = *_authority(target.decode("latin-1"), 443), b""
        else:
            if not target.startswith(b"http://"):
                await _answer(writer, 400, "Bad Request")
                return
            authority, slash, path = target.removeprefix(b"http://").partition(b"/")
            host, port = _authority(authority.decode("latin-1"), 80)
            kept = [line for line in lines if not line.lower().startswith((b"proxy-", b"connection:"))]
            opening = b"\r\n".join([method + b" " + (slash or b"/") + path + b" HTTP/1.1", *kept, b"Connection: close"])
            opening += b"\r\n\r\n"
        try:
            async with tunnel(host, port, names=self._names, opened=self._opened, count=self._count) as (
                far_reader,
                far_writer,
            ):
                if method == b"CONNECT":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await writer.drain()
                    if fault is not None and fault.kind == "mitm":
                        await self._impersonate(reader, writer)
                        return
                else:
                    self._count(bytes_up=len(opening))
                    far_writer.write(opening)
                await relay(reader, writer, far_reader, far_writer, fault=fault, count=self._count)
        except Refused as refused:
            await _answer(writer, refused.status, _REASONS[refused.status])

    async def _serve_socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if version != 5 or 2 not in methods:  # RFC 1928: 2 is user and password
            self._count(refused_logins=1)
            writer.write(b"\x05\xff")
            await writer.drain()
            return
        writer.write(b"\x05\x02")
        _, length = await reader.readexactly(2)  # RFC 1929
        username = await reader.readexactly(length)
        (length,) = await reader.readexactly(1)
        password = await reader.readexactly(length)
        fault = self._fault()
        known = (username, password) == (self.info.username.encode(), self.info.password.encode())
        if not known or (fault is not None and fault.kind == "auth"):
            self._count(refused_logins=1)
            writer.write(b"\x01\x01")
            await writer.drain()
            return
        writer.write(b"\x01\x00")
        _, command, _, kind = await reader.readexactly(4)
        if kind == 3:
            (length,) = await reader.readexactly(1)
            host = (await reader.readexactly(length)).decode("latin-1")
        else:
            host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))
        (port,) = struct.unpack("!H", await reader.readexactly(2))
        if fault is not None:
            await misbehave(fault.kind, reader, writer)
            if fault.kind in SOCKS_REPLIES:
                await _reply(writer, SOCKS_REPLIES[fault.kind])
                return
            if fault.kind.startswith("connect_"):
                await _reply(writer, _SOCKS_REPLY[int(fault.kind.removeprefix("connect_"))])
                return
        if command != 1:
            await _reply(writer, 7)
            return
        try:
            async with tunnel(host, port, names=self._names, opened=self._opened, count=self._count) as (
                far_reader,
                far_writer,
            ):
                await _reply(writer, 0)
                if fault is not None and fault.kind == "mitm":
                    await self._impersonate(reader, writer)
                    return
                await relay(reader, writer, far_reader, far_writer, fault=fault, count=self._count)
        except Refused as refused:
            await _reply(writer, _SOCKS_REPLY[refused.status])

    async def _impersonate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Ends the client's TLS here and answers whoever accepts the certificate; nothing goes to the target."""
        assert self._mitm is not None, "planned"
        try:
            await writer.start_tls(self._mitm)
            await reader.readuntil(b"\r\n\r\n")
        except ssl.SSLError:
            return  # refused, as it ought to be
        await _answer(writer, 200, "OK")


def _authority(text: str, default_port: int) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text, ""
    return host.strip("[]"), int(port) if port else default_port


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str, headers: str = "") -> None:
    writer.write(f"HTTP/1.1 {status} {reason}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def _reply(writer: asyncio.StreamWriter, code: int) -> None:
    writer.write(b"\x05" + bytes([code]) + b"\x00\x01\x00\x00\x00\x00\x00\x00")
    await writer.drain()
