"""Where messages may go: out of the house. Whoever may write a rule may not thereby reach what only this machine reaches."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from urllib.parse import urlsplit

from menuwatch.core.errors import Refused

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Forbidden(Refused):
    """Nothing is sent to that address."""


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, also one of version 4 inside one of version 6."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None and not is_public(str(inner)):
            return False
    return ip.is_global and not ip.is_multicast


def may_be_public(host: str) -> bool:
    """Whether a host, as it is written, can be on the public internet; of a name only its addresses tell, at each sending.

    A name without a dot is one of the local network, and `2130706433` and `0x7f.1` are ways to write 127.0.0.1."""
    host = host.strip("[]").rstrip(".").lower()
    try:
        return is_public(host)
    except ValueError:
        pass
    try:
        return is_public(socket.inet_ntoa(socket.inet_aton(host)))
    except (OSError, UnicodeError):
        return "." in host and not host.endswith((".localhost", ".local", ".internal"))


async def resolve(host: str, port: int, *, allow_private: bool) -> list[str]:
    """The addresses of a host; raises Forbidden where one of them is not public, OSError where there is none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError(errno.EINVAL, "it is no name that a host can have") from None
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    if not allow_private:
        for address in addresses:
            if not is_public(address):
                raise Forbidden(
                    f"{host} is at {address}, which is not on the public internet: nothing is sent there unless ALERT_ALLOW_PRIVATE=1"
                )
    return addresses


def check_url(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a webhook's URL; raises Refused."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refused("the address of the webhook is no URL: write it as https://example.com/hook") from None
    if parts.scheme not in ("http", "https"):
        raise Refused(f"a webhook is called by http or https, not by {parts.scheme or 'nothing'!r}")
    if not parts.hostname or any(ord(sign) < 33 for sign in url):
        raise Refused("the address of the webhook names no host: write it as https://example.com/hook")
    if parts.username is not None or parts.password is not None:
        raise Refused("the address of the webhook holds a name or password: its messages are signed, so it needs none")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def check_literal(url: str, *, allow_private: bool) -> None:
    """Refuses a host that cannot be on the public internet, before anything is sent; names are looked up at each sending."""
    _, host, _ = check_url(url)
    if not allow_private and not may_be_public(host):
        raise Refused(f"{host} is not on the public internet: nothing is sent there unless ALERT_ALLOW_PRIVATE=1")


def shown(url: str) -> str:
    """A webhook's address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"
