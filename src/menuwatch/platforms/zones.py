"""Time zones by the names of the IANA database."""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import available_timezones

_OLD_ZONES = {
    "US/Alaska": "America/Anchorage",
    "US/Aleutian": "America/Adak",
    "US/Arizona": "America/Phoenix",
    "US/Central": "America/Chicago",
    "US/East-Indiana": "America/Indiana/Indianapolis",
    "US/Eastern": "America/New_York",
    "US/Hawaii": "Pacific/Honolulu",
    "US/Michigan": "America/Detroit",
    "US/Mountain": "America/Denver",
    "US/Pacific": "America/Los_Angeles",
    "Canada/Atlantic": "America/Halifax",
    "Canada/Central": "America/Winnipeg",
    "Canada/Eastern": "America/Toronto",
    "Canada/Mountain": "America/Edmonton",
    "Canada/Newfoundland": "America/St_Johns",
    "Canada/Pacific": "America/Vancouver",
    "Canada/Saskatchewan": "America/Regina",
}
"""Former names of zones, which a system's zone data may lack, and what they are called now."""


@lru_cache(maxsize=1)
def _known_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def zone(name: str | None) -> str | None:
    """The IANA name of a time zone, former names in their present form; None for what is none."""
    if name is None:
        return None
    name = _OLD_ZONES.get(name, name)
    known = _known_zones()
    # A system without zone data knows none at all: then the platform's word is taken.
    return name if name in known or (not known and "/" in name) else None
