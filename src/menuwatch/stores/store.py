"""The rows of `dispensaries` and `dutchie_discovery_locations`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Struct
from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from menuwatch.core.errors import Refused
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_struct, fetch_structs
from menuwatch.geo.states import CODES

_q = sql.load(__package__)


class Store(Struct, kw_only=True, frozen=True):
    """A store with a menu. Without a `platform_dispensary_id` it is known by its menu URL alone and cannot be crawled yet."""

    id: int
    platform: Annotated[str, doc("Platform that serves the menu.")]
    platform_dispensary_id: Annotated[str | None, doc("Id of the store on the platform; null until it is resolved.")]
    slug: Annotated[str | None, doc("Name of the store in URLs.")]
    name: str
    menu_url: str | None
    address: Annotated[str | None, doc("Street and number; null if unknown.")]
    city: str | None
    state: Annotated[str | None, doc("State or province; null if unknown.")]
    country: str | None
    zipcode: str | None
    latitude: Annotated[float | None, doc("Latitude in degrees; null if unknown.")]
    longitude: Annotated[float | None, doc("Longitude in degrees; null if unknown.")]
    timezone: Annotated[str | None, doc("IANA time zone; null if unknown.")]
    phone: str | None
    is_recreational: Annotated[bool | None, doc("Whether it sells to adults; null if unknown.")]
    is_medical: Annotated[bool | None, doc("Whether it sells to patients; null if unknown.")]
    crawl_enabled: bool
    crawl_interval_hours: Decimal
    shown: Annotated[
        bool | None, doc("Whether the public site shows it, set by hand; null: shown while crawling is enabled.")
    ]
    details_by_person: Annotated[
        list[str], doc("Fields set by hand, for example `name`. They override the platform's values.")
    ]
    first_crawled_at: Annotated[Instant | None, doc("Time of the first crawl in the catalog; null before it.")]
    last_crawled_at: Annotated[
        Instant | None, doc("Time of the newest crawl in the catalog; null before the first one.")
    ]
    last_payload_id: Annotated[int | None, doc("Id of the payload of that crawl; null before the first one.")]
    last_attempt_at: Annotated[Instant | None, doc("Time of the last crawl attempt; null before the first one.")]
    last_error: Annotated[str | None, doc("Why the last attempt failed; null if it succeeded.")]
    product_count: Annotated[int | None, doc("Number of products in its last crawl; null before the first one.")]
    created_at: Instant
    updated_at: Instant
    location_id: Annotated[
        int | None,
        doc("Location, which other platforms' menus of the shop share; null for seconds after it was added."),
    ]


class _Match(Store, kw_only=True, frozen=True):
    """A store that a text may refer to, with the rank of the match."""

    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What a platform says about a store."""

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

    def parameters(self) -> dict[str, Any]:
        """The values as parameters of statements; `state_code` is the state if it is a known code."""
        return {**self.values(), "state_code": self.state if self.state in CODES else None}


def name_from_slug(slug: str) -> str:
    """What a store is called until its name is known: "green-leaf" is "Green Leaf"."""
    return " ".join(word.capitalize() for word in slug.replace("_", "-").split("-") if word) or slug


async def get(conn: Connection, store_id: int) -> Store | None:
    return await fetch_struct(conn, Store, _q.get_store, {"id": store_id})


async def lock(conn: Connection, store_id: int) -> Store | None:
    """The store with that id, locked until the transaction ends."""
    return await fetch_struct(conn, Store, _q.lock_store, {"id": store_id})


_CANDIDATES = 5
"""Maximum number of stores that an error about an ambiguous name lists."""


async def find(conn: Connection, text: str, platform: str | None = None, *, by_name: bool = True) -> Store | None:
    """The store with that slug, number, platform id or (`by_name`) name, in this order; only on `platform` if given. Names, and slugs
    that none has as written, match in any case.

    Raises Refused if the text refers to several stores; the message lists them.
    """
    text = " ".join(text.split())
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    matches = await _matches(conn, text, number, platform)
    if not matches:
        return await _find_by_name(conn, text, platform) if by_name else None
    best = matches[0]
    others = [store for store in matches if store.rank == best.rank and store.platform != best.platform]
    if others:
        each = ", ".join(f"{store.id} on {store.platform}" for store in (best, *others))
        raise Refused(f"store {text!r} exists on several platforms: use its id ({each})")
    return best


async def _find_by_name(conn: Connection, text: str, platform: str | None) -> Store | None:
    values = {"text": text, "platform": platform, "limit": _CANDIDATES + 1}
    matches = await fetch_structs(conn, Store, _q.find_store_by_name, values)
    if len(matches) > 1:
        each = ", ".join(
            f"{store.slug or 'no slug'} (ID {store.id}{f', {store.city}' if store.city else ''})"
            for store in matches[:_CANDIDATES]
        )
        more = ", …" if len(matches) > _CANDIDATES else ""
        raise Refused(f"several stores are called {text!r}: use the slug or ID of one: {each}{more}")
    return matches[0] if matches else None


async def resolve(conn: Connection, text: str) -> Store:
    """The store with that slug, number, platform id or name, wherever a person names one. Raises Refused if there is none, with
    similar names, or if there are several.
    """
    store = await find(conn, text)
    if store is None:
        similar = await fetch_all(conn, _q.similar_stores, {"text": text})
        named = " or ".join(f"{row['name']!r} ({row['slug'] or row['id']})" for row in similar)
        hint = f"did you mean {named}?" if named else "enter its name, slug or ID"
        raise Refused(f"store {text[:200]!r} does not exist: {hint}")
    return store


async def _matches(conn: Connection, text: str, number: int | None, platform: str | None) -> list[_Match]:
    """Stores that match the text, best match first."""
    return await fetch_structs(conn, _Match, _q.find_store, {"text": text, "id": number, "platform": platform})


