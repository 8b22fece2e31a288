"""Strict JSON: texts that any reader takes, wherever they are put.

A text is strict when it is valid UTF-8, one JSON value with white space around it at most, without halves of surrogate pairs, and
nested so little that it can still be read `DEPTH` levels down inside another.
"""

from __future__ import annotations

import codecs
from typing import Any, Generic, TypeVar

import msgspec

DEPTH = 100
"""Readers differ in how deep they go, and what is strict may become part of something larger."""

_OPEN, _CLOSE = b"[" * DEPTH, b"]" * DEPTH
_SLICE = 8192
"""Bytes that are looked at in one go: text of that size stays in the processor's cache, a page's would not."""

T = TypeVar("T")


class Decoder(Generic[T]):
    """Decodes strict JSON, and proves in the same walk that it is strict."""

    def __init__(self, target: type[T]) -> None:
        # Lists of exactly one: a text that closes a bracket that is not its own cannot open another in its stead.
        nested: Any = target
        for _ in range(DEPTH):
            nested = tuple[nested]
        self._decoder = msgspec.json.Decoder(nested)

    def decode(self, text: bytes) -> T:
        """The value. Raises msgspec.DecodeError (ValidationError where it is another one than was asked for), UnicodeDecodeError or
        RecursionError. What the errors say of the place in the text counts the levels around it."""
        _check_utf8(text)
        found = self._decoder.decode(b"%b%b%b" % (_OPEN, text, _CLOSE))
        for _ in range(DEPTH):
            found = found[0]
        value: T = found
        return value


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
