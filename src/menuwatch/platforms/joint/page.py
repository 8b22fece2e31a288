"""Reads what a page of a shop's site tells of Joint: the store, its business id and the nonce of requests. Pure.

The plugin writes it into a script, as an object or an assignment: `window.jointEcommerce = {"…": "…/joint-ecommerce/v1", "nonce":
"e19b245f40", "currentStore": {"businessId": 5731, "name": …, "address": …}}` or `jointEcommerce.currentStore = {…}`. No page was
recorded.
"""

from __future__ import annotations

import json
import re
from html import unescape

from msgspec import Struct

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.platforms.store_records import StoreRecord

_LARGEST = 3_000_000
"""Characters of a page that are searched."""
_PLUGIN = re.compile(r"joint-?ecommerce", re.IGNORECASE)
_STORE = re.compile(r"currentStore[\"']?\s*[:=]\s*(?=\{)")
_BUSINESS = re.compile(r"[\"']?\bbusinessId[\"']?\s*[:=]\s*[\"']?(\d{1,12})\b")
_NONCE = re.compile(r"(?:\b|_)nonce[\"']?\s*[:=]\s*[\"']([0-9A-Za-z]{6,32})[\"']", re.IGNORECASE)
_API_NONCE = re.compile(
    r"joint-(?:ecommerce|api)[^\"']*[\"']\s*,\s*[\"']nonce[\"']\s*:\s*[\"']([0-9A-Za-z]{6,32})[\"']", re.IGNORECASE
)
"""The nonce next to the address of the API: a page has others, for other plugins."""
_TITLE = re.compile(r"<title[^>]*>(.{1,300}?)</title>", re.IGNORECASE | re.DOTALL)
_SITE_NAME = re.compile(
    r"<meta[^>]+property=[\"']og:site_name[\"'][^>]+content=[\"']([^\"']{1,300})[\"']", re.IGNORECASE
)


class SitePage(Struct, frozen=True, kw_only=True):
    """What a page tells. `uses_joint`: the plugin is on it; `whole`: it is not cut off; `title`: the site's, else its own."""

    uses_joint: bool
    whole: bool
    business_id: str | None
    nonce: str | None
    store: StoreRecord
    title: str | None


def read_page(body: bytes) -> SitePage:
    """Reads a page."""
    text = body[:_LARGEST].decode("utf-8", "replace")
    plugin = _PLUGIN.search(text)
    whole = "</html>" in text[-5000:].lower()
    if plugin is None:
        nothing = StoreRecord({})
        return SitePage(uses_joint=False, whole=whole, business_id=None, nonce=None, store=nothing, title=_title(text))
    script = text[plugin.start() :]
    store = _current_store(script)
    return SitePage(
        uses_joint=True,
        whole=whole,
        business_id=_business_id(store, script),
        nonce=_first(_API_NONCE, script.replace("\\/", "/")) or _first(_NONCE, script),
        store=store,
        title=_title(text),
    )


def _current_store(script: str) -> StoreRecord:
    """The store's record, empty where it is no JSON."""
    for match in _STORE.finditer(script):
        try:
            found, _ = json.JSONDecoder().raw_decode(script[match.end() : match.end() + 200_000])
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return StoreRecord(found)
    return StoreRecord({})


def _business_id(store: StoreRecord, script: str) -> str | None:
    for path in ("businessId", "business_id", "business.id", "id"):
        value = store.value(path)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12:
            return str(value)
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 12:
            return value
    return _first(_BUSINESS, script)


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] if match else None


def _title(text: str) -> str | None:
    found = _first(_SITE_NAME, text) or _first(_TITLE, text)
    return (clean(unescape(found).replace("\0", "")) or None) if found else None
