"""The items of the storefront index: canonical products under their own numbers, with the words that they are found by. They
follow renames and merges of canonical products; offers and price watches of a merged product move to the present one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.catalog.taxonomy.categories import CATEGORIES
from menuwatch.catalog.taxonomy.text import words
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all
from menuwatch.matching.names import KINDS
from menuwatch.storefront.search_words import document, spellings

_q = sql.load(__package__, "items.sql")
_encode = msgspec.json.Encoder().encode

MOST_WORDS = 100
"""An item with as many words takes no others: menus may write one product in any number of ways."""
_PRODUCTS_AT_ONCE = 500


async def put_missing(conn: AsyncConnection[Any], ids: Collection[int]) -> set[int]:
    """Makes items of the canonical products that are none yet; returns these."""
    missing = {row["id"] for row in await fetch_all(conn, _q.missing, {"ids": sorted(ids)})}
    await _describe(conn, sorted(missing))
    return missing


async def add_words(conn: AsyncConnection[Any], texts: Mapping[int, Iterable[str]]) -> None:
    """Adds words of listings to what their items are found by."""
    if texts:
        values = {"ids": list(texts), "texts": [" ".join(sorted(text)) for text in texts.values()], "most": MOST_WORDS}
        rows = await fetch_all(conn, _q.add_words, values)
        await _put_words(conn, {word for row in rows for word in row["added"]})


async def take_changed(conn: AsyncConnection[Any]) -> list[int] | None:
    """Takes a batch of canonical products that changed or were merged, as far as they are items; None if none is left."""
    (row,) = await fetch_all(conn, _q.take_changed, {"limit": _PRODUCTS_AT_ONCE})
    return (row["ids"] or []) if row["taken"] else None


async def apply_changes(conn: AsyncConnection[Any], ids: Sequence[int]) -> list[int]:
    """Makes items what their canonical products are now; returns the items that have other values or offers."""
    merged = {one["old"]: one["new"] for one in await fetch_all(conn, _q.merged, {"ids": list(ids)})}
    changed = sorted({*ids, *merged.values()} - merged.keys())
    await _describe(conn, changed)
    await conn.execute(_q.update_offers, {"ids": changed})
    if merged:
        values = {"old": list(merged), "new": list(merged.values())}
        await conn.execute(_q.move_offers, values)
        await conn.execute(_q.move_watches, values)
        await conn.execute(_q.delete_merged, {"ids": list(merged)})
    return changed


async def _describe(conn: AsyncConnection[Any], ids: Sequence[int]) -> None:
    """Writes items as their canonical products and listings are now."""
    if not ids:
        return
    items = [_item(row) for row in await fetch_all(conn, _q.describe, {"ids": list(ids)})]
    await conn.execute(_q.put_items, {"rows": _encode(items).decode()})
    await _put_words(conn, {word for item in items for text in "abcd" for word in item[text].split()})


def category_of(kind: str | None, listed: Iterable[str | None]) -> str:
    """The category of a product: of those of its listings that are of its kind the most frequent one. Matching knows no categories."""
    counts = Counter(one for one in listed if one is not None and KINDS.get(one) == kind)
    if counts:
        return min(counts, key=lambda one: (-counts[one], one))
    return kind if kind in CATEGORIES else "other"


def _item(row: Row) -> dict[str, Any]:
    category = category_of(row["kind"], row["categories"] or ())
    kinds = (*(row["kinds"] or ()), category, row["form"], row["subcategory"], row["strain"])
    a, b, c = document(row["name"], " ".join((row["brand"] or "", *(row["aliases"] or ()))), kinds)
    known = {*a.split(), *b.split(), *c.split()}
    others = (word for text in (*(row["names"] or ()), *(row["brands"] or ())) if text for word in words(text))
    d = [word for word in dict.fromkeys(others) if word not in known]
    kept = ("id", "name", "brand_id", "subcategory", "strain", "first_seen")
    return {
        **{name: row[name] for name in kept},
        "category": category,
        "a": a,
        "b": b,
        "c": c,
        "d": " ".join(d[:MOST_WORDS]),
    }


async def _put_words(conn: AsyncConnection[Any], new: Iterable[str]) -> None:
    pairs = [(word, spelling) for word in sorted(new) for spelling in sorted(spellings(word))]
    if pairs:
        await conn.execute(_q.put_words, {"words": [w for w, _ in pairs], "spellings": [s for _, s in pairs]})
