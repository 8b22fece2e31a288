"""Jane's stores: their records in both answers, the areas that lists of stores are asked for, and addresses of menus. Pure.

| source | shape |
|---|---|
| `GET /v1/stores/477` (recorded) | `{"store": {id, name, address, city, state ("California"), zip, country_code, lat, long, time_zone_identifier, phone, url_slug, recreational, medical, product_count, visible, …}}` |
| the index `stores-production` (as public callers read it) | hits with `objectID` (text), `name`, `full_address`, `city`, `state`, `phone`, `url_slug`, `recreational`, `medical`, `product_count`, `_geoloc {lat, lng}` |
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.base import split_url
from menuwatch.platforms.items import ItemReader
from menuwatch.platforms.jane.payload import Row
from menuwatch.platforms.model import FoundStore
from menuwatch.platforms.numbers import id_text
from menuwatch.platforms.store_records import iana_timezone, read_record, state_code, valid_coordinates

KEPT = (
    "pickup", "delivery", "rating", "reviews_count", "product_count", "visible", "working_hours", "store_taxes", "tax_included",
    "cart_limit_policy", "boost_menu_url", "current_jane_menu_url", "metro_area", "full_address",
)  # fmt: skip
"""Fields of a record that are stored beside the columns."""

_RAILS_ZONES = {
    "American Samoa": "Pacific/Pago_Pago",
    "Hawaii": "Pacific/Honolulu",
    "Alaska": "America/Juneau",
    "Pacific Time (US & Canada)": "America/Los_Angeles",
    "Arizona": "America/Phoenix",
    "Mountain Time (US & Canada)": "America/Denver",
    "Central Time (US & Canada)": "America/Chicago",
    "Saskatchewan": "America/Regina",
    "Eastern Time (US & Canada)": "America/New_York",
    "Indiana (East)": "America/Indiana/Indianapolis",
    "Atlantic Time (Canada)": "America/Halifax",
    "Puerto Rico": "America/Puerto_Rico",
    "Newfoundland": "America/St_Johns",
    "Guam": "Pacific/Guam",
}
"""Names of time zones in Ruby on Rails (ActiveSupport::TimeZone) as far as the United States and Canada have them."""

_PATH = re.compile(r"(?:/v\d)?(?:/embed)?/stores/(?P<id>\d{1,12})(?:/(?P<name>[A-Za-z0-9][A-Za-z0-9._~-]*))?(?:/|$)")
_SLUG = re.compile(r"(\d{1,12})(?:-.*)?", re.DOTALL)
_QUERY = re.compile(r"(?:^|&)store_?id=(\d{1,12})(?:&|$)", re.IGNORECASE)
_NO_NAMES = frozenset({"menu", "products", "specials", "reviews", "about", "categories", "brands"})
"""Parts of an address that follow the id where it has no name."""


def timezone(name: str | None) -> str | None:
    """The IANA name of a time zone that has a Rails or an IANA name; None for others."""
    return iana_timezone(_RAILS_ZONES.get(name, name)) if name else None


def store_id_of(slug: str) -> str | None:
    """The store's id, with which every slug begins; None for other texts."""
    match = _SLUG.fullmatch(slug.strip())
    return str(int(match[1])) if match else None


def slug_in(menu_url: str, *, any_host: bool = False) -> str | None:
    """The slug (`477-people-s-kush`; `477` without a name) in the URL of a store, None for other URLs; `any_host`: not only of
    iheartjane.com."""
    parts = split_url(menu_url)
    if parts is None or not (any_host or f".{parts.hostname or ''}".lower().endswith(".iheartjane.com")):
        return None
    if match := _PATH.match(parts.path):
        name = match["name"]
        store_id = str(int(match["id"]))
        return f"{store_id}-{name.lower()}" if name and name.lower() not in _NO_NAMES else store_id
    found = _QUERY.search(parts.query)
    return str(int(found[1])) if found else None


def found_store(raw: msgspec.Raw) -> FoundStore:
    """Parses a record of either source. `problem` says why the store cannot be crawled: no id, no products, hidden."""
    record = read_record(raw)
    if isinstance(record, FoundStore):
        return record
    store_id = id_text(record.value("id")) or id_text(record.value("objectID")) or ""
    known = store_id_of(store_id) == store_id
    part = record.text("url_slug")
    slug = f"{store_id}-{part}" if part else store_id
    name = record.name(slug)
    point = (record.value("lat"), record.value("long"))
    if point == (None, None):
        point = (record.value("_geoloc.lat"), record.value("_geoloc.lng"))
    latitude, longitude = valid_coordinates(*point)
    problem = None
    if not known:
        problem = f"the record's id is {store_id[:40]!r}, not a number" if store_id else "the record has no id"
    elif record.flag("visible") is False:
        problem = "Jane does not show it (visible is false)"
    elif record.value("product_count") == 0:
        problem = "it has no products (product_count is 0)"
    return FoundStore(
        platform_dispensary_id=store_id if known else "",
        slug=slug,
        name_raw=name,
        name=clean(name),
        address=record.text("address", "full_address"),
        city=record.text("city"),
        state=state_code(record.text("state")),
        country=record.text("country_code"),
        zipcode=record.text("zip"),
        latitude=latitude,
        longitude=longitude,
        timezone=timezone(record.text("time_zone_identifier")),
        phone=record.text("phone"),
        is_recreational=record.flag("recreational"),
        is_medical=record.flag("medical"),
        menu_url=f"https://www.iheartjane.com/stores/{store_id}{f'/{part}' if part else ''}" if known else None,
        problem=problem,
        raw=record.kept(KEPT),
    )


