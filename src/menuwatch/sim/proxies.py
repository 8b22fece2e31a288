"""The simulator's forward proxies on loopback ports: real servers that speak HTTP (CONNECT and absolute URIs), the same within TLS,
or SOCKS5, count what they do, and fail on demand in the ways that real proxies fail.

They relay to loopback addresses only: no simulated traffic ever reaches another machine. Names that exist nowhere (for example
`menus.invalid`) can be given an address, so that a client can only reach them by letting the proxy resolve them. A server in the
same process can look up through which proxy a connection came.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import random
import ssl
import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Literal, get_args
from urllib.parse import quote

from menuwatch.sim.proxy_tunnel import SOCKS_REPLIES, Fault, PlannedFault, Unreachable, fail_early, relay, tunnel
from menuwatch.sim.tcp import TcpServer

__all__ = ["Fault", "Protocol", "ProxyCounts", "ProxyFarm", "ProxyInfo", "start_proxies"]

Protocol = Literal["http", "https", "socks5"]
_SOCKS_REPLY = {403: 2, 429: 2, 502: 5, 503: 1, 504: 4}
"""The reply of RFC 1928 section 6 that is nearest to a status."""


_LOCATIONS = (
    ("AZ", "America/Phoenix"), ("CA", "America/Los_Angeles"), ("CO", "America/Denver"), ("IL", "America/Chicago"),
    ("MA", "America/New_York"), ("MI", "America/Detroit"), ("NV", "America/Los_Angeles"), ("OR", "America/Los_Angeles"),
)  # fmt: skip


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
        number: int,
        names: Mapping[str, str],
        origins: dict[int, int],
        *,
        tls: ssl.SSLContext | None = None,
        mitm: ssl.SSLContext | None = None,
    ) -> None:
        """For `names` and `origins` see `tunnel`, for `tls` and `mitm` see `ProxyFarm`."""
        if info.protocol == "https" and tls is None:
            raise ValueError("an https proxy needs a certificate")
        self.info = info
        self.counts = ProxyCounts()
        self._number = number
        self._names = names
        self._origins = origins
        self._mitm = mitm
        self._planned: PlannedFault | None = None
        self._server = TcpServer(self._serve, tls=tls if info.protocol == "https" else None)

    async def listen(self) -> None:
        """Starts to listen; with port 0 in `info` a free port is taken and noted."""
        await self._server.start(self.info.port, self.info.host)
        self.info = replace(self.info, port=self._server.port)

    async def silence(self) -> None:
        """Stops listening and drops every client."""
        await self._server.close()

    def plan(self, planned: PlannedFault | None) -> None:
        """The fault from now on, None for none. Raises ValueError for one that this proxy cannot have."""
        if planned is not None:
            if planned.kind in SOCKS_REPLIES and self.info.protocol != "socks5":
                raise ValueError(
                    f"{planned.kind!r} is what a SOCKS proxy answers; this one speaks {self.info.protocol}"
                )
            if planned.kind == "mitm" and self._mitm is None:
                raise ValueError("'mitm' needs a certificate to show")
        self._planned = planned

    def _fault(self) -> PlannedFault | None:
        """Takes the fault of the current request."""
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

    def _tunnel(
        self, host: str, port: int
    ) -> AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        return tunnel(host, port, names=self._names, origins=self._origins, proxy=self._number, count=self._count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(connections=1)
        if self.info.protocol == "socks5":
            await self._serve_socks(reader, writer)
        else:
            await self._serve_http(reader, writer)

    async def _serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        method, target, _version = first.split(b" ", 2)
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        fault = self._fault()
        if fault is not None:
            await fail_early(fault.kind, reader, writer)
        credentials = f"{self.info.username}:{self.info.password}".encode()
        expected = b"Basic " + base64.b64encode(credentials)
        credentials_given = next((value for name, value in headers if name == b"proxy-authorization"), b"")
        if credentials_given != expected or (fault is not None and fault.kind == "auth"):
            self._count(refused_logins=1)
            await _respond(writer, 407, 'Proxy-Authenticate: Basic realm="proxy"\r\n')
            return
        if fault is not None and fault.kind.startswith("connect_"):
            status = int(fault.kind.removeprefix("connect_"))
            await _respond(writer, status)
            return
        if method == b"CONNECT":
            host, port, opening = *_authority(target.decode("latin-1"), 443), b""
        else:
            if not target.startswith(b"http://"):
                await _respond(writer, 400)
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
                await relay(reader, writer, far_reader, far_writer, fault=fault, count=self._count)
        except Unreachable as error:
            await _respond(writer, error.status)

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
            await fail_early(fault.kind, reader, writer)
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
            async with self._tunnel(host, port) as (far_reader, far_writer):
                await _reply(writer, 0)
                if fault is not None and fault.kind == "mitm":
                    await self._impersonate(reader, writer)
                    return
                await relay(reader, writer, far_reader, far_writer, fault=fault, count=self._count)
        except Unreachable as error:
            await _reply(writer, _SOCKS_REPLY[error.status])

    async def _impersonate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Terminates the client's TLS here and responds to clients that accept the certificate; nothing goes to the target."""
        assert self._mitm is not None, "planned"
        try:
            await writer.start_tls(self._mitm)
            await reader.readuntil(b"\r\n\r\n")
        except ssl.SSLError:
            return  # refused, as it ought to be
        await _respond(writer, 200)


