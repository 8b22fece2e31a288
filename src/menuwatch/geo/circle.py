"""A circle around a place: what lies near it, and how people and programs name the place."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from menuwatch.core.errors import Refused
from menuwatch.geo import postcodes
from menuwatch.geo.units import METERS_PER_MILE

FARTHEST_MILES = 500
"""Largest distance from a place."""
DEFAULT_MILES = 25
"""Distance from a place, unless another is given."""
PLACE_FORMS = "a city with its state (Santa Fe, NM), a ZIP or postal code, or latitude and longitude (35.08,-106.65)"
"""What names a place."""
_POSITION = re.compile(r"(-?[0-9]{1,3}(?:\.[0-9]{1,20})?) ?, ?(-?[0-9]{1,3}(?:\.[0-9]{1,20})?)")


class Circle(NamedTuple):
    """A circle around a position in degrees."""

    latitude: float
    longitude: float
    meters: float


class Area(NamedTuple):
    """A circle around a place."""

    circle: Circle
    place: str
    """`Santa Fe, NM 87501`, `35.08,-106.65`."""


def parse_area(near: str, miles: float) -> Area:
    """The circle around a place, given as PLACE_FORMS says: around a position itself, around the middle of a city or postcode.

    A city without its state is the most populous of that name. Raises Refused.
    """
    text = near.strip()
    meters = miles * METERS_PER_MILE
    if (degrees := _POSITION.fullmatch(text)) is not None:
        latitude, longitude = float(degrees[1]), float(degrees[2])
        if abs(latitude) <= 90 and abs(longitude) <= 180:
            return Area(Circle(latitude, longitude, meters), f"{degrees[1]},{degrees[2]}")
    elif (place := postcodes.find(text)) is not None:
        return Area(Circle(place.latitude, place.longitude, meters), place.label)
    raise Refused(f"unknown place {text[:40]!r}: give {PLACE_FORMS}")


def circle_values(circle: Circle | None) -> dict[str, Any]:
    """`latitude`, `longitude` and `meters` as query parameters, null without a circle."""
    return dict.fromkeys(Circle._fields) if circle is None else circle._asdict()
