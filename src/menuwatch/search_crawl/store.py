"""The rows of search crawls: jobs, queue, attempts and products. Every function joins the open transaction of its connection.
Changing a page requires the lock on its job's row: `lock_job`, or `take_due` for the submitter."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.search_crawl.model import PRIORITY, Item, ItemStatus, Job, JobStatus, NewJob
from menuwatch.search_crawl.protocols import CrawledProduct, Found, UrlType
from menuwatch.search_crawl.rules import Pacing, Standing, retry_wait, score

_q = sql.load(__package__)
_Conn = AsyncConnection[Any]
log = get_logger(__name__)

LONGEST_ERROR = 500
"""Longest error kept, in characters."""


async def insert(conn: _Conn, new: NewJob, now: datetime) -> Job:
    """Starts a job with its searches ready, due now."""
    values = {
        "site": new.site,
        "provider": new.provider,
        "keywords": list(new.keywords),
        "max_pages": new.max_pages,
        "country": new.country,
        **asdict(new.pacing),
        "created_by": new.created_by,
        "now": now,
    }
    job = await _job(conn, _q.insert_job, values)
    assert job is not None, "it was inserted"
    searches = {"job_id": job.id, "urls": list(new.urls), "keywords": list(new.searched), "now": now}
    await conn.execute(_q.insert_searches, {**searches, "priority": PRIORITY[UrlType.SEARCH]})
    return job


async def find(conn: _Conn, job_id: int) -> Job | None:
    return await _job(conn, _q.job, {"id": job_id})


async def lock_job(conn: _Conn, job_id: int) -> Job | None:
    """The job, locked with its pages until the transaction ends."""
    return await _job(conn, _q.lock_job, {"id": job_id})


async def take_due(
    conn: _Conn, now: datetime, *, providers: Collection[str], exclude: Collection[int] = ()
) -> Job | None:
    """A due job, locked until the transaction ends. Skips jobs locked by others."""
    return await _job(conn, _q.take_due, {"now": now, "providers": list(providers), "exclude": list(exclude)})


async def next_due(conn: _Conn, *, providers: Collection[str], exclude: Collection[int] = ()) -> datetime | None:
    """When the next job is due; None while none runs."""
    cursor = await conn.execute(_q.next_due, {"providers": list(providers), "exclude": list(exclude)})
    row = await cursor.fetchone()
    assert row is not None, "an aggregate answers with one row"
    due_at: datetime | None = row[0]
    return due_at


async def standing(conn: _Conn, job: Job, now: datetime) -> Standing:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.standing, {"job_id": job.id, "now": now})
        row = await cur.fetchone()
    assert row is not None, "aggregates answer with one row"
    return Standing(
        mixing=job.unthrottled_since is not None,
        mixing_threshold=job.pacing.mixing_threshold,
        next_submit_after=job.next_submit_after
        if job.submitting_until is None
        else max(job.next_submit_after, job.submitting_until),
        ready=(row.pop("first_ready"), row.pop("second_ready")),
        **row,
    )


async def extend_deadlines(conn: _Conn, job_id: int, now: datetime, until: datetime) -> None:
    """Extends the deadline, to `until`, of pages that were delivered and not processed yet."""
    await conn.execute(_q.extend_deadlines, {"job_id": job_id, "now": now, "until": until})


async def overdue(conn: _Conn, job_id: int, now: datetime) -> list[Item]:
    """Submitted pages past their deadline."""
    return await _items(conn, _q.overdue, {"job_id": job_id, "now": now})


async def submit(
    conn: _Conn,
    job_id: int,
    *,
    priority: int,
    skip: int,
    now: datetime,
    deadline_at: datetime,
    next_submit_after: datetime,
    submitting_until: datetime,
    mixing: bool,
) -> Item:
    """Marks the page of that priority submitted that has `skip` others ready before it. The job's next submission is not made before
    `next_submit_after`, nor before `submitting_until` unless `handed_over` reports the order; `mixing` notes that mixing began."""
    values = {"job_id": job_id, "priority": priority, "skip": skip, "now": now, "mixing": mixing}
    times = {"deadline_at": deadline_at, "next_submit_after": next_submit_after, "submitting_until": submitting_until}
    (item,) = await _items(conn, _q.submit, {**values, **times})
    return item


async def requested(conn: _Conn, item: Item, request_id: str | None) -> None:
    """Stores the provider's request id of an attempt."""
    values = {"item_id": item.id, "attempt": item.attempt, "request_id": request_id}
    await conn.execute(_q.requested, values)


