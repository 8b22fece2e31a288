"""Units that people of a place use: kilometers and Canadian dollars in Canada, miles and US dollars in the United States. Pure.

Searches and alerts keep their radius in miles everywhere; only what is shown differs.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from menuwatch.geo import states

METERS_PER_MILE = 1609.344
KM_PER_MILE = METERS_PER_MILE / 1000
CURRENCIES = ("USD", "CAD")
_EARTH_METERS = 6_371_008.8
_STATE = re.compile(r", ([A-Z]{2})\b")


def is_metric(state: str | None) -> bool:
    """Whether distances from a place in this state or province are shown in kilometers."""
    return state in states.PROVINCES


def currency(state: str | None) -> str:
    """Currency of the stores in this state or province, USD or CAD: that of the SQL function `currency_of`."""
    return "CAD" if is_metric(state) else "USD"


def state_of(label: str) -> str | None:
    """The state or province in a place's label: `ON` for "Toronto, ON M5V"; None if it names none."""
    match = _STATE.search(label)
    return match[1] if match else None


def distance(meters: float | None, state: str | None) -> str:
    """`0.4 mi`, `12 mi` from a place in that state, `0.6 km`, `19 km` from one in Canada; empty if unknown."""
    if meters is None:
        return ""
    length, unit = _length(meters, state)
    return f"{length:.1f} {unit}" if length < 9.95 else f"{length:,.0f} {unit}"


def distance_of_miles(miles: Decimal | float, state: str | None) -> str:
    """As `distance`, of a length in miles."""
    return distance(float(miles) * METERS_PER_MILE, state)


def approximate_distance(meters: float, state: str | None) -> str | None:
    """`about 12 mi`, from a place in Canada `about 19 km`; None for less than one. For a position that is only known by
    the area that it is in."""
    length, unit = _length(meters, state)
    return f"about {length:,.0f} {unit}" if length >= 1 else None


def _length(meters: float, state: str | None) -> tuple[float, str]:
    return (meters / 1000, "km") if is_metric(state) else (meters / METERS_PER_MILE, "mi")


def meters_between(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Length of the great circle between two positions, latitude and longitude in degrees."""
    (north, east), (other_north, other_east) = (map(math.radians, position) for position in (a, b))
    half = math.sin((other_north - north) / 2) ** 2
    half += math.cos(north) * math.cos(other_north) * math.sin((other_east - east) / 2) ** 2
    return 2 * _EARTH_METERS * math.asin(min(1.0, math.sqrt(half)))


def radius(miles: int, state: str | None) -> str:
    """A radius around a place in that state: `25 miles`; in Canada, rounded: `40 km`."""
    return f"{miles * KM_PER_MILE:.0f} km" if is_metric(state) else f"{miles} miles"
