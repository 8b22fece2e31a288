"""Strict JSON: texts that any parser accepts, wherever they are embedded.

A text is strict when it is valid UTF-8, a single JSON value with optional white space around it, without lone surrogates, and not
nested too deep to be read `DEPTH` levels down inside another.
"""

from __future__ import annotations

import codecs
from typing import Any, Generic, TypeVar

import msgspec

from menuwatch.core.json_bounds import check_elements

DEPTH = 100
"""Readers differ in how deep they go, and what is strict may become part of something larger."""

_OPEN, _CLOSE = b"[" * DEPTH, b"]" * DEPTH
_SLICE = 8192
"""Bytes scanned per step: text of this size stays in the CPU cache, that of a whole page does not."""

T = TypeVar("T")


class Decoder(Generic[T]):
    """Decodes strict JSON, and proves in the same walk that it is strict."""

    def __init__(self, target: type[T]) -> None:
        # Lists of exactly one: a text that closes a bracket that is not its own cannot open another in its stead.
        nested: Any = target
        for _ in range(DEPTH):
            nested = tuple[nested]
        self._decoder = msgspec.json.Decoder(nested)
        self._builds = target is not msgspec.Raw

    def decode(self, text: bytes) -> T:
        """Decodes `text`. Raises msgspec.DecodeError (ValidationError for a value of another type), UnicodeDecodeError or
        RecursionError. Paths in the error messages include the wrapping levels."""
        if self._builds:
            check_elements(text)
        _check_utf8(text)
        value: Any = self._decoder.decode(b"%b%b%b" % (_OPEN, text, _CLOSE))
        for _ in range(DEPTH):
            value = value[0]
        result: T = value
        return result


_any = Decoder(msgspec.Raw)


def is_strict(text: bytes) -> bool:
    """Whether it is strict JSON."""
    try:
        _any.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _check_utf8(text: bytes) -> None:
    if text.isascii():
        return
    view, start, end = memoryview(text), 0, len(text)
    while start < end:
        last = start + _SLICE >= end
        # What a slice cuts in two is left for the next.
        start += codecs.utf_8_decode(view[start : start + _SLICE], "strict", last)[1]
