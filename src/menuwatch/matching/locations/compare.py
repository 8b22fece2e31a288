"""Weighs whether two records (menus, licences) are of one shop at one place. Pure.

Each piece of evidence adds bits: log2 of how much more often it is seen between records of one shop than between others (Fellegi and
Sunter). The sum starts below zero, because most pairs that share something are two shops. A veto decides alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, NamedTuple, Protocol

import msgspec

from menuwatch.core.shapes import doc
from menuwatch.matching.locations.address import Address
from menuwatch.matching.locations.names import Name, Weights, likeness, one_edit, similarity

LINKED = 3.0
"""Bits from which two records are one location: about 9 to 1."""

_PRIOR = -8.0
_NEAR_METRES, _FAR_METRES = 120.0, 3000.0


class ReasonCode(StrEnum):
    """Why two records are, or are not, of one location."""

    SAME_ADDRESS = "same_address"
    SIMILAR_ADDRESS = "similar_address"
    OTHER_NUMBER = "other_number"
    OTHER_ADDRESS = "other_address"
    SAME_UNIT = "same_unit"
    OTHER_UNIT = "other_unit"
    SAME_TOWN = "same_town"
    OTHER_TOWN = "other_town"
    NEAR = "near"
    FAR = "far"
    SAME_PHONE = "same_phone"
    OTHER_PHONE = "other_phone"
    SAME_NAME = "same_name"
    SIMILAR_NAME = "similar_name"
    OTHER_NAME = "other_name"
    LINKED_BEFORE = "linked_before"
    PERSON = "person"


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One piece of evidence. `weight` is in bits: above 0 it speaks for one location; null if it decides alone."""

    code: Annotated[ReasonCode, doc("Kind of evidence.")]
    detail: Annotated[str, doc("The values of the two records.")] = ""
    weight: Annotated[float | None, doc("Bits; null if it decides alone.")] = None


class Record(NamedTuple):
    """A menu or a licence as it is compared. `key` is unique, as ("menu", 12) or ("licence", 7)."""

    key: tuple[str, int]
    address: Address
    names: tuple[Name, ...] = ()
    platform: str = ""
    phone: str = ""
    position: tuple[float, float] | None = None
    address_text: str = ""
    label: str = ""
    trade_named: bool = True
    """Whether a name is the one over its door, not only that of a licence's holder."""
    ended: bool = False
    """Whether it is a licence that no longer holds."""

    @property
    def is_menu(self) -> bool:
        return self.key[0] == "menu"


class Comparison(NamedTuple):
    """Bits for one location, the evidence, and what rules it out if anything does."""

    score: float
    reasons: tuple[Reason, ...]
    veto: bool
    name_ratio: float
    address_equal: bool


def confidence(score: float) -> float:
    """Probability of a sum of bits, at most 0.999."""
    return min(0.999, 1 / (1 + 2 ** -max(min(score, 60.0), -60.0)))


class _Say(Protocol):
    """Notes a piece of evidence."""

    def __call__(self, code: ReasonCode, weight: float, detail: str = "") -> None: ...


class Scale(NamedTuple):
    """How distinctive words and telephone numbers are among all records."""

    weigh: Weights
    phones: Mapping[str, int]


def compare(a: Record, b: Record, scale: Scale, *, linked_before: bool = False) -> Comparison:
    """Weighs two records. With `linked_before` they were one location until one of them changed its address: a menu that moved."""
    reasons: list[Reason] = []

    def say(code: ReasonCode, weight: float, detail: str = "") -> None:
        reasons.append(Reason(code, detail, round(weight, 1)))

    metres = _distance(a.position, b.position)
    near = metres is not None and metres <= _NEAR_METRES
    placed, bits = _compare_addresses(a.address, b.address)
    both = f"{a.address_text} / {b.address_text}"
    if placed is not None:
        say(placed, bits, both)
    _compare_units(a.address, b.address, placed, say)
    _compare_towns(a.address, b.address, placed, say)
    if metres is not None:
        if near:
            # The position mostly comes from the address: it adds little to it.
            say(ReasonCode.NEAR, 1.0 if placed is ReasonCode.SAME_ADDRESS else 4.0, f"{metres:.0f} m")
        elif metres > _FAR_METRES:
            say(ReasonCode.FAR, -3.0 if placed is ReasonCode.SAME_ADDRESS else -8.0, f"{metres / 1000:.1f} km")
    same_phone = False
    if a.phone and b.phone:
        same_phone = a.phone == b.phone
        if same_phone:
            shared = max(scale.phones.get(a.phone, 2) - 2, 0)
            say(ReasonCode.SAME_PHONE, max(2.0, 9.0 - 1.5 * shared), a.phone)
        else:
            say(ReasonCode.OTHER_PHONE, -1.0)
    ratio = _compare_names(a, b, scale, say)
    elsewhere = placed in (ReasonCode.OTHER_NUMBER, ReasonCode.OTHER_ADDRESS) and not near
    remote = metres is not None and metres > 10 * _FAR_METRES
    followed = linked_before and (elsewhere or remote) and (same_phone or ratio >= 0.9)
    if followed:
        say(ReasonCode.LINKED_BEFORE, 14.0)
    stacked = a.is_menu and b.is_menu and a.platform == b.platform and ratio < 0.6 and not same_phone
    veto = stacked or ((elsewhere or remote) and not followed)
    score = _PRIOR + sum(reason.weight or 0.0 for reason in reasons)
    return Comparison(score, tuple(reasons), veto, ratio, placed is ReasonCode.SAME_ADDRESS)


