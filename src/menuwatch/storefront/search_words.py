"""Search words of items, and typing errors in them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from menuwatch.catalog.taxonomy.text import words


def document(name: str, brand: str | None, more: Iterable[str | None]) -> tuple[str, str, str]:
    """The search texts of an item by rank: its name, its brand, its kind."""
    kinds = dict.fromkeys(word for text in more if text for word in words(text))
    return " ".join(words(name)), " ".join(dict.fromkeys(words(brand or ""))), " ".join(kinds)


def spellings(word: str) -> set[str]:
    """The word and its variants with one letter deleted; short words and numbers only as they are, since any change to them gives
    another word.
    """
    if len(word) < 4 or any(c.isdigit() for c in word):
        return {word}
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def is_one_error_apart(a: str, b: str) -> bool:
    """Whether two words have Damerau-Levenshtein distance 1: one letter wrong, missing, extra, or two neighbours swapped."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    x, y = a[start:], b[start:]
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or (x[:2] == y[1::-1] and x[2:] == y[2:] and len(x) > 1)
