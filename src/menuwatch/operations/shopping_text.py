"""What somebody typed, read as words that are in names: the last one may be unfinished, and one that is in no name is taken for those
that are one typing error away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import rows
from menuwatch.operations.shopping_keys import is_one_error_apart, spellings, words

_q = sql.load(__package__, "shopping.sql")

LONGEST = 200
"""Characters that are read."""
MOST_WORDS = 8
_MOST_GUESSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text as it is searched for: as a tsquery (None: nothing is asked), and what was read instead of what was typed."""

    query: str | None = None
    typed: str = ""
    guessed: tuple[tuple[str, str], ...] = ()
    """(as typed, as read)"""

    @property
    def read_as(self) -> str:
        """The text as it was read."""
        changes = dict(self.guessed)
        return " ".join(changes.get(word, word) for word in words(self.typed)[:MOST_WORDS])


async def read(conn: AsyncConnection[Any], text: str) -> Reading:
    """Reads a text."""
    typed = " ".join(text[:LONGEST].split())
    asked = tuple(dict.fromkeys(words(typed)[:MOST_WORDS]))
    if not asked:
        return Reading(typed=typed)
    known = {one["word"]: one for one in await rows(conn, _q.known_words, {"words": list(asked)})}
    terms, guessed = [], []
    for word in asked:
        if known[word]["begins"]:
            # Whole words mean themselves, save the last, which may be the beginning of a longer one.
            open_ended = not known[word]["whole"] or (word == asked[-1] and len(word) > 2)
            terms.append(_term(word, open_ended=open_ended))
        elif guesses := await _alike(conn, word):
            terms.append("(" + " | ".join(_term(guess, open_ended=False) for guess in guesses) + ")")
            guessed.append((word, guesses[0]))
        else:
            terms.append(_term(word, open_ended=True))
    return Reading(query=" & ".join(terms), typed=typed, guessed=tuple(guessed))


def _term(word: str, *, open_ended: bool) -> str:
    # A word holds letters and digits only, so nothing in it means anything to a tsquery.
    return f"'{word}':*" if open_ended else f"'{word}'"


async def _alike(conn: AsyncConnection[Any], word: str) -> Sequence[str]:
    found = await rows(conn, _q.alike, {"spellings": sorted(spellings(word))})
    near = [one["word"] for one in found if is_one_error_apart(one["word"], word)]
    # Somebody who errs seldom errs in the first letter.
    return sorted(near, key=lambda other: (other[:1] != word[:1], abs(len(other) - len(word)), other))[:_MOST_GUESSES]
