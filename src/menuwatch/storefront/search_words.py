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
