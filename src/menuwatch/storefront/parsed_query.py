"""The words of a search text as a tsquery, by the words that items and brands have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from psycopg import AsyncConnection

from menuwatch.catalog.taxonomy.text import is_one_error_apart, words
from menuwatch.db import sql
from menuwatch.db.query import fetch_all
from menuwatch.storefront.search_words import LONGEST_PHRASE, PHRASES, Phrase, halves, numbers, spellings, squeezed

_q = sql.load(__package__, "parsed_query.sql")

MAX_TEXT = 200
"""Maximum characters of a search text."""
MAX_WORDS = 8
_MAX_CORRECTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A parsed search: its tsquery (None without words), and the words that replaced those typed."""

    query: str | None = None
    typed: str = ""
    guessed: tuple[tuple[str, str], ...] = ()
    """(as typed, as read)"""
    terms: tuple[tuple[str, str], ...] = ()
    """(as typed, tsquery), all of which the query asks for."""
    left_out: tuple[str, ...] = ()
    """Words that the query does not ask for, as no item has all of them."""

    @property
    def read_as(self) -> str:
        """The text as interpreted, without the words that were left out."""
        changes, without = dict(self.guessed), set(words(" ".join(self.left_out)))
        return " ".join(changes.get(word, word) for word in words(self.typed)[:MAX_WORDS] if word not in without)


async def parse_query(conn: AsyncConnection[Any], text: str) -> ParsedQuery:
    """Parses a search text. The last word may be unfinished. Words also match in singular and plural, joined and split,
    and by their synonyms; an unknown word is replaced by known words one typing error away."""
    typed = " ".join(text[:MAX_TEXT].split())
    typed_words = tuple(dict.fromkeys(words(typed)[:MAX_WORDS]))
    if not typed_words:
        return ParsedQuery(typed=typed)
    asked = {*typed_words, *map(numbers, typed_words), *map("".join, pairwise(typed_words))}
    asked |= {half for word in typed_words for pair in halves(word) for half in pair}
    known = {row["word"]: row for row in await fetch_all(conn, _q.known_words, {"words": sorted(asked)})}
    terms: list[tuple[str, str]] = []
    guessed: list[tuple[str, str]] = []
    at = 0
    while at < len(typed_words):
        word, pair = typed_words[at], typed_words[at : at + 2]
        last = at == len(typed_words) - 1
        phrase = next((p for n in range(LONGEST_PHRASE, 0, -1) if (p := typed_words[at : at + n]) in PHRASES), None)
        if phrase is not None:
            terms.append((" ".join(phrase), _any([_all(one) for one in PHRASES[phrase]])))
            at += len(phrase)
            continue
        if len(pair) == 2 and known["".join(pair)]["whole"]:
            terms.append((" ".join(pair), _any([_all(pair), _all(("".join(pair),))])))
            at += 2
            continue
        at += 1
        other = numbers(word)
        variants = [_term(other, open_ended=False)] if other != word and known[other]["whole"] else []
        splits = [one for one in halves(word) if all(known[half]["whole"] for half in one)]
        if known[word]["begins"] and (known[word]["whole"] or last or not variants):
            # Whole words match exactly, except the last, which may be a prefix.
            open_ended = not known[word]["whole"] or (last and len(word) > 2)
            if word[0].isdigit():
                variants += [_all(one) for one in splits]
            terms.append((word, _any([_term(word, open_ended=open_ended), *variants])))
        elif variants:
            terms.append((word, variants[0]))
        elif split := await _matching_splits(conn, splits):
            terms.append((word, _any([_all(one) for one in split])))
        elif guesses := await _similar_words(conn, word):
            terms.append((word, _any([_term(guess, open_ended=False) for guess in guesses])))
            guessed.append((word, guesses[0]))
        else:
            terms.append((word, _term(word, open_ended=True)))
    return ParsedQuery(
        query=" & ".join(term for _, term in terms), typed=typed, guessed=tuple(guessed), terms=tuple(terms)
    )


def _term(word: str, *, open_ended: bool) -> str:
    # A word holds letters and digits only, so it contains no tsquery operator.
    return f"'{word}':*" if open_ended else f"'{word}'"


def _all(phrase: Phrase) -> str:
    terms = [_term(word, open_ended=False) for word in phrase]
    return f"({' & '.join(terms)})" if len(terms) > 1 else terms[0]


def _any(terms: Sequence[str]) -> str:
    return f"({' | '.join(terms)})" if len(terms) > 1 else terms[0]


async def _matching_splits(conn: AsyncConnection[Any], splits: Sequence[Phrase]) -> list[Phrase]:
    """The splits of a word both parts of which some item has."""
    if not splits:
        return []
    rows = await fetch_all(conn, _q.matches_of_queries, {"queries": [_all(one) for one in splits]}, prepare=False)
    return [splits[row["place"] - 1] for row in rows if row["items"]]


async def _similar_words(conn: AsyncConnection[Any], word: str) -> Sequence[str]:
    plain = squeezed(word)
    rows = await fetch_all(conn, _q.similar_words, {"spellings": sorted(spellings(word)), "squeezed": plain})
    similar = {
        row["word"]: row["brand"]
        for row in rows
        if is_one_error_apart(row["word"], word) or squeezed(row["word"]) == plain
    }
    # Typing errors are rare in the first letter and often in doubled ones; brands are typed more often than other words.
    return sorted(
        similar,
        key=lambda other: (
            other[:1] != word[:1],
            not similar[other],
            squeezed(other) != plain,
            abs(len(other) - len(word)),
            other,
        ),
    )[:_MAX_CORRECTIONS]


async def with_fewer_words(conn: AsyncConnection[Any], parsed: ParsedQuery) -> ParsedQuery:
    """The query without the word that no item has with the others, or with one word alone; unchanged if that finds nothing."""
    terms = parsed.terms
    subsets = [terms[:at] + terms[at + 1 :] for at in range(len(terms))]
    for some in (subsets, [(term,) for term in terms]):
        queries = [" & ".join(term for _, term in one) for one in some]
        rows = await fetch_all(conn, _q.matches_of_queries, {"queries": queries}, prepare=False)
        found = [row for row in rows if row["items"]]
        if found:
            best = min(found, key=lambda row: (row["items"], row["place"]))
            kept = some[best["place"] - 1]
            return replace(
                parsed,
                query=best["query"],
                terms=kept,
                guessed=tuple(one for one in parsed.guessed if one[0] in dict(kept)),
                left_out=tuple(typed for typed, _ in terms if typed not in dict(kept)),
            )
    return parsed
