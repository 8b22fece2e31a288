"""Reads postal addresses of the United States and Canada into comparable parts. Pure.

"4840-H Pan American East Freeway", "4840 Pan-american Freeway Northeast Suite H" are one address: house number, words of the street,
directions, suffix and unit are separated. What an address does not say is empty: parts that are missing are never equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from menuwatch.geo import states
from menuwatch.matching.locations.names import fold, word_set

_SUFFIXES = {
    "aly": "alley", "ave": "avenue", "av": "avenue", "avn": "avenue", "blvd": "boulevard", "bl": "boulevard", "blv": "boulevard",
    "boul": "boulevard", "cir": "circle", "ct": "court", "crt": "court", "ctr": "center", "centre": "center", "cv": "cove",
    "dr": "drive", "drv": "drive", "expy": "expressway", "expwy": "expressway", "ext": "extension", "fwy": "freeway",
    "hts": "heights", "hwy": "highway", "hiway": "highway", "jct": "junction", "ln": "lane", "lp": "loop", "pkwy": "parkway",
    "pky": "parkway", "pkw": "parkway", "parkwy": "parkway", "pl": "place", "plz": "plaza", "pt": "point", "rd": "road", "rt": "route",
    "rte": "route", "sq": "square", "st": "street", "str": "street", "ter": "terrace", "terr": "terrace", "trl": "trail",
    "tpke": "turnpike", "turnpk": "turnpike", "wy": "way", "xing": "crossing", "vly": "valley",
}  # fmt: skip
_ENDS = frozenset(_SUFFIXES.values()) | {"pike", "row", "path", "run", "walk", "mall"}
_DIRECTIONS = {
    "north": "n", "south": "s", "east": "e", "west": "w", "northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw",
    **{d: d for d in ("n", "s", "e", "w", "ne", "nw", "se", "sw")},
}  # fmt: skip
_ORDINALS = {
    "first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "sixth": "6th", "seventh": "7th",
    "eighth": "8th", "ninth": "9th", "tenth": "10th", "eleventh": "11th", "twelfth": "12th",
}  # fmt: skip
_UNITS = word_set(
    "suite ste suit unit units apt apartment building bldg bld floor flr fl room rm space spc sp lot stall store shop no number "
    "suites stes level dept bay"
)
_ROADS = frozenset({"highway", "route"})
_NO_STREET = re.compile(r"\b(?:p ?o ?box|pobox|pmb)\b.*")
_GLUED = re.compile(r"(?<=[a-z])(?=(?:suite|unit)\b)|(?<=\d)(?=(?:suite|unit)s?\b)")
_ZIP = re.compile(r"(\d{3,5})(?:-(?:\d{4})?|\.0+)?")
_ZIP_AT_END = re.compile(r"[\s,]+(\d{5})(?:-\d{4})?\s*$")
_POSITION_TEXT = re.compile(r"-?\d+\.\d{4,},?")


class Address(NamedTuple):
    """The parts of an address in comparable form. `numbers`: the house number, all of them where it is written as several."""

    numbers: frozenset[str] = frozenset()
    street: tuple[str, ...] = ()
    directions: frozenset[str] = frozenset()
    suffix: str = ""
    units: frozenset[str] = frozenset()
    city: str = ""
    state: str = ""
    zipcode: str = ""

    @property
    def is_place(self) -> bool:
        """Whether it names a building."""
        return bool(self.numbers and self.street)


def parse_zip(text: str | None) -> str:
    """Five digits: "1852.0", "01852-1234" and " 1852" are "01852"; empty if it is not a postcode of the United States."""
    match = _ZIP.fullmatch((text or "").strip())
    return match[1].zfill(5) if match else ""


def parse_phone(text: str | None) -> str:
    """Ten digits: "+1 (505) 888-2699" is "5058882699"; empty if it is not a North American number, or is a made-up one."""
    digits = re.sub(r"\D", "", re.split(r"(?i)\s*(?:x|ext)\.?\s*\d", text or "")[0])
    digits = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    return digits if len(digits) == 10 and digits[0] in "23456789" and len(set(digits)) > 2 else ""


def parse(text: str | None, city: str | None = None, state: str | None = None, zipcode: str | None = None) -> Address:
    """Reads an address; city, state and zip may be given, or stand in the text."""
    text = " ".join((text or "").split())
    zip_given, state_given, city_given = parse_zip(zipcode), _state(state), _words(city)
    if (match := _ZIP_AT_END.search(text)) is not None and len(text.split()) > 2:
        zip_given, text = zip_given or match[1], text[: match.start()]
    first, *rest = [part.strip() for part in text.split(",")] or [""]
    while rest and (code := _state(rest[-1])):
        state_given, rest = state_given or code, rest[:-1]
    parts = [first]
    for part in rest:
        words = _words(part)
        if any(len(word) > 2 and word != "and" for word in words) and not (
            re.search(r"\d", part) or set(words) & (_UNITS | set(_DIRECTIONS))
        ):
            city_given = city_given or words  # what follows the street without a number is the town
            continue
        parts.append(part)
    tokens = _words(_GLUED.sub(" ", _NO_STREET.sub("", _POSITION_TEXT.sub("", fold(" ".join(parts))))))
    tokens, state_given = _without_state(tokens, state_given)
    tokens, city_given = _without_city(tokens, city_given)
    if tokens and tokens[0] in tokens[1:] and tokens[0].isdigit():
        tokens = tokens[: tokens.index(tokens[0], 1)]  # written twice
    numbers, units, tokens = _numbers(tokens)
    tokens, more = _units(tokens)
    street, directions, suffix = _street(tokens, state_given)
    units |= {piece for unit in more if unit not in numbers for piece in unit.split("-")}
    return Address(numbers, street, directions, suffix, frozenset(units), " ".join(city_given), state_given, zip_given)


def _words(text: str | None) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:-[0-9]+)?", fold(text or "").replace("#", " unit "))


def _state(text: str | None) -> str:
    return states.code_in_america(text or "") or ""


def _without_state(tokens: list[str], state: str) -> tuple[list[str], str]:
    for size in (3, 2, 1):
        if (
            len(tokens) > size + 2
            and (code := _state(" ".join(tokens[-size:])))
            and (size > 1 or len(tokens[-1]) > 2 or code == state)
        ):
            if code in {"NE", "CT"} and code != state:
                continue
            return tokens[:-size], state or code
    return tokens, state


def _without_city(tokens: list[str], city: list[str]) -> tuple[list[str], list[str]]:
    """Takes the town off the end: the given one, or what follows the last suffix or unit of a street."""
    if city:
        size = len(city)
        return (tokens[:-size] if len(tokens) > size + 2 and tokens[-size:] == city else tokens), city
    ends = [at for at, token in enumerate(tokens) if at > 1 and _SUFFIXES.get(token, token) in _ENDS]
    if not ends:
        return tokens, city
    at = ends[-1] + 1
    while at < len(tokens) and (
        tokens[at] in _DIRECTIONS or tokens[at] in _UNITS or re.search(r"\d", tokens[at]) or len(tokens[at]) == 1
    ):
        at += 1
    town = tokens[at:]
    return (tokens[:at], town) if town and not any(re.search(r"\d", word) for word in town) else (tokens, city)


def _numbers(tokens: list[str]) -> tuple[frozenset[str], set[str], list[str]]:
    """House numbers and the unit written into them ("4840-H", "1033A"), and the other tokens."""
    numbers: set[str] = set()
    units: set[str] = set()
    at = 0
    while at < len(tokens) and (match := re.fullmatch(r"(\d+)(?:-(\d+))?([a-z]?)", tokens[at])):
        first, second, letter = match.groups()
        if second is None:
            numbers.add(first.lstrip("0") or first)
        elif len(first) == len(second) and 0 < int(second) - int(first) < 100:
            numbers |= {first, second}
        else:
            numbers.add(first + second)  # 104-15 Jamaica Avenue
        if letter:
            units.add(letter)
        at += 1
        letter_apart = at < len(tokens) - 1 and len(tokens[at]) == 1 and tokens[at] not in _DIRECTIONS
        if letter_apart and _SUFFIXES.get(tokens[at + 1], tokens[at + 1]) not in _ENDS:
            units.add(tokens[at])
            at += 1
            break
        if at >= len(tokens) - 1 or not tokens[at][0].isdigit() or re.fullmatch(r"\d+(?:st|nd|rd|th)", tokens[at]):
            break
    return frozenset(numbers), units, tokens[at:]


def _units(tokens: list[str]) -> tuple[list[str], set[str]]:
    """Cuts off everything from the first word for a unit on, and a single letter or number at the end."""
    for at, token in enumerate(tokens):
        if at and token in _UNITS and not (token in {"store", "shop"} and at + 1 == len(tokens)):
            return tokens[:at], {_unit(word) for word in tokens[at + 1 :] if word not in _UNITS | {"and", "bay"}}
    for at in range(len(tokens) - 1, 0, -1):
        # "7502 Mallard Way B", "Alameda A": but not the E of "Oak E", nor the 64 of "Highway 64".
        before = _SUFFIXES.get(tokens[at - 1], tokens[at - 1])
        if (
            not re.fullmatch(r"[a-z]?-?\d{1,4}[a-z]?|[a-df-mo-rt-vx-z]", tokens[at])
            or before in _ROADS
            or (at == 1 and before in _ENDS)
        ):
            break
        if at > 1 and before not in _ENDS and before not in _DIRECTIONS and len(tokens[at]) > 1:
            break
        if before in {"avenue", "avenida"} and len(tokens[at]) == 1 and at == 1:
            break
        if _SUFFIXES.get(tokens[at - 1], tokens[at - 1]) in _ENDS or before in _DIRECTIONS or len(tokens[at]) == 1:
            return tokens[:at], {_unit(tokens[at])}
    return tokens, set()


def _unit(word: str) -> str:
    return word.lstrip("0") or word


def _street(tokens: list[str], state: str) -> tuple[tuple[str, ...], frozenset[str], str]:
    tokens = [_ORDINALS.get(token, token) for token in _paired(tokens)]
    if tokens and tokens[0] == "st" and len(tokens) > 1:
        tokens[0] = "saint"
    tokens = [
        _SUFFIXES.get(token, token) if at or token in {"hwy", "rt", "rte"} else token for at, token in enumerate(tokens)
    ]
    if (road := _road(tokens, state)) is not None:
        return road, frozenset(_DIRECTIONS[t] for t in tokens if t in _DIRECTIONS), ""
    words = [token for token in tokens if token not in _DIRECTIONS]
    if not words or (words[0] in _ENDS and len(words) == 1):
        return tuple(tokens), frozenset(), ""  # North Avenue: the direction is its name
    directions = frozenset(_DIRECTIONS[token] for token in tokens if token in _DIRECTIONS)
    suffix = ""
    if len(words) > 1 and words[-1] in _ENDS:
        suffix = words.pop()
    elif len(words) > 1 and words[0] in {"avenue", "street"} and len(words) == 2:
        suffix = words.pop(0)  # Avenue O
    return tuple(words), directions, suffix


def _paired(tokens: Iterable[str]) -> list[str]:
    """ "North East" is one direction."""
    paired: list[str] = []
    for token in tokens:
        if paired and paired[-1] in ("north", "south") and token in ("east", "west"):
            paired[-1] += token
        else:
            paired.append(token)
    return paired


def _road(tokens: list[str], state: str) -> tuple[str, ...] | None:
    """("highway", "550") for "US-550 S", "W Hwy 550", "NM 528", "State Highway 518", "Historic Route 66"; None for a street."""
    text = " ".join(tokens).replace("-", " ")
    named = f"us|state|{state.lower() or 'us'}|county"
    match = re.search(
        rf"\b(?:(?:{named})\s*(?:highway|route|road)?|highway|route|interstate|i|sr|cr)\s*(\d+[a-z]?)\b",
        text,
    )
    if match is None:
        return None
    return ("county road" if match[0].startswith(("county", "cr")) else "highway", match[1])
