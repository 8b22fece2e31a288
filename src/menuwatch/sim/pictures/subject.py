"""What a picture shows, written into the 32 hexadecimal digits of its URL, so that it can be drawn without the market."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b

from menuwatch.sim.words import BRANDS, NOUNS, STRAINS

CATEGORIES = tuple(NOUNS)
BRAND_NAMES = tuple(name for name, _ in BRANDS)
STRAIN_TYPES = ("", "Indica", "Sativa", "Hybrid", "CBD")
UNITS = ("", "g", "mg")


class View(IntEnum):
    FRONT = 0
    CONTENTS = 1
    BACK = 2
    LOGO = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """`noun` is one of its category's; `strains` has up to two; `amount` counts hundredths of a gram, or milligrams. Pictures that
    differ in `salt` alone show the same thing in other positions."""

    category: str
    noun: str
    view: View = View.FRONT
    brand: str | None = None
    strains: tuple[str, ...] = ()
    strain_type: str = ""
    unit: str = ""
    amount: int = 0
    salt: int = 0

    @property
    def size(self) -> str:
        """`3.5g`, `100mg` or nothing."""
        if not self.unit:
            return ""
        return f"{self.amount / 100 if self.unit == 'g' else self.amount:g}{self.unit}"


_DIGITS = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_STOCK = re.compile(r"/([a-z-]+)-stock-(\d+)-")
_DOSE = re.compile(r"(\d+)\s*mg", re.IGNORECASE)

# Bits of each part, the lowest first.
_BITS = {
    "salt": 63, "view": 3, "category": 4, "noun": 3, "brand": 6, "first": 7, "second": 7, "kind": 3, "unit": 2, "amount": 14,
    "mark": 16,
}  # fmt: skip
_MARK = 0xB0D5
"""Tells our digits from all others."""
_SPREAD = 0x9E3779B97F4A7C15F39CC0605CEDC835
_GATHER = pow(_SPREAD, -1, 1 << 128)


def digits_of(subject: Subject) -> str:
    """The 32 digits of the subject's URL."""
    numbers = {
        "salt": subject.salt % (1 << _BITS["salt"]),
        "view": int(subject.view),
        "category": CATEGORIES.index(subject.category),
        "noun": NOUNS[subject.category].index(subject.noun),
        "brand": BRAND_NAMES.index(subject.brand) + 1 if subject.brand is not None else 0,
        "first": STRAINS.index(subject.strains[0]) + 1 if subject.strains else 0,
        "second": STRAINS.index(subject.strains[1]) + 1 if len(subject.strains) > 1 else 0,
        "kind": STRAIN_TYPES.index(subject.strain_type),
        "unit": UNITS.index(subject.unit),
        "amount": min(subject.amount, (1 << _BITS["amount"]) - 1),
        "mark": _MARK,
    }
    whole = place = 0
    for name, bits in _BITS.items():
        whole |= numbers[name] << place
        place += bits
    return f"{whole * _SPREAD % (1 << 128):032x}"


def subject_of(path: str) -> Subject:
    """What the picture at a path shows. One without digits of ours shows a product of no brand, always the same one."""
    for digits in _DIGITS.findall(path):
        if (subject := _decoded(int(digits, 16) * _GATHER % (1 << 128))) is not None:
            return subject
    stock = _STOCK.search(path)
    salt = int(stock[2]) if stock is not None else int.from_bytes(blake2b(path.encode(), digest_size=6).digest(), "big")
    named = next((c for c in CATEGORIES if stock is not None and stock[1] == c.lower()), None)
    category = named or CATEGORIES[salt % len(CATEGORIES)]
    nouns = NOUNS[category]
    return Subject(category, nouns[salt // len(CATEGORIES) % len(nouns)], View.CONTENTS, salt=salt)


def _decoded(whole: int) -> Subject | None:
    numbers = {}
    for name, bits in _BITS.items():
        numbers[name] = whole % (1 << bits)
        whole >>= bits
    if numbers["mark"] != _MARK:
        return None
    try:
        category = CATEGORIES[numbers["category"]]
        return Subject(
            category,
            NOUNS[category][numbers["noun"]],
            View(numbers["view"]),
            BRAND_NAMES[numbers["brand"] - 1] if numbers["brand"] else None,
            tuple(STRAINS[n - 1] for n in (numbers["first"], numbers["second"]) if n),
            STRAIN_TYPES[numbers["kind"]],
            UNITS[numbers["unit"]],
            numbers["amount"],
            numbers["salt"],
        )
    except (IndexError, ValueError):
        return None


def product_subject(
    category: str, name: str, *, brand: str | None, strain_type: str | None, option: str, grams: float | None, salt: int
) -> Subject:
    """What a picture of a product shows: the kind of thing and the strains that its name says, and the size of its first option."""
    noun = next((n for n in sorted(NOUNS[category], key=len, reverse=True) if n in name), NOUNS[category][0])
    strains = sorted((s for s in STRAINS if s in name), key=name.index)[:2]
    dose = _DOSE.search(option)
    unit, amount = ("g", round(grams * 100)) if grams else ("mg", int(dose[1])) if dose is not None else ("", 0)
    return Subject(category, noun, View.FRONT, brand, tuple(strains), _type_of(strain_type or ""), unit, amount, salt)


def _type_of(word: str) -> str:
    if "CBD" in word or "1 to 1" in word:
        return "CBD"
    return "Hybrid" if "Hybrid" in word else word if word in STRAIN_TYPES else ""


def logo_subject(brand: str) -> Subject:
    """The sign of a brand."""
    return Subject(CATEGORIES[0], NOUNS[CATEGORIES[0]][0], View.LOGO, brand)
