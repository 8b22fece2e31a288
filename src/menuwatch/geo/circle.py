"""A circle around a position: what lies near a place."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from menuwatch.core.errors import Refused
from menuwatch.geo.units import METERS_PER_MILE

FARTHEST_MILES = 500
"""Largest distance from a place."""
DEFAULT_MILES = 25
"""Distance from a place, unless another is given."""
_POSITION = re.compile(r"-?\d{1,3}(?:\.\d{1,12})?, ?-?\d{1,3}(?:\.\d{1,12})?")


class Circle(NamedTuple):
    """A circle around a position in degrees."""

    latitude: float
    longitude: float
    meters: float

    @classmethod
    def around(cls, position: str, miles: float) -> Circle:
        """The circle around `35.08,-106.65`, latitude and longitude in degrees; raises Refused."""
        if _POSITION.fullmatch(position):
            latitude, longitude = map(float, position.split(","))
            if abs(latitude) <= 90 and abs(longitude) <= 180:
                return cls(latitude, longitude, miles * METERS_PER_MILE)
        raise Refused("must be latitude and longitude in degrees, such as 35.08,-106.65")


def circle_values(circle: Circle | None) -> dict[str, Any]:
    """`latitude`, `longitude` and `meters` as query parameters, null without a circle."""
    return dict.fromkeys(Circle._fields) if circle is None else circle._asdict()
