"""Which addresses pictures are downloaded from. Menus are other people's texts: what they name is asked for only on hosts that are
meant for it. Pure."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote, urlsplit, urlunsplit

LONGEST = 2000
"""Bytes of an address."""
_SAFE = "/%:@!$&'()*+,;=-._~?[]"


class Unfit(ValueError):
    """An address that is not asked for; says why."""


def allows(hosts: Collection[str], host: str) -> bool:
    """Whether pictures may come from a host, with or without its port; `*.example.com` stands for every host below that one."""
    bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and ":" in host else host
    return any(
        allowed in (host, bare) or (allowed.startswith("*.") and bare.endswith(allowed[1:]) and bare != allowed[2:])
        for allowed in hosts
    )


def admitted(url: str, hosts: Collection[str]) -> tuple[str, str]:
    """(the address as it is asked for, its host). Raises Unfit."""
    text = url.strip()
    if text.startswith("//"):
        text = f"https:{text}"
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise Unfit("the address holds control characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise Unfit(f"it is no address: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise Unfit(f"only http and https are asked, not {(parts.scheme or 'an address without a scheme')[:20]}")
    if not parts.hostname or "@" in parts.netloc or "\\" in text:
        raise Unfit("the address has no host, or more than that before its path")
    host = parts.hostname if port is None else f"{parts.hostname}:{port}"
    if not allows(hosts, host):
        raise Unfit(f"{host[:100]} is not among IMAGE_HOSTS")
    whole = urlunsplit((parts.scheme, host, quote(parts.path, _SAFE), quote(parts.query, _SAFE), ""))
    if len(whole.encode()) > LONGEST:
        raise Unfit(f"the address is longer than {LONGEST} bytes")
    return whole, host
