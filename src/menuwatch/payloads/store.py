"""The rows of `raw_crawl_payloads`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.payloads import extent

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One archived answer. `status` is ok, partial (pages missing), quarantined (suspect) or rejected (no menu at all)."""

    id: int
    task_id: int | None
    dispensary_id: int
    platform: str
    status: str
    reason: str | None
    product_count: int
    total_count: int | None
    page_count: int
    is_first: bool
    fetched_at: datetime
    path: str
    bytes: int
    raw_bytes: int
    sha256: str
    content_sha256: str
    notes: list[str]
    applied_at: datetime | None
    released_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPayload:
    """What a crawl knows of the answer it archived."""

    task_id: int | None
    dispensary_id: int
    platform: str
    status: str
    reason: str | None = None
    product_count: int = 0
    total_count: int | None = None
    page_count: int = 0
    is_first: bool = False
    fetched_at: datetime
    path: str
    bytes: int
    raw_bytes: int
    sha256: str
    content_sha256: str
    notes: Sequence[str] = ()


async def insert(conn: AsyncConnection[Any], new: NewPayload) -> int:
    """Adds the row, in the transaction that decides whether its file is published; returns its id."""
    values = {name: getattr(new, name) for name in NewPayload.__slots__} | {"notes": Jsonb(list(new.notes))}
    row = await (await conn.execute(_q.insert_payload, values)).fetchone()
    assert row is not None, "INSERT … RETURNING gives a row"
    return int(row[0])


async def _one(conn: AsyncConnection[Any], query: Any, values: dict[str, Any]) -> Payload | None:
    async with conn.cursor(row_factory=class_row(Payload)) as cur:
        await cur.execute(query, values)
        return await cur.fetchone()


async def get(conn: AsyncConnection[Any], payload_id: int) -> Payload | None:
    """The payload of that id."""
    return await _one(conn, _q.get_payload, {"id": payload_id})


async def lock(conn: AsyncConnection[Any], payload_id: int) -> Payload | None:
    """The payload of that id, locked until the transaction ends."""
    return await _one(conn, _q.lock_payload, {"id": payload_id})


async def latest(conn: AsyncConnection[Any], dispensary_id: int) -> Payload | None:
    """The store's newest payload, whatever its status."""
    return await _one(conn, _q.latest_payload, {"dispensary_id": dispensary_id})


async def latest_applied(conn: AsyncConnection[Any], dispensary_id: int) -> Payload | None:
    """The store's newest payload that the catalogue was made from."""
    return await _one(conn, _q.latest_applied, {"dispensary_id": dispensary_id})


async def at(conn: AsyncConnection[Any], dispensary_id: int, fetched_at: datetime) -> Payload | None:
    """The store's payload of that very instant; two cannot share one."""
    return await _one(conn, _q.payload_at, {"dispensary_id": dispensary_id, "fetched_at": fetched_at})


async def same_content(
    conn: AsyncConnection[Any], dispensary_id: int, content_sha256: str, *, crawled_at: datetime | None
) -> Payload | None:
    """A payload of the store with the same bytes: one that was applied at any time, else one that waits to be applied or
    released. `crawled_at` is the store's last applied crawl: what is older waits for nothing."""
    values = {"dispensary_id": dispensary_id, "content_sha256": content_sha256, "crawled_at": crawled_at}
    return await _one(conn, _q.same_content, values)


async def sharing(conn: AsyncConnection[Any], new: NewPayload) -> NewPayload:
    """The same payload, referring to the file of the store's first one with the same answers and status; unchanged where there is
    none."""
    values = {"dispensary_id": new.dispensary_id, "content_sha256": new.content_sha256, "status": new.status}
    row = await (await conn.execute(_q.stored_alike, values)).fetchone()
    if row is None:
        return new
    path, size, raw_size, sha256 = row
    return replace(new, path=path, bytes=size, raw_bytes=raw_size, sha256=sha256)


async def same_rejected(conn: AsyncConnection[Any], dispensary_id: int, content_sha256: str) -> Payload | None:
    """A payload of the store that was rejected with the same bytes."""
    return await _one(conn, _q.same_rejected, {"dispensary_id": dispensary_id, "content_sha256": content_sha256})


async def instants(conn: AsyncConnection[Any], dispensary_id: int, since: datetime) -> set[datetime]:
    """When the store's payloads were fetched, from that time on."""
    cursor = await conn.execute(_q.instants, {"dispensary_id": dispensary_id, "since": since})
    return {row[0] for row in await cursor.fetchall()}


async def products_applied(conn: AsyncConnection[Any], payload_id: int) -> int | None:
    """How many products the catalogue took from the payload; None when it took none of it."""
    row = await (await conn.execute(_q.products_applied, {"id": payload_id})).fetchone()
    return None if row is None else int(row[0])


async def page(
    conn: AsyncConnection[Any],
    *,
    dispensary_id: int | None = None,
    status: str | None = None,
    before: tuple[datetime, int] | None = None,
    limit: int = 50,
) -> list[Payload]:
    """Payloads, newest first; `before` is the (fetched_at, id) of the last one already shown."""
    values = {
        "dispensary_id": dispensary_id,
        "status": status,
        "before_at": before[0] if before else None,
        "before_id": before[1] if before else None,
        "limit": limit,
    }
    async with conn.cursor(row_factory=class_row(Payload)) as cur:
        await cur.execute(_q.list_payloads, values)
        return await cur.fetchall()


async def mark_applied(conn: AsyncConnection[Any], payload_id: int) -> None:
    """The catalogue now holds this menu."""
    await conn.execute(_q.mark_applied, {"id": payload_id})


async def quarantine(conn: AsyncConnection[Any], payload_id: int, reason: str) -> None:
    """Keeps a menu from the catalogue until a person releases it."""
    await conn.execute(_q.quarantine_payload, {"id": payload_id, "reason": reason})


async def release(conn: AsyncConnection[Any], payload_id: int) -> int:
    """Takes a menu out of quarantine; returns its store. Raises Refused when it is in none."""
    row = await (await conn.execute(_q.release_payload, {"id": payload_id})).fetchone()
    if row is None:
        found = await get(conn, payload_id)
        state = "does not exist" if found is None else f"is {found.status}"
        raise Refused(f"payload {payload_id} {state}: only a quarantined payload can be released")
    return int(row[0])


async def waiting(
    conn: AsyncConnection[Any], dispensary_id: int, *, since: datetime | None, but: int | None = None
) -> tuple[int, datetime | None]:
    """How many of the store's menus wait in quarantine that were fetched after `since`, `but` that one, and when the first of them
    was."""
    values = {"dispensary_id": dispensary_id, "since": since, "but": but}
    row = await (await conn.execute(_q.waiting, values)).fetchone()
    assert row is not None, "an aggregate gives a row"
    return int(row[0]), row[1]


async def usual_counts(conn: AsyncConnection[Any], dispensary_id: int) -> list[int]:
    """Sizes of the store's last applied menus that were whole, newest first."""
    values = {"dispensary_id": dispensary_id, "not_whole": extent.NOT_WHOLE}
    cursor = await conn.execute(_q.usual_counts, values)
    return [int(row[0]) for row in await cursor.fetchall()]


async def hashes(conn: AsyncConnection[Any], paths: Sequence[str]) -> dict[str, str]:
    """Which of these archive paths have a row, and the sha256 that it has for its file."""
    cursor = await conn.execute(_q.known_paths, {"paths": list(paths)})
    return {str(path): str(sha256) for path, sha256 in await cursor.fetchall()}