def _authority(text: str, default_port: int) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text, ""
    return host.strip("[]"), int(port) if port else default_port


async def _respond(writer: asyncio.StreamWriter, status: int, headers: str = "") -> None:
    reason = HTTPStatus(status).phrase
    writer.write(f"HTTP/1.1 {status} {reason}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def _reply(writer: asyncio.StreamWriter, code: int) -> None:
    writer.write(b"\x05" + bytes([code]) + b"\x00\x01\x00\x00\x00\x00\x00\x00")
    await writer.drain()


class ProxyFarm:
    """Several proxies, numbered from 0."""

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        mitm: ssl.SSLContext | None = None,
    ) -> None:
        """`tls`: what https proxies show their clients; `mitm`: what any proxy with that fault shows for its target."""
        self.names: dict[str, str] = {name.lower(): address for name, address in (names or {}).items()}
        self._tls = tls
        self._mitm = mitm
        self._proxies: list[SimProxy] = []
        self._origins: dict[int, int] = {}

    @property
    def infos(self) -> list[ProxyInfo]:
        """How to reach each."""
        return [proxy.info for proxy in self._proxies]

    async def add(self, info: ProxyInfo) -> int:
        """Starts one more proxy and returns its number."""
        index = len(self._proxies)
        proxy = SimProxy(info, index, self.names, self._origins, tls=self._tls, mitm=self._mitm)
        await proxy.listen()
        self._proxies.append(proxy)
        return index

    async def fault(self, index: int, kind: Fault | None, *, times: int | None = None, after_bytes: int = 300) -> None:
        """Breaks a proxy from now on, or mends it (None).

        `times` limits the fault to the next so many requests ("dead" knows no limit); `after_bytes` is how much of the
        answer, handshake included, "cut" lets pass, and "slow" in a tenth of a second. Raises ValueError for a fault that
        this proxy cannot have.
        """
        if kind is not None and kind not in get_args(Fault):
            raise ValueError(f"{kind!r} is not a fault; use one of: {', '.join(get_args(Fault))}")
        proxy = self._proxies[index]
        if kind == "dead":
            proxy.plan(None)
            await proxy.silence()
            return
        proxy.plan(PlannedFault(kind, times, after_bytes) if kind is not None else None)
        await proxy.listen()

    def origin_of(self, peer_port: int) -> int | None:
        """Which proxy holds the connection that comes from this local port, None when none does."""
        return self._origins.get(peer_port)

    def counts(self) -> list[ProxyCounts]:
        """What each has done so far."""
        return [proxy.counts for proxy in self._proxies]

    async def close(self) -> None:
        """Stops all of them."""
        await asyncio.gather(*(proxy.silence() for proxy in self._proxies))


async def start_proxies(
    n: int,
    *,
    seed: int = 0,
    protocols: Sequence[Protocol] = ("http", "socks5"),
    names: Mapping[str, str] | None = None,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    mitm: ssl.SSLContext | None = None,
) -> ProxyFarm:
    """Starts `n` proxies on free ports, the protocols in turn; users, passwords and locations follow from the seed.

    `names` gives loopback addresses to names that exist nowhere else; with `127.0.0.1:port` every requested port leads there. The
    protocol "https" needs `tls`; see `ProxyFarm`.
    """
    rng = random.Random(seed)
    farm = ProxyFarm(names, tls=tls, mitm=mitm)
    try:
        for index in range(n):
            state, timezone = rng.choice(_LOCATIONS)
            # Real passwords hold characters that mean something in a URL; so do these.
            password = "".join(rng.choices("abcdefghjkmnpqrstuvwxyz23456789", k=12)) + rng.choice(("", "@", ":", "/%"))
            await farm.add(
                ProxyInfo(
                    protocol=protocols[index % len(protocols)],
                    host=host,
                    port=0,
                    username=f"user{index}",
                    password=password,
                    state=state,
                    timezone=timezone,
                )
            )
    except BaseException:
        await farm.close()
        raise
    return farm
