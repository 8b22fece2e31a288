"""The rows of `crawl_jobs`, `crawl_queue` and `crawl_attempts`. Every function joins whatever transaction is open on its
connection, and whoever changes a page of a job holds the job's row: `lock_job`, or `take_due` for the pacer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.crawls.base import Found, UrlType
from menuwatch.crawls.model import PRIORITY, Item, ItemStatus, Job, JobStatus, NewJob
from menuwatch.crawls.rules import Standing
from menuwatch.db import sql

_q = sql.load(__package__)
_Conn = AsyncConnection[Any]


async def insert(conn: _Conn, new: NewJob, now: datetime) -> Job:
    """Starts a job: its searches are ready, and the pacer's to look at now."""
    values = {
        "site": new.site,
        "provider": new.provider,
        "keywords": list(new.keywords),
        "max_pages": new.max_pages,
        "country": new.country,
        "created_by": new.created_by,
        "now": now,
    }
    job = await _job(conn, _q.insert_job, values)
    assert job is not None, "it was inserted"
    searches = {"job_id": job.id, "urls": list(new.urls), "keywords": list(new.searched), "now": now}
    await conn.execute(_q.insert_searches, {**searches, "priority": PRIORITY[UrlType.SEARCH]})
    return job


async def find(conn: _Conn, job_id: int) -> Job | None:
    """The job of that number."""
    return await _job(conn, _q.job, {"id": job_id})


async def lock_job(conn: _Conn, job_id: int) -> Job | None:
    """The job, locked until the transaction ends: nobody else changes it or its pages meanwhile."""
    return await _job(conn, _q.lock_job, {"id": job_id})


async def take_due(conn: _Conn, now: datetime, *, providers: Collection[str], but: Collection[int] = ()) -> Job | None:
    """A job that is to be looked at, locked until the transaction ends. One that somebody else has in hand is theirs."""
    return await _job(conn, _q.take_due, {"now": now, "providers": list(providers), "but": list(but)})


async def next_due(conn: _Conn, *, providers: Collection[str], but: Collection[int] = ()) -> datetime | None:
    """When a job is to be looked at next, None while none runs."""
    cursor = await conn.execute(_q.next_due, {"providers": list(providers), "but": list(but)})
    row = await cursor.fetchone()
    assert row is not None, "an aggregate answers with one row"
    found: datetime | None = row[0]
    return found


