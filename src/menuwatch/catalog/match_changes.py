"""Changes of canonical products for the feed of changes: products that became one, and products that were split off.

They are about no store, so a filter by store, state or listing has none of them, and one by percentage neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, LiteralString

from msgspec import Struct

from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_structs

_q = sql.load(__package__, "match_changes.sql")


class MatchChange(Struct, kw_only=True, frozen=True):
    """Canonical products that were merged, or one that was split."""

    type: Literal["canonical_product"] = "canonical_product"
    id: Annotated[int, doc("Id of the event.")]
    kind: Annotated[
        Literal["merged", "split"],
        doc(
            "`merged`: the first became a redirect to the second; `split`: listings moved from the first to the second."
        ),
    ]
    changed_at: Instant
    from_canonical_product_id: int
    from_name: str
    canonical_product_id: Annotated[int, doc("Id of the canonical product that has the listings now.")]
    name: str
    brand_id: Annotated[int | None, doc("Id of the brand of the latter; null if menus name none.")]
    brand_name: str | None
    category_canon: Annotated[str | None, doc("Canonical category of the latter; null if unknown.")]
    listings: Annotated[int, doc("Number of listings that moved.")]
    cause: Annotated[
        Literal["menu", "correction", "rules"],
        doc(
            "`menu`: new or renamed listings; `correction`: a person's decision; `rules`: a new version of the matcher."
        ),
    ]


async def newest(conn: Connection, values: Mapping[str, Any], *, after: Any, end: Any, limit: int) -> list[Row]:
    """Keys of the events between the keys `after` and `end` (None: no bound), newest first: `product_id` is the negative id, which no
    product has."""
    page = {
        "after_at": after and after[0], "after_id": after and after[1],
        "end_at": end and end[0], "end_id": end and end[1], "limit": limit,
    }  # fmt: skip
    return await fetch_all(conn, _q.newest, {**values, **page}, prepare=False)


def select_keys(values: Mapping[str, Any], limit: int | None = None) -> tuple[LiteralString, dict[str, Any]]:
    """A statement that gives the keys of the newest events that the filter selects, by default of all, and its parameters."""
    every = {"after_at": None, "after_id": None, "end_at": None, "end_id": None, "limit": limit}
    return _q.newest, {**values, **every}


async def fed(conn: Connection, values: Mapping[str, Any], *, position: int, until: int, limit: int) -> list[Row]:
    """Keys of the events behind a position of the feed, in its order."""
    page = {"position": position, "until_position": until, "limit": limit}
    return await fetch_all(conn, _q.fed, {**values, **page}, prepare=False)


async def read(conn: Connection, ids: Sequence[int]) -> dict[int, MatchChange]:
    """The events of those ids."""
    rows = await fetch_structs(conn, MatchChange, _q.in_full, {"ids": list(ids)}) if ids else []
    return {row.id: row for row in rows}