async def by_platform_id(conn: Connection, platform: str, platform_dispensary_id: str) -> Store | None:
    values = {"platform": platform, "platform_dispensary_id": platform_dispensary_id}
    return await fetch_struct(conn, Store, _q.by_platform_id, values)


async def count_by_platform(conn: Connection) -> dict[str, int]:
    """Number of stores by platform."""
    return dict(await (await conn.execute(_q.count_by_platform)).fetchall())


async def crawlable(conn: Connection) -> list[int]:
    """Ids of all stores that may be crawled."""
    cursor = await conn.execute(_q.crawlable_stores)
    return [int(row[0]) for row in await cursor.fetchall()]


async def add_by_url(conn: Connection, *, platform: str, slug: str, menu_url: str | None = None) -> Store:
    """Adds a store known only by slug and menu URL; raises Refused if the slug exists."""
    values = {"platform": platform, "slug": slug, "name": name_from_slug(slug), "menu_url": menu_url}
    known = await _known(conn, slug, platform)
    if known is None:
        try:
            async with conn.transaction():
                added = await fetch_struct(conn, Store, _q.insert_by_url, values)
        except UniqueViolation:
            # Another transaction added it concurrently.
            known = await _known(conn, slug, platform)
        else:
            assert added is not None, "INSERT … RETURNING gives a row"
            return added
    if known is None:
        raise Refused(f"store {slug!r} already exists")
    off = "" if known.crawl_enabled else "; it is not crawled: enable that with `menuwatch stores set ID --crawl`"
    raise Refused(f"store {slug!r} already exists, with id {known.id}{off.replace('ID', str(known.id))}")


async def _known(conn: Connection, slug: str, platform: str) -> Store | None:
    matches = await _matches(conn, slug, None, platform)
    return matches[0] if matches else None


async def update_details(conn: Connection, store_id: int, details: Details) -> None:
    """Updates a store with what the platform says about it."""
    await conn.execute(_q.update_details, {"id": store_id, **details.parameters()})
    await conn.execute(_q.keep_details, {"id": store_id})


async def promote(conn: Connection, platform: str, details: Details) -> tuple[int, bool]:
    """Inserts a discovered store as one to crawl; returns its id and whether it needs its first crawl.

    A store that was added by URL and has this slug gets the platform id, instead of a second row for one shop.
    """
    values = {"platform": platform, **details.parameters()}
    adopted = await _adopt(conn, values)
    row = await (await conn.execute(_q.promote, values)).fetchone()
    assert row is not None, "INSERT … RETURNING gives a row"
    await conn.execute(_q.keep_details, {"id": row[0]})
    return int(row[0]), bool(row[1]) or adopted


async def _adopt(conn: Connection, values: Mapping[str, Any]) -> bool:
    """Sets the platform id of a store without one; returns whether the store may be crawled."""
    try:
        async with conn.transaction():
            row = await (await conn.execute(_q.adopt, values)).fetchone()
    except UniqueViolation:
        return False  # another process has just written the id, and owns the row
    return row is not None and bool(row[0])


async def close_duplicate(conn: Connection, store_id: int, at: datetime, error: str) -> None:
    """Disables crawling of a row that duplicates another shop, with the reason."""
    await conn.execute(_q.close_duplicate, {"id": store_id, "at": at, "error": error})


async def fill_in(conn: Connection, store_id: int, details: Details) -> None:
    """Fills in a store's unknown details; ids and names stay."""
    await conn.execute(_q.fill_in, {"id": store_id, "state_codes": sorted(CODES), **details.parameters()})


async def record_location(
    conn: Connection,
    platform: str,
    details: Details,
    *,
    raw: Mapping[str, Any],
    dispensary_id: int | None,
    rejected: str | None,
) -> None:
    """Records that discovery saw this store, and why it was not promoted, if so."""
    await conn.execute(
        _q.record_location,
        {
            "platform": platform,
            **details.parameters(),
            "raw": Jsonb(dict(raw)),
            "dispensary_id": dispensary_id,
            "status": "rejected" if rejected else "promoted",
            "reason": rejected,
        },
    )


async def attempted(conn: Connection, store_id: int, at: datetime, error: str | None) -> None:
    """Records the time of a crawl's end and its error, if it failed."""
    await conn.execute(_q.attempted, {"id": store_id, "at": at, "error": error})


async def crawled(
    conn: Connection, store_id: int, *, crawled_at: datetime, payload_id: int | None, products: int
) -> None:
    """Records that the catalog shows this crawl. The only place that changes `last_crawled_at`."""
    await conn.execute(
        _q.crawled, {"id": store_id, "crawled_at": crawled_at, "payload_id": payload_id, "products": products}
    )


async def set_details(conn: Connection, store: Store, details: Mapping[str, str | float | None]) -> None:
    """Sets details by hand; None restores the platform's value."""
    values = {"id": store.id, "details": Jsonb(dict(details)), "slug_name": name_from_slug(store.slug or store.name)}
    await conn.execute(_q.set_details, values)
    await conn.execute(_q.keep_details, {"id": store.id})


async def set_shown(conn: Connection, store_id: int, shown: bool | None) -> None:
    """Sets the store's visibility on the public site; None: visible while crawling is enabled."""
    await conn.execute(_q.set_shown, {"id": store_id, "shown": shown})


async def set_crawl_enabled(conn: Connection, store_id: int, enabled: bool) -> None:
    """Sets whether the store may be crawled; raises Refused for an unknown store."""
    row = await (await conn.execute(_q.set_crawl_enabled, {"id": store_id, "enabled": enabled})).fetchone()
    if row is None:
        raise Refused(f"store {store_id} does not exist")
