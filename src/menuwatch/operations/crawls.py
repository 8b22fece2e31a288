"""Search crawls as people start, end and retry them. What they look at is in crawl_views."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.crawls import deliveries, store
from menuwatch.crawls.base import Provider, Site
from menuwatch.crawls.model import Job, JobStatus, NewJob
from menuwatch.operations import audit
from menuwatch.operations.crawl_keywords import checked
from menuwatch.operations.refusals import Conflict, NotFound, Unusable

MAX_PAGES = 10
"""Pages of results for each keyword, where nothing else is said; sites show no more of them."""
PAGES_BOUNDS = (1, 100)
CANCELLED = "cancelled"
_COUNTRY = re.compile(r"[a-z]{2}")


async def start(
    conn: AsyncConnection[Any],
    *,
    keywords: Sequence[str],
    sites: Mapping[str, Site],
    providers: Mapping[str, Provider],
    now: datetime,
    site: str | None = None,
    provider: str | None = None,
    max_pages: int = MAX_PAGES,
    country: str | None = None,
) -> Job:
    """Starts a search crawl: its first page is submitted at once. `site` and `provider` are the first of those there are where
    nothing is said. Raises Unusable for whatever cannot be used."""
    place = _chosen("site", site, sites)
    by = _chosen("provider", provider, providers)
    words = checked(keywords)
    if not PAGES_BOUNDS[0] <= max_pages <= PAGES_BOUNDS[1]:
        raise Unusable("max_pages", f"max_pages is {PAGES_BOUNDS[0]} to {PAGES_BOUNDS[1]}, not {max_pages}")
    if country is not None and not _COUNTRY.fullmatch(country := country.strip().lower()):
        raise Unusable("country", "a country is named by two letters, as us")
    searches = {sites[place].search_url(word): word for word in reversed(words)}  # the first of those with one address
    ordered = [(url, word) for url, word in reversed(searches.items())]
    who = audit.actor()
    new = NewJob(
        site=place,
        provider=by,
        keywords=words,
        urls=tuple(url for url, _ in ordered),
        searched=tuple(word for _, word in ordered),
        max_pages=max_pages,
        country=country,
        created_by=None if who is None else who.name,
    )
    job = await store.insert(conn, new, now)
    told = {"site": place, "provider": by, "keywords": len(words), "max_pages": max_pages}
    await audit.record(conn, "crawl_started", ("crawl", job.id), **told)
    return job


async def cancel(conn: AsyncConnection[Any], job_id: int, *, now: datetime) -> Job:
    """Ends a crawl: nothing more is submitted, and what still comes is ignored. Raises NotFound, and Conflict where it has ended."""
    job = await _locked(conn, job_id)
    if job.status is not JobStatus.RUNNING:
        raise Conflict(f"crawl {job_id} is {job.status}: only one that is running can be cancelled")
    await deliveries.drop_of_job(conn, job_id)
    ended, pages = await store.cancel(conn, job_id, CANCELLED, now)
    await audit.record(conn, "crawl_cancelled", ("crawl", job_id), pages=pages)
    return ended


async def retry_failed(conn: AsyncConnection[Any], job_id: int, *, now: datetime) -> tuple[Job, int]:
    """Puts the failed pages of a crawl back, each with all its retries, those of a cancelled one as well; it runs again. Returns it
    and how many pages they are. Raises NotFound, and Conflict where none has failed."""
    await _locked(conn, job_id)
    job, pages = await store.revive(conn, job_id, now)
    if job is None:
        raise Conflict(f"no page of crawl {job_id} has failed")
    await audit.record(conn, "crawl_retried", ("crawl", job_id), pages=pages)
    return job, pages


async def _locked(conn: AsyncConnection[Any], job_id: int) -> Job:
    job = await store.lock_job(conn, job_id)
    if job is None:
        raise NotFound(f"crawl {job_id} does not exist")
    return job


def _chosen(field: str, named: str | None, there: Mapping[str, object]) -> str:
    if not there:
        raise Unusable(field, f"no {field} is set up on this server")
    if named is None:
        return next(iter(there))
    if named not in there:
        more = ""
        if field == "provider":
            more = ". serpwatch is there once SERPWATCH_TOKEN is set" if "serpwatch" not in there else ""
        raise Unusable(field, f"{field} {named[:100]!r} is not known here: it is one of {', '.join(there)}{more}")
    return named
