"""From the text of a variable to its value. Each parser raises ValueError with what is wrong and what would be right."""

from __future__ import annotations

import base64
import ipaddress
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path


def whole(low: int, high: int, unit: str = "") -> Callable[[str], int]:
    """A whole number from `low` to `high`."""

    def parse(text: str) -> int:
        right = f"it takes a whole number{unit and ' of ' + unit} from {low} to {high}"
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"{_wrong(text, unit, 'whole number')}; {right}") from None
        if not low <= value <= high:
            raise ValueError(f"that is too {'small' if value < low else 'large'}; {right}")
        return value

    return parse


def number(low: float, high: float, unit: str = "") -> Callable[[str], float]:
    """A number from `low` to `high`."""

    def parse(text: str) -> float:
        right = f"it takes a number{unit and ' of ' + unit} from {_plain(low)} to {_plain(high)}"
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"{_wrong(text, unit, 'number')}; {right}")
        if not low <= value <= high:
            raise ValueError(f"that is too {'small' if value < low else 'large'}; {right}")
        return value

    return parse


def _wrong(text: str, unit: str, kind: str) -> str:
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ% ")
    if unit and digits != text.strip() and _is_number(digits):
        return f"that is no {kind} (the unit is always {unit}, leave yours out)"
    if "," in text and _is_number(text.replace(",", "")):
        return f"that is no {kind} (write it without a comma{', with a point' if kind == 'number' else ''})"
    return f"that is no {kind}"


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
    """A file or folder; `~` is the home of whoever runs this."""
    return Path(text).expanduser()


def roles(text: str) -> tuple[str, ...]:
    """Roles, comma-separated; `any` for all of them, which is the empty tuple."""
    if text.strip().lower() in {"", "any"}:
        return ()
    return tuple(part.strip() for part in text.split(",") if part.strip())


def hashes(text: str) -> dict[str, str]:
    """A JSON object of texts."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError('must be a JSON object of operation name to hash, as {"FilteredProducts": "ee29c0…"}')
    return value


def robots(text: str) -> str:
    """What is made of a robots.txt."""
    value = text.strip().lower()
    if value not in ("respect", "ignore"):
        raise ValueError("must be `respect` or `ignore`")
    return value


def scaler(text: str) -> str:
    """What has more or fewer workers run."""
    value = text.strip().lower()
    if value not in ("auto", "local", "kubernetes"):
        raise ValueError("must be `auto`, `local` or `kubernetes`")
    return value


_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def label(text: str) -> str:
    """A name as Kubernetes gives them to namespaces and pods."""
    value = text.strip()
    if not _LABEL.fullmatch(value):
        raise ValueError("it takes small letters, digits and - inside, at most 63 of them")
    return value


def words(text: str) -> tuple[str, ...]:
    """Words, comma-separated, in lower case."""
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


def url(text: str) -> str:
    """The beginning of an address, without a slash at its end."""
    if not text.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    return text.rstrip("/")


def networks(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Addresses and networks, comma-separated."""
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        try:
            found.append(ipaddress.ip_network(part))
        except ValueError:
            try:
                meant = f"; the network that holds it is {ipaddress.ip_network(part, strict=False)}"
            except ValueError:
                meant = ""
            raise ValueError(
                f"{part!r} is no address or network{meant}; it takes them comma-separated, each as 10.0.0.0/8 or 2001:db8::1"
            ) from None
    return tuple(found)


_PUBLIC = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*|https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*"
)


def public_url(text: str) -> str:
    """Scheme, host and path of our own address, without a slash at its end. It goes into headers and links as it is."""
    found = text.strip().rstrip("/")
    if not _PUBLIC.fullmatch(found) or "/." in found.partition("://")[2]:
        raise ValueError("it takes http:// or https://, a host, and a path of plain letters, digits, - and _, if any")
    return found


def mail_url(text: str) -> str:
    """A mail server as Apprise writes it; what is raised does not show it, for it holds a password."""
    found = text.strip()
    if found.partition("://")[0].lower() not in ("mailto", "mailtos"):
        raise ValueError("it takes mailtos://USER:PASSWORD@HOST?from=ADDRESS, or mailto:// for a server without TLS")
    return found


_KEY_BYTES = 32
_FEWEST_DISTINCT = 16
"""Of 32 random bytes about 30 differ; a key with fewer than 16 was not made by chance."""


def keys(text: str) -> tuple[str, ...]:
    """Keys, comma-separated; what is raised holds none of them."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for place, key in enumerate(found, 1):
        which = f"key {place} of {len(found)}" if len(found) > 1 else "it"
        try:
            raw = base64.b64decode(key, altchars=b"-_", validate=True)
        except ValueError:
            raw = b""
        if len(raw) != _KEY_BYTES:
            raise ValueError(
                f"{which} is no key: 32 random bytes in URL-safe base64. `menuwatch proxies key` makes one"
            )
        if len(set(raw)) < _FEWEST_DISTINCT:
            raise ValueError(f"{which} is too easy to guess: `menuwatch proxies key` makes one that is not")
    return found
