"""Cleans text typed by people who write menus; the raw text is stored beside it."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from html import unescape

_BREAK = re.compile(r"<\s*(?:br|/?p|/?div|/?li|/?ul|/?ol|/?h[1-6]|/?tr)\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->", re.DOTALL)
_APART = re.compile(r"[^0-9a-z]+")


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


def describes(text: str) -> bool:
    """Whether a description says anything: "", "." and the like do not."""
    return any(c.isalnum() for c in text)


def plain(html: str) -> str:
    """The text of a description that may be HTML: tags gone, entities read, trimmed as `clean` does."""
    if "<" in html:
        html = _TAG.sub("", _BREAK.sub(" ", html))
    return clean(unescape(html) if "&" in html else html)


@lru_cache(maxsize=8192)
def key(text: str) -> str:
    """A word as it is looked up: `Pre-Rolls`, `PRE_ROLL` and `pre roll` are `pre roll`."""
    words = _APART.sub(" ", unicodedata.normalize("NFKC", text).casefold().replace("&", " and ")).split()
    return " ".join(_singular(word) for word in words)


def _singular(word: str) -> str:
    """`gummy` and `gummies`, `cookie` and `cookies` in one spelling, which need not be one that people use."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return word[:-2] + "y" if len(word) > 3 and word.endswith("ie") else word


LONGEST_WORD = 40
MOST_WORDS = 40
"""Maximum words of a name that are compared or indexed."""

_NO_WORD = re.compile(r"[\W_]+")


@lru_cache(maxsize=16_384)
def words(text: str) -> tuple[str, ...]:
    """Words of a text in comparable form: lower case, without accents, split at anything but letters and digits."""
    plain = text.casefold()
    if not plain.isascii():
        plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    # Apostrophes are removed (jack's, jacks); other punctuation separates words.
    found = _NO_WORD.sub(" ", plain.replace("'", "").replace("’", "")).split()
    return tuple(word[:LONGEST_WORD] for word in found[:MOST_WORDS])


def slug(text: str) -> str:
    """URL slug of a text; empty if it has no letter or digit."""
    return "-".join(words(text))[:80].strip("-")


def is_one_error_apart(a: str, b: str) -> bool:
    """Whether two words have Damerau-Levenshtein distance 1: one letter wrong, missing, extra, or two neighbours swapped."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    x, y = a[start:], b[start:]
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or (x[:2] == y[1::-1] and x[2:] == y[2:] and len(x) > 1)
