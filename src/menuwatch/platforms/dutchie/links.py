"""The store in the address of a menu, in every form that shop sites use.

Seen on 1,191 shop sites: `dutchie.com/embedded-menu/<slug>`, the embedding script `…/api/v2/embedded-menu/<id or slug>.js`
(also on api.dutchie.com, protocol-relative, relative, with `?menuType=rec` or `?chainLocations=true`, and copied into a
site's own cache folder), `/dispensary/<slug>` and `/stores/<slug>`. A slug may literally be an id, and an id 24
hexadecimal digits or 17 letters and digits.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise
from urllib.parse import unquote, urlsplit

_SCRIPT_PREFIX = re.compile(r"^(?:[a-z]+-min-)", re.IGNORECASE)  # put before the file's name by page optimizers
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
_PLATFORM_ONLY = frozenset({"dispensary", "stores", "kiosks"})
"""Path words that name a store on Dutchie's own hosts and mean anything elsewhere."""


def slug_of(menu_url: str, hosts: Collection[str] = ()) -> str | None:
    """The slug or id, None when the address is not of a menu on this platform. `hosts` are further hosts that are Dutchie's."""
    address = menu_url.strip()
    if not address:
        return None
    try:
        parts = urlsplit(address if "://" in address or address.startswith(("/", ".")) else f"//{address}")
        host = (parts.hostname or "").lower()
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    segments = [unquote(segment) for segment in parts.path.split("/") if segment not in {"", ".", ".."}]
    if not host and segments and segments[0].lower().endswith("dutchie.com"):
        host = segments.pop(0).lower()
    own = host == "" or host == "dutchie.com" or host.endswith(".dutchie.com") or f"{host}{port}" in hosts
    for word, following in pairwise(segments):
        if word.lower() == "embedded-menu" or (own and word.lower() in _PLATFORM_ONLY):
            name = following
            if name.endswith(".js"):
                name = _SCRIPT_PREFIX.sub("", name.removesuffix(".js"))
            if _SLUG.fullmatch(name):
                return name
    return None
