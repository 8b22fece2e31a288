"""Stores: lists, crawl settings, and how their crawls went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from itertools import takewhile
from typing import Annotated, Any

import msgspec
from msgspec import Raw, Struct

from menuwatch.accounts import audit
from menuwatch.core.errors import InvalidField, MenuwatchError, NotFound
from menuwatch.core.shapes import Instant, doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_one, fetch_struct, fetch_structs, like_pattern
from menuwatch.geo.circle import Circle, circle_values
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

_q = sql.load(__package__, "service.sql")

SHORTEST_HOURS, LONGEST_HOURS = Decimal("0.25"), Decimal(24 * 30)
"""Bounds of the crawl interval."""
LOOK_BACK = 60
"""Maximum number of recent crawls, within the last 30 days."""
MOST_COUNTED = 10_000
"""Maximum number of products counted."""
OUTCOMES = 20
"""Maximum number of crawl outcomes, within the last 7 days."""

NEVER = datetime(1900, 1, 1, tzinfo=UTC)
LAST = datetime(9000, 1, 1, tzinfo=UTC)
"""`due_at` of stores without a due time: those never crawled come first, those that may not be crawled last."""


class Freshness(StrEnum):
    """Age of a store's menu. `late`: overdue by a quarter of its crawl interval; `stale`: twice as old as its interval."""

    FRESH = "fresh"
    LATE = "late"
    STALE = "stale"
    NEVER = "never"
    OFF = "off"
    UNRESOLVED = "unresolved"


class StoreFilter(Struct, frozen=True, kw_only=True):
    """Which stores; None takes all. `q` is text in the name, city or slug. `circle` leaves out stores without a position."""

    platform: str | None = None
    states: Sequence[str] | None = None
    crawl_enabled: bool | None = None
    freshness: Sequence[Freshness] | None = None
    q: str | None = None
    circle: Circle | None = None
    updated_since: datetime | None = None
    """Its row changed at or after this time: with every crawl, and by people."""
    stateless: bool = False
    """Only stores whose state is not known."""

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "circle"}
        return values | {
            **circle_values(self.circle),
            "freshness": None if self.freshness is None else list(map(str, self.freshness)),
            "q": None if self.q is None else like_pattern(self.q),
        }


class CrawlWarning(Struct, kw_only=True, frozen=True):
    """A product value that could not be used as it came."""

    product_id: Annotated[str | None, doc("Id of the product on the platform; null if unknown.")] = None
    field: Annotated[str, doc("Field with the invalid value.")]
    message: Annotated[str, doc("What is wrong with the value.")]
    fatal: Annotated[bool, doc("Whether the product was left out.")] = False
    position: Annotated[
        int | None, doc("Position of the item in the menu, from 1; null in crawls of earlier releases.")
    ] = None
    name: Annotated[str | None, doc("Name in the item; null if unknown.")] = None


class LastCrawl(Struct, kw_only=True, frozen=True):
    """Changes made by the store's newest crawl, as numbers of products."""

    crawled_at: Instant
    payload_id: int
    products: int
    new_products: int
    changed: Annotated[int, doc("Known products that changed.")]
    unchanged: Annotated[int, doc("Known products that did not change.")]
    returned: Annotated[int, doc("Products that returned after an absence.")]
    missing: Annotated[int, doc("Absent products whose misses were counted.")]
    out_of_stock: Annotated[int, doc("Products that went out of stock.")]
    price_changes: Annotated[int, doc("Products whose prices changed.")]
    stock_changes: Annotated[int, doc("Products whose stock changed.")]
    warnings: Annotated[Raw, json_of(list[CrawlWarning]), doc("Values that could not be used unchanged.")]


class StoreDetail(Store, kw_only=True, frozen=True):
    """A store with its last crawl."""

    last_crawl: Annotated[LastCrawl | None, doc("Null before the first crawl.")]
    quality_score: Annotated[
        int | None, doc("Data quality of the last menu, from 0 to 100; null with `quality_reason`.")
    ]
    quality_reason: Annotated[str | None, doc("Why there is no score.")]


async def list_stores(
    conn: Connection, where: StoreFilter, *, after: int | None = None, limit: int | None = 50
) -> list[Store]:
    """Stores by id, those after `after`."""
    return await fetch_structs(conn, Store, _q.list_stores, {**where.values(), "after": after, "limit": limit})


class ObservedStores(Struct, kw_only=True, frozen=True):
    """How many stores have a menu, how many of these only a part of one, and the times of their last crawls; null without any."""

    known_stores: int
    stores: int
    partial: int
    oldest_at: datetime | None
    newest_at: datetime | None


