"""Signed addresses of pictures: who has no key can ask for the presets only, so that nobody fills the cache with sizes of their own.

s = base64url(HMAC-SHA256(key, "/img/" path "?" parameters)), without padding; the parameters in their one form
(params.Params.canonical), then `expires`, a time in seconds since 1970, where there is one. Of several keys the first signs, all are
taken.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from hashlib import sha256

from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.imaging.params import BadParameters, Params, parse

_EXPIRES = re.compile(r"[0-9]{1,12}")


class NotSigned(MenuwatchError):
    """The address needs a signature, and has none, a wrong one or one that has expired."""


def _message(path: str, params: Params, expires: int | None) -> bytes:
    given = [params.canonical()] if params.canonical() else []
    given += [f"expires={expires}"] if expires is not None else []
    return f"/img/{path}?{'&'.join(given)}".encode()


def signature(key: str, path: str, params: Params, expires: int | None = None) -> str:
    """Of the path below `/img/`; `key` is 32 bytes in URL-safe base64."""
    digest = hmac.new(base64.urlsafe_b64decode(key), _message(path, params, expires), sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def signed(key: str, path: str, params: Params, expires: int | None = None) -> str:
    """The whole address, from `/img/` on."""
    given = [params.canonical()] if params.canonical() else []
    given += [f"expires={expires}"] if expires is not None else []
    return f"/img/{path}?{'&'.join([*given, f's={signature(key, path, params, expires)}'])}"


class Gatekeeper:
    """Lets pass what is signed, and the presets. Without keys everything passes."""

    def __init__(self, keys: Sequence[str], presets: Sequence[str]) -> None:
        """Raises Refused for a preset that means nothing."""
        self._keys = tuple(keys)
        self._presets = {""}
        for preset in presets:
            try:
                pairs = [(name, value) for name, _, value in (part.partition("=") for part in preset.split("&"))]
                self._presets.add(parse(pairs).canonical())
            except BadParameters as error:
                raise Refused(f"IMAGE_PRESETS: {preset!r} means nothing: {error}") from error

    def check(self, path: str, params: Params, *, s: str | None, expires: str | None, now: float) -> None:
        """Raises NotSigned; `now` in seconds since 1970."""
        if not self._keys:
            return
        if s is None and expires is None and params.canonical() in self._presets:
            return
        if s is None:
            raise NotSigned("this address must be signed: only presets are free")
        if expires is not None and not _EXPIRES.fullmatch(expires):
            raise NotSigned("expires is no time: it must be seconds since 1970")
        until = int(expires) if expires is not None else None
        given = s.encode("utf-8", "replace")
        # Every key is tried, so that the time it takes tells nothing.
        good = [hmac.compare_digest(signature(key, path, params, until).encode(), given) for key in self._keys]
        if not any(good):
            raise NotSigned("the signature is not of this address")
        if until is not None and until < now:
            raise NotSigned("the signature has expired")
