"""What a shopper's search text asks for: filters, sort order and place in plain words, and the words that are left. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, shortest
from menuwatch.catalog.taxonomy.text import words
from menuwatch.geo import states

CATEGORIES = {
    "flower": r"flowers?",
    "preroll": r"pre[- ]?rolls?|joints?",
    "vaporizer": r"(?:vape|vaporizer)(?: pen| cart(?:ridge)?)?s?",
    "concentrate": r"concentrates?|dabs?",
    "edible": r"edibles?",
    "tincture": r"tinctures?",
    "topical": r"topicals?",
}
"""Words that name a whole category: they become its filter."""

KINDS = {"edible": r"gummy|gummies|seltzers?", "vaporizer": r"carts?|cartridges?"}
"""Words that name a part of a category: the filter is set, and the word stays."""

_GEAR = re.compile(
    r"\b(?:batter(?:y|ies)|grinders?|papers?|pipes?|bongs?|trays?|holders?|cases?|tubes?|lighters?|rigs?|bangers?|nails?|torch(?:es)?|"
    r"dab (?:pens?|tools?|mats?))\b"
)
_NUMBER = r"(\d{1,4}(?:\.\d{1,2})?|\.\d{1,2})"
_AMOUNT = r"(\d{1,5}(?:\.\d{1,2})?)(?!\d|\.\d)"
_SIGN = r"(?:\bca?)?\$\s*"
_CURRENCY = r"(?:\s*(?:dollars?|bucks?|usd|cad)\b)?"
_DOLLARS = rf"{_SIGN}{_AMOUNT}{_CURRENCY}"
_UNSIGNED = rf"{_AMOUNT}(?!\s*(?:mg|g|grams?|oz|ounces?|%)\b|%){_CURRENCY}"
_RANGE = re.compile(rf"{_DOLLARS}\s*(?:-|–|to)\s*(?:{_DOLLARS}|{_UNSIGNED})")
_UNDER = re.compile(rf"(?:\b(?:under|below|less than|up to|max)|<)\s*(?:{_DOLLARS}|{_UNSIGNED})")
_OVER = re.compile(rf"\b(?:over|above|more than|at least)\s*{_DOLLARS}")
_NAMED_GRAMS = (
    (re.compile(r"\b(?:half|1/2)[- ](?:an? )?grams?\b"), "0.5 g"),
    (re.compile(r"\b(?:full|one|an?)[- ]grams?\b"), "1 g"),
    (re.compile(r"\btwo[- ]grams?\b"), "2 g"),
)
_OUNCES = (
    (re.compile(r"\b(?:half|1/2)[- ]?(?:an? )?(?:ounces?|oz)\b"), 2),
    (re.compile(r"\b(?:quarters?|1/4)[- ]?(?:(?:ounces?|oz)\b|\b(?![- ]?(?:pound|lb)))"), 4),
    (re.compile(r"\b(?:eighths?|1/8)(?:th)?[- ]?(?:(?:ounces?|oz)\b|\b)"), 8),
)
_SOME_OUNCES = re.compile(rf"(?<![\d./]){_NUMBER}\s*(?:ounces?|oz)\b")
_ONE_OUNCE = re.compile(r"\b(?:an? )?(?:ounce|oz)\b")
_GRAMS = re.compile(rf"(?<![\d./]){_NUMBER}\s*(?:grams?|gr|g)\b")
_MILLIGRAMS = re.compile(rf"(?<![\d./]){_NUMBER}\s*(?:milligrams?|mg)\b")
_ORDERS = (
    ("per_gram", re.compile(r"\b(?:(?:best|lowest|cheapest) )?price per gram\b|\bbest value\b")),
    ("price", re.compile(r"\b(?:cheap|cheapest|lowest price)\b")),
    ("thc", re.compile(r"\b(?:strongest|most thc|highest thc)\b")),
    ("newest", re.compile(r"\b(?:newest|new arrivals?)\b")),
)
_SPECIAL = re.compile(r"\b(?:on sale|on special|deals?|discounted)\b")
_IN_STOCK = re.compile(r"\bin stock\b")
_STRAIN = re.compile(r"\b(indica|sativa|hybrid)s?\b")
_JOINING = re.compile(r"\b(?:of|for|the|an?|and|with|some|in|at|near)\b")
_CANADIAN_CODE = re.compile(r"[A-Za-z]\d[A-Za-z]\d[A-Za-z]\d")
_AMBIGUOUS = frozenset({"in", "or", "me", "hi", "ok", "on"})
"""Codes of states that are English words: they name the state only in capitals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReading:
    """What a text asks for. Prices are in dollars, as typed; `order` is a value of `search.Order`."""

    words: str
    category: str = ""
    strains: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    price_min: str = ""
    price_max: str = ""
    in_stock: bool = False
    special: bool = False
    order: str = ""

    @property
    def understood(self) -> bool:
        """Whether anything but words was found in the text."""
        return self != TextReading(words=self.words)


