"""How far two points of the earth are from each other."""

from __future__ import annotations

import math

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the earth (IUGG). On a ball of it a distance is wrong by 0.5 % at most."""
KM_PER_MILE = 1.609344

Point = tuple[float, float]
"""Latitude and longitude, in degrees."""


def distance_km(a: Point, b: Point) -> float:
    """Along the great circle (haversine), in km."""
    lat_a, lon_a, lat_b, lon_b = map(math.radians, (*a, *b))
    half = math.sin((lat_b - lat_a) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    # Rounding may leave it a hair above 1 for points that are opposite each other.
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half)))


def distance_miles(a: Point, b: Point) -> float:
    """Along the great circle, in miles."""
    return distance_km(a, b) / KM_PER_MILE
