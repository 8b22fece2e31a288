"""Limits on the structure of untrusted JSON, checked before any object is built from it. Pure.

A few bytes of JSON can become many bytes of objects: `{},` is three bytes in a body, and some 60 in a list. So a body is measured
first, by one validating pass in C and a few byte counts, none of which allocates anything. Only if these upper bounds exceed the
limit are the tokens counted one by one.
"""

from __future__ import annotations

import re

import msgspec

SMALL_BYTES = 1_000_000
"""Texts up to this size are not measured: whatever is built of them fits in the memory of one large answer."""
BYTES_PER_ELEMENT = 32
"""Least mean size of what is counted, in bytes. Of 150 recorded menus, stores and catalogs none has less than 49; 64 MB of
elements of this size still become less than 256 MB of objects."""

_skip = msgspec.json.Decoder(msgspec.Raw)
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[,:\[{]', re.DOTALL)
_WEIGHTS = {ord(","): 1, ord("["): 1, ord("{"): 1, ord(":"): -1}

_WINDOW = 262_144
_BEFORE = bytes.maketrans(b"[{ \t\n\r\\", b"," * 7)
"""Makes a comma of everything but a colon that may stand before a string, and of the backslash."""
_AFTER_COLON = re.compile(rb':(?=":)')
"""A colon before a quote and a colon; it takes in the first colon alone, since the last may begin another match."""


class TooManyValues(msgspec.ValidationError):
    """The text is JSON with more values than allowed."""


def check_elements(text: bytes) -> None:
    """Raises TooManyValues where a large text has more array elements, arrays and objects than one per BYTES_PER_ELEMENT; DecodeError
    or RecursionError for a large text that is no JSON."""
    if len(text) <= SMALL_BYTES:
        return
    _skip.decode(text)
    most = len(text) // BYTES_PER_ELEMENT
    if _most_elements(text) > most and _exceeds(text, most, members=False):
        raise TooManyValues(f"more than {most:,} array elements and objects in {len(text):,} bytes")


def check_values(text: bytes, most: int) -> None:
    """Raises TooManyValues where the text has more than `most` values of any kind; DecodeError or RecursionError where it is no
    JSON."""
    _skip.decode(text)
    if len(text) > most and _exceeds(text, most, members=True):
        raise TooManyValues(f"more than {most:,} values")


def _most_elements(text: bytes) -> int:
    """At least the number of array elements, arrays and objects in a valid text: the value itself, the commas, less those that precede
    a member of an object, and the opening brackets. Commas and brackets in strings count too; what may be no member does not count as
    one."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{") - (text.count(b'":') - _doubtful(text))


def _doubtful(text: bytes) -> int:
    """How often a quote and a colon need not be the end of a member's name: the quote is escaped, or may begin a string."""
    count = 0
    for start in range(0, len(text), _WINDOW):
        # Two bytes more: what begins in a window is counted in it.
        count += text[start : start + _WINDOW + 2].translate(_BEFORE).count(b',":')
    return count + sum(1 for _ in _AFTER_COLON.finditer(text))


def _exceeds(text: bytes, most: int, *, members: bool) -> bool:
    """Whether a valid text has more elements than that; with `members`, more elements and members of objects."""
    count = 0
    weights = {**_WEIGHTS, ord(":"): 0} if members else _WEIGHTS
    for token in _TOKEN.finditer(text):
        count += weights.get(text[token.start()], 0)
        if count > most:
            return True
    return False
