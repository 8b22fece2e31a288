"""Takes names apart: marks and remarks, ratio, sizes, segments and brackets. Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import NamedTuple

from menuwatch.catalog.taxonomy.text import words
from menuwatch.matching import lexicon

_LONGEST = 400
"""Characters of a name that are read: enough for 40 words."""
_MARK = re.compile(r"\*[^*]{0,40}\*|\(\d+\)|[™®©]")
_REMARK = re.compile(r"[(\[]\s*(?:rec|med|recreational|medical|adult use)\s*[)\]]", re.IGNORECASE)
_PERCENT = re.compile(r"\d+(?:\.\d+)?\s*%|\$\s*\d+(?:\.\d\d)?")
_RATIO = re.compile(
    r"(?<![\w.:])(\d{1,4}(?:\.\d+)?(?:\s*:\s*\d{1,4}(?:\.\d+)?){1,4})(?=\s*mg|(?![\w:]))", re.IGNORECASE
)
_ACTIVE = "|".join(sorted(lexicon.CANNABINOIDS - {"d8", "d9", "delta"}))
_AMOUNTS = re.compile(
    rf"(?:\b({_ACTIVE})\s*[:-]?\s*)?(?<![\w.])(\d{{1,4}}(?:\.\d+)?)\s*mg\b(?:\s*({_ACTIVE})\b)?", re.IGNORECASE
)
"""Milligrams with the cannabinoid before or after them."""
_SIZE = re.compile(
    r"(?<![\w.])(?:\d{1,3}\s*x\s*)?(?:\d+/\d+|\d*\.?\d+)\s*-?\s*"
    r"(?:mg|mgs|milligrams?|g|gs|gr|gm|gms|grams?|oz|ounces?|ml|fl\.?\s*oz|kg|lbs?)\b(?!')\.?",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(?<![\w.])(?:(?:pack|box)\s+of\s+\d{1,3}|\d{1,3}\s*-?\s*(?:ct|count|pk|pks|packs?|pcs?|pieces?|x)\b\.?)|\bx\s*\d{1,3}\b",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"(?<![\w/])1/[248](?![\w/])|(?<![\w.])0?\.\d+(?![\w.])")
_CODE = re.compile(r"(?<!\w)[A-Z]{2,4} B\d{1,2}(?!\w)")
"""A maker's code before the name: "APL B10 - Sour Apple"."""
_BRACKETED = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_SEGMENTS = re.compile(r"\s*[|:•·~]\s*|\s+[-–—]+\s*|\s*[–—]+\s+|\s+/\s+")


class NameParts(NamedTuple):
    """A name without sizes."""

    segments: list[tuple[str, ...]]
    """Words of its segments, without those in brackets."""
    asides: list[tuple[str, ...]]
    """Words in brackets, for each pair of them."""
    ratio: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """Those of all segments."""
        return tuple(word for segment in self.segments for word in segment)


def take_apart(name: str) -> NameParts:
    """The parts of a name."""
    text, ratio = _take_ratio(plain(name))
    text = without_sizes(text)
    return NameParts(_segments(text), _asides(text), ratio)


def plain(name: str) -> str:
    """The name without marks, percentages, prices, and remarks such as "(REC)"."""
    # Trade marks first: NFKC makes letters of them.
    text = unicodedata.normalize("NFKC", unmarked(name[:_LONGEST])).replace("⁄", "/").replace("’", "'")
    return _PERCENT.sub(" ", _REMARK.sub(" ", unmarked(text)))


def unmarked(text: str) -> str:
    """The text without trade marks, remarks between asterisks, and numbers in brackets."""
    return _MARK.sub(" ", text)


def _take_ratio(text: str) -> tuple[str, str | None]:
    """The text without its first ratio, and the ratio in lowest terms, by cannabinoid where the name gives them in order:
    "100:50mg" is "2:1", "1:10 THC:CBN" and "10:1 CBN/THC" are "cbn10:thc1".
    """
    match = _RATIO.search(text)
    if match is None:
        return text, _ratio_of_amounts(text)
    parts = [float(part) for part in match[1].split(":")]
    whole = [round(part * 100) for part in parts]
    divisor = math.gcd(*whole)
    if not divisor:
        return text, None
    rest = text[: match.start()] + " " + _RATIO.sub(" ", text[match.end() :])
    amounts = [str(part // divisor) for part in whole]
    named_actives = list(dict.fromkeys(word for word in words(rest) if word in lexicon.CANNABINOIDS))
    if len(named_actives) == len(amounts):
        return rest, ":".join(sorted(name + amount for name, amount in zip(named_actives, amounts, strict=True)))
    return rest, ":".join(amounts)


def _ratio_of_amounts(text: str) -> str | None:
    """The ratio of milligrams of several cannabinoids: "100mg THC / 100mg CBD" is "cbd1:thc1"."""
    amounts: dict[str, int] = {}
    for before, amount, after in _AMOUNTS.findall(text):
        amounts.setdefault((before or after).lower(), round(float(amount) * 100))
    divisor = math.gcd(*amounts.values())
    if len(amounts) < 2 or not divisor:
        return None
    return ":".join(sorted(f"{name}{amount // divisor}" for name, amount in amounts.items()))


def without_sizes(text: str) -> str:
    """The text without sizes, counts and codes of makers."""
    return _FRACTION.sub(" ", _COUNT.sub(" ", _SIZE.sub(" ", _CODE.sub(" ", text))))


def _segments(text: str) -> list[tuple[str, ...]]:
    found = (words(part) for part in _SEGMENTS.split(_BRACKETED.sub(" ", text)))
    return [part for part in found if part]


def _asides(text: str) -> list[tuple[str, ...]]:
    return [words(part) for part in _BRACKETED.findall(text)]
