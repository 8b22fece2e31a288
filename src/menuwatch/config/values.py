"""Parsers of environment variables. Each raises ValueError with what is wrong and what is valid."""

from __future__ import annotations

import base64
import ipaddress
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit


def whole(low: int, high: int, unit: str = "") -> Callable[[str], int]:
    """A whole number from `low` to `high`."""

    def parse(text: str) -> int:
        right = f"expected a whole number{unit and ' of ' + unit} from {low} to {high}"
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"{_wrong(text, unit, 'whole number')}; {right}") from None
        if not low <= value <= high:
            raise ValueError(f"too {'small' if value < low else 'large'}; {right}")
        return value

    return parse


def number(low: float, high: float, unit: str = "") -> Callable[[str], float]:
    """A number from `low` to `high`."""

    def parse(text: str) -> float:
        right = f"expected a number{unit and ' of ' + unit} from {_plain(low)} to {_plain(high)}"
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"{_wrong(text, unit, 'number')}; {right}")
        if not low <= value <= high:
            raise ValueError(f"too {'small' if value < low else 'large'}; {right}")
        return value

    return parse


def _wrong(text: str, unit: str, kind: str) -> str:
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ% ")
    if unit and digits != text.strip() and _is_number(digits):
        return f"not a {kind} (the unit is always {unit}: omit it)"
    if "," in text and _is_number(text.replace(",", "")):
        return f"not a {kind} (write it without a comma{', with a point' if kind == 'number' else ''})"
    return f"not a {kind}"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _plain(value: float) -> str:
    """Without an exponent, and without a point that nothing follows."""
    text = f"{Decimal(str(value)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def path(text: str) -> Path:
    """A file or folder; `~` is the home of the current user."""
    return Path(text).expanduser()


def _parts(text: str) -> list[str]:
    """Comma-separated values; raises ValueError if there is none: an empty list would mean something else."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ValueError("it is empty; unset the variable for its default")
    return parts


def name(text: str) -> str:
    """A name that is shown and stored."""
    value = text.strip()
    if not 1 <= len(value) <= 200 or not value.isprintable():
        raise ValueError("expected 1 to 200 printable characters")
    return value


def worker_id(text: str) -> str:
    """A name that is part of URLs."""
    value = name(text)
    if "/" in value:
        raise ValueError("it contains a slash, and is part of URLs; use another character")
    return value


def token(text: str) -> str:
    """A token for an HTTP header; errors do not show it."""
    value = text.strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("expected printable ASCII characters without spaces")
    return value


def one_of(*allowed: str, any_case: bool = False) -> Callable[[str], str]:
    """One of these words."""

    def parse(text: str) -> str:
        value = text.strip().lower() if any_case else text
        if value not in allowed:
            raise ValueError(f"use one of: {', '.join(allowed)}")
        return value

    return parse


robots = one_of("respect", "ignore", any_case=True)
scaler = one_of("auto", "local", "kubernetes", any_case=True)


def roles(text: str) -> tuple[str, ...]:
    """Roles, comma-separated; `any` for all of them, which is the empty tuple."""
    if text.strip().lower() in {"", "any"}:
        return ()
    return tuple(_parts(text))


_HASH = re.compile(r"([0-9a-f]{64})?")


def hashes(text: str) -> dict[str, str]:
    """A JSON object of texts."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(
        isinstance(item, str) and _HASH.fullmatch(item) for item in value.values()
    ):
        raise ValueError('must be a JSON object of operation name to hash, as {"FilteredProducts": "ee29c0…"}')
    return value


_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def label(text: str) -> str:
    """A name as Kubernetes gives them to namespaces and pods."""
    value = text.strip()
    if not _LABEL.fullmatch(value):
        raise ValueError("expected lowercase letters, digits and hyphens, at most 63")
    return value


def words(text: str) -> tuple[str, ...]:
    """Words, comma-separated, in lower case."""
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


_LABELS = r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*"
_HOST = re.compile(rf"(({_LABELS})|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?|\*\.{_LABELS}")


def hosts(text: str) -> tuple[str, ...]:
    """Hosts, comma-separated, in lower case: names or addresses, with a port where it is not the usual one, or `*.` and a name."""
    value = tuple(part.lower() for part in _parts(text))
    for part in value:
        if not _HOST.fullmatch(part):
            raise ValueError(
                f"{part!r} is not a host: expected a comma-separated list such as images.example.com or *.example.com"
            )
    return value


