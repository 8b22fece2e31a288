"""What an option of a menu holds, read from its text: grams, pieces, milligrams of content.

Weed is sold in fractions of an ounce that everybody counts as 28 g: "1/8oz" is 3.5 g, and so are "eighth" and "⅛ ounce". Other
texts are grams as they stand ("3.5 g", ".5g", "28.3g"), with a C behind them for concentrates ("1gC"), or milligrams ("500mg"). Packs
name the pieces and either the mass of one ("2 x 0.5g", "5pk of .7g each") or, behind a slash, of all ("10pk/100mg"). Everything
else ("N/A", "each", "2pk") says no mass, and none is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

GRAMS_PER_OUNCE = Decimal(28)

_NUMBER = r"(?:(?P<top>\d{1,3})/(?P<bottom>\d{1,3})|(?P<number>\d{0,6}\.\d{1,6}|\d{1,6}))"
_UNIT = r"(?P<unit>mg|mgs|milligrams?|g|gr|gm|gms|gram|grams|oz|ounces?)\.?(?:\s*c)?(?:\s*(?:each|ea|total))?"
_MASS = re.compile(rf"{_NUMBER}\s*-?\s*{_UNIT}", re.IGNORECASE)
_PIECES = r"(?:(?:pack|pk|pck|box)\s*(?:of)?\s*)?(?P<pieces>\d{1,4})\s*-?\s*"
_PACK = r"(?:pk|pck|packs?|ct|count|pcs?|pieces?|caps?|capsules?|tablets?|gummies|joints?|prerolls?|pre-rolls?)\.?"
_OF_EACH = re.compile(
    rf"{_PIECES}(?:{_PACK}\s*)?(?:x|×|\*|@|of|[-,:|(\[]|\s)\s*(?P<mass>{_NUMBER}\s*-?\s*{_UNIT})\s*[)\]]?",
    re.IGNORECASE,
)
_OF_ALL = re.compile(rf"{_PIECES}{_PACK}\s*[/|,]\s*(?P<mass>{_NUMBER}\s*-?\s*{_UNIT})", re.IGNORECASE)
_COUNT = re.compile(
    rf"(?:(?:pack|pk|box)\s*of\s*(?P<of>\d{{1,4}})|(?P<pieces>\d{{1,4}})\s*-?\s*{_PACK})", re.IGNORECASE
)
_TIMES = re.compile(r"[×*@(\[]|(?<![a-z])x(?![a-z])|\b(?:of|each|ea)\b", re.IGNORECASE)
"""Marks a mass as that of one piece: without it "5 1g" is ambiguous."""

_WORDS = {
    "half gram": Decimal("0.5"),
    "gram": Decimal(1),
    "one gram": Decimal(1),
    "two grams": Decimal(2),
    "eighth": Decimal("3.5"),
    "an eighth": Decimal("3.5"),
    "quarter": Decimal(7),
    "quarter ounce": Decimal(7),
    "half": Decimal(14),
    "half ounce": Decimal(14),
    "half oz": Decimal(14),
    "ounce": Decimal(28),
    "one ounce": Decimal(28),
    "zip": Decimal(28),
    "quarter pound": Decimal(112),
    "half pound": Decimal(224),
}
_FRACTION = re.compile(r"(\d+)⁄(\d+)")  # NFKC writes ½ with the fraction slash
_THOUSAND = Decimal(1000)
_PLACES = Decimal("0.0001")


class Package(NamedTuple):
    """What a text says, None where it says nothing. `grams` is the mass of all pieces; `milligrams` is the same mass where it was
    written in milligrams, which for goods sold by content is the content."""

    grams: Decimal | None = None
    pieces: int | None = None
    milligrams: Decimal | None = None


_NOTHING = Package()


def mass(text: str) -> Decimal | None:
    """Grams of a text that is only a mass in grams or ounces; None for others and for zero."""
    found = package(text)
    return found.grams if found.pieces is None and found.milligrams is None else None


def content_of(text: str) -> Decimal | None:
    """Milligrams of all pieces of a text that gives a content in milligrams; None for others and for zero."""
    return package(text).milligrams


@lru_cache(maxsize=8192)
def package(text: str) -> Package:
    """Parses an option's text."""
    plain = _FRACTION.sub(r"\1/\2", unicodedata.normalize("NFKC", text)).replace("μ", "u").strip()
    if not plain or len(plain) > 100:
        return _NOTHING
    word = _WORDS.get(" ".join(plain.lower().replace("-", " ").split()))
    if word is not None:
        return Package(word)
    if (match := _MASS.fullmatch(plain)) is not None:
        return _of(match, 1, None)
    if (match := _OF_ALL.fullmatch(plain)) is not None:
        pieces = int(match["pieces"])
        return _of(match, pieces if _each(plain) else 1, pieces or None)
    if (match := _OF_EACH.fullmatch(plain)) is not None and _TIMES.search(plain):
        pieces = int(match["pieces"])
        return _of(match, pieces, pieces or None)
    if (match := _COUNT.fullmatch(plain)) is not None:
        return Package(pieces=int(match["of"] or match["pieces"]) or None)
    return _NOTHING


def _each(text: str) -> bool:
    return text.lower().rstrip(" .)").endswith(("each", " ea"))


def _of(match: re.Match[str], times: int, pieces: int | None) -> Package:
    if match["top"] is not None:
        if int(match["bottom"]) == 0:
            return _NOTHING
        amount = (Decimal(match["top"]) / Decimal(match["bottom"])).quantize(_PLACES)
    else:
        amount = Decimal(match["number"])
    amount *= times
    if amount <= 0:
        return Package(pieces=pieces)
    unit = match["unit"].lower()
    if unit.startswith("m"):
        return Package(shortest(amount / _THOUSAND), pieces, shortest(amount))
    return Package(shortest(amount if unit.startswith("g") else amount * GRAMS_PER_OUNCE), pieces)


def shortest(value: Decimal) -> Decimal:
    """The same number without trailing zeros and without an exponent: 14.0 → 14, 1E+2 → 100."""
    normal = value.normalize()
    return normal.quantize(Decimal(1)) if normal.as_tuple().exponent > 0 else normal  # type: ignore[operator]