async def count_observed(conn: Connection, where: StoreFilter, ids: Sequence[int] | None = None) -> ObservedStores:
    """Counts the stores of a filter, or those of them with these ids, and how many were crawled."""
    values = {**where.values(), "ids": None if ids is None else list(ids)}
    (observed,) = await fetch_structs(conn, ObservedStores, _q.observed_stores, values, prepare=False)
    return observed


async def get_store(conn: Connection, store_id: int) -> StoreDetail:
    """One store with its last crawl; raises NotFound."""
    store = await stores.get(conn, store_id)
    if store is None:
        raise NotFound(f"store {store_id} does not exist")
    last_crawl = await fetch_struct(conn, LastCrawl, _q.last_crawl, {"id": store_id})
    score, reason = await quality_score(conn, store_id)
    return StoreDetail(
        **msgspec.structs.asdict(store), last_crawl=last_crawl, quality_score=score, quality_reason=reason
    )


async def quality_score(conn: Connection, store_id: int) -> tuple[int | None, str | None]:
    """The data quality score of a store, or why there is none (`quality/score.py`)."""
    row = await fetch_one(conn, _q.quality_score, {"id": store_id})
    return (row["score"], row["reason"]) if row else (None, "no menu measured yet")


async def lock_store(conn: Connection, store_id: int) -> None:
    """Locks the store's row until the transaction ends; raises NotFound."""
    if await stores.lock(conn, store_id) is None:
        raise NotFound(f"store {store_id} does not exist")


async def platforms_and_states(conn: Connection) -> tuple[list[str], list[str]]:
    """(platforms, states) that occur in stores."""
    row = await fetch_one(conn, _q.platforms_and_states, {})
    assert row is not None, "an aggregate gives a row"
    return row["platforms"], row["states"]


class CrawlSettings(Struct, frozen=True, kw_only=True):
    """Whether a store is crawled, and the hours between two crawls."""

    enabled: bool
    interval_hours: Decimal

    @property
    def version(self) -> str:
        """Version of the settings. Crawls, which change the store's row all the time, do not change it."""
        return f"{'on' if self.enabled else 'off'}:{self.interval_hours.normalize():f}"


class CrawlSettingsChanged(MenuwatchError):
    """Another user changed the settings since they were read; `now` holds the current ones."""

    def __init__(self, now: CrawlSettings) -> None:
        super().__init__("the crawl settings of this store were changed by another user in the meantime")
        self.now = now


async def change_crawl_settings(
    conn: Connection,
    store_id: int,
    *,
    enabled: bool | None = None,
    interval_hours: Decimal | None = None,
    version: str | None = None,
) -> CrawlSettings:
    """Changes the settings that are not None, in the caller's transaction; returns the new settings. Raises NotFound, InvalidField and
    CrawlSettingsChanged if `version` is not the current one.
    """
    row = await fetch_one(conn, _q.lock_crawl_settings, {"id": store_id})
    if row is None:
        raise NotFound(f"store {store_id} does not exist")
    now = CrawlSettings(**row)
    if version is not None and now.version != version:
        raise CrawlSettingsChanged(now)
    new = CrawlSettings(
        enabled=now.enabled if enabled is None else enabled,
        # An interval that is out of bounds already may stay unchanged.
        interval_hours=now.interval_hours
        if interval_hours is None or interval_hours == now.interval_hours
        else _valid_interval(interval_hours),
    )
    if new == now:
        return now
    values = {"id": store_id, "enabled": new.enabled, "interval_hours": new.interval_hours}
    await conn.execute(_q.set_crawl_settings, values)
    if now.enabled != new.enabled:
        await audit.record(conn, "store_enabled" if new.enabled else "store_disabled", ("store", store_id))
    if now.interval_hours != new.interval_hours:
        before, after = str(now.interval_hours), str(new.interval_hours)
        await audit.record(conn, "store_interval_set", ("store", store_id), before=before, after=after)
    return new


def _valid_interval(hours: Decimal) -> Decimal:
    if not hours.is_finite() or not SHORTEST_HOURS <= hours <= LONGEST_HOURS:
        raise InvalidField(
            "crawl_interval_hours",
            f"enter a number of hours from {SHORTEST_HOURS} to {LONGEST_HOURS}, not {str(hours)[:40]}",
        )
    return round(hours, 2)


