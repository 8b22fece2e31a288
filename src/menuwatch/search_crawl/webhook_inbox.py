"""The rows of `crawl_deliveries` and `crawl_fetches`: received results, and pages that our own identities are to fetch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.db import sql
from menuwatch.search_crawl.model import PendingDelivery, Reference
from menuwatch.search_crawl.protocols import Delivery, UrlType

_q = sql.load(__package__, "webhook_inbox.sql")
_Conn = AsyncConnection[Any]


class FetchOrder(Struct, frozen=True, kw_only=True):
    """A page that a worker fetches. `awaited`: its attempt is the one under way still."""

    id: int
    reference: str
    url: str
    country: str | None
    awaited: bool


class StoredDelivery(Struct, frozen=True, kw_only=True):
    """Result of storing a delivery: `known` is whether such an attempt exists, `id` the row if its page is still awaited."""

    known: bool
    id: int | None


async def put(conn: _Conn, reference: Reference, provider: str, delivery: Delivery, now: datetime) -> StoredDelivery:
    """Keeps what that provider brought, to be read soon. Raises nothing for what is in it: a text that no column holds is cut or
    cleaned."""
    values = {
        "job_id": reference.job_id,
        "item_id": reference.item_id,
        "url_type": reference.url_type,
        "attempt": reference.attempt,
        "provider": provider,
        "now": now,
        "ok": delivery.ok,
        "error": _text(delivery.error, 500),
        "html": delivery.html,
        "html_url": _text(delivery.html_url, 4000),
        "request_id": _text(delivery.request_id, 200),
    }
    row = await (await conn.execute(_q.put, values)).fetchone()
    assert row is not None, "it is always one row"
    return StoredDelivery(known=row[0], id=row[1])


def _text(text: str | None, most: int) -> str | None:
    if text is None:
        return None
    return text[:most].replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


async def take(conn: _Conn, now: datetime, until: datetime) -> PendingDelivery | None:
    """A delivery to read, claimed for this caller."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.take, {"now": now, "until": until})
        row = await cur.fetchone()
    return None if row is None else PendingDelivery(**{**row, "url_type": UrlType(row["url_type"])})


async def postpone(conn: _Conn, delivery_id: int, at: datetime) -> None:
    """It is read then."""
    await conn.execute(_q.postpone, {"id": delivery_id, "at": at})


async def drop(conn: _Conn, delivery_id: int) -> None:
    """It has been read."""
    await conn.execute(_q.drop, {"id": delivery_id})


async def drop_of_job(conn: _Conn, job_id: int) -> None:
    """Nothing more of that job is read or fetched."""
    await conn.execute(_q.drop_of_job, {"job_id": job_id})
    await conn.execute(_q.drop_fetches_of_job, {"job_id": job_id})


async def order_fetch(conn: _Conn, reference: Reference, *, url: str, country: str | None, now: datetime) -> int | None:
    """Orders a fetch by a worker; returns the order's id, None if there is one already."""
    values = {
        "item_id": reference.item_id,
        "attempt": reference.attempt,
        "reference": str(reference),
        "url": url,
        "country": country,
        "now": now,
    }
    row = await (await conn.execute(_q.order_fetch, values)).fetchone()
    return None if row is None else int(row[0])


async def take_fetches(conn: _Conn, now: datetime, until: datetime, *, limit: int) -> Sequence[FetchOrder]:
    """Pages to fetch, claimed for this caller."""
    async with conn.cursor(row_factory=class_row(FetchOrder)) as cur:
        await cur.execute(_q.take_fetches, {"now": now, "until": until, "limit": limit})
        return await cur.fetchall()


async def postpone_fetch(conn: _Conn, order_id: int, at: datetime, deadline_at: datetime) -> None:
    """It is fetched then, and need not have come before `deadline_at`."""
    await conn.execute(_q.postpone_fetch, {"id": order_id, "at": at, "deadline_at": deadline_at})


async def drop_fetch(conn: _Conn, order_id: int) -> None:
    """Removes a fetch that is done or no longer needed."""
    await conn.execute(_q.drop_fetch, {"id": order_id})


async def next_fetch(conn: _Conn) -> datetime | None:
    """When one is to be fetched next."""
    row = await (await conn.execute(_q.next_fetch)).fetchone()
    assert row is not None, "an aggregate answers with one row"
    found: datetime | None = row[0]
    return found
