"""Texts of people who type menus: kept raw, and beside it trimmed."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair: kept
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"  # half of one
    rb"|\\u0000"
    rb"|\\."  # any other escape, so that the u of an escaped backslash is not mistaken for one
)


def clean(text: str) -> str:
    """NFC, with every run of white space (no-break and narrow spaces too) one space, and none at the ends."""
    trimmed = " ".join(text.split())
    return trimmed if trimmed.isascii() else unicodedata.normalize("NFC", trimmed)


@lru_cache(maxsize=16_384)
def label(text: str) -> str:
    """`clean` for texts that many products share: brands, categories, units, options. Removes NUL, which no column takes."""
    return clean(text.replace("\0", ""))


@lru_cache(maxsize=4096)
def enum(text: str) -> str | None:
    """A word of the platform's own, untouched save for white space at its ends; None where nothing is left.

    Unknown words pass through: a new category is news, not an error.
    """
    return text.replace("\0", "").strip() or None


@lru_cache(maxsize=4096)
def effect_name(text: str) -> str:
    """`Pain-Relief`, `painRelief` and `Clear_Mind` in one spelling: `pain_relief`, `clear_mind`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text.replace("\0", "").strip())
    return re.sub(r"[\s\-_]+", "_", spaced).lower()


def describes(text: str) -> bool:
    """Whether a description says anything: "", "." and the like do not."""
    return any(c.isalnum() for c in text)


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
