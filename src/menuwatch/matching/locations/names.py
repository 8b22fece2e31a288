"""Reads names of shops and of licence holders into words that tell one from another. Pure.

"Oasis Cannabis Co - Juan Tabo - Now Open!", "OCC ABQ LLC - MENAUL BLVD RETAIL": legal endings, the trade's own words, notes and
the words of the shop's town and street say nothing about who it is.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

Weights = Callable[[str], float]
"""How distinctive a word is, in bits: rare ones say more."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_LEGAL = word_set("llc inc ltd corp co company corporation incorporated limited lp llp pllc pbc plc lllp dba nfp")
_TRADE = word_set(
    "dispensary dispensaries dispensing dispensoria cannabis marijuana marihuana canna weed pot medical medicinal med recreational "
    "rec adult use retail retailer retailers store stores shop shops smoke outlet delivery pickup drive thru through menu center "
    "centre manufacturing manufacturer production processing cultivation seasonal consumption lounge open opening soon coming now "
    "new grand closed moved formerly temporarily old location unit suite ste the of and at in on by a an for mexico york"
)
_ROADS = word_set(
    "st street ave avenue blvd boulevard rd road dr drive ln lane hwy highway ct pl way ne nw se sw n s e w"
)
_NOTE = re.compile(
    r"\((?:rec|med|medical|recreational|adult[ -]use|21\+|18\+|[^)]*(?:open|soon|closed)[^)]*)\)|\b(?:21|18)\s*\+",
    re.IGNORECASE,
)
_NONE = frozenset({"n a", "na", "none", "null", "unknown", "tbd", "same", "pending"})


class Name(NamedTuple):
    """A name in comparable form. `words` tell it from others; `text` is everything but legal endings and notes."""

    words: tuple[str, ...] = ()
    text: str = ""


def fold(text: str) -> str:
    """Lower case without accents and apostrophes; "&" is "and"."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(char for char in decomposed if not unicodedata.combining(char))
    return kept.replace("'", "").replace("’", "").replace("&", " and ")


def parse(text: str | None, town: Iterable[str] = (), street: Iterable[str] = ()) -> Name:
    """Reads a name; `town` and `street` are the words of its address. Empty for what names nothing."""
    tokens = re.findall(r"[a-z0-9]+", fold(_NOTE.sub(" ", text or "")))
    joined = _joined_letters(tokens)
    tokens = [word for word in joined if word not in _LEGAL]
    if " ".join(tokens) in _NONE:
        return Name()
    here = set(town) | set(street)
    words = [word for word in tokens if word not in _TRADE and word not in here and word not in _ROADS]
    if not any(len(word) > 1 or word.isdigit() for word in words):
        words = [word for word in tokens if word not in _TRADE and word not in _ROADS] or [
            word for word in tokens if word not in _ROADS
        ]
    return Name(tuple(dict.fromkeys(map(_singular, words))), " ".join(tokens))


def _joined_letters(tokens: list[str]) -> list[str]:
    """ "R. Greenleaf" and "S & H" keep their letters with what follows, as a letter alone is no word."""
    words: list[str] = []
    letters = ""
    for word in tokens:
        if len(word) == 1 and word.isalpha() and word not in "nsew":
            letters += word
            continue
        if letters:
            words.append(letters)
            letters = ""
        words.append(word)
    return [*words, letters] if letters else words


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


def weights_of(names: Iterable[Name]) -> Weights:
    """Weighs words by the names of all records: a word that half of them have says 1 bit, at most 10."""
    counts: Counter[str] = Counter()
    total = 0
    for name in names:
        total += 1
        counts.update(set(name.words))
    total = max(total, 200)  # among few names even a common word is rare
    return lambda word: min(10.0, math.log2(total / max(counts[word], 1)))


def likeness(a: Name, b: Name, weigh: Weights) -> tuple[float, float]:
    """How much two names share: (bits of what they share, that as a share of the one that says less)."""
    if not a.words or not b.words:
        return 0.0, 0.0
    whole_a, whole_b = "".join(a.words), "".join(b.words)
    fewer = min(sum(map(weigh, a.words)), sum(map(weigh, b.words)))
    if whole_a == whole_b:
        return fewer, 1.0
    if min(len(whole_a), len(whole_b)) >= 6 and (_within(whole_a, whole_b, b) or _within(whole_b, whole_a, a)):
        return fewer, 1.0
    if _glued(a.words[0], b.text) or _glued(b.words[0], a.text):
        return fewer, 1.0
    shared, left = 0.0, list(b.words)
    for word in a.words:
        best, score = None, 0.0
        for other in left:
            same = 1.0 if word == other else similarity(word, other)
            if same >= 0.74 and same > score:
                best, score = other, same
        if best is not None:
            left.remove(best)
            shared += score * min(weigh(word), weigh(best))
    return shared, min(1.0, shared / fewer) if fewer else 0.0


def _glued(word: str, text: str) -> bool:
    """Whether a text begins with the parts of a word: "starrcanna", "starr canna retail"."""
    words = text.split()
    return len(word) >= 6 and any("".join(words[:size]) == word for size in (2, 3, 4))


def _within(part: str, whole: str, name: Name) -> bool:
    """Whether `part` is how `whole` begins: "starrcanna" in "starrcannacompany", but not a piece of a word."""
    if part == whole[: len(part)]:
        ends = {0}
        at = 0
        for word in name.words:
            at += len(word)
            ends.add(at)
        return len(part) in ends or len(part) >= 0.7 * len(whole)
    return False


@lru_cache(maxsize=65536)
def similarity(a: str, b: str) -> float:
    """Share of letter pairs that two words have in common, 0 to 1."""
    if min(len(a), len(b)) < 4:
        return 0.0
    pairs_a, pairs_b = Counter(pairwise(a)), Counter(pairwise(b))
    return 2 * (pairs_a & pairs_b).total() / (len(a) + len(b) - 2)


def one_edit(a: str, b: str) -> bool:
    """Whether one letter too many, too few or wrong makes one word the other; words of under four letters are too short to tell."""
    if a[:1] != b[:1] or min(len(a), len(b)) < 4 or abs(len(a) - len(b)) > 1:
        return False
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[at + 1 :] == b[at + 1 :] or a[at + 1 :] == b[at:] or a[at:] == b[at + 1 :]
