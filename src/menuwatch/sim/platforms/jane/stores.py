"""Stores as Jane writes them: the record of its API, with recorded keys, and the hit of the index of stores."""

from __future__ import annotations

from typing import Any

from menuwatch.sim.model import SimStore
from menuwatch.sim.words import STATE_NAMES

_ZONES = {
    "America/Phoenix": "Arizona", "US/Central": "Central Time (US & Canada)", "America/Chicago": "Central Time (US & Canada)",
    "America/Los_Angeles": "Pacific Time (US & Canada)", "US/Pacific": "Pacific Time (US & Canada)",
}  # fmt: skip


def _state_name(store: SimStore) -> str:
    return STATE_NAMES.get(store.state, store.state)


def store_hit(store: SimStore, products: int) -> dict[str, Any]:
    """A store as the index has it, with the fields that public callers read."""
    return {
        "objectID": store.id,
        "name": store.name,
        "url_slug": _name_slug(store),
        "full_address": f"{store.street}, {store.city}, {store.state} {store.zipcode}",
        "city": store.city,
        "state": _state_name(store),
        "phone": store.phone,
        "photo": None,
        "description": "",
        "recreational": store.recreational,
        "medical": store.medical,
        "pickup": True,
        "rating": round(3 + store.latitude % 2, 1),
        "reviews_count": int(abs(store.longitude) * 3),
        "product_count": products,
        "_geoloc": {"lat": store.latitude, "lng": store.longitude},
    }


def store_record(store: SimStore, products: int) -> dict[str, Any]:
    """The record of one store, with the recorded keys that say something of it."""
    day = {"from": "09:00", "to": "21:00"}
    return {
        "id": int(store.id),
        "address": store.street,
        "checkout_age_minimum": 21 if store.recreational else 18,
        "city": store.city,
        "country_code": "CA" if store.country == "CAN" else "US",
        "delivery": False,
        "description": "",
        "full_address": f"{store.street}, {store.city}, {store.state} {store.zipcode}",
        "lat": store.latitude,
        "long": store.longitude,
        "medical": store.medical,
        "name": store.name,
        "phone": store.phone,
        "pickup": True,
        "product_count": products,
        "rating": round(3 + store.latitude % 2, 1),
        "recreational": store.recreational,
        "reviews_count": int(abs(store.longitude) * 3),
        "state": _state_name(store),
        "tax_included": False,
        "time_zone_identifier": _ZONES.get(store.timezone, "Eastern Time (US & Canada)"),
        "url_slug": _name_slug(store),
        "visible": True,
        "working_hours": [{"day": name, "period": day} for name in ("sunday", "monday")],
        "zip": store.zipcode,
    }


def _name_slug(store: SimStore) -> str:
    return store.slug.partition("-")[2]
