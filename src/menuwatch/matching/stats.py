"""How far matching is, and single canonical products."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_struct, fetch_structs
from menuwatch.matching.names import RULES

_q = sql.load(__package__, "report.sql")


class MatchShare(Struct, kw_only=True, frozen=True):
    """Matched listings of one category or platform."""

    name: Annotated[str, doc("Category or platform.")]
    listings: Annotated[int, doc("Matched listings.")]
    products: Annotated[int, doc("Canonical products.")]
    shared_listings: Annotated[int, doc("Listings whose canonical product is at two or more stores.")]


class MatchStats(Struct, kw_only=True, frozen=True):
    """State of product matching. Listings that left their menu count as well."""

    listings: Annotated[int, doc("Matched listings.")]
    waiting_listings: Annotated[int, doc("Listings that are not matched yet.")]
    products: Annotated[int, doc("Canonical products with listings.")]
    shared_listings: Annotated[int, doc("Listings whose canonical product is at two or more stores.")]
    shared_products: Annotated[int, doc("Canonical products at two or more stores.")]
    products_on_platforms: Annotated[int, doc("Canonical products on two or more platforms.")]
    brands: int
    waiting_stores: Annotated[int, doc("Stores whose last menu is not matched yet.")]
    lag_seconds: Annotated[float | None, doc("Age in seconds of the oldest menu that waits; null if none does.")]
    waiting_blocks: Annotated[int, doc("Blocks of listings to be compared again.")]
    reviews: Annotated[int, doc("Pairs that a person should judge.")]
    corrections: Annotated[int, doc("Corrections in force.")]
    categories: list[MatchShare] = []
    platforms: list[MatchShare] = []


LATE_SECONDS = 1800.0
"""Age from which a menu that is not matched is late. Matching takes seconds."""


class LateMenus(Struct, kw_only=True, frozen=True):
    """Menus that were not matched in time: the number of their stores, and the age of the oldest one."""

    stores: int
    seconds: float


async def read_late(conn: Connection) -> LateMenus:
    """Counts menus that wait for `LATE_SECONDS` or longer."""
    late = await fetch_struct(conn, LateMenus, _q.late, {"late": LATE_SECONDS})
    assert late is not None, "an aggregate returns one row"
    return late


async def read_stats(conn: Connection) -> MatchStats:
    """Counts matched and waiting listings."""
    stats = await fetch_struct(conn, MatchStats, _q.stats, {"rules": RULES})
    assert stats is not None, "an aggregate returns one row"
    categories = await fetch_structs(conn, MatchShare, _q.by_category, {})
    return replace(stats, categories=categories, platforms=await fetch_structs(conn, MatchShare, _q.by_platform, {}))
