"""Checks image URLs, which come from menus, against the hosts that images may be downloaded from. Pure."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote, urlsplit, urlunsplit

from menuwatch.images.limits import MAX_URL_BYTES

_SAFE = "/%:@!$&'()*+,;=-._~?[]"


class UrlNotAllowed(ValueError):
    """A URL that is not downloaded, with the reason."""


def allows(hosts: Collection[str], host: str) -> bool:
    """Whether a host, with or without its port, is allowed; `*.example.com` stands for every host below that one."""
    bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and ":" in host else host
    return any(
        allowed in (host, bare) or (allowed.startswith("*.") and bare.endswith(allowed[1:]) and bare != allowed[2:])
        for allowed in hosts
    )


def allowed_url(url: str, hosts: Collection[str]) -> tuple[str, str]:
    """(the normalized URL, its host). Raises UrlNotAllowed."""
    text = url.strip()
    if text.startswith("//"):
        text = f"https:{text}"
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise UrlNotAllowed("the URL contains control characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UrlNotAllowed(f"invalid URL: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise UrlNotAllowed(f"only http and https are supported, not {(parts.scheme or 'a URL without a scheme')[:20]}")
    if not parts.hostname or "@" in parts.netloc or "\\" in text:
        raise UrlNotAllowed("the URL has no host, or a user or password")
    host = parts.hostname if port is None else f"{parts.hostname}:{port}"
    if not allows(hosts, host):
        raise UrlNotAllowed(f"{host[:100]} is not among IMAGE_HOSTS")
    whole = urlunsplit((parts.scheme, host, quote(parts.path, _SAFE), quote(parts.query, _SAFE), ""))
    if len(whole.encode()) > MAX_URL_BYTES:
        raise UrlNotAllowed(f"the URL is longer than {MAX_URL_BYTES} bytes")
    return whole, host
