"""Faults of a simulated proxy, and its connections to targets, which are on loopback only."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from menuwatch.sim.tcp import Reset

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
    "garbage",  # responds with something that is not from a proxy
    "cut",  # relays some bytes of the answer, then resets the connection
    "slow",  # relays the answer in drops
    "mitm",  # answers in the target's place, in TLS with a certificate of its own
]

_CHUNK = 65_536
SOCKS_REPLIES: Mapping[Fault, int] = {
    "socks_failure": 1,
    "socks_ruleset": 2,
    "socks_network_unreachable": 3,
    "socks_host_unreachable": 4,
    "socks_refused": 5,
    "socks_ttl": 6,
    "socks_command": 7,
    "socks_address_type": 8,
}
"""Reply codes of RFC 1928 section 6."""
DROPS_PER_SECOND = 10
"""Of an answer that is relayed slowly."""


@dataclass(slots=True)
class PlannedFault:
    """A fault and how long it lasts: `times` requests (None: without end). "cut" comes after `after_bytes` of the answer, "slow" lets
    so many through ten times a second."""

    kind: Fault
    times: int | None
    after_bytes: int


async def fail_early(kind: Fault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Does what the fault does before there is an answer; nothing for one that comes later. Raises Reset, or EOFError to
    close."""
    if kind == "reset":
        raise Reset
    if kind == "close":
        raise EOFError
    if kind == "garbage":
        writer.write(b"\x00\x9fI am not what you think I am\r\n\r\n")
        await writer.drain()
        raise EOFError
    if kind == "hang":
        while await reader.read(_CHUNK):  # until the client gives up
            pass
        raise Reset


class Unreachable(Exception):
    """The target cannot be reached; `status` is the response of an HTTP proxy."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Count(Protocol):
    """Adds to the counters of a proxy; see `ProxyCounts`."""

    def __call__(self, **more: int) -> None: ...


@contextlib.asynccontextmanager
async def tunnel(
    host: str, port: int, *, names: Mapping[str, str], origins: dict[int, int], proxy: int, count: Count
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the target. `names` maps host names to addresses; `origins` has the proxy's number by the connection's local
    port, from before the target can see the connection until its end. Raises Unreachable."""
    address = names.get(host.lower(), "127.0.0.1" if host.lower() == "localhost" else host)
    if "." in address and address.rpartition(":")[2].isdigit() and ":" in address:
        # A name may map to one local port, whatever port is requested.
        address, _, mapped_port = address.rpartition(":")
        port = int(mapped_port)
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise Unreachable(502) from None  # unknown name
    if not loopback:
        raise Unreachable(403)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    far = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio knows it as TCP: no delay
    far.setblocking(False)
    local_port = 0
    try:
        try:
            far.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
            local_port = far.getsockname()[1]
            origins[local_port] = proxy
            await asyncio.get_running_loop().sock_connect(far, (address, port))
        except BaseException as error:
            far.close()
            if isinstance(error, OSError):
                raise Unreachable(502) from None
            raise
        count(tunnels=1)
        reader, writer = await asyncio.open_connection(sock=far)
        try:
            yield reader, writer
        finally:
            writer.close()
    finally:
        origins.pop(local_port, None)


async def relay(
    near_reader: asyncio.StreamReader,
    near_writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
    *,
    fault: PlannedFault | None,
    count: Count,
) -> None:
    """Relays bytes in both directions until the target has sent everything. Raises Reset if the fault requires it."""

    async def up() -> None:
        while data := await near_reader.read(_CHUNK):
            count(bytes_up=len(data))
            far_writer.write(data)
            await far_writer.drain()
        far_writer.write_eof()

    async def down() -> None:
        left = fault.after_bytes if fault is not None and fault.kind == "cut" else None
        drop = fault.after_bytes if fault is not None and fault.kind == "slow" else None
        while data := await far_reader.read(drop or _CHUNK):
            if drop is not None:
                await asyncio.sleep(1 / DROPS_PER_SECOND)
            if left is not None:
                data, left = data[:left], left - len(data)
            count(bytes_down=len(data))
            near_writer.write(data)
            await near_writer.drain()
            if left is not None and left <= 0:
                raise Reset

    # Once the target has closed its side the client has nothing to wait for; the other direction ends with it.
    upward = asyncio.ensure_future(up())
    try:
        await down()
    finally:
        upward.cancel()
        await asyncio.gather(upward, return_exceptions=True)
