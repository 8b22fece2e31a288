"""The rows of `raw_crawl_payloads`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from menuwatch.core.errors import Refused
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql

_q = sql.load(__package__)


Status = Literal["ok", "partial", "quarantined", "rejected"]


class Payload(Struct, frozen=True, kw_only=True):
    """One archived response of a platform for one store."""

    id: int
    task_id: Annotated[int | None, doc("Id of the task that fetched it; null if it was imported from a file.")]
    dispensary_id: Annotated[int, doc("Id of the store.")]
    platform: Annotated[str, doc("Platform that responded.")]
    status: Annotated[
        Status,
        doc("`partial`: pages are missing; `quarantined`: suspicious, waits for review; `rejected`: not a menu."),
    ]
    reason: Annotated[str | None, doc("Reason for a status other than `ok`; null otherwise.")]
    product_count: Annotated[int, doc("Number of distinct products.")]
    total_count: Annotated[int | None, doc("Number of products the platform reported; null if it did not.")]
    page_count: Annotated[int, doc("Number of pages fetched.")]
    is_first: Annotated[bool, doc("Whether it is the store's first crawl.")]
    is_partial: Annotated[
        bool, doc("True for a partial menu imported from a file: absent products do not count as missed.")
    ]
    fetched_at: Instant
    path: Annotated[str, doc("Path of the file, relative to the storage root.")]
    bytes: Annotated[int, doc("Size of the compressed file, in bytes.")]
    raw_bytes: Annotated[int, doc("Size before compression, in bytes.")]
    sha256: Annotated[str, doc("SHA-256 of the uncompressed document; also the ETag of its data.")]
    content_sha256: Annotated[str, doc("SHA-256 of the responses alone: equal menus have equal hashes.")]
    notes: Annotated[list[str], doc("Warnings about the crawl.")]
    applied_at: Annotated[Instant | None, doc("When the catalog applied it; null if it has not.")]
    released_at: Annotated[Instant | None, doc("When it was released from quarantine; null if it was not.")]
    created_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPayload:
    """The fields of a payload to insert."""

    task_id: int | None
    dispensary_id: int
    platform: str
    status: str
    reason: str | None = None
    product_count: int = 0
    total_count: int | None = None
    page_count: int = 0
    is_first: bool = False
    is_partial: bool = False
    fetched_at: datetime
    path: str
    bytes: int
    raw_bytes: int
    sha256: str
    content_sha256: str
    notes: Sequence[str] = ()


async def insert(conn: AsyncConnection[Any], new: NewPayload) -> int:
    """Inserts the row, in the transaction that decides whether its file is published; returns its id."""
    values = {name: getattr(new, name) for name in NewPayload.__slots__} | {"notes": Jsonb(list(new.notes))}
    row = await (await conn.execute(_q.insert_payload, values)).fetchone()
    assert row is not None, "INSERT … RETURNING gives a row"
    return int(row[0])


async def _one(conn: AsyncConnection[Any], query: Any, values: dict[str, Any]) -> Payload | None:
    async with conn.cursor(row_factory=class_row(Payload)) as cur:
        await cur.execute(query, values)
        return await cur.fetchone()


async def get(conn: AsyncConnection[Any], payload_id: int) -> Payload | None:
    """The payload with that id."""
    return await _one(conn, _q.get_payload, {"id": payload_id})


async def lock(conn: AsyncConnection[Any], payload_id: int) -> Payload | None:
    """The payload with that id, locked until the transaction ends."""
    return await _one(conn, _q.lock_payload, {"id": payload_id})


async def latest(conn: AsyncConnection[Any], dispensary_id: int) -> Payload | None:
    """The store's newest payload, with any status."""
    return await _one(conn, _q.latest_payload, {"dispensary_id": dispensary_id})


async def latest_applied(conn: AsyncConnection[Any], dispensary_id: int) -> Payload | None:
    """The store's newest payload that was applied."""
    return await _one(conn, _q.latest_applied, {"dispensary_id": dispensary_id})


async def at(conn: AsyncConnection[Any], dispensary_id: int, fetched_at: datetime) -> Payload | None:
    """The store's payload fetched at exactly that time, which is unique per store."""
    return await _one(conn, _q.payload_at, {"dispensary_id": dispensary_id, "fetched_at": fetched_at})


