"""Archived payloads: list, get, download, choose two to compare, release from quarantine, clean up after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any

from msgspec import Struct

from menuwatch.accounts import audit
from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import ORPHAN_SECONDS, Damaged, FileArchive, Missing
from menuwatch.archive.store import Payload, Status
from menuwatch.core.errors import Conflict, InvalidField, NotFound, PayloadDamaged, PayloadMissing
from menuwatch.core.logging import get_logger
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import Row, fetch_all, fetch_structs
from menuwatch.queue import store as tasks
from menuwatch.queue.model import PRIORITY_URGENT, NewTask, Role
from menuwatch.stores import store as stores

log = get_logger(__name__)
_q = sql.load(__package__, "service.sql")

STATUSES: tuple[Status, ...] = ("ok", "partial", "quarantined", "rejected")
MOST_COUNTED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFilter:
    """Which payloads; None takes all."""

    dispensary_id: int | None = None
    status: str | None = None


class ReleasedPayload(Struct, frozen=True):
    """A payload released from quarantine."""

    payload: Annotated[Payload, doc("The payload in its new state.")]
    task_id: Annotated[int, doc("Id of the `product_refresh` task that applies it.")]


async def get_payload(conn: Connection, payload_id: int) -> Payload:
    """One payload's metadata; raises NotFound."""
    found = await payloads.get(conn, payload_id)
    if found is None:
        raise NotFound(f"payload {payload_id} does not exist")
    return found


async def get_usage(conn: Connection, payload: Payload) -> dict[str, Any]:
    """What refers to a payload: its `store`, the `crawl` that it was applied as (None if it was not), the store's
    other payloads with the `same_file`, and those with the `same_answers` in a separate file, newest first.
    """
    store = await stores.get(conn, payload.dispensary_id)
    crawls = await fetch_all(conn, _q.crawl_of, {"id": payload.id})
    alike = await fetch_all(conn, _q.alike, {"id": payload.id})
    return {
        "store": None if store is None else {"id": store.id, "slug": store.slug, "name": store.name},
        "crawl": crawls[0] if crawls else None,
        "same_file": [row["id"] for row in alike if row["same_file"]],
        "same_answers": [row["id"] for row in alike if not row["same_file"]],
    }


async def list_payloads(
    conn: Connection, filters: PayloadFilter, *, before: tuple[datetime, int] | None = None, limit: int = 50
) -> list[Payload]:
    """Payloads, newest first, those before (fetched_at, id)."""
    return await fetch_structs(conn, Payload, _q.list_payloads, _list_values(filters, before, limit), prepare=False)


async def list_with_previous(
    conn: Connection, filters: PayloadFilter, *, before: tuple[datetime, int] | None = None, limit: int = 50
) -> list[Row]:
    """The same list, each payload with the name of its `store`, and `previous_id` with its `same_answers` and `previous_count`: the
    store's payload before it."""
    return await fetch_all(conn, _q.list_with_previous, _list_values(filters, before, limit), prepare=False)


def _list_values(filters: PayloadFilter, before: tuple[datetime, int] | None, limit: int) -> dict[str, Any]:
    at, number = before or (None, None)
    return asdict(filters) | {"before_at": at, "before_id": number, "limit": limit}


async def count_quarantined(conn: Connection) -> int:
    """Number of payloads in quarantine, at most MOST_COUNTED + 1."""
    (row,) = await fetch_all(conn, _q.in_quarantine, {"limit": MOST_COUNTED + 1})
    return int(row["n"])


async def list_comparable(conn: Connection, payload_id: int, limit: int = 20) -> tuple[list[Row], list[Row]]:
    """Payloads that this one can be compared with: the store's payloads that hold a menu, earlier ones newest first, later ones
    oldest first; at most `limit` of each.
    """
    rows = await fetch_all(conn, _q.comparable, {"id": payload_id, "limit": limit})
    return [row for row in rows if row["before"]], [row for row in rows if not row["before"]]


