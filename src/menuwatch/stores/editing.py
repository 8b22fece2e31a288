"""Manual changes to a store: its visibility on the public site, name, address, coordinates and time zone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from menuwatch.accounts import audit
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.db.pool import Connection
from menuwatch.geo.states import code_in_america
from menuwatch.geo.zones import is_zone
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

DETAILS = ("name", "address", "city", "state", "zipcode", "latitude", "longitude", "timezone")
"""Details that a person may set."""
_LONGEST = {"name": 200, "address": 300, "city": 100, "zipcode": 12}


async def set_shown(conn: Connection, store_id: int, shown: bool | None) -> Store:
    """Shows or hides the store on the public site; None shows it while crawling is enabled. Raises NotFound."""
    store = await _locked(conn, store_id)
    if store.shown is not shown:
        await stores.set_shown(conn, store_id, shown)
        texts = {True: "shown", False: "hidden", None: "automatic"}
        await audit.record(conn, "store_shown_set", ("store", store_id), before=texts[store.shown], after=texts[shown])
    return await _locked(conn, store_id)


async def set_details(conn: Connection, store_id: int, details: Mapping[str, str | float | None]) -> Store:
    """Sets the given fields of DETAILS atomically; None restores the platform's value. Raises NotFound and InvalidField."""
    store = await _locked(conn, store_id)
    new = {name: None if value is None else _valid(name, value) for name, value in details.items()}
    if ("latitude" in new) != ("longitude" in new) or (new.get("latitude") is None) != (new.get("longitude") is None):
        raise InvalidField("latitude", "give latitude and longitude together, e.g. 39.7392 and -104.9903")
    if new:
        await stores.set_details(conn, store, new)
    now = await _locked(conn, store_id)
    for name in new:
        before, after = getattr(store, name), getattr(now, name)
        if before != after or (name in store.details_by_person) != (name in now.details_by_person):
            note = {"before": _text(before), "after": _text(after)}
            await audit.record(conn, f"store_{name}_set", ("store", store_id), **note)
    return now


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


async def _locked(conn: Connection, store_id: int) -> Store:
    store = await stores.lock(conn, store_id)
    if store is None:
        raise NotFound(f"store {store_id} does not exist")
    return store


def _valid(name: str, value: str | float) -> str | float:
    if name in ("latitude", "longitude"):
        limit = 90 if name == "latitude" else 180
        if isinstance(value, str) or not math.isfinite(value) or abs(value) > limit:
            raise InvalidField(name, f"enter degrees from -{limit} to {limit}, not {str(value)[:40]}")
        return float(value)
    text = " ".join(str(value).split())
    if not text:
        raise InvalidField(name, f"{name} must not be empty")
    if len(text) > _LONGEST.get(name, 100):
        raise InvalidField(name, f"{name} is too long: {len(text)} characters, maximum {_LONGEST.get(name, 100)}")
    if name == "state":
        if (code := code_in_america(text)) is None:
            raise InvalidField("state", f"unknown state or province {text[:40]}: enter a code such as CO or ON")
        return code
    if name == "timezone" and not is_zone(text):
        raise InvalidField("timezone", f"unknown time zone {text[:60]}: use an IANA name such as America/Denver")
    return text
