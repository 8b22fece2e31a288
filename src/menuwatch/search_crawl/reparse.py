"""Reads archived pages again after a parser was corrected, without a request: `menuwatch crawl reparse`.

For each page, the attempt that brought it is parsed again, else the newest attempt with an archived body. Pages under way are left to
their delivery. A page that cannot be read keeps the result it has. Running it again changes nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Struct
from psycopg import DataError, Rollback
from psycopg.rows import dict_row

from menuwatch.accounts import audit
from menuwatch.archive.files import Missing
from menuwatch.core.errors import MenuwatchError, NotFound, Refused
from menuwatch.core.logging import get_logger
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection, Pool
from menuwatch.search_crawl import store
from menuwatch.search_crawl.model import Item, ItemStatus, Job, JobStatus
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.protocols import Page, Site, UrlType
from menuwatch.search_crawl.result_processor import followed

_q = sql.load(__package__, "reparse.sql")
log = get_logger(__name__)

MAX_PAGES = 500
"""Pages of one call."""
MAX_ERRORS = 10
"""Errors that a result names."""


class CrawlReparseError(Struct, kw_only=True, frozen=True):
    """An archived page that could not be read."""

    item_id: int
    path: Annotated[str, doc("Path of the archived page, relative to the storage root.")]
    error: str


class CrawlReparse(Struct, kw_only=True):
    """Result of reading archived pages of a crawl again."""

    job_id: int
    dry_run: Annotated[bool, doc("Whether nothing was changed.")]
    pages: Annotated[int, doc("Number of archived pages that were read.")] = 0
    changed: Annotated[int, doc("Number of pages whose result changed, or would.")] = 0
    unreadable: Annotated[int, doc("Number of pages that cannot be read; they keep their result.")] = 0
    missing: Annotated[int, doc("Number of pages that the archive no longer has.")] = 0
    new_urls: Annotated[
        int, doc("Number of new URLs on the pages, each once. They are fetched only with `follow`.")
    ] = 0
    errors: Annotated[list[CrawlReparseError], doc(f"The first {MAX_ERRORS} errors.")] = []
    next: Annotated[int | None, doc("Value of `after` for the following pages; null when all were read.")] = None


class _Archived(Struct, frozen=True, kw_only=True):
    """A page and the attempt whose body is archived."""

    id: int
    url: str
    url_type: str
    status: str
    attempt: int
    archived_attempt: int
    path: str


async def reparse(
    pool: Pool,
    pages: PageArchive,
    sites: Mapping[str, Site],
    job_id: int,
    *,
    after: int = 0,
    limit: int = MAX_PAGES,
    dry_run: bool = False,
    follow: bool = False,
) -> CrawlReparse:
    """Reads the archived pages of a crawl, after the one with the id `after`, at most `limit`. With `follow`, new URLs on them are
    added, and an ended crawl resumes to fetch them. Raises NotFound, and Refused for a site without a parser."""
    async with pool.connection() as conn:
        job = await store.find(conn, job_id)
        if job is None:
            raise NotFound(f"crawl {job_id} does not exist")
        now = await database_now(conn)
        async with conn.cursor(row_factory=dict_row) as cur:
            await cur.execute(_q.archived, {"job_id": job_id, "after": after, "limit": limit})
            found = [_Archived(**row) for row in await cur.fetchall()]
    site = sites.get(job.site)
    if site is None:
        raise Refused(f"no parser for pages of {job.site}")
    result = CrawlReparse(job_id=job_id, dry_run=dry_run, next=found[-1].id if len(found) == limit else None)
    new_urls: set[str] = set()
    for archived in found:
        page = await _read(pages, site, archived, result)
        if page is not None:
            try:
                async with pool.connection() as conn, conn.transaction(force_rollback=dry_run):
                    await _apply(conn, site, job_id, archived, page, result, new_urls, now=now, follow=follow)
            except (DataError, ValueError):  # a number out of range or an invalid text
                _add_error(result, archived, "the page contains a value that cannot be stored")
    if not dry_run:
        async with pool.connection() as conn, conn.transaction():
            counts = {"pages": result.pages, "changed": result.changed, "new_urls": result.new_urls}
            await audit.record(conn, "crawl_reparsed", ("crawl", job_id), **counts)
    return result


async def with_pages(conn: Connection) -> list[int]:
    """Ids of the crawls with an archived page."""
    return [row[0] for row in await (await conn.execute(_q.with_pages)).fetchall()]


async def _read(pages: PageArchive, site: Site, archived: _Archived, result: CrawlReparse) -> Page | None:
    result.pages += 1
    try:
        body = await asyncio.to_thread(pages.read, archived.path)
        return await asyncio.to_thread(site.read, UrlType(archived.url_type), archived.url, body)
    except Missing:
        result.pages -= 1
        result.missing += 1
    except MenuwatchError as error:  # damaged, a block page, or no page of this form
        _add_error(result, archived, str(error))
    except Exception as error:  # one page must not stop the others
        log.exception("page parser failed", action="crawl_page_failed", item_id=archived.id, path=archived.path)
        _add_error(result, archived, type(error).__name__)
    return None


def _add_error(result: CrawlReparse, archived: _Archived, error: str) -> None:
    result.unreadable += 1
    if len(result.errors) < MAX_ERRORS:
        short = error[: store.LONGEST_ERROR]
        result.errors = [*result.errors, CrawlReparseError(item_id=archived.id, path=archived.path, error=short)]


async def _apply(
    conn: Connection,
    site: Site,
    job_id: int,
    archived: _Archived,
    page: Page,
    result: CrawlReparse,
    new_urls: set[str],
    *,
    now: datetime,
    follow: bool,
) -> None:
    """Writes what differs from the stored result. Holds the job."""
    job = await store.lock_job(conn, job_id)
    item = await store.item(conn, archived.id)
    if job is None or item is None or (item.status, item.attempt) != (archived.status, archived.attempt):
        return  # it was submitted or deleted in the meantime
    links = followed(site, job, item, page)
    urls = [link.url for link in links]
    new = {row[0] for row in await (await conn.execute(_q.new_urls, {"job_id": job_id, "urls": urls})).fetchall()}
    changed = await _write_product(conn, job, item, page, now)
    added = await store.add_found(conn, item, links, now) if follow and new else 0
    if item.status is ItemStatus.COMPLETED:
        values = {"id": item.id, "removed": page.removed, "added": added}
        changed |= (await conn.execute(_q.correct_item, values)).rowcount > 0
    else:
        changed = True
        attempt, path = archived.archived_attempt, archived.path
        await store.complete_item(conn, item.id, attempt, found=added, removed=page.removed, now=now, path=path)
    if added and job.status is not JobStatus.RUNNING:
        await store.reopen(conn, job_id, now)
    elif changed or added:
        await store.schedule_now(conn, job_id, now)
    result.changed += changed
    new_urls |= new
    result.new_urls = len(new_urls)


async def _write_product(conn: Connection, job: Job, item: Item, page: Page, now: datetime) -> bool:
    """Stores the page's product if it differs, and deletes a product that the page no longer has. A product with several URLs
    belongs to the page that was processed last; the others leave it as it is."""
    product = page.product
    product_id = None if product is None else product.site_product_id
    values = {"job_id": job.id, "item_id": item.id, "site_product_id": product_id}
    changed = (await conn.execute(_q.delete_others, values)).rowcount > 0
    if product is None:
        return changed
    before = await _state(conn, values)
    if before is not None and before["item_id"] != item.id:
        return changed
    async with conn.transaction() as savepoint:
        await store.put_product(conn, item, job.site, product, now)
        differs = await _state(conn, values) != before
        if not differs:
            raise Rollback(savepoint)
    return changed or differs


async def _state(conn: Connection, values: dict[str, Any]) -> dict[str, Any] | None:
    """The stored product with its variants, without the time at which its page was processed."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.product_state, values)
        return await cur.fetchone()