async def catalog_ids(conn: Connection, payload: Payload, items: Collection[str]) -> dict[str, int]:
    """Product ids of a payload's items, by platform id. Items that were never applied have none."""
    values = {"store": payload.dispensary_id, "platform": payload.platform, "items": list(items)}
    return {row["provider_product_id"]: row["id"] for row in await fetch_all(conn, _q.in_catalog, values)}


async def check_store(conn: Connection, dispensary_id: int) -> None:
    """Raises NotFound for a store that does not exist."""
    if await stores.get(conn, dispensary_id) is None:
        raise NotFound(f"store {dispensary_id} does not exist")


async def latest_payload(conn: Connection, dispensary_id: int, status: str | None = None) -> Payload:
    """A store's newest payload, with that status if given; raises NotFound."""
    await check_store(conn, dispensary_id)
    found = await list_payloads(conn, PayloadFilter(dispensary_id=dispensary_id, status=status), limit=1)
    if not found:
        which = "no payload" if status is None else f"no payload with status {status}"
        raise NotFound(f"store {dispensary_id} has {which} yet")
    return found[0]


async def packed(archive: FileArchive, payload: Payload) -> bytes:
    """The archived file as it lies on disk, gzip-compressed. Raises PayloadMissing and PayloadDamaged."""
    with _file_of(payload):
        return await asyncio.to_thread(_checked, archive, payload)


def _checked(archive: FileArchive, payload: Payload) -> bytes:
    found = archive.packed(payload.path, payload.sha256, payload.raw_bytes)
    # Clients cache it forever: a file that is not the archived document must not be sent.
    archive.unpack(payload.path, found, payload.sha256, payload.raw_bytes)
    return found


async def unpacked(archive: FileArchive, payload: Payload) -> bytes:
    """The archived document. Raises PayloadMissing and PayloadDamaged."""
    with _file_of(payload):
        return await asyncio.to_thread(archive.unpacked, payload.path, payload.sha256, payload.raw_bytes)


def read(archive: FileArchive, payload: Payload) -> Document:
    """The archived document, decoded. Raises PayloadMissing and PayloadDamaged."""
    with _file_of(payload):
        return archive.read(payload.path, payload.sha256, payload.raw_bytes)


_MEND = "Run `menuwatch verify --repair`, or copy the file from a backup."


@contextmanager
def _file_of(payload: Payload) -> Iterator[None]:
    """Adds the payload and the remedy to errors of reading its file."""
    try:
        yield
    except Missing as error:
        raise PayloadMissing(f"the file of payload {payload.id} is missing: {error}. {_MEND}") from error
    except Damaged as error:
        raise PayloadDamaged(f"the file of payload {payload.id} cannot be read: {error}. {_MEND}") from error


async def _latest_ok(
    conn: Connection, dispensary_id: int, *, before: Payload | None = None, limit: int = 1
) -> list[int]:
    values = {
        "dispensary_id": dispensary_id,
        "before_at": before.fetched_at if before else None,
        "before_id": before.id if before else None,
        "limit": limit,
    }
    return [found["id"] for found in await fetch_all(conn, _q.latest_ok_payloads, values)]


async def choose_pair(
    conn: Connection, dispensary_id: int, older: int | None, newer: int | None
) -> tuple[Payload, Payload]:
    """The two payloads of a store to compare: by default the two newest ok ones; with only `newer`, that and the ok one before; with
    only `older`, that and the newest ok one.

    Raises NotFound for payloads that are missing or of another store, Conflict if there are not two to compare.
    """
    await check_store(conn, dispensary_id)

    async def named(payload_id: int) -> Payload:
        found = await get_payload(conn, payload_id)
        if found.dispensary_id != dispensary_id:
            raise NotFound(f"payload {payload_id} belongs to store {found.dispensary_id}, not to store {dispensary_id}")
        return found

    second = await named(newer) if newer is not None else None
    first = await named(older) if older is not None else None
    if second is None:
        newest = await _latest_ok(conn, dispensary_id)
        second = await get_payload(conn, newest[0]) if newest else None
    if first is None and second is not None:
        before = await _latest_ok(conn, dispensary_id, before=second)
        first = await get_payload(conn, before[0]) if before else None
    if first is None or second is None:
        raise Conflict(
            f"store {dispensary_id} does not have two ok payloads to compare yet; name them with from and to"
        )
    return first, second


