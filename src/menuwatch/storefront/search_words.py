"""Search words of items, and typing errors in them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from menuwatch.catalog.taxonomy.text import words
from menuwatch.matching.lexicon import ABBREVIATIONS, FORMS


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


_ALIKE = frozenset(
    "badder capsules cartridge disposable drink gummies live_resin rso small_buds".split(),
)
"""Forms of which all phrases mean the same to a shopper."""

Phrase = tuple[str, ...]


def _phrases() -> dict[Phrase, tuple[Phrase, ...]]:
    groups = [[tuple(phrase.split()) for phrase, other in FORMS.items() if other == (form,)] for form in sorted(_ALIKE)]
    groups += [[(short,), full] for short, full in ABBREVIATIONS.items()]
    found: dict[Phrase, tuple[Phrase, ...]] = {}
    for group in groups:
        whole = [*group, *(("".join(phrase),) for phrase in group if len(phrase) > 1)]
        for phrase in whole:
            found[phrase] = tuple(dict.fromkeys((phrase, *found.get(phrase, ()), *whole)))
    return found


PHRASES = _phrases()
"""Phrases of the trade with all that mean the same, themselves first: gg4 and gorilla glue 4, cart and cartridge."""
LONGEST_PHRASE = max(map(len, PHRASES))


def numbers(word: str) -> str:
    """The singular of a plural and the plural of a singular; the word itself if it has neither."""
    if len(word) < 3 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s"):
        return word if word.endswith(("ss", "us", "is")) or len(word) < 4 else word[:-1]
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeou" else word + "s"


def halves(word: str) -> list[Phrase]:
    """The ways to split a word into two of at least three letters, and a number from its unit."""
    cuts = range(3, len(word) - 2) if word.isalpha() else ()
    found: list[Phrase] = [(word[:at], word[at:]) for at in cuts]
    digits = len(word) - len(word.lstrip("0123456789"))
    return [*found, (word[:digits], word[digits:])] if 0 < digits < len(word) and word[digits:].isalpha() else found


def squeezed(word: str) -> str:
    """The word with each run of one letter as a single letter: stizzy and stiiizy are alike."""
    return "".join(c for at, c in enumerate(word) if not at or word[at - 1] != c)
