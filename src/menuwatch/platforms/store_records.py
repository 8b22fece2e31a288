"""Records of lists of stores: parsing, texts, coordinates and time zones. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from math import isfinite
from typing import Any
from zoneinfo import available_timezones

import msgspec

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.geo import states
from menuwatch.platforms.items import oversized
from menuwatch.platforms.json_repair import fix_escapes
from menuwatch.platforms.model import FoundStore

LONGEST_TEXT = 500
"""Maximum characters of a field with a column: some are indexed, which limits them to 2,700 bytes."""
_DEEPEST = 32
"""Maximum nesting of a stored field; real ones have 4 levels."""


class StoreRecord:
    """A store's record. Its fields are read by path (`location.city`); one of another type than expected reads as None."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def value(self, path: str) -> Any:
        """The value in a field."""
        value: Any = self._fields
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def text(self, *paths: str) -> str | None:
        """The stripped text in the first of these fields with a nonempty one that is not too long for a column."""
        for path in paths:
            value = self.value(path)
            if isinstance(value, str) and len(value) <= LONGEST_TEXT and (text := clean(value)):
                return text
        return None

    def name(self, slug: str) -> str:
        """The name, unchanged; the slug where it has none."""
        name = self.value("name")
        return name if isinstance(name, str) and name.strip() else slug

    def flag(self, path: str) -> bool | None:
        """The boolean in a field."""
        value = self.value(path)
        return value if isinstance(value, bool) else None

    def kept(self, names: Iterable[str]) -> dict[str, Any]:
        """Those of the fields that say something and are not nested beyond reason: serializing them recurses."""
        return {
            name: value
            for name in names
            if (value := self._fields.get(name)) not in (None, "", [], {}) and _is_flat(value)
        }


def read_record(raw: msgspec.Raw) -> StoreRecord | FoundStore:
    """Parses a record; a store with a `problem` if it cannot be read. Numbers that the database cannot store are null."""
    problem = "the record is not a JSON object"
    if oversized(raw):
        problem = "the record is too large"
    else:
        try:
            fields = json.loads(
                fix_escapes(bytes(raw)).decode("utf-8", "replace"),
                parse_float=lambda text: value if isfinite(value := float(text)) else None,  # 1e400 is infinity
                parse_int=lambda text: int(text) if len(text) < 20 else None,
                parse_constant=lambda _: None,
            )
            if isinstance(fields, dict):
                return StoreRecord(fields)
        except (ValueError, RecursionError):
            pass
    return FoundStore(platform_dispensary_id="", slug="", name_raw="", name="", problem=problem)


def _is_flat(value: Any, levels: int = _DEEPEST) -> bool:
    """Whether a value is nested no deeper than that."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return levels > 0 and all(_is_flat(entry, levels - 1) for entry in value)


def valid_coordinates(latitude: Any, longitude: Any) -> tuple[float | None, float | None]:
    """(latitude, longitude) in degrees; (None, None) if they are not numbers, out of range, or the placeholder 0, 0."""
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in (latitude, longitude)):
        return None, None
    if not (isfinite(latitude) and isfinite(longitude) and abs(latitude) <= 90 and abs(longitude) <= 180):
        return None, None
    return (float(latitude), float(longitude)) if latitude or longitude else (None, None)


def state_code(text: str | None) -> str | None:
    """The two-letter code of a state or province given by code or name, in any case; a text that is neither is unchanged.

    Platforms differ: Dutchie gives codes, Weedmaps names. Schedules, filters and state pages work on codes.
    """
    return None if text is None else states.code_in_america(text) or text


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
"""Former time zone names, which a system's zone data may lack, and their present names."""


@lru_cache(maxsize=1)
def _known_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def iana_timezone(name: str | None) -> str | None:
    """The IANA name of a time zone, with former names replaced; None if it is invalid."""
    if name is None:
        return None
    name = _OLD_ZONES.get(name, name)
    known = _known_zones()
    # A system without zone data knows no zones: accept the platform's name.
    return name if name in known or (not known and "/" in name) else None
