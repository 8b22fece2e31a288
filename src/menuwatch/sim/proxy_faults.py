"""How a simulated proxy breaks: the faults, and what a client sees of those that come before any answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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

_CHUNK = 65_536
# RFC 1928 section 6.
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
"""What a SOCKS proxy with that fault answers."""
DROPS_PER_SECOND = 10
"""Of an answer that is relayed slowly."""


class Reset(Exception):
    """The client's connection is to be reset."""


@dataclass(slots=True)
class Planned:
    """A fault and how long it lasts: `times` requests (None: for ever). "cut" comes after `after_bytes` of the answer, "slow" lets
    so many through ten times a second."""

    kind: Fault
    times: int | None
    after_bytes: int


def abort(writer: asyncio.StreamWriter) -> None:
    """Closes with a TCP reset, as a box that lost its state does."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def misbehave(kind: Fault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
