"""Stores: as a listing answer has them, and as far as a menu's items tell of theirs.

A listing's record is flat: `id, slug, name, address, city, state, zip_code, latitude, longitude, phone_number, timezone, license_type,
web_url`. No such answer was recorded: the names are those that public callers read. Of the recorded menus only the items tell of their
store: `relationships.listing` has its id, `links` its slug and its address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

import msgspec

from menuwatch.catalog.canon.text import clean
from menuwatch.platforms import lenient
from menuwatch.platforms.base import FoundStore
from menuwatch.platforms.weedmaps.identity import named
from menuwatch.platforms.weedmaps.normalize import item_of

_PATH = re.compile(r"/(?P<kind>dispensaries|deliveries|stores)/(?P<slug>[A-Za-z0-9][A-Za-z0-9._~-]*)(?:/|$)")
_LONGEST_TEXT = 500
"""Characters of a field that has a column: several have an index, which takes 2,700 bytes."""

KEPT = (
    "type",
    "license_type",
    "menu_items_count",
    "rating",
    "reviews_count",
    "web_url",
    "avatar_image",
    "online_ordering",
)
"""Fields of a record that are kept beside the columns."""


def slug_of(menu_url: str) -> str | None:
    """The slug in the address of a store or its menu on Weedmaps, None when it is none."""
    address = menu_url.strip()
    try:
        parts = urlsplit(address if "://" in address or address.startswith("/") else f"//{address}")
        host = (parts.hostname or "").lower()
    except ValueError:
        return None
    if host != "weedmaps.com" and not host.endswith(".weedmaps.com"):
        return None
    match = _PATH.match(parts.path)
    return match["slug"] if match else None


def store_in(items: Iterable[msgspec.Raw]) -> FoundStore | None:
    """What the first item that names its store tells of it, None where none does. Its name is in no menu: the slug stands for it."""
    for raw in items:
        item = item_of(raw)
        listing = item.relationships.listing if item is not None and item.relationships is not None else None
        store_id = named(listing.data.id) if listing is not None and listing.data is not None else None
        if item is None or store_id is None:
            continue
        links = item.links
        match = _PATH.match(links.self) if links is not None and links.self else None
        slug = match["slug"] if match else store_id
        return FoundStore(
            platform_dispensary_id=store_id,
            slug=slug,
            name_raw=slug,
            name=slug,
            menu_url=f"https://weedmaps.com/{match['kind']}/{slug}" if match else None,
        )
    return None


def found_store(raw: msgspec.Raw) -> FoundStore:
    """The store in a listing's record. `problem` says why it cannot be crawled: no id, no slug, no object."""
    try:
        record = lenient.writable(lenient.read(bytes(raw)))
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        return FoundStore(
            platform_dispensary_id="", slug="", name_raw="", name="", problem="the record is not a JSON object"
        )
    store_id = named(record.get("id")) or ""
    slug = _text(record, "slug") or store_id
    name = record.get("name")
    name_raw = name if isinstance(name, str) and name.strip() else slug
    latitude, longitude = _coordinates(record)
    licence = (_text(record, "license_type") or "").lower()
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=name_raw,
        name=clean(name_raw),
        address=_text(record, "address"),
        city=_text(record, "city"),
        state=_text(record, "state"),
        country=_text(record, "country"),
        zipcode=_text(record, "zip_code"),
        latitude=latitude,
        longitude=longitude,
        timezone=_text(record, "timezone"),
        phone=_text(record, "phone_number"),
        is_recreational=licence in {"recreational", "hybrid"} if licence else None,
        is_medical=licence in {"medical", "hybrid"} if licence else None,
        menu_url=_text(record, "web_url"),
        problem=None if store_id else "the record has no id",
        raw={key: _plain(record[key]) for key in KEPT if record.get(key) not in (None, "", [], {})},
    )


def _plain(value: Any) -> Any:
    """The value as jsonb takes it (its numbers as texts, which are only looked at)."""
    return value if isinstance(value, str | bool) else str(value)[:_LONGEST_TEXT]


def _text(holder: Mapping[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return (clean(value) or None) if isinstance(value, str) and len(value) <= _LONGEST_TEXT else None


def _coordinates(record: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """(latitude, longitude) in degrees; (None, None) where there are none, or none on this planet, or a filler 0, 0."""
    try:
        latitude, longitude = float(record["latitude"]), float(record["longitude"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None, None
    on_earth = isfinite(latitude) and isfinite(longitude) and abs(latitude) <= 90 and abs(longitude) <= 180
    return (latitude, longitude) if on_earth and (latitude or longitude) else (None, None)