LONGEST_NOTE = 500
"""Maximum characters of a note."""


async def _lock_quarantined(conn: Connection, payload_id: int, action: str) -> Payload:
    payload = await payloads.lock(conn, payload_id)
    if payload is None:
        raise NotFound(f"payload {payload_id} does not exist")
    if payload.status != "quarantined":
        raise Conflict(f"payload {payload_id} is {payload.status}: only a quarantined payload can be {action}")
    return payload


def _notes(action: str, note: str | None) -> list[str]:
    text = " ".join((note or "").split())
    if len(text) > LONGEST_NOTE:
        raise InvalidField("note", f"{len(text):,} characters: at most {LONGEST_NOTE} are allowed")
    actor = audit.actor()
    return [f"{action} by {actor.name}: {text}" if actor else f"{action}: {text}"] if text else []


async def reject(conn: Connection, payload_id: int, note: str | None = None) -> None:
    """Rejects a quarantined payload after review: it is kept and never applied. Raises NotFound, InvalidField, and Conflict if it is
    not in quarantine.
    """
    payload = await _lock_quarantined(conn, payload_id, "rejected")
    await payloads.reject(conn, payload_id, _notes("Rejected", note))
    await audit.record(
        conn, "payload_rejected", ("payload", payload_id), store=payload.dispensary_id, note=note or None
    )


async def release(conn: Connection, payload_id: int, note: str | None = None) -> int:
    """Releases a payload from quarantine and enqueues its refresh with priority; returns the task's id.

    Raises NotFound, InvalidField, and Conflict if it is not in quarantine.
    """
    payload = await _lock_quarantined(conn, payload_id, "released")
    await payloads.release(conn, payload_id, _notes("Released", note))
    # Each payload has its own refresh task: a waiting one for an older payload must not replace it.
    task = NewTask(
        role=Role.PRODUCT_REFRESH,
        dispensary_id=payload.dispensary_id,
        platform=payload.platform,
        priority=PRIORITY_URGENT,
        payload={"payload_id": payload_id},
        unique=False,
    )
    (enqueued,) = await tasks.enqueue(conn, [task])
    await audit.record(
        conn,
        "payload_released",
        ("payload", payload_id),
        store=payload.dispensary_id,
        task=enqueued.id,
        note=note or None,
    )
    return enqueued.id


async def count_by_status(conn: Connection) -> dict[str, int]:
    """Number of payloads by status."""
    return {found["status"]: found["n"] for found in await fetch_all(conn, _q.payload_counts, {})}


async def recover_archive(pool: Pool, archive: FileArchive, *, older_than: float = ORPHAN_SECONDS) -> tuple[int, int]:
    """Resolves files whose transaction was interrupted by a crash; returns how many were (published, removed).

    `older_than` is in seconds; a younger file without a row may belong to an open transaction.
    """
    staged = await asyncio.to_thread(lambda: list(archive.staged()))
    published = removed = 0
    for file, age in staged:
        # Read row by row: between listing and removing, an import of the same document may commit.
        async with pool.connection() as conn:
            rows = await payloads.hashes(conn, [file.path])
        # Two attempts may have staged one path; the row belongs to one of them.
        if file.path in rows and await asyncio.to_thread(archive.holds, file, rows[file.path]):
            await asyncio.to_thread(archive.publish, file)
            published += 1
        elif age >= older_than:
            await asyncio.to_thread(archive.discard, file, unused=file.path not in rows)
            removed += 1
    if published or removed:
        log.info("archive recovered", action="archive_recovered", published=published, removed=removed)
    return published, removed