class _Rest:
    """The text that is not understood yet."""

    def __init__(self, text: str) -> None:
        self.text = text

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.search(self.text)
        if match is not None:
            self.text = f"{self.text[: match.start()]} {self.text[match.end() :]}"
        return match


def without_sign(text: str) -> str:
    """A typed price without the sign of its currency: `25` for `$25`, `CA$ 25`."""
    return re.sub(rf"^{_SIGN}", "", text, flags=re.IGNORECASE)


def read_text(text: str) -> TextReading:
    """Reads a search text. What is not understood stays in `words`, as it was typed but for case."""
    rest = _Rest(" ".join(text.casefold().split()))
    low = high = ""
    if (match := rest.take(_RANGE)) is not None:
        low, high = sorted((match[1], match[2] or match[3]), key=Decimal)
    else:
        high = (match[1] or match[2]) if (match := rest.take(_UNDER)) else ""
        low = match[1] if (match := rest.take(_OVER)) else ""
    order = next((name for name, pattern in _ORDERS if rest.take(pattern)), "")
    special = rest.take(_SPECIAL) is not None
    in_stock = rest.take(_IN_STOCK) is not None
    sizes = _sizes(rest)
    strain = match[1] if (match := rest.take(_STRAIN)) else ""
    category = _category(rest)
    reading = TextReading(
        words="",
        category=category,
        strains=(strain, f"{strain}_hybrid") if strain in ("indica", "sativa") else (strain,) if strain else (),
        sizes=sizes,
        price_min=low,
        price_max=high,
        in_stock=in_stock,
        special=special,
        order=order,
    )
    if not reading.understood:
        return TextReading(words=" ".join(text.split()))
    left = " ".join(_JOINING.sub(" ", rest.text).split())
    return TextReading(
        **{name: getattr(reading, name) for name in TextReading.__slots__ if name != "words"},
        words=left if words(left) else "",
    )


def _sizes(rest: _Rest) -> tuple[str, ...]:
    for pattern, size in _NAMED_GRAMS:
        if rest.take(pattern):
            return (size,)
    for pattern, part in _OUNCES:
        if rest.take(pattern):
            return (f"{shortest(GRAMS_PER_OUNCE / part)} g",)
    for pattern, times, unit in (
        (_SOME_OUNCES, GRAMS_PER_OUNCE, "g"),
        (_MILLIGRAMS, Decimal(1), "mg"),
        (_GRAMS, Decimal(1), "g"),
    ):
        match = rest.take(pattern)
        if match is not None and (amount := Decimal(match[1]) * times) > 0:
            return (f"{shortest(amount)} {unit}",)
    return (f"{shortest(Decimal(GRAMS_PER_OUNCE))} g",) if rest.take(_ONE_OUNCE) else ()


def _category(rest: _Rest) -> str:
    if _GEAR.search(rest.text):
        return ""
    for category, pattern in KINDS.items():
        if re.search(rf"\b(?:{pattern})\b", rest.text):
            whole = re.compile(rf"\b(?:{CATEGORIES[category]})\b")
            rest.take(whole)
            return category
    for category, pattern in CATEGORIES.items():
        if rest.take(re.compile(rf"\b(?:{pattern})\b")):
            return category
    return ""


def places(text: str) -> list[tuple[str, str]]:
    """Parts of a text that may be a place with its postcode or state, most likely first, each with the rest of the text."""
    typed = text.replace(",", " ").split()
    found: list[tuple[str, str]] = []
    for at, word in enumerate(typed):
        if re.fullmatch(r"\d{5}", word) or _CANADIAN_CODE.fullmatch(word):
            found.append((word, _without(typed, at, at + 1)))
        elif _CANADIAN_CODE.fullmatch(both := "".join(typed[at : at + 2])):
            found.append((both, _without(typed, at, at + 2)))
    for start, end in _edges(len(typed), 5):
        for n in (4, 3, 2, 1):
            code = states.code_in_america(" ".join(typed[end - n : end])) if end - start > n else None
            if code and (n > 1 or typed[end - 1] not in _AMBIGUOUS):
                found.append((f"{' '.join(typed[start : end - n])}, {code}", _without(typed, start, end)))
    return found


def cities(text: str) -> list[tuple[str, str]]:
    """Parts of a text, at its start or end, that may be the name of a city alone; longest first, each with the rest."""
    typed = text.casefold().replace(",", " ").split()
    return [(" ".join(typed[start:end]), _without(typed, start, end)) for start, end in _edges(len(typed), 3)]


def _edges(count: int, most: int) -> list[tuple[int, int]]:
    spans = [span for n in range(min(most, count), 0, -1) for span in ((count - n, count), (0, n))]
    return list(dict.fromkeys(spans))


def _without(typed: list[str], start: int, end: int) -> str:
    before, after = typed[:start], typed[end:]
    while before and before[-1].casefold() in ("in", "near", "around", "at"):
        before.pop()
    while not before and after and after[0].casefold() in ("in", "near", "around", "at"):
        after.pop(0)
    return " ".join((*before, *after))
