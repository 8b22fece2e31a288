"""Time zones by their IANA names."""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@lru_cache(maxsize=1024)
def is_zone(name: str) -> bool:
    """Whether a time zone has that name, as `America/Denver`."""
    if "/" not in name and name != "UTC":
        return False  # the data also hold files that are not zones, and names of countries
    try:
        ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return False
    return True