async def same_content(
    conn: AsyncConnection[Any], dispensary_id: int, content_sha256: str, *, crawled_at: datetime | None
) -> Payload | None:
    """A payload of the store with the same bytes: one that was ever applied, else one that waits to be applied or
    released. `crawled_at` is the store's last applied crawl: older payloads are not waiting.
    """
    values = {"dispensary_id": dispensary_id, "content_sha256": content_sha256, "crawled_at": crawled_at}
    return await _one(conn, _q.same_content, values)


async def sharing(conn: AsyncConnection[Any], new: NewPayload) -> NewPayload:
    """The payload, referring to the file of the store's first one with the same answers and status; unchanged if there is none."""
    values = {"dispensary_id": new.dispensary_id, "content_sha256": new.content_sha256, "status": new.status}
    row = await (await conn.execute(_q.stored_alike, values)).fetchone()
    if row is None:
        return new
    path, size, raw_size, sha256 = row
    return replace(new, path=path, bytes=size, raw_bytes=raw_size, sha256=sha256)


async def same_rejected(conn: AsyncConnection[Any], dispensary_id: int, content_sha256: str) -> Payload | None:
    """A rejected payload of the store with the same bytes."""
    return await _one(conn, _q.same_rejected, {"dispensary_id": dispensary_id, "content_sha256": content_sha256})


async def instants(conn: AsyncConnection[Any], dispensary_id: int, since: datetime) -> set[datetime]:
    """Times at which the store's payloads since then were fetched."""
    cursor = await conn.execute(_q.instants, {"dispensary_id": dispensary_id, "since": since})
    return {row[0] for row in await cursor.fetchall()}


async def products_applied(conn: AsyncConnection[Any], payload_id: int) -> int | None:
    """How many products were applied from the payload; None if it was not applied."""
    row = await (await conn.execute(_q.products_applied, {"id": payload_id})).fetchone()
    return None if row is None else int(row[0])


async def mark_applied(conn: AsyncConnection[Any], payload_id: int) -> None:
    """Marks the payload as applied."""
    await conn.execute(_q.mark_applied, {"id": payload_id})


async def quarantine(conn: AsyncConnection[Any], payload_id: int, reason: str) -> None:
    """Quarantines a payload until a person releases it."""
    await conn.execute(_q.quarantine_payload, {"id": payload_id, "reason": reason})


async def reject(conn: AsyncConnection[Any], payload_id: int, notes: Sequence[str] = ()) -> None:
    """Ends the quarantine of a payload: it is never applied."""
    await conn.execute(_q.reject_payload, {"id": payload_id, "notes": Jsonb(list(notes))})


async def release(conn: AsyncConnection[Any], payload_id: int, notes: Sequence[str] = ()) -> int:
    """Releases a payload from quarantine; returns its store. Raises Refused if it is not in quarantine."""
    row = await (await conn.execute(_q.release_payload, {"id": payload_id, "notes": Jsonb(list(notes))})).fetchone()
    if row is None:
        found = await get(conn, payload_id)
        state = "does not exist" if found is None else f"is {found.status}"
        raise Refused(f"payload {payload_id} {state}: only a quarantined payload can be released")
    return int(row[0])


async def waiting(
    conn: AsyncConnection[Any], dispensary_id: int, *, since: datetime | None, but: int | None = None
) -> tuple[int, datetime | None]:
    """Number of the store's payloads in quarantine fetched after `since`, except `but`, and the time of the first."""
    values = {"dispensary_id": dispensary_id, "since": since, "but": but}
    row = await (await conn.execute(_q.waiting, values)).fetchone()
    assert row is not None, "an aggregate gives a row"
    return int(row[0]), row[1]


async def usual_counts(conn: AsyncConnection[Any], dispensary_id: int) -> list[int]:
    """Sizes of the store's last applied complete menus, newest first."""
    cursor = await conn.execute(_q.usual_counts, {"dispensary_id": dispensary_id})
    return [int(row[0]) for row in await cursor.fetchall()]


async def hashes(conn: AsyncConnection[Any], paths: Sequence[str]) -> dict[str, str]:
    """The sha256 in the row of each archive path that has one."""
    cursor = await conn.execute(_q.known_paths, {"paths": list(paths)})
    return {str(path): str(sha256) for path, sha256 in await cursor.fetchall()}