def _compare_addresses(a: Address, b: Address) -> tuple[ReasonCode | None, float]:
    """What two addresses are to each other, with its bits; None where one names no building."""
    if not a.is_place or not b.is_place:
        return None, 0.0
    same_town = bool((a.zipcode and a.zipcode == b.zipcode) or (a.city and a.city == b.city))
    streets = street_likeness(a, b)
    opposed = bool(a.directions and b.directions and not _agree(a.directions, b.directions))
    if a.numbers & b.numbers:
        if streets == 1.0 and not opposed:
            suffixes = a.suffix and b.suffix and a.suffix != b.suffix
            return ReasonCode.SAME_ADDRESS, (11.0 if suffixes else 13.0)
        if streets == 1.0 or streets >= 0.6:
            return ReasonCode.SIMILAR_ADDRESS, (6.0 if opposed else 8.0)
        return (
            (ReasonCode.SIMILAR_ADDRESS, 2.0) if _renamed_road(a, b) and same_town else (ReasonCode.OTHER_ADDRESS, -8.0)
        )
    if (
        streets == 1.0
        and same_town
        and not opposed
        and any(_one_digit_apart(x, y) for x in a.numbers for y in b.numbers)
    ):
        return ReasonCode.SIMILAR_ADDRESS, 1.0  # a slip of a digit; a whole name has to go with it
    return (ReasonCode.OTHER_NUMBER, -8.0) if streets >= 0.6 else (ReasonCode.OTHER_ADDRESS, -8.0)


def street_likeness(a: Address, b: Address) -> float:
    """0 to 1: 1.0 for the same words, 0.8 where one has more of them ("Paseo del Pueblo Sur", "Paseo del Sur")."""
    if a.street == b.street or "".join(a.street) == "".join(b.street):
        return 1.0
    if a.street[0] in ("highway", "county road") or b.street[0] in ("highway", "county road"):
        return 0.0
    words_a, words_b = set(a.street), set(b.street)
    if words_a <= words_b or words_b <= words_a:
        return 0.8
    if one_edit(" ".join(a.street), " ".join(b.street)):
        return 0.8
    alike = similarity("".join(a.street), "".join(b.street))
    return alike if alike >= 0.7 or (alike >= 0.6 and a.street[0][:2] == b.street[0][:2]) else 0.0


def _renamed_road(a: Address, b: Address) -> bool:
    """A highway through a town has a street's name as well ("123 Route 66", "123 Tucumcari Boulevard")."""
    return (a.street[0] == "highway") != (b.street[0] == "highway")


def _agree(a: frozenset[str], b: frozenset[str]) -> bool:
    """Directions may be more or less exact: W and NW agree, E and NW do not."""
    letters_a, letters_b = set("".join(a)), set("".join(b))
    return letters_a <= letters_b or letters_b <= letters_a


def _one_digit_apart(x: str, y: str) -> bool:
    return len(x) == len(y) >= 3 and sum(p != q for p, q in zip(x, y, strict=True)) == 1 and abs(int(x) - int(y)) < 10


def _compare_units(a: Address, b: Address, placed: ReasonCode | None, say: _Say) -> None:
    if placed not in (ReasonCode.SAME_ADDRESS, ReasonCode.SIMILAR_ADDRESS) or not a.units or not b.units:
        return
    detail = f"{' '.join(sorted(a.units))} / {' '.join(sorted(b.units))}"
    if a.units & b.units:
        say(ReasonCode.SAME_UNIT, 3.0, detail)
    else:
        say(ReasonCode.OTHER_UNIT, -4.0, detail)


def _compare_towns(a: Address, b: Address, placed: ReasonCode | None, say: _Say) -> None:
    """Zip and town are part of the address: they matter where they disagree, or where there is no street to compare."""
    zips = bool(a.zipcode and b.zipcode)
    cities = bool(a.city and b.city)
    detail = f"{a.city} {a.zipcode} / {b.city} {b.zipcode}"
    if zips and a.zipcode == b.zipcode:
        say(ReasonCode.SAME_TOWN, 2.0, detail)
    elif cities and a.city == b.city:
        say(ReasonCode.SAME_TOWN, 1.0, detail)
    elif zips and cities:
        say(
            ReasonCode.OTHER_TOWN,
            -2.0 if similarity(a.city.replace(" ", ""), b.city.replace(" ", "")) >= 0.6 else -6.0,
            detail,
        )
    elif zips or cities:
        say(ReasonCode.OTHER_TOWN, -3.0, detail)


def _compare_names(a: Record, b: Record, scale: Scale, say: _Say) -> float:
    best = (0.0, 0.0)
    for x in a.names:
        for y in b.names:
            shared, ratio = likeness(x, y, scale.weigh)
            best = max(best, (round(ratio, 3), shared))
    ratio, shared = best
    if not a.names or not b.names:
        return 0.0
    detail = f"{a.label} / {b.label}"
    if ratio >= 0.9:
        say(ReasonCode.SAME_NAME, min(9.0, 1.0 + shared), detail)
    elif ratio >= 0.4:
        say(ReasonCode.SIMILAR_NAME, min(6.0, shared * ratio), detail)
    else:
        # A licence is often in the name of a company that no shop shows.
        say(
            ReasonCode.OTHER_NAME,
            -7.0 if a.is_menu and b.is_menu else -3.0 if a.trade_named and b.trade_named else -1.0,
            detail,
        )
    return ratio


def _distance(a: tuple[float, float] | None, b: tuple[float, float] | None) -> float | None:
    """Metres between two positions."""
    if a is None or b is None:
        return None
    north = (a[0] - b[0]) * 111_195
    east = (a[1] - b[1]) * 111_195 * math.cos(math.radians((a[0] + b[0]) / 2))
    return math.hypot(north, east)
