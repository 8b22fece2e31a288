"""Starts, cancels and retries search crawls. `views` has the read side."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField, NotFound, unknown_value
from menuwatch.search_crawl import store, webhook_inbox
from menuwatch.search_crawl.model import Job, JobStatus, NewJob
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.protocols import Provider, Site
from menuwatch.search_crawl.rules import PACING_BOUNDS, Pacing

MAX_KEYWORDS = 200
MAX_KEYWORD_CHARS = 100
"""Characters of one."""
_WHITESPACE = re.compile(r"\s+")
_NO_TEXT = re.compile(r"[\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Invisible characters and marks of direction. Joiners are part of letters, and stay."""
MAX_PAGES = 10
"""Default number of result pages per keyword; sites show no more."""
PAGES_BOUNDS = (1, 100)
CANCELLED = "cancelled"
MAX_PRUNED = 100
"""Jobs that one run of retention deletes."""
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
    defaults: Pacing = Pacing(),  # noqa: B008 - frozen
    pacing: Mapping[str, float | None] | None = None,
) -> Job:
    """Starts a search crawl: its first page is submitted immediately. `site` and `provider` default to the first configured ones;
    `pacing` has values of `Pacing` by field; None and missing ones are those of `defaults`. Raises InvalidField for invalid values."""
    site = _choose("site", site, sites)
    provider = _choose("provider", provider, providers)
    words = parse_keywords(keywords)
    if not PAGES_BOUNDS[0] <= max_pages <= PAGES_BOUNDS[1]:
        raise InvalidField("max_pages", f"max_pages must be {PAGES_BOUNDS[0]} to {PAGES_BOUNDS[1]}, not {max_pages}")
    if country is not None and not _COUNTRY.fullmatch(country := country.strip().lower()):
        raise InvalidField("country", "country must be two letters, for example us")
    chosen = choose_pacing(defaults, pacing or {})
    searches = {sites[site].search_url(word): word for word in reversed(words)}  # the first of those with one address
    ordered = [(url, word) for url, word in reversed(searches.items())]
    actor = audit.actor()
    new = NewJob(
        site=site,
        provider=provider,
        keywords=words,
        urls=tuple(url for url, _ in ordered),
        searched=tuple(word for _, word in ordered),
        max_pages=max_pages,
        pacing=chosen,
        country=country,
        created_by=None if actor is None else actor.name,
    )
    job = await store.insert(conn, new, now)
    details = {"site": site, "provider": provider, "keywords": len(words), "max_pages": max_pages}
    await audit.record(conn, "crawl_started", ("crawl", job.id), **details)
    return job


async def cancel(conn: AsyncConnection[Any], job_id: int, *, now: datetime) -> Job:
    """Ends a crawl: nothing more is submitted, and what still comes is ignored. Raises NotFound, and Conflict where it has ended."""
    job = await _locked(conn, job_id)
    if job.status is not JobStatus.RUNNING:
        raise Conflict(f"crawl {job_id} is {job.status}: only a running crawl can be cancelled")
    await webhook_inbox.drop_of_job(conn, job_id)
    ended, pages = await store.cancel(conn, job_id, CANCELLED, now)
    await audit.record(conn, "crawl_cancelled", ("crawl", job_id), pages=pages)
    return ended


async def retry_failed(conn: AsyncConnection[Any], job_id: int, *, now: datetime) -> tuple[Job, int]:
    """Puts the failed pages of a crawl back, each with all its retries, those of a cancelled one as well; it runs again. Returns it
    and how many pages they are. Raises NotFound, and Conflict where none has failed."""
    await _locked(conn, job_id)
    job, pages = await store.retry_failed(conn, job_id, now)
    if job is None:
        raise Conflict(f"no page of crawl {job_id} has failed")
    await audit.record(conn, "crawl_retried", ("crawl", job_id), pages=pages)
    return job, pages


async def prune(conn: AsyncConnection[Any], pages: PageArchive, before: datetime) -> tuple[int, int]:
    """Deletes up to 100 jobs that ended before that time, with their rows and archived pages; never a running one. Returns how many
    jobs and page files. Raises OSError.

    The files go before the transaction commits: after a crash in between, the rows are still there, and the next run deletes them. So
    no file is left without a job.
    """
    jobs = files = last = 0
    while jobs < MAX_PRUNED:
        async with conn.transaction():
            job_id = await store.lock_ended(conn, before, after=last)
            if job_id is None:
                break
            await store.delete_job(conn, job_id)
            files += await asyncio.to_thread(pages.remove_job, job_id)
        jobs, last = jobs + 1, job_id
    return jobs, files


async def _locked(conn: AsyncConnection[Any], job_id: int) -> Job:
    job = await store.lock_job(conn, job_id)
    if job is None:
        raise NotFound(f"crawl {job_id} does not exist")
    return job


def _choose(field: str, named: str | None, there: Mapping[str, object]) -> str:
    if not there:
        raise InvalidField(field, f"no {field} is configured on this server")
    if named is None:
        return next(iter(there))
    if named not in there:
        more = ""
        if field == "provider":
            more = ". serpwatch requires SERPWATCH_TOKEN" if "serpwatch" not in there else ""
        raise InvalidField(field, unknown_value(field, named[:100], there) + more)
    return named


def choose_pacing(defaults: Pacing, given: Mapping[str, float | None]) -> Pacing:
    """`defaults` with the given values in place of its own. Raises InvalidField."""
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, value in values.items():
        low, high = PACING_BOUNDS[name]
        if not low <= value <= high:
            raise InvalidField(name, f"{name} must be {low:,} to {high:,}, not {value:g}")
    pacing = replace(defaults, **values)
    if pacing.gap_min_seconds > pacing.gap_max_seconds:
        name = "gap_min_seconds" if "gap_min_seconds" in values else "gap_max_seconds"
        raise InvalidField(
            name,
            f"gap_min_seconds ({pacing.gap_min_seconds:g}) must not exceed gap_max_seconds ({pacing.gap_max_seconds:g}): give both",
        )
    return pacing


def parse_keywords(keywords: Sequence[str]) -> tuple[str, ...]:
    """The keywords as they are searched for: without blanks around and doubled ones within, each once whatever its case. Raises
    InvalidField with the position (from 1) of the one that cannot be used."""
    if not keywords:
        raise InvalidField("keywords", "give at least one keyword")
    if len(keywords) > MAX_KEYWORDS:
        raise InvalidField(
            "keywords", f"{len(keywords):,} keywords: a crawl takes at most {MAX_KEYWORDS}; start several"
        )
    unique: dict[str, str] = {}
    for number, text in enumerate(keywords, 1):
        keyword = _WHITESPACE.sub(" ", unicodedata.normalize("NFC", text.strip()))
        if not keyword:
            raise InvalidField("keywords", f"keyword {number} of {len(keywords)} is empty")
        if _NO_TEXT.search(text) or any(
            unicodedata.category(char) in ("Cc", "Cs", "Co", "Cn") for char in text.strip()
        ):
            raise InvalidField(
                "keywords", f"keyword {number} of {len(keywords)} contains a control or invalid character"
            )
        if len(keyword) > MAX_KEYWORD_CHARS:
            raise InvalidField(
                "keywords",
                f"keyword {number} of {len(keywords)} has {len(keyword):,} characters; the maximum is {MAX_KEYWORD_CHARS}",
            )
        if not any(char.isalnum() for char in keyword):
            raise InvalidField("keywords", f"keyword {number} of {len(keywords)} contains no letter or digit")
        unique.setdefault(keyword.casefold(), keyword)
    return tuple(unique.values())