def asked_store(raw: msgspec.Raw, store_id: str) -> FoundStore:
    """`found_store` of the record that was asked for. Raises BadPayload for another store's."""
    store = found_store(raw)
    if store.platform_dispensary_id not in ("", store_id):
        message = f"another store's: the record of store {store_id} has the id {store.platform_dispensary_id}"
        raise BadPayload("schema", message, bytes(raw))
    return store


def is_in(store: FoundStore, state: str | None, city: str | None) -> bool:
    """Whether a listed store is in a state and city. Stores whose record does not say are in the area that was asked for."""
    if state is not None and store.state is not None and store.state.casefold() != state.casefold():
        return False
    return city is None or (store.city or "").casefold() == city.strip().casefold()


def store_in(reader: ItemReader[Row], items: Iterable[msgspec.Raw]) -> FoundStore | None:
    """What the rows of a menu tell of their store, None where none names it: the first that does, its id and its place; all of its
    rows, for which customers they are. Its name is in no menu: the id stands for it."""
    store_id: str | None = None
    point: tuple[Any, Any] = (None, None)
    types: set[str] = set()
    for raw in items:
        row = reader.decode(raw)
        named = row.store() if row is not None else None
        if row is None or named is None or named != (store_id or named):
            continue
        if store_id is None and row._geoloc is not None:
            point = (row._geoloc.lat, row._geoloc.lng)
        store_id = named
        types.update(text.strip().lower() for text in row.store_types or () if text)
    if store_id is None:
        return None
    latitude, longitude = valid_coordinates(*point)
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=store_id,
        name_raw=store_id,
        name=store_id,
        latitude=latitude,
        longitude=longitude,
        is_recreational=True if "recreational" in types else None,
        is_medical=True if "medical" in types else None,
        menu_url=f"https://www.iheartjane.com/stores/{store_id}",
    )


AREAS: dict[str, tuple[float, float, int]] = {
    "AK": (64.0, -152.0, 2000), "AL": (32.8, -86.8, 350), "AR": (34.8, -92.4, 320), "AZ": (34.3, -111.7, 430),
    "CA": (37.2, -119.5, 720), "CO": (39.0, -105.5, 420), "CT": (41.6, -72.7, 130), "DC": (38.9, -77.0, 30),
    "DE": (39.0, -75.5, 110), "FL": (28.2, -83.5, 620), "GA": (32.7, -83.4, 330), "HI": (20.6, -157.5, 450),
    "IA": (42.1, -93.5, 340), "ID": (45.0, -114.4, 460), "IL": (39.9, -89.2, 370), "IN": (39.9, -86.3, 280),
    "KS": (38.5, -98.4, 390), "KY": (37.5, -85.8, 400), "LA": (31.1, -92.0, 350), "MA": (42.2, -71.7, 190),
    "MD": (38.9, -76.9, 260), "ME": (45.3, -69.2, 290), "MI": (44.4, -85.6, 500), "MN": (46.2, -94.4, 400),
    "MO": (38.3, -92.4, 360), "MS": (32.7, -89.7, 320), "MT": (47.0, -109.6, 540), "NC": (35.4, -79.4, 480),
    "ND": (47.4, -100.3, 340), "NE": (41.5, -99.7, 410), "NH": (43.9, -71.6, 180), "NJ": (40.2, -74.7, 170),
    "NM": (34.4, -106.1, 430), "NV": (39.0, -117.0, 510), "NY": (42.8, -75.6, 460), "OH": (40.3, -82.8, 280),
    "OK": (35.6, -97.5, 500), "OR": (44.0, -120.5, 430), "PA": (40.9, -77.8, 310), "PR": (18.2, -66.4, 180),
    "RI": (41.6, -71.5, 60), "SC": (33.9, -80.9, 270), "SD": (44.4, -100.2, 380), "TN": (35.8, -86.3, 430),
    "TX": (31.3, -99.3, 800), "UT": (39.4, -111.7, 370), "VA": (37.5, -78.8, 480), "VT": (44.0, -72.7, 170),
    "WA": (47.3, -120.7, 350), "WI": (44.7, -89.8, 370), "WV": (38.7, -80.7, 290), "WY": (43.0, -107.6, 400),
}  # fmt: skip
"""By state the middle (latitude, longitude) of a circle that holds it, and its radius in kilometers, generous. Stores of its neighbors
in the circle are left out by their own state."""
