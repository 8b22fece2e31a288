"""Records of stores: GetStoreInfo with GetStoreConfig beside it, and the flat records of lists that others made of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.platforms.model import FoundStore
from menuwatch.platforms.store_records import StoreRecord, read_record, state_code, valid_coordinates
from menuwatch.platforms.sweed.normalize import ITEMS
from menuwatch.platforms.sweed.payload import id_text

KEPT = (
    "amenities",
    "description",
    "schedules",
    "saleTypeSchedules",
    "saleTypes",
    "fulfillmentTypes",
    "routeName",
    "isMock",
)
"""Fields of a record that are stored beside the columns."""

_OWN_SHOPS = frozenset({"1", "3"})
_TEST = re.compile(r"\b(?:auto)?tests?\b|\binner-test\b", re.IGNORECASE)
_PREVIEW = re.compile(r"https?://[^/]*\.sweed\.app(?:/|$)", re.IGNORECASE)

_ZONES = {
    "Eastern Time": "America/New_York",
    "Central Time": "America/Chicago",
    "Mountain Time": "America/Denver",
    "Pacific Time": "America/Los_Angeles",
    "Alaska": "America/Anchorage",
    "Hawaii": "Pacific/Honolulu",
}
"""`timezoneName`; only the first was recorded, the others are named alike."""


def found_store(info: msgspec.Raw, config: msgspec.Raw | None = None, *, prefix: str = "") -> FoundStore:
    """Parses a store's record and its configuration. `prefix` is put before the id of a store of another host.

    `problem` says why it cannot be crawled: no id, a test shop, not an object.
    """
    record = read_record(info)
    if isinstance(record, FoundStore):
        return record
    more = read_record(config) if config is not None else None
    number = id_text(record.value("id")) or id_text(record.value("store_id")) or ""
    store_id = f"{prefix}{number}" if number else ""
    name = record.name(store_id)
    latitude, longitude = valid_coordinates(
        _first(record, "location.coords.lat", "lat"), _first(record, "location.coords.lng", "lng")
    )
    sale_types = {str(entry).lower() for entry in _listed(_first(record, "saleTypes", "sale_types"))}
    state = state_code(record.text("location.region.name", "state"))
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug(name, store_id),
        name_raw=name,
        name=clean(name),
        address=record.text("contacts.address", "address"),
        city=record.text("location.city.name", "city"),
        state=state,
        zipcode=record.text("location.zipCode", "zip"),
        latitude=latitude,
        longitude=longitude,
        timezone=_timezone(more, state),
        phone=record.text("contacts.phone"),
        is_recreational="recreational" in sale_types if sale_types else None,
        is_medical="medical" in sale_types if sale_types else None,
        menu_url=record.text("url"),
        problem=_problem(record, number),
        raw={**record.kept(KEPT), **_licence(more)},
    )


def store_in(items: Iterable[msgspec.Raw]) -> FoundStore | None:
    """The store of a shop's page, None for items that carry none."""
    for raw in items:
        item = ITEMS.decode(raw)
        if item is None or not item.pageStore:
            continue
        info, config = (item.pageStore.get(name) for name in ("info", "config"))
        if isinstance(info, dict) and id_text(info.get("id")) is not None:
            return found_store(_raw(info), _raw(config) if isinstance(config, dict) else None)
        store_id = ITEMS.store_id(item)
        if store_id is not None:
            return FoundStore(platform_dispensary_id=store_id, slug=store_id, name_raw=store_id, name=store_id)
    return None


def slug(name: str, store_id: str) -> str:
    """`gleaf-rockville-376`: names repeat, and the id at the end, with the name of another host (`curaleaf:128`), is all that is
    needed to find the store again."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80].strip("-")
    return f"{words}-{store_id}" if words and store_id and words != store_id else store_id


def sells_only_medical(info: msgspec.Raw) -> bool:
    """Whether a store's record says that it sells to patients only."""
    record = read_record(info)
    return isinstance(record, StoreRecord) and [str(entry).lower() for entry in _listed(record.value("saleTypes"))] == [
        "medical"
    ]


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _first(record: StoreRecord, *paths: str) -> Any:
    return next((value for path in paths if (value := record.value(path)) is not None), None)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _problem(record: StoreRecord, number: str) -> str | None:
    if not number:
        return "the record has no id"
    name = record.text("name")
    if name is None:
        return "the record has no name"
    if number in _OWN_SHOPS or _TEST.search(name) or _PREVIEW.match(record.text("url") or ""):
        return "a test shop of the platform"
    return "a mock shop of the platform" if record.flag("isMock") else None


def _timezone(config: StoreRecord | FoundStore | None, state: str | None) -> str | None:
    """The IANA name; the platform has names such as "Eastern Time". Arizona has Mountain Time all the year."""
    name = config.text("timezoneName") if isinstance(config, StoreRecord) else None
    zone = _ZONES.get((name or "").replace(" (US & Canada)", ""))
    return "America/Phoenix" if zone == "America/Denver" and state == "AZ" else zone


def _licence(config: StoreRecord | FoundStore | None) -> dict[str, Any]:
    """The state's licence number, where the shop gives it."""
    licence = config.text("licenseCode") if isinstance(config, StoreRecord) else None
    return {"licenseCode": licence} if licence else {}
