"""Coordinates of postcodes and cities of the United States and Canada.

The United States are in the package `zipcodes`; Canada, and populations, in the tables of `geo/data`, which
`tools/make_places.py` makes from data of GeoNames (https://www.geonames.org, CC BY 4.0).

The lists are unpacked on first use: that blocks the process for about a second and keeps 60 MB. Servers call `warm` before the first
request; commands that do not use it do not pay.
"""

from __future__ import annotations

import csv
import functools
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

import zipcodes
from msgspec import Struct

from menuwatch.geo import states

_list: Any = zipcodes  # marked as typed, but its functions are not

LONGEST_TEXT = 100
"""Longest query, in characters; nothing longer is a place."""

_POSTCODE = re.compile(r"(?:[^0-9]*[^0-9A-Za-z])?([0-9]{5})(?:[- ]?[0-9]{4})?")
_FIVE_DIGITS = re.compile("[0-9]{5}")
_CANADIAN = re.compile(r"(?:.*[^0-9A-Za-z])?([A-Za-z][0-9][A-Za-z])(?:[- ]?[0-9][A-Za-z][0-9])?")
_POSITION = re.compile(r"(-?[0-9]{1,2}(?:\.[0-9]{1,9})?), ?(-?[0-9]{1,3}(?:\.[0-9]{1,9})?)")
_COUNTRY = re.compile(r"[, ]+(usa|u\.s\.a\.|united states|canada)$", re.IGNORECASE)
_IN_NAMES = re.compile(r"[^a-z0-9]+")
_SHORT = {"saint": "st", "sainte": "ste", "fort": "ft", "mount": "mt"}
_LARGE = 100_000
"""How many people a city has that is meant by the name of a state: `New York`, but not `California` in Maryland."""
_TOWN_KM = 80
"""How far a position may be from the town that it is called after."""


class Place(Struct, frozen=True):
    """A postcode's area, a city or a position: its middle, in degrees. `postcode` is None except for an area; of a Canadian one it has
    the first three characters."""

    postcode: str | None
    city: str
    state: str
    """Two letters; empty for a position far from every town."""
    latitude: float
    longitude: float
    is_position: bool = False
    """Given in degrees; `city` is the nearest town."""

    @property
    def point(self) -> tuple[float, float]:
        """Latitude and longitude."""
        return self.latitude, self.longitude

    @property
    def label(self) -> str:
        """As people write it: `Phoenix, AZ 85001`."""
        if not self.state:
            return "this location"
        name = f"{self.city}, {self.state}" + (f" {self.postcode}" if self.postcode else "")
        return f"this location ({name})" if self.is_position else name


def warm() -> None:
    """Unpacks the lists now rather than at the first question."""
    for state in (*states.NAMES, *states.PROVINCES):
        _cities(state)
    _people()


def find(text: str) -> Place | None:
    """The place that a text means; of several the most populous one. None if there is none."""
    return next(iter(find_all(text)), None)


def find_all(text: str) -> tuple[Place, ...]:
    """The places that a text may mean, the most populous first: several for the name of a city in several states.

    Understands `85001`, `85001-1234`, `M5V 2T6`, `Phoenix, AZ`, `phoenix arizona`, `Phoenix`, `Phoenix, AZ 85001`, `33.45, -112.07`.
    """
    query = " ".join(_ascii(text[: LONGEST_TEXT + 1]).split())
    if not query or len(query) > LONGEST_TEXT:
        return ()
    if (degrees := _POSITION.fullmatch(query)) is not None:
        return _only(position(float(degrees[1]), float(degrees[2])))
    if (number := _POSTCODE.fullmatch(query)) is not None:
        return _only(postcode(number[1]))
    if (area := _CANADIAN.fullmatch(query)) is not None:
        return _only(_canadian_postcodes().get(area[1].upper()))
    country = _COUNTRY.search(query)
    query = query[: country.start()] if country else query
    name, comma, state = query.rpartition(",")
    if comma:
        return _only(city(name, state))
    words = query.split(" ")
    # "Charleston West Virginia": the longest state at its end is the one that is meant.
    for at in range(max(1, len(words) - 4), len(words)):
        if states.code_in_america(" ".join(words[at:])) and (place := city(" ".join(words[:at]), " ".join(words[at:]))):
            return (place,)
    plain = _plain(query)
    places = _everywhere(plain) if plain else ()
    if country:
        canada = country[1].casefold() == "canada"
        places = tuple(place for place in places if (place.state in states.PROVINCES) == canada)
    return places


def _only(place: Place | None) -> tuple[Place, ...]:
    return () if place is None else (place,)


def position(latitude: float, longitude: float) -> Place | None:
    """A position, rounded to hundredths of a degree (about 1 km), and the nearest larger town. None if it is not on earth."""
    if abs(latitude) > 90 or abs(longitude) > 180:
        return None
    latitude, longitude = round(latitude, 2), round(longitude, 2)
    town = town_near(latitude, longitude)
    if town is None:
        return Place(None, "you", "", latitude, longitude, is_position=True)
    return Place(None, town.city, town.state, latitude, longitude, is_position=True)


