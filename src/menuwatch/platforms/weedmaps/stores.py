"""Stores: as a listing answer has them, and as far as a menu's items tell of theirs.

A listing's record is flat: `id, slug, name, address, city, state, zip_code, latitude, longitude, phone_number, timezone, license_type,
web_url`. No such answer was recorded: the names are those that public callers read. Of the recorded menus only the items tell of their
store: `relationships.listing` has its id, `links` its slug and its address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from menuwatch.catalog.canon.text import clean
from menuwatch.platforms import lenient
from menuwatch.platforms.base import FoundStore
from menuwatch.platforms.records import LONGEST_TEXT, on_earth, text_of
from menuwatch.platforms.weedmaps.identity import named
from menuwatch.platforms.weedmaps.normalize import item_of
from menuwatch.platforms.weedmaps.payload import Item
from menuwatch.platforms.zones import zone

_PATH = re.compile(r"/(?P<kind>dispensaries|deliveries|stores)/(?P<slug>[A-Za-z0-9][A-Za-z0-9._~-]*)(?:/|$)")
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


def listing_of(item: Item | None) -> str | None:
    """The id of the listing that an item is of, None where it does not say."""
    listing = item.relationships.listing if item is not None and item.relationships is not None else None
    return named(listing.data.id) if listing is not None and listing.data is not None else None


def store_of(items: Iterable[msgspec.Raw]) -> str | None:
    """The listing that the first item which says so is of."""
    return next((found for raw in items if (found := listing_of(item_of(raw))) is not None), None)


def store_in(items: Iterable[msgspec.Raw]) -> FoundStore | None:
    """What the items tell of their store, None where none names it: the first that does, its id and address; all of its items, whether
    it sells under a recreational or a medical licence (what none of them is sold under may be sold elsewhere, so that is unknown).
    Its name is in no menu: the slug stands for it."""
    store_id: str | None = None
    path: re.Match[str] | None = None
    licences: set[str] = set()
    for raw in items:
        item = item_of(raw)
        listing = listing_of(item)
        if item is None or listing is None or listing != (store_id or listing):
            continue
        if store_id is None:
            store_id = listing
            path = _PATH.match(item.links.self) if item.links is not None and item.links.self else None
        if item.attributes is not None and item.attributes.license_type:
            licences.add(item.attributes.license_type.strip().lower())
    if store_id is None:
        return None
    slug = path["slug"] if path else store_id
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=slug,
        name=slug,
        is_recreational=True if "recreational" in licences else None,
        is_medical=True if "medical" in licences else None,
        menu_url=f"https://weedmaps.com/{path['kind']}/{slug}" if path else None,
    )


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
    slug = text_of(record, "slug") or store_id
    name = record.get("name")
    name_raw = name if isinstance(name, str) and name.strip() else slug
    latitude, longitude = _coordinates(record)
    licence = (text_of(record, "license_type") or "").lower()
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=name_raw,
        name=clean(name_raw),
        address=text_of(record, "address"),
        city=text_of(record, "city"),
        state=text_of(record, "state"),
        country=text_of(record, "country"),
        zipcode=text_of(record, "zip_code"),
        latitude=latitude,
        longitude=longitude,
        timezone=zone(text_of(record, "timezone")),
        phone=text_of(record, "phone_number"),
        is_recreational=licence in {"recreational", "hybrid"} if licence else None,
        is_medical=licence in {"medical", "hybrid"} if licence else None,
        menu_url=text_of(record, "web_url"),
        problem=None if store_id else "the record has no id",
        raw={key: _plain(record[key]) for key in KEPT if record.get(key) not in (None, "", [], {})},
    )


def _plain(value: Any) -> Any:
    """The value as jsonb takes it (its numbers as texts, which are only looked at)."""
    return value if isinstance(value, str | bool) else str(value)[:LONGEST_TEXT]


def _coordinates(record: Mapping[str, Any]) -> tuple[float | None, float | None]:
    try:
        return on_earth(float(record["latitude"]), float(record["longitude"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None, None
