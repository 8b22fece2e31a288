"""Signed image URLs. Without a signature only presets are allowed, so that clients cannot fill the cache with arbitrary sizes. If
the server has no key, other parameters are allowed too, with a limited cost (`limits`).

s = base64url(HMAC-SHA256(key, "/img/" path "?" parameters)), without padding; the parameters in canonical form
(params.Params.canonical), then `expires` in seconds since 1970, if set. Of several keys the first signs, all are accepted.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from hashlib import sha256

from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.images.limits import MAX_UNSIGNED_RESULT_PIXELS, MAX_UNSIGNED_SOURCE_PIXELS
from menuwatch.images.params import BadParameters, Params, parse

_EXPIRES = re.compile(r"[0-9]{1,12}")


class NotSigned(MenuwatchError):
    """The URL needs a signature, and has none, a wrong one or an expired one."""


def _url(path: str, params: Params, expires: int | None, *more: str) -> str:
    parts = (params.canonical(), "" if expires is None else f"expires={expires}", *more)
    return f"/img/{path}?{'&'.join(part for part in parts if part)}"


def signature(key: str, path: str, params: Params, expires: int | None = None) -> str:
    """Signature of the path below `/img/`; `key` is 32 bytes in URL-safe base64."""
    digest = hmac.new(base64.urlsafe_b64decode(key), _url(path, params, expires).encode(), sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def signed(key: str, path: str, params: Params, expires: int | None = None) -> str:
    """The whole signed URL, from `/img/` on."""
    return _url(path, params, expires, f"s={signature(key, path, params, expires)}")


def check_cost(source: int, result: int) -> None:
    """Raises NotSigned if an unsigned URL would exceed these limits. Both in pixels."""
    for what, pixels, most in (
        ("the stored image has", source, MAX_UNSIGNED_SOURCE_PIXELS),
        ("the result would have", result, MAX_UNSIGNED_RESULT_PIXELS),
    ):
        if pixels > most:
            raise NotSigned(
                f"{what} {pixels / 1e6:.1f} million pixels; without a signature the limit is {most / 1e6:g} million, except for "
                "sizes in IMAGE_PRESETS. Set IMAGE_URL_KEY and sign the URL, or add the size to IMAGE_PRESETS"
            )


class UrlSigner:
    """Accepts signed URLs and presets; without keys all URLs."""

    def __init__(self, keys: Sequence[str], presets: Sequence[str]) -> None:
        """Raises Refused for an invalid preset."""
        self._keys = tuple(keys)
        self._presets = {""}
        for preset in presets:
            try:
                pairs = [(name, value) for name, _, value in (part.partition("=") for part in preset.split("&"))]
                self._presets.add(parse(pairs).canonical())
            except BadParameters as error:
                raise Refused(f"IMAGE_PRESETS: invalid entry {preset!r}: {error}") from error

    def check(self, path: str, params: Params, *, s: str | None, expires: str | None, now: float) -> bool:
        """Whether the image may have any cost; else the limits apply. Raises NotSigned; `now` in seconds since 1970."""
        if params.canonical() in self._presets and (not self._keys or (s is None and expires is None)):
            return True
        if not self._keys:
            return False
        if s is None:
            raise NotSigned("this URL needs a signature: only IMAGE_PRESETS work without")
        if expires is not None and not _EXPIRES.fullmatch(expires):
            raise NotSigned("expires must be a Unix timestamp")
        until = int(expires) if expires is not None else None
        given = s.encode("utf-8", "replace")
        # Check every key, so that the time does not reveal which one matched.
        good = [hmac.compare_digest(signature(key, path, params, until).encode(), given) for key in self._keys]
        if not any(good):
            raise NotSigned("the signature does not match this URL")
        if until is not None and until < now:
            raise NotSigned("the signature has expired")
        return True
