"""Coordinates of a postcode or city of the United States, from the list in the package `zipcodes`.

The list is unpacked on first use: that blocks the process for 0.4 s and keeps 55 MB. Servers call `warm` before the first request;
commands that do not use it do not pay.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import zipcodes

from menuwatch.geo import states

_list: Any = zipcodes  # marked as typed, but its functions are not

LONGEST_TEXT = 100
"""Longest query, in characters; nothing longer is a place."""

_POSTCODE = re.compile(r"(?:[^0-9]*[^0-9A-Za-z])?([0-9]{5})(?:[- ]?[0-9]{4})?")
_FIVE_DIGITS = re.compile("[0-9]{5}")
_IN_NAMES = re.compile(r"[^a-z0-9]+")
_SHORT = {"saint": "st", "sainte": "ste", "fort": "ft", "mount": "mt"}


@dataclass(frozen=True, slots=True)
class Place:
    """A postcode's area or a city: its middle, in degrees. `postcode` is None where it is a whole city."""

    postcode: str | None
    city: str
    state: str
    """Two letters."""
    latitude: float
    longitude: float

    @property
    def point(self) -> tuple[float, float]:
        """Latitude and longitude."""
        return self.latitude, self.longitude

    @property
    def label(self) -> str:
        """As people write it: `Phoenix, AZ 85001`."""
        return f"{self.city}, {self.state}" + (f" {self.postcode}" if self.postcode else "")


def warm() -> None:
    """Unpacks the list now rather than at the first question."""
    _list.matching("00501")


def find(text: str) -> Place | None:
    """Parses user input: `85001`, `85001-1234`, `Phoenix, AZ`, `phoenix arizona`, `Phoenix, AZ 85001`. None for anything else."""
    query = " ".join(_ascii(text[: LONGEST_TEXT + 1]).split())
    if not query or len(query) > LONGEST_TEXT:
        return None
    if (number := _POSTCODE.fullmatch(query)) is not None:
        return postcode(number[1])
    name, comma, state = query.rpartition(",")
    if comma:
        return city(name, state)
    words = query.split(" ")
    # "Charleston West Virginia": the longest state at its end is the one that is meant.
    for at in range(max(1, len(words) - 3), len(words)):
        if states.code_of(" ".join(words[at:])):
            return city(" ".join(words[:at]), " ".join(words[at:]))
    return None


@functools.lru_cache(maxsize=4096)
def postcode(number: str) -> Place | None:
    """The area of five digits; None where there is no such postcode, or it is nowhere on a map (a post office of the forces)."""
    if _FIVE_DIGITS.fullmatch(number) is None:
        return None
    return next((_place(row) for row in _list.matching(number) if _has_coordinates(row)), None)


def city(name: str, state: str) -> Place | None:
    """The middle of a city, by any name that the post knows it by; the state as two letters or in full."""
    code = states.code_of(state)
    return None if code is None else _cities(code).get(_plain(name))


@functools.cache
def _cities(state: str) -> Mapping[str, Place]:
    """The cities of a state, by plain name: their own, then those that the post accepts, then those that it does not."""
    rows = [row for row in _list.filter_by(state=state) if _has_coordinates(row)]
    own: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        own.setdefault(_plain(row["city"]), []).append(row)
    cities = {name: _middle(areas) for name, areas in own.items()}
    for others in ("acceptable_cities", "unacceptable_cities"):
        for row in rows:
            for other in row[others]:
                cities.setdefault(_plain(other), cities[_plain(row["city"])])
    return cities


def _middle(rows: Iterable[Mapping[str, Any]]) -> Place:
    """The mean of a city's areas where people live; post-office boxes count only where there is nothing else."""
    every = list(rows)
    chosen = [row for row in every if row["zip_code_type"] == "STANDARD" and row["active"]] or every
    return Place(
        None,
        chosen[0]["city"],
        chosen[0]["state"],
        round(sum(float(row["lat"]) for row in chosen) / len(chosen), 4),
        round(sum(float(row["long"]) for row in chosen) / len(chosen), 4),
    )


def _place(row: Mapping[str, Any]) -> Place:
    return Place(row["zip_code"], row["city"], row["state"], float(row["lat"]), float(row["long"]))


def _has_coordinates(row: Mapping[str, Any]) -> bool:
    return float(row["lat"] or 0) != 0 or float(row["long"] or 0) != 0


def _plain(name: str) -> str:
    """Without what people write in several ways: `O'Fallon` and `O Fallon`, `Saint Louis` and `St. Louis`."""
    words = _IN_NAMES.sub(" ", _ascii(name).lower()).split()
    return "".join(_SHORT.get(word, word) for word in words)


def _ascii(text: str) -> str:
    """Letters without their accents; what is no ASCII without them is left out."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
