"""A ConsumerDispensaries record as a store.

Coordinates come as [longitude, latitude]; names with spaces at their ends ("4K Cannabis "); ids as 24 hexadecimal digits or 17
letters and digits, so they are opaque. A name may change while the slug (`cName`) stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from menuwatch.platforms.base import FoundStore
from menuwatch.platforms.dutchie.text import clean, mend_escapes
from menuwatch.platforms.records import on_earth, text_of
from menuwatch.platforms.zones import zone

KEPT = (
    "chain",
    "status",
    "email",
    "description",
    "location",
    "enabledOrderTypes",
    "pickupHours",
    "deliveryHours",
    "specialHours",
    "activeCategories",
    "taxConfig",
    "feeTiers",
    "menuUrl",
    "embeddedMenuUrl",
    "embedBackUrl",
    "customDomainSettings",
    "logoImage",
    "listImage",
    "updatedAt",
)
"""Fields of the record that are kept beside the columns: what is of use, and none of the tokens of a shop's other services."""

_OPEN = frozenset({"", "open", "active"})

_DEEPEST = 32
"""Levels of nesting that a kept field may have; what is real has 4."""


def found_store(raw: msgspec.Raw, base_url: str) -> FoundStore:
    """The store in a record. `problem` says why it cannot be crawled: no id, no slug, not open, no object."""
    record = _object(raw)
    if record is None:
        return FoundStore(
            platform_dispensary_id="", slug="", name_raw="", name="", problem="the record is not a JSON object"
        )
    store_id = text_of(record, "id") or text_of(record, "_id") or ""
    slug = text_of(record, "cName") or store_id
    name_raw = record.get("name") if isinstance(record.get("name"), str) else None
    location = _map(record, "location")
    latitude, longitude = _coordinates(location)
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=name_raw or slug,
        name=clean(name_raw or slug),
        address=text_of(record, "address") or text_of(location, "ln1"),
        city=text_of(location, "city"),
        state=text_of(location, "state"),
        country=text_of(location, "country"),
        zipcode=text_of(location, "zipcode"),
        latitude=latitude,
        longitude=longitude,
        timezone=zone(text_of(record, "timezone")),
        phone=text_of(record, "phone"),
        is_recreational=_flag(record, "recDispensary"),
        is_medical=_flag(record, "medicalDispensary"),
        enterprise_id=text_of(_map(record, "retailer"), "enterpriseId"),
        menu_url=f"{base_url}/dispensary/{slug}" if slug else None,
        category_counts=_counts(record.get("productCategorySummary")),
        problem=_problem(record, store_id),
        raw={key: record[key] for key in KEPT if record.get(key) not in (None, "", [], {}) and _flat(record[key])},
    )


def _object(raw: msgspec.Raw) -> dict[str, Any] | None:
    try:
        record = json.loads(
            mend_escapes(bytes(raw)).decode("utf-8", "replace"),
            parse_float=_fraction,
            parse_int=_whole,
            parse_constant=lambda _: None,
        )
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _fraction(text: str) -> float | None:
    """None for what no database takes as a number: 1e400 is infinity here."""
    value = float(text)
    return value if isfinite(value) else None


def _whole(text: str) -> int | None:
    return int(text) if len(text) < 20 else None


def _flat(value: Any, levels: int = _DEEPEST) -> bool:
    """Whether a value is nested no deeper than that: whoever writes it as JSON again has to walk it."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return levels > 0 and all(_flat(entry, levels - 1) for entry in value)


def _problem(record: Mapping[str, Any], store_id: str) -> str | None:
    if not store_id:
        return "the record has no id"
    status = (text_of(record, "status") or "").lower()
    return None if status in _OPEN else f"the store is not open: its status is {status!r}"


def _flag(holder: Mapping[str, Any], key: str) -> bool | None:
    value = holder.get(key)
    return value if isinstance(value, bool) else None


def _map(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def _coordinates(location: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """(latitude, longitude) in degrees; (None, None) where there are none, or none on this planet, or a filler [0, 0]."""
    pair = _map(location, "geometry").get("coordinates")
    if not isinstance(pair, list) or len(pair) != 2:
        return None, None
    longitude, latitude = pair
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in pair):
        return None, None
    return on_earth(latitude, longitude)


def _counts(summary: Any) -> dict[str, int]:
    """Products by category as the platform counts them: a cross-check of a crawl."""
    found: dict[str, int] = {}
    for entry in summary if isinstance(summary, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("category"), str) and type(entry.get("value")) is int:
            found[entry["category"]] = entry["value"]
    return found
