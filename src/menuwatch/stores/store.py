"""The rows of `dispensaries` and `dutchie_discovery_locations`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation
from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from menuwatch.core.errors import Refused
from menuwatch.db import sql

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One shop with a menu. Without a `platform_dispensary_id` it is known by address alone and cannot be crawled yet."""

    id: int
    platform: str
    platform_dispensary_id: str | None
    slug: str | None
    name: str
    name_raw: str
    menu_url: str | None
    address: str | None
    city: str | None
    state: str | None
    country: str | None
    zipcode: str | None
    latitude: float | None
    longitude: float | None
    timezone: str | None
    phone: str | None
    is_recreational: bool | None
    is_medical: bool | None
    enterprise_id: str | None
    crawl_enabled: bool
    crawl_interval_hours: Decimal
    first_crawled_at: datetime | None
    last_crawled_at: datetime | None
    last_payload_id: int | None
    last_attempt_at: datetime | None
    last_error: str | None
    product_count: int | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What a platform says of one store."""

    platform_dispensary_id: str
    slug: str
    name: str
    name_raw: str
    menu_url: str | None = None
    address: str | None = None
    city: str | None = None
    state: str | None = None
    country: str | None = None
    zipcode: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    timezone: str | None = None
    phone: str | None = None
    is_recreational: bool | None = None
    is_medical: bool | None = None
    enterprise_id: str | None = None

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


async def _one(conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any]) -> Store | None:
    async with conn.cursor(row_factory=class_row(Store)) as cur:
        await cur.execute(query, values)
        return await cur.fetchone()


async def get(conn: AsyncConnection[Any], store_id: int) -> Store | None:
    """The store of that id."""
    return await _one(conn, _q.get_store, {"id": store_id})


async def lock(conn: AsyncConnection[Any], store_id: int) -> Store | None:
    """The store of that id, locked until the transaction ends."""
    return await _one(conn, _q.lock_store, {"id": store_id})


async def find(conn: AsyncConnection[Any], text: str, platform: str | None = None) -> Store | None:
    """The store with that slug, number or platform's id, in this order; on that platform alone where one is named.

    Raises Refused where the text is a slug, or an id, of stores on several platforms.
    """
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    found = await _found(conn, text, number, platform)
    if not found:
        return None
    best, rank = found[0]
    others = [store for store, its in found if its == rank and store.platform != best.platform]
    if others:
        each = ", ".join(f"{store.id} on {store.platform}" for store in (best, *others))
        raise Refused(f"store {text!r} is on several platforms: name it by its number ({each})")
    return best


async def _found(
    conn: AsyncConnection[Any], text: str, number: int | None, platform: str | None
) -> list[tuple[Store, int]]:
    """The stores that the text may be, with how well it fits, the best first."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.find_store, {"text": text, "id": number, "platform": platform})
        rows = await cur.fetchall()
    return [(Store(**{name: row[name] for name in Store.__slots__}), row["rank"]) for row in rows]


async def by_platform_id(conn: AsyncConnection[Any], platform: str, platform_dispensary_id: str) -> Store | None:
    """The store that the platform knows by that id."""
    return await _one(conn, _q.by_platform_id, {"platform": platform, "platform_dispensary_id": platform_dispensary_id})


