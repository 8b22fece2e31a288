"""The audit sample: random values of the catalogue traced back to the bytes of the archived payload that they come from.

For each value the payload of the store's last menu is read again (its hash is verified), the product's item is found in it, normalized
again, and the field is compared. Kept are the value, what the item says now, and where the item is: page, offset and length in bytes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from menuwatch.archive.files import Damaged, FileArchive, Missing
from menuwatch.catalog.model import Product
from menuwatch.core.errors import BadPayload
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_structs
from menuwatch.platforms.base import Platform

_q = sql.load(__package__, "audit.sql")

SAMPLE = 20
"""Values of a weekly sample."""
Result = Literal["equal", "different", "not_found", "unreadable"]


class AuditedValue(Struct, kw_only=True, frozen=True):
    """A value of the catalog, traced back to its payload."""

    id: int
    audited_at: Instant
    dispensary_id: Annotated[int, doc("Id of the store.")]
    store: Annotated[str, doc("Name of the store.")]
    product_id: int
    name: Annotated[str, doc("Name of the product.")]
    payload_id: Annotated[int, doc("Payload of the store's last menu.")]
    field: Annotated[str, doc("Field of the product.")]
    value: Annotated[str, doc("Value in the catalog.")]
    found: Annotated[
        str | None,
        doc("Value in the payload's item, normalized again; null if there is none, or the item was not found."),
    ]
    result: Annotated[
        Result,
        doc(
            "`equal`; `different`; `not_found`: the payload has no such item; `unreadable`: the file is missing, damaged or not a "
            "menu. After an update of Menuwatch, `different` may be due to the update."
        ),
    ]
    detail: Annotated[str | None, doc("Why the payload is unreadable; null otherwise.")]
    page: Annotated[int | None, doc("Page of the payload, from 1; null if the item was not found.")]
    offset: Annotated[int | None, doc("First byte of the item in the page, from 0; null as `page`.")]
    length: Annotated[int | None, doc("Length of the item in bytes; null as `page`.")]


FIELDS: Mapping[str, str] = {
    "name": "name", "brand_name": "brand_name", "category": "category", "category_canon": "category_canon",
    "strain_canon": "strain_canon", "price_rec": "price_rec", "price_rec_special": "price_rec_special", "price_med": "price_med",
    "price_med_special": "price_med_special", "stock_status": "stock_status", "quantity": "quantity", "thc_lo": "thc.lo",
    "thc_hi": "thc.hi", "thc_unit": "thc.unit", "cbd_lo": "cbd.lo", "cbd_hi": "cbd.hi", "image_url": "image_url",
}  # fmt: skip
"""Audited columns, with where a normalized product has them."""


class _Place(NamedTuple):
    product: Product | None
    page: int
    offset: int
    length: int


async def audit_sample(
    conn: Connection, archive: FileArchive, platforms: Mapping[str, Platform], *, count: int = SAMPLE
) -> list[AuditedValue]:  # fmt: skip
    """Audits this many random values of stores whose last menu is archived, and keeps the results; returns them."""
    rows = await fetch_all(conn, _q.sample, {"count": count})
    ids: list[int] = []
    for row in rows:
        field = secrets.choice([name for name in FIELDS if row[name] is not None])
        outcome = await asyncio.to_thread(_trace, archive, platforms.get(row["provider"]), row, field)
        values = {name: row[name] for name in ("dispensary_id", "product_id", "payload_id")}
        cursor = await conn.execute(_q.keep, {**values, "field": field, "value": _text(row[field]), **outcome})
        ids += [number for (number,) in await cursor.fetchall()]
    return await fetch_structs(conn, AuditedValue, _q.list_audits, {"ids": ids, "before": None, "limit": len(ids)})


async def list_audits(conn: Connection, *, before: int | None = None, limit: int = 50) -> list[AuditedValue]:
    """Audited values, newest first, those before that id."""
    return await fetch_structs(conn, AuditedValue, _q.list_audits, {"ids": None, "before": before, "limit": limit})


async def prune(conn: Connection, before: datetime) -> int:
    """Deletes results from before that time; returns how many."""
    return (await conn.execute(_q.prune, {"before": before})).rowcount


def _trace(archive: FileArchive, platform: Platform | None, row: Row, field: str) -> dict[str, Any]:
    nothing = {"found": None, "detail": None, "page": None, "offset": None, "length": None}
    if platform is None:
        return {**nothing, "result": "unreadable", "detail": f"platform {row['provider']} is not installed"}
    try:
        document = archive.read(row["path"], row["sha256"], row["raw_bytes"])
        place = _find(platform, document.pages, row["provider_product_id"])
    except (Missing, Damaged, BadPayload) as error:
        return {**nothing, "result": "unreadable", "detail": str(error)[:500]}
    if place is None:
        return {**nothing, "result": "not_found"}
    value = None if place.product is None else _read(place.product, FIELDS[field])
    result = "equal" if value == row[field] else "different"
    where = {"page": place.page, "offset": place.offset, "length": place.length}
    return {**nothing, **where, "result": result, "found": None if value is None else _text(value)}


def _find(platform: Platform, pages: tuple[bytes, ...], product_id: str) -> _Place | None:
    """The item of a product, the last one as in a crawl."""
    found = None
    for number, (page, items) in enumerate(zip(pages, platform.split_menu(pages), strict=True), 1):
        for item in items:
            if platform.identity(item) == product_id:
                found = (number, page, item)
    if found is None:
        return None
    number, page, item = found
    raw = bytes(item)
    products = platform.normalize((msgspec.Raw(raw),)).products
    return _Place(products[0] if products else None, number, page.rfind(raw), len(raw))


def _read(product: Product, path: str) -> Any:
    value: Any = product
    for part in path.split("."):
        value = None if value is None else getattr(value, part)
    return value


def _text(value: Any) -> str:
    return str(value)[:500]
