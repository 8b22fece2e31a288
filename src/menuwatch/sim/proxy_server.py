"""One forward proxy of the simulator: a real server that speaks HTTP (CONNECT and absolute URIs), the same within TLS, or SOCKS5,
and breaks on demand.

It relays to loopback addresses only, whatever it is asked for: nothing simulated ever reaches another machine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote

Protocol = Literal["http", "https", "socks5"]
Fault = Literal[
    "dead",  # nothing listens on the port
    "auth",  # 407, or the SOCKS refusal of a password
    "connect_403",  # CONNECT answered so, or the SOCKS reply nearest to it
    "connect_429",
    "connect_502",
    "connect_503",
    "connect_504",
    "socks_failure",  # the replies of RFC 1928 section 6; of a SOCKS proxy only
    "socks_ruleset",
    "socks_network_unreachable",
    "socks_host_unreachable",
    "socks_refused",
    "socks_ttl",
    "socks_command",
    "socks_address_type",
    "hang",  # takes the request and never answers
    "reset",  # resets the connection instead of answering
    "close",  # closes it instead of answering
    "garbage",  # answers with what no proxy says
    "cut",  # relays some bytes of the answer, then resets the connection
    "slow",  # relays the answer in drops
    "mitm",  # answers in the target's place, in TLS with a certificate of its own
]

_HEAD_LIMIT = 65_536
_CHUNK = 65_536
_REASONS = {
    403: "Forbidden",
    429: "Too Many Requests",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
# RFC 1928 section 6.
_SOCKS_REPLIES: Mapping[Fault, int] = {
    "socks_failure": 1,
    "socks_ruleset": 2,
    "socks_network_unreachable": 3,
    "socks_host_unreachable": 4,
    "socks_refused": 5,
    "socks_ttl": 6,
    "socks_command": 7,
    "socks_address_type": 8,
}
_SOCKS_REPLY = {403: 2, 429: 2, 502: 5, 503: 1, 504: 4}
_DROPS_PER_SECOND = 10


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


class _Refused(Exception):
    """The target cannot be reached; `status` is what an HTTP proxy would answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Reset(Exception):
    """The client's connection is to be reset."""


@dataclass(slots=True)
class Planned:
    """A fault and how long it lasts: `times` requests (None: for ever). "cut" comes after `after_bytes` of the answer, "slow" lets
    so many through ten times a second."""

    kind: Fault
    times: int | None
    after_bytes: int


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
            if planned.kind in _SOCKS_REPLIES and self.info.protocol != "socks5":
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
        except _Reset:
            _abort(writer)
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
            await _misbehave(fault.kind, reader, writer)
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
            async with self._tunnel(host, port) as (far_reader, far_writer):
                if method == b"CONNECT":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await writer.drain()
                    if fault is not None and fault.kind == "mitm":
                        await self._impersonate(reader, writer)
                        return
                else:
                    self._count(bytes_up=len(opening))
                    far_writer.write(opening)
                await self._relay(reader, writer, far_reader, far_writer, fault)
        except _Refused as refused:
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
            await _misbehave(fault.kind, reader, writer)
            if fault.kind in _SOCKS_REPLIES:
                await _reply(writer, _SOCKS_REPLIES[fault.kind])
                return
            if fault.kind.startswith("connect_"):
                await _reply(writer, _SOCKS_REPLY[int(fault.kind.removeprefix("connect_"))])
                return
        if command != 1:
            await _reply(writer, 7)
            return
        try:
            async with self._tunnel(host, port) as (far_reader, far_writer):
                await _reply(writer, 0)
                if fault is not None and fault.kind == "mitm":
                    await self._impersonate(reader, writer)
                    return
                await self._relay(reader, writer, far_reader, far_writer, fault)
        except _Refused as refused:
            await _reply(writer, _SOCKS_REPLY[refused.status])

    @contextlib.asynccontextmanager
    async def _tunnel(self, host: str, port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection to the target, known to the farm before the target can see it."""
        address = self._names.get(host.lower(), "127.0.0.1" if host.lower() == "localhost" else host)
        if "." in address and address.rpartition(":")[2].isdigit() and ":" in address:
            # A name may stand for one port of the machine, whichever is asked for.
            address, _, told = address.rpartition(":")
            port = int(told)
        try:
            loopback = ipaddress.ip_address(address).is_loopback
        except ValueError:
            raise _Refused(502) from None  # a name that nobody knows
        if not loopback:
            raise _Refused(403)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        far = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio knows it as TCP: no delay
        far.setblocking(False)
        try:
            far.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
            forget = self._opened(far.getsockname()[1])
        except BaseException:
            far.close()
            raise
        try:
            try:
                await asyncio.get_running_loop().sock_connect(far, (address, port))
            except OSError:
                far.close()
                raise _Refused(502) from None
            except BaseException:
                far.close()
                raise
            self._count(tunnels=1)
            reader, writer = await asyncio.open_connection(sock=far)
            try:
                yield reader, writer
            finally:
                writer.close()
        finally:
            forget()

    async def _impersonate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Ends the client's TLS here and answers whoever accepts the certificate; nothing goes to the target."""
        assert self._mitm is not None, "planned"
        try:
            await writer.start_tls(self._mitm)
            await reader.readuntil(b"\r\n\r\n")
        except ssl.SSLError:
            return  # refused, as it ought to be
        await _answer(writer, 200, "OK")

    async def _relay(
        self,
        near_reader: asyncio.StreamReader,
        near_writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
        fault: Planned | None,
    ) -> None:
        async def up() -> None:
            while data := await near_reader.read(_CHUNK):
                self._count(bytes_up=len(data))
                far_writer.write(data)
                await far_writer.drain()
            far_writer.write_eof()

        async def down() -> None:
            left = fault.after_bytes if fault is not None and fault.kind == "cut" else None
            drop = fault.after_bytes if fault is not None and fault.kind == "slow" else None
            while data := await far_reader.read(drop or _CHUNK):
                if drop is not None:
                    await asyncio.sleep(1 / _DROPS_PER_SECOND)
                if left is not None:
                    data, left = data[:left], left - len(data)
                self._count(bytes_down=len(data))
                near_writer.write(data)
                await near_writer.drain()
                if left is not None and left <= 0:
                    raise _Reset

        # Once the target has said its last the client has nothing to wait for; the other direction ends with it.
        upward = asyncio.ensure_future(up())
        try:
            await down()
        finally:
            upward.cancel()
            await asyncio.gather(upward, return_exceptions=True)


def _authority(text: str, default_port: int) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text, ""
    return host.strip("[]"), int(port) if port else default_port


def _abort(writer: asyncio.StreamWriter) -> None:
    """Closes with a TCP reset, as a box that lost its state does."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _misbehave(kind: Fault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if kind == "reset":
        raise _Reset
    if kind == "close":
        raise EOFError
    if kind == "garbage":
        writer.write(b"\x00\x9fI am not what you think I am\r\n\r\n")
        await writer.drain()
        raise EOFError
    if kind == "hang":
        while await reader.read(_CHUNK):  # until the client gives up
            pass
        raise _Reset


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str, headers: str = "") -> None:
    writer.write(f"HTTP/1.1 {status} {reason}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def _reply(writer: asyncio.StreamWriter, code: int) -> None:
    writer.write(b"\x05" + bytes([code]) + b"\x00\x01\x00\x00\x00\x00\x00\x00")
    await writer.drain()