async def handed_over(conn: _Conn, job_id: int, *, submitting_until: datetime, next_submit_after: datetime) -> None:
    """The order that was to be handed over by `submitting_until` has been; the next one is made no sooner than `next_submit_after`."""
    await conn.execute(
        _q.handed_over, {"id": job_id, "submitting_until": submitting_until, "next_submit_after": next_submit_after}
    )


async def schedule_at(conn: _Conn, job_id: int, at: datetime) -> None:
    """Sets when the submitter checks the job. No effect on a job that is not running."""
    await conn.execute(_q.schedule_at, {"id": job_id, "at": at})


async def schedule_now(conn: _Conn, job_id: int, now: datetime) -> None:
    """Makes the job due as soon as it may submit again, after a change."""
    await conn.execute(_q.schedule_now, {"id": job_id, "now": now})


async def delay_job(conn: _Conn, job_id: int, until: datetime) -> None:
    """Submits nothing of the job before `until`."""
    await conn.execute(_q.delay_job, {"id": job_id, "until": until})


async def complete_job(conn: _Conn, job_id: int, now: datetime) -> Mapping[str, Any]:
    """Marks a job completed; returns how many pages succeeded and failed, the products found, and the seconds since it was started."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.complete_job, {"id": job_id, "now": now})
        row = await cur.fetchone()
    assert row is not None, "the caller holds the row"
    return row


async def cancel(conn: _Conn, job_id: int, reason: str, now: datetime) -> tuple[Job, int]:
    """Cancels a job and its open pages, with `reason`; returns it and the number of pages."""
    cursor = await conn.execute(_q.cancel_items, {"job_id": job_id, "reason": reason, "now": now})
    row = await cursor.fetchone()
    job = await _job(conn, _q.cancel_job, {"id": job_id, "now": now})
    assert job is not None, "the caller holds the row"
    assert row is not None, "a count is one row"
    return job, int(row[0])


async def retry_failed(conn: _Conn, job_id: int, now: datetime) -> tuple[Job | None, int]:
    """Resets failed pages with all their retries; the job runs again if there are any. Returns the job and their number."""
    retried = (await conn.execute(_q.retry_items, {"job_id": job_id, "now": now})).rowcount
    if not retried:
        return None, 0
    return await _job(conn, _q.reopen_job, {"id": job_id, "now": now}), retried


async def reopen(conn: _Conn, job_id: int, now: datetime) -> None:
    """Makes an ended job run again."""
    await conn.execute(_q.reopen_job, {"id": job_id, "now": now})


async def lock_ended(conn: _Conn, before: datetime, *, after: int) -> int | None:
    """The job with the lowest id above `after` that ended before that time, locked until the transaction ends."""
    row = await (await conn.execute(_q.ended_before, {"before": before, "after": after})).fetchone()
    return None if row is None else int(row[0])


async def delete_job(conn: _Conn, job_id: int) -> None:
    """Deletes a job with everything that belongs to it, except its files."""
    await conn.execute(_q.delete_job, {"id": job_id})


async def item(conn: _Conn, item_id: int) -> Item | None:
    items = await _items(conn, _q.item, {"id": item_id})
    return items[0] if items else None


async def end_attempt(
    conn: _Conn, item_id: int, attempt: int, *, ok: bool, error: str | None, now: datetime, path: str | None = None
) -> None:
    """Records the end of an attempt; `path` is its page in the archive."""
    values = {"item_id": item_id, "attempt": attempt, "ok": ok, "error": error, "now": now, "path": path}
    await conn.execute(_q.end_attempt, values)


async def put_back(conn: _Conn, item_id: int, error: str, at: datetime) -> None:
    """Marks a page for another attempt, not before `at`."""
    await conn.execute(_q.put_back, {"id": item_id, "error": error, "at": at})


async def give_up(conn: _Conn, item_id: int, error: str, now: datetime) -> None:
    """Marks a page failed."""
    await conn.execute(_q.give_up, {"id": item_id, "error": error, "now": now})


async def fail_attempt(
    conn: _Conn,
    item: Item,
    error: str,
    *,
    pacing: Pacing,
    now: datetime,
    rng: random.Random,
    final: bool = False,
    at_least: timedelta = timedelta(0),
    path: str | None = None,
) -> None:
    """Ends the current attempt at a page: retries it after `rules.retry_wait`, but not before `at_least`, or never if `final`.
    The caller holds the job and schedules the submitter."""
    error = error[:LONGEST_ERROR]
    await end_attempt(conn, item.id, item.attempt, ok=False, error=error, now=now, path=path)
    wait = None if final else retry_wait(pacing, item.retry_count + 1, rng)
    at = None if wait is None else now + max(wait, at_least)
    if at is None:
        await give_up(conn, item.id, error, now)
    else:
        await put_back(conn, item.id, error, at)
    log.info(
        "page attempt failed",
        action="crawl_attempt_failed",
        job_id=item.job_id,
        item_id=item.id,
        attempt=item.attempt,
        error=error,
        again_at=at and at.isoformat(),
    )


async def complete_item(
    conn: _Conn, item_id: int, attempt: int, *, found: int, removed: bool, now: datetime, path: str | None
) -> None:
    """Marks a page completed by that attempt; `found` is the number of new URLs on it."""
    values = {"id": item_id, "attempt": attempt, "new_urls": found, "removed": removed, "now": now, "path": path}
    await conn.execute(_q.complete_item, values)


async def add_found(conn: _Conn, parent: Item, links: Sequence[Found], now: datetime) -> int:
    """Adds the pages that a page links to; returns how many are new to the job."""
    values = {
        "job_id": parent.job_id,
        "parent_id": parent.id,
        "keyword": parent.keyword,
        "now": now,
        "urls": [link.url for link in links],
        "types": [link.url_type.value for link in links],
        "pages": [link.page for link in links],
        "priorities": [PRIORITY[link.url_type] for link in links],
    }
    row = await (await conn.execute(_q.add_found, values)).fetchone()
    assert row is not None, "a count is one row"
    return int(row[0])


async def put_product(conn: _Conn, item: Item, site: str, product: CrawledProduct, now: datetime) -> None:
    """Stores a product with its score. Of several variants with the same id, the last one wins."""
    variants = list({variant.variant_id: variant for variant in product.variants}.values())
    await conn.execute(
        _q.put_product,
        {
            "job_id": item.job_id,
            "item_id": item.id,
            "site": site,
            "site_product_id": product.site_product_id,
            "keyword": item.keyword,
            "name": product.name,
            "url": product.url,
            "price_min": product.price_min,
            "price_max": product.price_max,
            "currency": product.currency,
            "weight_g": product.weight_g,
            "listed": product.listed,
            "score": score(product),
            "images": list(product.images),
            "now": now,
            "variant_ids": [variant.variant_id for variant in variants],
            "places": list(range(1, len(variants) + 1)),
            "skus": [variant.sku for variant in variants],
            "names": [variant.name for variant in variants],
            "prices": [variant.price for variant in variants],
            "weights": [variant.weight_g for variant in variants],
        },
    )


async def stored_secret(conn: _Conn) -> str:
    """The installation's own secret."""
    row = await (await conn.execute(_q.secret)).fetchone()
    assert row is not None, "the migration made it"
    return str(row[0])


async def _job(conn: _Conn, query: Any, values: dict[str, Any]) -> Job | None:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)
        row = await cur.fetchone()
    if row is None:
        return None
    pacing = Pacing(**{field.name: row.pop(field.name) for field in fields(Pacing)})
    return Job(**{**row, "status": JobStatus(row["status"])}, pacing=pacing)


async def _items(conn: _Conn, query: Any, values: dict[str, Any]) -> list[Item]:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)
        rows = await cur.fetchall()
    return [Item(**{**row, "url_type": UrlType(row["url_type"]), "status": ItemStatus(row["status"])}) for row in rows]
