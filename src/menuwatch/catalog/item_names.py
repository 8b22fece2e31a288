"""The name in a raw item that could not be read, so that a person can find it on the menu. Pure."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from menuwatch.catalog.taxonomy.limits import shorten
from menuwatch.catalog.taxonomy.text import clean

_LARGEST = 500_000
"""Maximum bytes that are parsed: larger items are refused unread."""
_NAMES = ("name", "product_name", "productname", "title")
_HOLDERS = ("attributes", "product", "item")


def item_name(raw: msgspec.Raw) -> str | None:
    """The name of an item of any platform, in at most 200 characters; None if it has none that can be read."""
    if memoryview(raw).nbytes > _LARGEST:
        return None
    try:
        item = json.loads(bytes(raw).decode("utf-8", "replace"), parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    found = _name_in(item)
    if found is None and isinstance(item, dict):
        found = next((name for holder in _HOLDERS if (name := _name_in(item.get(holder)))), None)
    return found


def _name_in(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    by_name = {key.casefold(): entry for key, entry in value.items() if isinstance(entry, str)}
    text = next((entry for name in _NAMES if (entry := by_name.get(name))), "")
    storable = text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return shorten(clean(storable), 200) or None
