"""Escapes in JSON that no strict decoder takes, mended before anything is read."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair: kept
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"  # half of one
    rb"|\\u0000"
    rb"|\\."  # any other escape, so that the u of an escaped backslash is not mistaken for one
)


def mend_escapes(body: bytes) -> bytes:
    """JSON text with halves of surrogate pairs made U+FFFD and NUL left out.

    Emoji that were cut in the middle are valid JSON by grammar and refused by every strict decoder.
    """

    def mended(match: re.Match[bytes]) -> bytes:
        escape = match[0]
        if escape == rb"\u0000":
            return b""
        if len(escape) == 6:
            return rb"\ufffd"
        return escape

    return _ESCAPES.sub(mended, body)
