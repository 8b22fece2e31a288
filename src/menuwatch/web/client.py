"""The client's address, also behind proxies.

X-Forwarded-For is a list to which every proxy appends the address of its client. Any client may send one, so it is read from the
right, and only as long as the entry was written by a trusted proxy (TRUSTED_PROXIES).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.types import Scope

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LONGEST_HOP = 64
"""Characters; an IPv6 address with a zone, brackets and a port has fewer."""


def client_address(scope: Scope, trusted: Sequence[Network]) -> Address | None:
    """The client's address. An invalid entry of a trusted proxy ("unknown") ends the walk: that proxy is then the nearest known
    address. None if there is no address at all, as on a Unix socket."""
    peer = scope.get("client")
    known = parsed(peer[0]) if peer else None
    if known is None:
        return None
    for hop in _from_the_right(scope["headers"]):
        if not is_trusted(known, trusted):
            break
        said = parsed(hop)
        if said is None:
            break
        known = said
    return known


def network_of(address: Address | None) -> str:
    """Key for rate limits: the IPv4 address, or the /64 network of an IPv6 address, since each customer has 2^64 of them."""
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)


def wider_network_of(address: Address | None) -> str | None:
    """The /48 network of an IPv6 address, which one customer may hold (2^16 of the networks counted); None for IPv4."""
    return str(ip_network((address, 48), strict=False)) if isinstance(address, IPv6Address) else None


def is_trusted(address: Address, trusted: Iterable[Network]) -> bool:
    """Whether the X-Forwarded-For entries of this address are trusted."""
    return any(address in network for network in trusted)


def parsed(text: str) -> Address | None:
    """`203.0.113.9`, `203.0.113.9:4711`, `2001:db8::1`, `[2001:db8::1]:443`; None for anything else. An IPv4 address in IPv6 clothes
    (`::ffff:203.0.113.9`) is the IPv4 address, and the zone of a link-local one is left out: it means something on its link only."""
    text = text.strip().strip('"')
    if len(text) > _LONGEST_HOP:
        return None
    if text.startswith("["):
        text, bracket, after = text[1:].partition("]")
        if not bracket or (after and not _is_port(after)):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not _is_port(":" + port):
            return None
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isascii() and text[1:].isdigit()


def _from_the_right(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    """The entries of every X-Forwarded-For, the last one first. A header that is sent twice is one list (RFC 9110 section 5.3)."""
    lines = [value for name, value in headers if name == b"x-forwarded-for"]
    for line in reversed(lines):
        for hop in reversed(line.decode("latin-1").split(",")):
            if hop.strip():
                yield hop
