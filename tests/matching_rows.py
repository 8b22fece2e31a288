"""Rows of the matcher, as the engine and the store matcher would write them: brands, canonical products, locations and links."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection

Conn = AsyncConnection[Any]


async def _number(conn: Conn, query: Any, *values: Any) -> int:
    row = await (await conn.execute(query, values)).fetchone()
    assert row is not None
    return int(row[0])


async def add_brand(conn: Conn, name: str, *, merged_into: int | None = None) -> int:
    slug = f"{name.lower().replace(' ', '-')}-{uuid4().hex[:6]}"
    query = "INSERT INTO brands (slug, name, merged_into) VALUES (%s, %s, %s) RETURNING id"
    return await _number(conn, query, slug, name, merged_into)


async def add_product(
    conn: Conn, name: str, brand: int | None = None, *, category: str | None = "flower", merged_into: int | None = None
) -> int:
    query = (
        "INSERT INTO canonical_products (brand_id, name, category, merged_into) VALUES (%s, %s, %s, %s) RETURNING id"
    )
    return await _number(conn, query, brand, name, category, merged_into)


async def match(conn: Conn, canonical: int | None, *listings: int, confidence: float = 0.97) -> None:
    """Links listings to a canonical product; None: they are signed and wait for their block."""
    signature = await _number(
        conn,
        "INSERT INTO match_signatures (key, block, parsed, canonical_product_id, confidence, reasons) "
        "VALUES (%s, 'b', '{}', %s, %s, '[{\"code\": \"same_words\"}]') RETURNING id",
        uuid4(),
        canonical,
        confidence,
    )
    await conn.execute(
        "INSERT INTO product_matches (product_id, dispensary_id, source_version, signature_id, canonical_product_id) "
        "SELECT id, dispensary_id, 1, %s, %s FROM catalog_products WHERE id = ANY (%s) "
        "ON CONFLICT (product_id) DO UPDATE "
        "SET canonical_product_id = excluded.canonical_product_id, signature_id = excluded.signature_id",
        [signature, canonical, list(listings)],
    )
    await conn.execute(
        "UPDATE canonical_products c SET listings = n.listings, stores = n.stores FROM (SELECT c.id, count(m.product_id) AS listings, "
        "count(DISTINCT m.dispensary_id) AS stores FROM canonical_products c "
        "LEFT JOIN product_matches m ON m.canonical_product_id = c.id GROUP BY c.id) n WHERE n.id = c.id",
    )


async def add_location(conn: Conn, name: str, *stores: int, merged_into: int | None = None, **more: Any) -> int:
    """A location with the menus of these stores."""
    place = await _number(
        conn,
        "INSERT INTO locations (name, state, latitude, longitude, merged_into) VALUES (%s, %s, %s, %s, %s) RETURNING id",
        name,
        more.get("state"),
        more.get("latitude"),
        more.get("longitude"),
        merged_into,
    )
    for store in stores:
        await conn.execute(
            "INSERT INTO location_links (location_id, dispensary_id, confidence, reasons) VALUES (%s, %s, 1, '[]')",
            [place, store],
        )
    return place


async def add_event(conn: Conn, kind: str, a: int, b: int, *, listings: int = 1, at: datetime | None = None) -> int:
    """What became of numbers: `a` was merged into `b`, or `b` was split off `a`."""
    return await _number(
        conn,
        "INSERT INTO match_events (at, kind, from_id, to_id, listings, cause) "
        "VALUES (coalesce(%s, now()), %s, %s, %s, %s, 'menu') RETURNING id",
        at,
        kind,
        a,
        b,
        listings,
    )


async def listing(conn: Conn, store: int, platform_id: str) -> int:
    """The number of a store's product by its id on the platform."""
    query = "SELECT id FROM catalog_products WHERE dispensary_id = %s AND provider_product_id = %s"
    return await _number(conn, query, store, platform_id)
