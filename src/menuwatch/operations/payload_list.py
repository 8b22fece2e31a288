"""Archived answers with the stores that they are of, and whether each says anything that the one before did not."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import Row, rows

_q = sql.load(__package__, "payload_list.sql")

STATUSES = ("ok", "partial", "quarantined", "rejected")
MOST_COUNTED = 1_000


async def page(
    conn: Connection,
    *,
    store: int | None = None,
    status: str | None = None,
    before: tuple[datetime, int] | None = None,
    limit: int = 50,
) -> list[Row]:
    """Payloads, newest first, those before (fetched_at, id); each with `store`, and `previous_id` with its `same_answers` and
    `previous_count`: the store's payload before it."""
    at, number = before or (None, None)
    values = {"store": store, "status": status, "before_at": at, "before_id": number, "limit": limit}
    return await rows(conn, _q.payloads_with_stores, values, prepare=False)


async def waiting(conn: Connection) -> int:
    """How many are in quarantine, at most MOST_COUNTED + 1."""
    (found,) = await rows(conn, _q.in_quarantine, {"limit": MOST_COUNTED + 1})
    return int(found["n"])


async def near(conn: Connection, payload_id: int, limit: int = 20) -> tuple[list[Row], list[Row]]:
    """What a payload may be compared with: the store's payloads that hold a menu, those before it with the newest first, those after
    it with the oldest first; at most `limit` of each."""
    found = await rows(conn, _q.comparable, {"id": payload_id, "limit": limit})
    return [one for one in found if one["before"]], [one for one in found if not one["before"]]


async def in_catalogue(conn: Connection, store: int, platform: str, items: Collection[str]) -> dict[str, int]:
    """Numbers of the products that these items of a store's menu are, by the platform's id. One that was never applied has none."""
    found = await rows(conn, _q.in_catalogue, {"store": store, "platform": platform, "items": list(items)})
    return {one["provider_product_id"]: one["id"] for one in found}