class Crawl(Struct, kw_only=True, frozen=True):
    """One finished crawl. `outcome` is the status of its payload (ok, partial, quarantined, rejected), or `failed` without one;
    `number` is the id of the payload or the task. `bytes` is the archived size."""

    at: datetime
    outcome: str
    number: int
    task_id: int | None = None
    products: int | None
    bytes: int | None
    reason: str | None


async def recent_crawls(conn: Connection, store_id: int) -> Sequence[Crawl]:
    """The store's crawls of the last 30 days, oldest first, at most LOOK_BACK."""
    crawls = await fetch_structs(conn, Crawl, _q.recent_crawls, {"id": store_id, "limit": LOOK_BACK})
    return crawls[::-1]


class CategoryCount(Struct, kw_only=True, frozen=True):
    """Products of one canonical category (None: unknown)."""

    category: str | None
    products: int
    in_stock: int
    specials: int
    cheapest: Decimal | None


async def count_by_category(conn: Connection, store_id: int) -> list[CategoryCount]:
    """The store's products on the menu by category, at most MOST_COUNTED of them."""
    values = {"id": store_id, "limit": MOST_COUNTED}
    return await fetch_structs(conn, CategoryCount, _q.products_by_category, values)


class StoreHealth(Struct, kw_only=True, frozen=True):
    """A store with its crawls. `due_at` is when its interval is over (NEVER, LAST where there is none) and with the id the key of the
    list; `next_at` when its next crawl was or is due. `outcomes` are its last crawls, newest first: true if completed."""

    id: int
    name: str
    slug: str | None
    platform: str
    city: str | None
    state: str | None
    crawl_enabled: bool
    crawl_interval_hours: Decimal
    last_crawled_at: datetime | None
    last_attempt_at: datetime | None
    last_error: str | None
    product_count: int | None
    freshness: str
    due_at: datetime
    next_at: datetime | None
    waiting_task_id: int | None
    active_task_id: int | None
    outcomes: Sequence[bool]

    @property
    def success_streak(self) -> int:
        """Completed crawls in a row, up to the last one; at most OUTCOMES."""
        return len(list(takewhile(bool, self.outcomes)))

    @property
    def consecutive_failures(self) -> int:
        """Failed crawls in a row, up to the last one; at most OUTCOMES."""
        return len(list(takewhile(lambda good: not good, self.outcomes)))


SORTS = ("due", "-due", "name", "-name", "-crawled", "crawled", "-products", "products")
"""Orders of stores: by next crawl, name, last crawl, number of products; `-` descends."""


async def list_health(
    conn: Connection,
    where: StoreFilter,
    *,
    store_id: int | None = None,
    after: tuple[datetime, int] | None = None,
    limit: int = 50,
    sort: str | None = None,
    offset: int = 0,
) -> list[StoreHealth]:
    """Stores, the most overdue first, after the one with that (due_at, id); or in the order `sort`
    (one of SORTS), without the first `offset`."""
    after_key, after_id = after or (None, None)
    page: dict[str, Any] = {
        "id": store_id,
        "after_key": after_key,
        "after_id": after_id,
        "limit": limit,
        "outcomes": OUTCOMES,
    }
    page |= {"sort": sort, "offset": offset}
    return await fetch_structs(conn, StoreHealth, _q.store_health, {**where.values(), **page}, prepare=False)


async def get_health(conn: Connection, store_id: int) -> StoreHealth:
    """One store; raises NotFound."""
    rows = await list_health(conn, StoreFilter(), store_id=store_id, limit=1)
    if not rows:
        raise NotFound(f"store {store_id} does not exist")
    return rows[0]


async def count_by_freshness(
    conn: Connection, *, platform: str | None = None
) -> Mapping[str | None, Mapping[Freshness, int]]:
    """Number of stores of each freshness, by state (None: unknown)."""
    counts: dict[str | None, dict[Freshness, int]] = {}
    for row in await fetch_all(conn, _q.store_freshness_counts, {"platform": platform}):
        counts.setdefault(row["state"], {})[Freshness(row["status"])] = row["n"]
    return counts


async def explain_no_stores_near(conn: Connection) -> str:
    """Why a circle has no store with a menu, and what to do."""
    found = await fetch_one(conn, _q.count_positions, {})
    assert found is not None, "an aggregate gives one row"
    if not found["stores"]:
        return "No store has a menu yet."
    if not found["placed"]:
        return (
            f"None of the {found['stores']:,} stores with a menu has a position: "
            "`menuwatch stores place STORE --latitude … --longitude …` sets one."
        )
    return "No store with a position and a menu is in this circle. Choose a larger distance."
