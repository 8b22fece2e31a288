"""Search crawls as people look at them: jobs with how far they are, figures, pages, the timeline, products."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from psycopg import AsyncConnection

from menuwatch.archive.pages import PageArchive
from menuwatch.crawls import rules
from menuwatch.crawls.base import UrlType
from menuwatch.crawls.model import ItemStatus, JobStatus
from menuwatch.db import sql
from menuwatch.operations.reading import Row, pattern, row, rows
from menuwatch.operations.refusals import NotFound

_q = sql.load(__package__, "crawls.sql")
_Conn = AsyncConnection[Any]
_MEAN_GAP = sum(rules.GAP_SECONDS) / 2
_SLICES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Which pages of a job."""

    status: ItemStatus | None = None
    url_type: UrlType | None = None
    keyword: str | None = None


async def jobs(conn: _Conn, *, status: JobStatus | None = None, after: int | None = None, limit: int = 50) -> list[Row]:
    """Jobs with how far they are, newest first, those before the one numbered `after`."""
    found = await rows(conn, _q.jobs, {"status": status, "after": after, "limit": limit})
    return [_with_progress(one) for one in found]


async def job(conn: _Conn, job_id: int) -> Row:
    """A job with how far it is; raises NotFound."""
    found = await row(conn, _q.job, {"id": job_id})
    if found is None:
        raise NotFound(f"crawl {job_id} does not exist")
    return _with_progress(found)


def _with_progress(one: Row) -> Row:
    """Adds `progress` (share of its pages that ended, of those known so far) and `seconds_left` (at the usual pace, retries and
    pages that are still to be found not counted; None where it does not run)."""
    ended = one["completed"] + one["failed"]
    left = one["pending"] + one["submitted"]
    return {
        **one,
        "progress": round(ended / one["pages"], 4) if one["pages"] else 0.0,
        "seconds_left": round(left * _MEAN_GAP) if one["status"] == JobStatus.RUNNING else None,
    }


async def figures(conn: _Conn, job_id: int) -> Row:
    """What came of a job: by type of page and keyword, its submissions, why pages failed, and submissions over time in slices of
    `slice_seconds`. Raises NotFound."""
    shown = await job(conn, job_id)
    key = {"id": job_id}
    in_all = await row(conn, _q.attempts_in_all, key)
    assert in_all is not None, "an aggregate answers with one row"
    mean = in_all.pop("mean_wait")
    seconds = _slice(in_all["first_at"], in_all["last_at"])
    return {
        **shown,
        "by_type": await rows(conn, _q.by_type, key),
        "by_keyword": await rows(conn, _q.by_keyword, key),
        "attempts": {**in_all, "mean_wait_seconds": None if mean is None else round(float(mean), 1)},
        "errors": await rows(conn, _q.errors, key),
        "slice_seconds": seconds,
        "timeline": await rows(conn, _q.hours, {**key, "seconds": seconds}),
    }


def _slice(first: datetime | None, last: datetime | None) -> int:
    """Seconds of a slice, so that there are about 60."""
    span = timedelta(0) if first is None or last is None else last - first
    for seconds in (60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200):
        if span <= timedelta(seconds=seconds * _SLICES):
            return seconds
    return 86_400


async def items(conn: _Conn, job_id: int, where: ItemFilter, *, after: int = 0, limit: int = 50) -> list[Row]:
    """Pages of a job by number, those after the one numbered `after`."""
    values = {"status": where.status, "url_type": where.url_type, "keyword": where.keyword}
    return await rows(conn, _q.pages, {**values, "id": job_id, "after": after, "limit": limit}, prepare=False)


async def attempts(
    conn: _Conn, job_id: int, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[Row]:
    """Submissions of a job, newest first: what was submitted when and what came of it. `after`: time and page of the last one
    shown."""
    at, item = after or (None, None)
    return await rows(conn, _q.attempts, {"id": job_id, "at": at, "item": item, "limit": limit}, prepare=False)


async def products(
    conn: _Conn,
    job_id: int,
    *,
    keyword: str | None = None,
    search: str | None = None,
    after: tuple[Decimal, int] | None = None,
    limit: int = 50,
) -> list[Row]:
    """Products that a job found, the best score first. `after`: score and number of the last one shown."""
    score, number = after or (None, None)
    values = {"id": job_id, "keyword": keyword, "search": None if search is None else pattern(search)}
    return await rows(conn, _q.products, {**values, "score": score, "after": number, "limit": limit}, prepare=False)


async def product(conn: _Conn, job_id: int, product_id: int) -> Row:
    """A product with its variants; raises NotFound."""
    found = await row(conn, _q.product, {"job_id": job_id, "id": product_id})
    if found is None:
        raise NotFound(f"crawl {job_id} has no product {product_id}")
    return {**found, "variants": await rows(conn, _q.variants, {"id": product_id})}


def page(archive: PageArchive, path: str) -> bytes:
    """An archived page, as it was brought; `path` as attempts have it. Raises Missing and Refused."""
    return archive.read(path)