async def standing(conn: _Conn, job: Job, now: datetime) -> Standing:
    """Where the job stands."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.standing, {"job_id": job.id, "now": now})
        row = await cur.fetchone()
    assert row is not None, "aggregates answer with one row"
    return Standing(
        mixing=job.mixing_since is not None,
        not_before=job.not_before if job.asking_until is None else max(job.not_before, job.asking_until),
        ready=(row.pop("first_ready"), row.pop("second_ready")),
        **row,
    )


async def spare_delivered(conn: _Conn, job_id: int, now: datetime, until: datetime) -> None:
    """Puts the deadline off, to `until`, of pages that were brought and have not been read yet."""
    await conn.execute(_q.spare_delivered, {"job_id": job_id, "now": now, "until": until})


async def overdue(conn: _Conn, job_id: int, now: datetime) -> list[Item]:
    """Pages that should have come by now."""
    return await _items(conn, _q.overdue, {"job_id": job_id, "now": now})


async def submit(
    conn: _Conn,
    job_id: int,
    *,
    priority: int,
    skip: int,
    now: datetime,
    deadline_at: datetime,
    not_before: datetime,
    asking_until: datetime,
    mixing: bool,
) -> Item:
    """Marks the page of that priority submitted that has `skip` others ready before it. The job's next submission is not made before
    `not_before`, nor before `asking_until` unless `handed_over` says that the order was; `mixing` notes that mixing has begun."""
    values = {"job_id": job_id, "priority": priority, "skip": skip, "now": now, "mixing": mixing}
    times = {"deadline_at": deadline_at, "not_before": not_before, "asking_until": asking_until}
    (item,) = await _items(conn, _q.submit, {**values, **times})
    return item


async def requested(conn: _Conn, item: Item, request_id: str | None) -> None:
    """Notes what the provider calls an attempt."""
    values = {"item_id": item.id, "attempt": item.attempt, "request_id": request_id}
    await conn.execute(_q.requested, values)


async def handed_over(conn: _Conn, job_id: int, *, asking_until: datetime, not_before: datetime) -> None:
    """The order that was to be handed over by `asking_until` has been; the next one is made no sooner than `not_before`."""
    await conn.execute(_q.handed_over, {"id": job_id, "asking_until": asking_until, "not_before": not_before})


async def look_at(conn: _Conn, job_id: int, at: datetime) -> None:
    """Has the pacer look at the job then. One that does not run stays as it is."""
    await conn.execute(_q.look_at, {"id": job_id, "at": at})


async def look_soon(conn: _Conn, job_id: int, now: datetime) -> None:
    """Has the pacer look at the job as soon as it may submit something, for something has changed."""
    await conn.execute(_q.look_soon, {"id": job_id, "now": now})


async def hold_off(conn: _Conn, job_id: int, until: datetime) -> None:
    """Has nothing of the job submitted before that."""
    await conn.execute(_q.hold_off, {"id": job_id, "until": until})


async def complete_job(conn: _Conn, job_id: int, now: datetime) -> None:
    """Nothing is left to do."""
    await conn.execute(_q.complete_job, {"id": job_id, "now": now})


async def cancel(conn: _Conn, job_id: int, reason: str, now: datetime) -> tuple[Job, int]:
    """Ends a job and its pages that had not ended, with `reason`; returns it and how many these were."""
    cursor = await conn.execute(_q.cancel_items, {"job_id": job_id, "reason": reason, "now": now})
    row = await cursor.fetchone()
    job = await _job(conn, _q.cancel_job, {"id": job_id, "now": now})
    assert job is not None, "the caller holds the row"
    assert row is not None, "a count is one row"
    return job, int(row[0])


async def revive(conn: _Conn, job_id: int, now: datetime) -> tuple[Job | None, int]:
    """Puts failed pages back, with all their retries; the job runs again where there are any. Returns it and how many they are."""
    revived = (await conn.execute(_q.revive_items, {"job_id": job_id, "now": now})).rowcount
    if not revived:
        return None, 0
    return await _job(conn, _q.revive_job, {"id": job_id, "now": now}), revived


async def item(conn: _Conn, item_id: int) -> Item | None:
    """The page of that number."""
    found = await _items(conn, _q.item, {"id": item_id})
    return found[0] if found else None


async def end_attempt(
    conn: _Conn, item_id: int, attempt: int, *, ok: bool, error: str | None, now: datetime, path: str | None = None
) -> None:
    """Notes how an attempt ended; `path` is where its page lies in the archive."""
    values = {"item_id": item_id, "attempt": attempt, "ok": ok, "error": error, "now": now, "path": path}
    await conn.execute(_q.end_attempt, values)


async def put_back(conn: _Conn, item_id: int, error: str, at: datetime) -> None:
    """The page is tried again, not before `at`."""
    await conn.execute(_q.put_back, {"id": item_id, "error": error, "at": at})


async def give_up(conn: _Conn, item_id: int, error: str, now: datetime) -> None:
    """The page has failed."""
    await conn.execute(_q.give_up, {"id": item_id, "error": error, "now": now})


async def complete_item(
    conn: _Conn, item_id: int, attempt: int, *, found: int, removed: bool, now: datetime, path: str | None
) -> None:
    """The page came, by that attempt, and `found` of the addresses on it are new."""
    values = {"id": item_id, "attempt": attempt, "found": found, "removed": removed, "now": now, "path": path}
    await conn.execute(_q.complete_item, values)


async def add_found(conn: _Conn, parent: Item, found: Sequence[Found], now: datetime) -> int:
    """Adds the pages that one led to; returns how many of them are new to the job."""
    values = {
        "job_id": parent.job_id,
        "parent_id": parent.id,
        "keyword": parent.keyword,
        "now": now,
        "urls": [one.url for one in found],
        "types": [one.url_type.value for one in found],
        "pages": [one.page for one in found],
        "priorities": [PRIORITY[one.url_type] for one in found],
    }
    row = await (await conn.execute(_q.add_found, values)).fetchone()
    assert row is not None, "a count is one row"
    return int(row[0])


async def stored_secret(conn: _Conn) -> str:
    """The installation's secret, for those without a key of their own."""
    row = await (await conn.execute(_q.secret)).fetchone()
    assert row is not None, "the migration made it"
    return str(row[0])


async def _job(conn: _Conn, query: Any, values: dict[str, Any]) -> Job | None:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)
        row = await cur.fetchone()
    return None if row is None else Job(**{**row, "status": JobStatus(row["status"])})


async def _items(conn: _Conn, query: Any, values: dict[str, Any]) -> list[Item]:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)
        found = await cur.fetchall()
    return [Item(**{**row, "url_type": UrlType(row["url_type"]), "status": ItemStatus(row["status"])}) for row in found]
