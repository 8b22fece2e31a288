"""What goes through a simulated proxy: a connection to the target, on loopback only, and the bytes between the two sides."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from menuwatch.sim.proxy_faults import DROPS_PER_SECOND, Planned, Reset

_CHUNK = 65_536


class Refused(Exception):
    """The target cannot be reached; `status` is what an HTTP proxy would answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Count(Protocol):
    """Adds to what a proxy has done; see `ProxyCounts`."""

    def __call__(self, **more: int) -> None: ...


@contextlib.asynccontextmanager
async def tunnel(
    host: str, port: int, *, names: Mapping[str, str], opened: Callable[[int], Callable[[], None]], count: Count
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the target. `names` has the addresses of names; `opened` hears of its local port before the target can see the
    connection, and gives what is called at its end. Raises Refused."""
    address = names.get(host.lower(), "127.0.0.1" if host.lower() == "localhost" else host)
    if "." in address and address.rpartition(":")[2].isdigit() and ":" in address:
        # A name may stand for one port of the machine, whichever is asked for.
        address, _, told = address.rpartition(":")
        port = int(told)
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise Refused(502) from None  # a name that nobody knows
    if not loopback:
        raise Refused(403)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    far = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio knows it as TCP: no delay
    far.setblocking(False)
    try:
        far.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        forget = opened(far.getsockname()[1])
    except BaseException:
        far.close()
        raise
    try:
        try:
            await asyncio.get_running_loop().sock_connect(far, (address, port))
        except OSError:
            far.close()
            raise Refused(502) from None
        except BaseException:
            far.close()
            raise
        count(tunnels=1)
        reader, writer = await asyncio.open_connection(sock=far)
        try:
            yield reader, writer
        finally:
            writer.close()
    finally:
        forget()


async def relay(
    near_reader: asyncio.StreamReader,
    near_writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
    *,
    fault: Planned | None,
    count: Count,
) -> None:
    """Carries bytes both ways until the target has said its last. Raises Reset where the fault wants it."""

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

    # Once the target has said its last the client has nothing to wait for; the other direction ends with it.
    upward = asyncio.ensure_future(up())
    try:
        await down()
    finally:
        upward.cancel()
        await asyncio.gather(upward, return_exceptions=True)