def url(text: str) -> str:
    """The beginning of an address, without a slash at its end."""
    if not text.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    _check_host(text)
    value = text.rstrip("/")
    if any(sign in value for sign in "?#@") or not _VISIBLE.fullmatch(value):
        raise ValueError(
            "expected a scheme and a host, with a port and a path if needed, for example https://example.com"
        )
    return value


_VISIBLE = re.compile(r"[!-~]+")


def path_of_url(text: str) -> str:
    """The path of a URL."""
    value = text.strip()
    if "://" in value or not _VISIBLE.fullmatch(value):
        raise ValueError("expected a path, for example /api-3/graphql")
    return value


def _check_host(text: str) -> None:
    """Raises ValueError for a URL without a host, or with an invalid port."""
    try:
        parts = urlsplit(text)
        if "[" in parts.netloc:
            ipaddress.IPv6Address(parts.hostname or "")
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("no host, or a port that is not 1 to 65535: for example https://example.com:8443")


def networks(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Addresses and networks, comma-separated."""
    parsed = []
    for part in _parts(text):
        try:
            parsed.append(ipaddress.ip_network(part))
        except ValueError:
            try:
                meant = f"; did you mean {ipaddress.ip_network(part, strict=False)}?"
            except ValueError:
                meant = ""
            raise ValueError(
                f"{part!r} is not an address or network{meant}: expected a comma-separated list such as 10.0.0.0/8, 2001:db8::1"
            ) from None
    return tuple(parsed)


_PUBLIC = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*|https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*"
)


def public_url(text: str) -> str:
    """Scheme, host and path of our own address, without a slash at its end. It goes into headers and links as it is."""
    value = text.strip().rstrip("/")
    if not _PUBLIC.fullmatch(value) or "/." in value.partition("://")[2]:
        raise ValueError("expected http:// or https://, a host, and optionally a path of letters, digits, - and _")
    _check_host(value)
    return value


_ENDPOINT = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def bucket(text: str) -> str:
    """Name of a bucket."""
    if not _BUCKET.fullmatch(text):
        raise ValueError("expected 3 to 63 lowercase letters, digits, dots and hyphens, without a path")
    return text


def prefix(text: str) -> str:
    """Path in a bucket, without slashes at its ends."""
    value = text.strip("/")
    if value and not _PREFIX.fullmatch(value):
        raise ValueError("expected letters, digits, -, _ and dots, with / between the parts; no part begins with a dot")
    return value


def endpoint(text: str) -> str:
    """Scheme, host and port of an object store. A login in it is refused: it would be logged."""
    value = text.strip().rstrip("/")
    if not _ENDPOINT.fullmatch(value):
        raise ValueError(
            "expected http:// or https:// and a host, without a login or a path: see S3_BUCKET and S3_PREFIX"
        )
    _check_host(value)
    return value


def ntfy_server(text: str) -> str:
    """Scheme, host and port of a server; empty for `off`."""
    value = text.strip().rstrip("/")
    if value.lower() == "off":
        return ""
    if not _ENDPOINT.fullmatch(value):
        raise ValueError("expected http:// or https:// and a host, without a path, for example https://ntfy.sh; or off")
    _check_host(value)
    return value


def mail_url(text: str) -> str:
    """A mail server as an Apprise URL; errors do not show it, since it holds a password."""
    value = text.strip()
    right = "expected mailtos://USER:PASSWORD@HOST?from=ADDRESS, or mailto:// for a server without TLS"
    if value.partition("://")[0].lower() not in ("mailto", "mailtos"):
        raise ValueError(right)
    try:
        _check_host(value)
    except ValueError:
        raise ValueError(right) from None
    return value


_KEY_BYTES = 32
_FEWEST_DISTINCT = 16
"""Of 32 random bytes about 30 differ; a key with fewer than 16 was not made by chance."""


def keys(text: str) -> tuple[str, ...]:
    """Comma-separated keys; errors do not show them."""
    value = tuple(_parts(text))
    for place, key in enumerate(value, 1):
        which = f"key {place} of {len(value)}" if len(value) > 1 else "it"
        try:
            raw = base64.b64decode(key, altchars=b"-_", validate=True)
        except ValueError:
            raw = b""
        if len(raw) != _KEY_BYTES:
            raise ValueError(
                f"{which} is not a key (32 random bytes in URL-safe Base64): generate one with `menuwatch proxies key`"
            )
        if len(set(raw)) < _FEWEST_DISTINCT:
            raise ValueError(f"{which} is too easy to guess: generate one with `menuwatch proxies key`")
    return value
