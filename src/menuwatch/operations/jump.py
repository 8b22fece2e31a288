"""Where a few words lead: what somebody means who types a number, a slug or a name."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from psycopg import AsyncConnection

from menuwatch.operations.refusals import NotFound
from menuwatch.operations.tasks import one
from menuwatch.stores import store as stores

_LARGEST = 2**63 - 1


async def target(conn: AsyncConnection[Any], text: str) -> str:
    """The path of a screen: a task's for its number (`123`, `#123`), a store's for its slug, else the search for products."""
    words = text.strip()
    number = words.removeprefix("#")
    if number.isascii() and number.isdigit() and 0 < int(number) <= _LARGEST:
        try:
            return f"/tasks/{(await one(conn, int(number)))['id']}"
        except NotFound:
            pass
    if words and "\x00" not in words:
        found = await stores.find(conn, words.lower())
        if found is not None:
            return f"/stores/{found.id}"
    return f"/products?q={quote(words.replace(chr(0), ''))}" if words else "/"