def town_near(latitude: float, longitude: float) -> Place | None:
    """The nearest larger town of a position; None far from every town."""
    narrow = math.cos(math.radians(latitude))

    def km(town: Town) -> float:
        return 111.2 * math.hypot(town.latitude - latitude, (town.longitude - longitude) * narrow)

    nearest = min(_towns(), key=km)
    if km(nearest) > _TOWN_KM:
        return None
    return Place(None, nearest.name, nearest.state, nearest.latitude, nearest.longitude)


@functools.lru_cache(maxsize=4096)
def postcode(number: str) -> Place | None:
    """The area of five digits; None if it does not exist or has no position (a military post office)."""
    if _FIVE_DIGITS.fullmatch(number) is None:
        return None
    return next((_place(row) for row in _list.matching(number) if _has_coordinates(row)), None)


def city(name: str, state: str) -> Place | None:
    """The middle of a city, by any name that the postal service accepts; the state or province as two letters or in full."""
    code = states.code_in_america(state)
    return None if code is None else _cities(code).get(_plain(name))


@functools.cache
def _cities(state: str) -> Mapping[str, Place]:
    """The cities of a state or province, by plain name: their own, then those that the postal service accepts, then others."""
    if state in states.PROVINCES:
        return _canadian_cities(state)
    rows = [row for row in _list.filter_by(state=state) if _has_coordinates(row)]
    names = [_plain(row["city"]) for row in rows]
    own: dict[str, list[dict[str, Any]]] = {}
    for name, row in zip(names, rows, strict=True):
        own.setdefault(name, []).append(row)
    cities = {name: _middle(areas) for name, areas in own.items()}
    for others in ("acceptable_cities", "unacceptable_cities"):
        for name, row in zip(names, rows, strict=True):
            for other in row[others]:
                cities.setdefault(_plain(other), cities[name])
    return cities


def _canadian_cities(province: str) -> Mapping[str, Place]:
    """Towns, and then what areas of postal codes are called after."""
    cities: dict[str, Place] = {}
    for town in _towns():
        if town.state == province:
            cities.setdefault(_plain(town.name), Place(None, town.name, province, town.latitude, town.longitude))
    areas: dict[str, list[Place]] = {}
    for area in _canadian_postcodes().values():
        if area.state == province:
            areas.setdefault(area.city, []).append(area)
    for name, some in areas.items():
        latitude, longitude = (sum(values) / len(some) for values in zip(*(area.point for area in some), strict=True))
        cities.setdefault(_plain(name), Place(None, name, province, round(latitude, 4), round(longitude, 4)))
    return cities


def _everywhere(name: str) -> tuple[Place, ...]:
    """The cities of that plain name, most populous first. Other names of a city count only where none has it as its own."""
    found = [place for state in (*states.NAMES, *states.PROVINCES) if (place := _cities(state).get(name)) is not None]
    places = [place for place in found if _plain(place.city) == name] or found
    people = _people()
    counts = [people.get((_plain(place.city), place.state), 0) for place in places]
    least = _LARGE if name in _whole_states() else 0
    order = sorted(range(len(places)), key=lambda at: (-counts[at], places[at].state))
    return tuple(places[at] for at in order if counts[at] >= least)


@functools.cache
def _people() -> Mapping[tuple[str, str], int]:
    """Populations by plain name and state."""
    people: dict[tuple[str, str], int] = {}
    for town in _towns():
        people.setdefault((_plain(town.name), town.state), town.population)
        people.setdefault((_plain(town.name.removesuffix(" City")), town.state), town.population)
    return people


@functools.cache
def _whole_states() -> frozenset[str]:
    return frozenset(_plain(name) for name in (*states.NAMES.values(), *states.PROVINCES.values()))


class Town(Struct, frozen=True):
    """A town with its population."""

    name: str
    state: str
    latitude: float
    longitude: float
    population: int


@functools.cache
def _towns() -> tuple[Town, ...]:
    """Towns of Canada, and those of the United States with at least 15,000 people."""
    return tuple(
        Town(row["name"], row["state"], float(row["latitude"]), float(row["longitude"]), int(row["population"]))
        for row in _rows("cities.csv")
    )


def towns_between(south: float, north: float, west: float, east: float) -> list[Town]:
    """Towns within these bounds in degrees, the most populous first."""
    within = [town for town in _towns() if south <= town.latitude <= north and west <= town.longitude <= east]
    return sorted(within, key=lambda town: (-town.population, town.name))


@functools.cache
def _canadian_postcodes() -> Mapping[str, Place]:
    """Areas by the first three characters of their postal codes."""
    return {
        row["code"]: Place(row["code"], row["name"], row["province"], float(row["latitude"]), float(row["longitude"]))
        for row in _rows("canadian_postcodes.csv")
    }


def _rows(file: str) -> Iterator[dict[str, str]]:
    with (resources.files(__package__) / "data" / file).open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


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
    """Without what people write in different ways: `O'Fallon` and `O Fallon`, `Saint Louis` and `St. Louis`."""
    words = _IN_NAMES.sub(" ", _ascii(name).lower()).split()
    return "".join(_SHORT.get(word, word) for word in words)


def _ascii(text: str) -> str:
    """The text in ASCII: letters lose their accents, other characters are dropped."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
