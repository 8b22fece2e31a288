"""The size of a listing: grams of flower and extracts, milligrams and pieces of edibles. Pure.

The name's size wins over the menu's size field, which often is that of another option ("Mystical Melody - 1g" in "1/2 g").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from menuwatch.catalog.taxonomy.package import package, shortest
from menuwatch.catalog.taxonomy.sizes import by_ounces
from menuwatch.matching.model import Listing

_MASS = re.compile(
    r"(?<![\w.:])(\d+/\d+|\d*\.?\d+)\s*-?\s*(mg|milligrams?|g|gr|gm|gms|grams?|oz|ounces?)\b(?!')", re.IGNORECASE
)
_COUNT = re.compile(
    r"(?<![\w.])(\d{1,3})\s*-?\s*(?:ct|count|pk|pks|packs?|pcs?|pieces?)\b|\b(?:pack|box)\s+of\s+(\d{1,3})\b",
    re.IGNORECASE,
)
_LARGEST_DOSE = Decimal(50)
"""Milligrams that one piece holds at most where a name does not tell whether it means one or all."""


class Size(NamedTuple):
    """One size; `amounts` are the totals that it may mean, in grams or milligrams: "20ct/5mg" is 5 or 100. Empty: not known."""

    amounts: tuple[Decimal, ...]
    pieces: int | None = None

    @property
    def known(self) -> bool:
        return bool(self.amounts) or self.pieces is not None


UNKNOWN = Size(())


def size_of(listing: Listing, kind: str) -> Size:
    """Size of a listing of one size. `kind` is its signature's."""
    found = read(listing.name, kind)
    if found.amounts:
        return found
    for text in listing.sizes:
        field = read(text, kind)
        if field.amounts:
            return Size(field.amounts, found.pieces or field.pieces)
        grams = package(text).grams or package(text.lower().removesuffix(" ounce")).grams  # "eighth ounce"
        if grams is not None and kind != "edible":
            return Size((shortest(by_ounces(grams)),), found.pieces)
    return found


def read(text: str, kind: str) -> Size:
    """The size that a text says of goods of that kind: a signature's."""
    pieces = next((int(one or other) for one, other in _COUNT.findall(text)), None) or None
    masses = [(_number(number), unit.lower()) for number, unit in _MASS.findall(text)]
    if kind in ("edible", "topical"):
        doses = [amount for amount, unit in masses if unit.startswith("m") and amount > 0]
        if not doses:
            return Size((), pieces)
        dose = max(doses)
        if pieces and pieces > 1 and len(doses) == 1 and dose <= _LARGEST_DOSE * 2:
            return Size((shortest(dose), shortest(dose * pieces)), pieces)
        return Size((shortest(dose),), pieces)
    grams = [
        amount / 1000 if unit.startswith("m") else amount * 28 if unit.startswith("o") else amount
        for amount, unit in masses
    ]
    grams = [amount for amount in grams if amount > 0]
    return Size((shortest(by_ounces(grams[0])),) if grams else (), pieces)


def _number(text: str) -> Decimal:
    top, slash, bottom = text.partition("/")
    if not slash:
        return Decimal(text)
    return (Decimal(top) / Decimal(bottom)).quantize(Decimal("0.0001")) if int(bottom) else Decimal(0)


def split(sizes: Sequence[Size]) -> list[tuple[Decimal, int] | None]:
    """The size of each listing of one product, as (amount, pieces; 0 if not stated); None if no listing's size is known.

    What a listing does not state is taken from the product's other listings, the most frequent ones first.
    """
    counted = Counter(amount for size in set(sizes) for amount in size.amounts)
    chosen: list[Decimal | None] = []
    for size in sizes:
        if not size.amounts:
            chosen.append(None)
        else:
            chosen.append(max(size.amounts, key=lambda amount: (counted[amount], -size.amounts.index(amount))))
    stated = Counter(amount for amount in chosen if amount is not None)
    usual = min(stated, key=lambda amount: (-stated[amount], amount)) if stated else None
    amounts = [usual if amount is None else amount for amount in chosen]
    pieces: dict[Decimal | None, Counter[int]] = {}
    for amount, size in zip(amounts, sizes, strict=True):
        if size.pieces:
            pieces.setdefault(amount, Counter())[size.pieces] += 1
    found: list[tuple[Decimal, int] | None] = []
    for amount, size in zip(amounts, sizes, strict=True):
        known = pieces.get(amount)
        count = size.pieces or (min(known, key=lambda n: (-known[n], n)) if known else 0)
        found.append(None if amount is None and not count else (amount or Decimal(0), count))
    return found
