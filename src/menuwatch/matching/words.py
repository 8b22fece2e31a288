"""Aligns the words of two names: equal, joined, abbreviated, misspelled. Pure.

"FRT GSHRS" is "Fruit Gushers", "GooBerry" is "Goo Berry", "LCP" is "Lemon Cherry Pop", "Cookie" is "Cookies".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from menuwatch.catalog.taxonomy.text import is_one_error_apart

_LONGEST_JOIN = 3
"""Words that may be written as one."""
_VOWELS = frozenset("aeiouy")


class Kind(IntEnum):
    """How two words, or runs of words, agree; the worst of an alignment is the alignment's."""

    EXACT = 0
    JOINED = 1
    SPELLING = 2
    ABBREVIATION = 3


class Alignment(NamedTuple):
    """What agrees and what is left over, as positions in the two sequences."""

    pairs: tuple[tuple[int, int], ...]
    """Positions that agree; of joined words and initials the first word's position stands for all."""
    left: tuple[int, ...]
    right: tuple[int, ...]
    kind: Kind
    """The loosest agreement among the pairs."""


def _sound(word: str) -> str:
    return (
        word.replace("ph", "f")
        .replace("ck", "k")
        .replace("qu", "k")
        .replace("c", "k")
        .replace("z", "s")
        .replace("x", "ks")
    )


@lru_cache(maxsize=131_072)
def skeleton(word: str) -> str:
    """Consonants of a word as they sound, the first letter kept: equal for "cookies" and "ckies", "mintz" and "mnts"."""
    if any(c.isdigit() for c in word):
        return word
    text = _sound(word)
    kept = [text[:1]] if text[:1] not in _VOWELS else ["a"]
    for letter in text[1:]:
        if letter not in _VOWELS and letter != kept[-1]:
            kept.append(letter)
    if len(kept) > 2 and kept[-1] == "s":
        kept.pop()
    return "".join(kept)


@lru_cache(maxsize=131_072)
def agreement(a: str, b: str) -> Kind | None:
    """How two single words agree; None if they do not."""
    if a == b:
        return Kind.EXACT
    if a.isdigit() or b.isdigit():
        return None
    if singular(a) == singular(b):
        return Kind.SPELLING
    short, long = sorted((a, b), key=len)
    if len(short) >= 5 and is_one_error_apart(a, b):
        return Kind.SPELLING
    if short[0] == long[0] and len(short) >= 2 and _is_subsequence(_sound(short), _sound(long)):
        bare = not any(c in _VOWELS for c in short[1:])
        if bare or skeleton(short) == skeleton(long):
            if len(short) == 2:
                return Kind.ABBREVIATION if long[-1] == short[-1] or skeleton(long) == skeleton(short) else None
            if skeleton(short) == skeleton(long) or (len(short) >= 3 and len(short) * 2 >= len(long)):
                return Kind.ABBREVIATION
    if (
        len(short) >= 5
        and len(skeleton(short)) >= 3
        and skeleton(short) == skeleton(long)
        and abs(len(a) - len(b)) <= 2
    ):
        return Kind.SPELLING
    return None


def align(a: Sequence[str], b: Sequence[str]) -> Alignment:
    """Pairs each word with one of the other name: equal ones first, then joined ones, spellings and abbreviations, then initials."""
    left, right = list(range(len(a))), list(range(len(b)))
    pairs: list[tuple[int, int]] = []
    worst = Kind.EXACT

    def take(i: Sequence[int], j: Sequence[int], kind: Kind) -> None:
        nonlocal worst
        pairs.append((i[0], j[0]))
        for at in i:
            left.remove(at)
        for at in j:
            right.remove(at)
        worst = max(worst, kind)

    places: dict[str, list[int]] = {}
    for j, word in enumerate(b):
        places.setdefault(word, []).append(j)
    for i, word in enumerate(a):
        if places.get(word):
            take((i,), (places[word].pop(0),), Kind.EXACT)
    if left and right:
        for wanted in (Kind.SPELLING, Kind.ABBREVIATION):
            for i in tuple(left):
                for j in tuple(right):
                    if agreement(a[i], b[j]) == wanted:
                        take((i,), (j,), wanted)
                        break
    if left and right:
        for run, j, kind in _runs(a, b, left, right):
            take(run, (j,), kind)
        for run, i, kind in _runs(b, a, right, left):
            take((i,), run, kind)
    return Alignment(tuple(pairs), tuple(left), tuple(right), worst)


def _runs(
    many: Sequence[str], one: Sequence[str], runs: Sequence[int], ones: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], int, Kind]]:
    """Runs of words that one word of the other name stands for: written as one, or by their initials. The caller takes each out of
    `runs` and `ones`, the positions that are left, before it asks for the next.
    """
    for j in tuple(ones):
        word = one[j]
        if word.isdigit():
            continue
        for start in tuple(runs):
            if j not in ones:
                break
            for length in range(min(6, len(many) - start), 1, -1):
                span = range(start, start + length)
                if not all(at in runs for at in span):
                    continue
                text = [many[at] for at in span]
                kind = None
                if length <= _LONGEST_JOIN and (joined := "".join(text)) and _joined(joined, word):
                    kind = Kind.JOINED if joined == word else Kind.SPELLING
                elif length >= 3 and len(word) == length and all(w[0] == c for w, c in zip(text, word, strict=True)):
                    kind = Kind.ABBREVIATION
                if kind is not None:
                    yield tuple(span), j, kind
                    break


def _joined(joined: str, word: str) -> bool:
    if joined == word:
        return True
    return len(word) >= 5 and agreement(joined, word) in (Kind.SPELLING, Kind.ABBREVIATION)


@lru_cache(maxsize=65_536)
def singular(word: str) -> str:
    """The word without the ending of a plural, also as "runtz" and "mintz" write it."""
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word[-1] in "sz" and word[-2] != "s":
        return word[:-1]
    return word


def _is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(letter in rest for letter in short)