async def page(
    conn: AsyncConnection[Any],
    *,
    state: str | None = None,
    crawl_enabled: bool | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[Store]:
    """Stores by id; `after` is the id of the last one already shown."""
    async with conn.cursor(row_factory=class_row(Store)) as cur:
        await cur.execute(
            _q.list_stores, {"state": state, "crawl_enabled": crawl_enabled, "after": after, "limit": limit}
        )
        return await cur.fetchall()


async def crawlable(conn: AsyncConnection[Any]) -> list[int]:
    """Ids of every store that may be crawled."""
    cursor = await conn.execute(_q.crawlable_stores)
    return [int(row[0]) for row in await cursor.fetchall()]


async def add_by_url(conn: AsyncConnection[Any], *, platform: str, slug: str, menu_url: str | None = None) -> Store:
    """Adds a store that is known by its slug and its menu's address alone; raises Refused when the slug is known already."""
    values = {"platform": platform, "slug": slug, "menu_url": menu_url}
    known = await _known(conn, slug, platform)
    if known is None:
        try:
            async with conn.transaction():
                added = await _one(conn, _q.insert_by_url, values)
        except UniqueViolation:
            # Somebody else added it a moment ago.
            known = await _known(conn, slug, platform)
        else:
            assert added is not None, "INSERT … RETURNING gives a row"
            return added
    raise Refused(f"store {slug!r} is known already" + (f", as number {known.id}" if known else ""))


async def _known(conn: AsyncConnection[Any], slug: str, platform: str) -> Store | None:
    """The store with that slug or platform's id."""
    found = await _found(conn, slug, None, platform)
    return found[0][0] if found else None


async def update_details(conn: AsyncConnection[Any], store_id: int, details: Details) -> None:
    """Takes over what the platform says of a known store."""
    await conn.execute(_q.update_details, {"id": store_id, **details.values()})


async def promote(conn: AsyncConnection[Any], platform: str, details: Details) -> tuple[int, bool]:
    """Makes a found store one that is crawled; returns its id and whether its first crawl is to be made.

    A store that was added by its address alone and has this slug becomes the found one, instead of a second row for one shop.
    """
    values = {"platform": platform, **details.values()}
    adopted = await _adopt(conn, values)
    row = await (await conn.execute(_q.promote, values)).fetchone()
    assert row is not None, "INSERT … RETURNING gives a row"
    return int(row[0]), bool(row[1]) or adopted


async def _adopt(conn: AsyncConnection[Any], values: Mapping[str, Any]) -> bool:
    """Whether a store without an id was given this one, and may be crawled."""
    try:
        async with conn.transaction():
            row = await (await conn.execute(_q.adopt, values)).fetchone()
    except UniqueViolation:
        return False  # another process has just written the id: the row that has it is the one
    return row is not None and bool(row[0])


async def close_duplicate(conn: AsyncConnection[Any], store_id: int, at: datetime, error: str) -> None:
    """Keeps a row from being crawled that turned out to be a second one for the same shop, and says why."""
    await conn.execute(_q.close_duplicate, {"id": store_id, "at": at, "error": error})


async def fill_in(conn: AsyncConnection[Any], store_id: int, details: Details) -> None:
    """Takes over what these say of a known store where nothing is known of it; its ids and names stay."""
    await conn.execute(_q.fill_in, {"id": store_id, **details.values()})


async def record_location(
    conn: AsyncConnection[Any],
    platform: str,
    details: Details,
    *,
    raw: Mapping[str, Any],
    dispensary_id: int | None,
    rejected: str | None,
) -> None:
    """Notes that discovery saw this store, and why it was not promoted where it was not."""
    await conn.execute(
        _q.record_location,
        {
            "platform": platform,
            **details.values(),
            "raw": Jsonb(dict(raw)),
            "dispensary_id": dispensary_id,
            "status": "rejected" if rejected else "promoted",
            "reason": rejected,
        },
    )


async def attempted(conn: AsyncConnection[Any], store_id: int, at: datetime, error: str | None) -> None:
    """Notes the time of a crawl's end and, where it failed, why."""
    await conn.execute(_q.attempted, {"id": store_id, "at": at, "error": error})


async def crawled(
    conn: AsyncConnection[Any], store_id: int, *, crawled_at: datetime, payload_id: int | None, products: int
) -> None:
    """Notes that the catalogue now shows this crawl. The only place that moves `last_crawled_at`."""
    await conn.execute(
        _q.crawled, {"id": store_id, "crawled_at": crawled_at, "payload_id": payload_id, "products": products}
    )


async def set_crawl_enabled(conn: AsyncConnection[Any], store_id: int, enabled: bool) -> None:
    """Whether the store may be contacted; raises Refused when there is no such store."""
    row = await (await conn.execute(_q.set_crawl_enabled, {"id": store_id, "enabled": enabled})).fetchone()
    if row is None:
        raise Refused(f"store {store_id} does not exist")
