"""What platforms say about brands: stored once, because menus repeat it with each product of the brand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from xxhash import xxh3_128_hexdigest

from menuwatch.catalog.model import Product
from menuwatch.db import sql

_q = sql.load(__package__, "brand_descriptions.sql")
_FIELD = "brand_description"


def split_extra(product: Product) -> tuple[dict[str, Any], str | None]:
    """`extra` without the brand's description, and the key of the description in `brand_descriptions`: XXH3-128 of its UTF-8, in
    hexadecimal; None without one."""
    text = _description(product)
    if text is None:
        return product.extra, None
    return {name: value for name, value in product.extra.items() if name != _FIELD}, _key(text)


def brand_descriptions(products: Iterable[Product]) -> dict[str, str]:
    """The descriptions of these products' brands by their keys."""
    return {_key(text): text for product in products if (text := _description(product)) is not None}


async def keep_brand_descriptions(conn: AsyncConnection[Any], descriptions: Mapping[str, str]) -> None:
    """Adds those descriptions that the database does not have, in the caller's transaction."""
    if not descriptions:
        return
    # The database knows most of them: only their keys are sent.
    cursor = await conn.execute(_q.missing, {"hashes": list(descriptions)})
    missing = [UUID(row[0]).hex for row in await cursor.fetchall()]
    if missing:
        await conn.execute(_q.add, {"hashes": missing, "descriptions": [descriptions[key] for key in missing]})


def _description(product: Product) -> str | None:
    value = product.extra.get(_FIELD)
    return value.replace("\x00", "\ufffd") if isinstance(value, str) and value else None


def _key(text: str) -> str:
    return xxh3_128_hexdigest(text.encode())
