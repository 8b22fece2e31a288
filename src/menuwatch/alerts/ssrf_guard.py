"""SSRF guard: messages go to public addresses only, so that an alert rule cannot reach services inside the network."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import re
import socket
from urllib.parse import urlsplit

import httpx

from menuwatch.core.errors import Refused

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""The only IPv6 range assigned to hosts on the public internet."""
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        """
        0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
        192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20
        """.split(),
    )
)
"""Ranges of the IANA special-purpose registries. Whole ones: the few addresses in 192.0.0.0/24 and 2001::/23 that the registries call
globally reachable are services of the local network (a gateway's port control) or are not routed, and no receiver is at one."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Forbidden(Refused):
    """Nothing is sent to that address."""


def is_public(address: str) -> bool:
    """Whether an IP address is public, including IPv4 addresses embedded in IPv6."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if ip.sixtofour is not None and not is_public(str(ip.sixtofour)):
            return False
        if ip not in _GLOBAL_UNICAST:
            return False
    return ip.is_global and not any(ip in network for network in _SPECIAL)


def may_be_public(host: str) -> bool:
    """Whether a host, as written, can be on the public internet; names are resolved and checked at each sending.

    A name without a dot is local, and `2130706433` and `0x7f.1` are spellings of 127.0.0.1.
    """
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
    """The addresses of a host; raises Forbidden if one of them is not public, OSError if there is none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (UnicodeError, OverflowError):
        raise OSError(errno.EINVAL, "invalid host name or port") from None
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    if not allow_private:
        for address in addresses:
            if not is_public(address):
                raise Forbidden(
                    f"{host} resolves to {address}, which is not a public address: set ALERT_ALLOW_PRIVATE=1 to allow it"
                )
    return addresses


def check_url(url: str) -> tuple[str, str, int]:
    """Scheme, host (in ASCII) and port of a webhook's URL, as the HTTP client reads it; raises Refused."""
    try:
        parts = urlsplit(url)
        port = parts.port
        target = httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        raise Refused("invalid webhook URL: for example https://example.com/hook") from None
    if parts.scheme not in ("http", "https"):
        given = f"not {parts.scheme!r}" if parts.scheme else f"{url[:80]!r} has no scheme"
        raise Refused(f"webhook URLs use http or https, {given}: for example https://example.com/hook")
    if not parts.hostname or any(ord(sign) < 33 for sign in url):
        raise Refused("the webhook URL has no host: for example https://example.com/hook")
    if parts.username is not None or parts.password is not None or target.userinfo:
        raise Refused("the webhook URL must not contain a user or password; messages are signed instead")
    if port == 0:
        raise Refused("invalid port 0 in the webhook URL")
    return parts.scheme, check_host(target.raw_host.decode("ascii")), port or (443 if parts.scheme == "https" else 80)


def check_host(host: str) -> str:
    """The host as used for the lookup: a name in ASCII, or an IP address without brackets. Raises Refused for invalid ones."""
    try:
        if ":" in host or host.startswith("["):
            return str(ipaddress.IPv6Address(host.removeprefix("[").removesuffix("]")))
        name = httpx.URL(scheme="http", host=host).raw_host.decode("ascii")
        name.removesuffix(".").encode("idna")  # refuses labels that are empty or longer than 63 characters
    except (ValueError, httpx.InvalidURL):
        name = ""
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise Refused(f"invalid host {host[:100]!r}: use a name such as example.com, or an IP address")
    return name


def check_literal(url: str, *, allow_private: bool) -> None:
    """Refuses a host that cannot be on the public internet, before anything is sent; names are looked up at each sending."""
    _, host, _ = check_url(url)
    if not allow_private and not may_be_public(host):
        raise Refused(f"{host} is not a public address: set ALERT_ALLOW_PRIVATE=1 to allow it")


def shown(url: str) -> str:
    """A webhook's URL without possibly secret parts."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"
