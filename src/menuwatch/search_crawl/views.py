"""Search crawls as the interfaces show them: progress, statistics, pages, submissions, products."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Struct, structs
from psycopg import AsyncConnection

from menuwatch.core.errors import NotFound
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_struct, fetch_structs, like_pattern
from menuwatch.search_crawl.model import ItemStatus, JobStatus
from menuwatch.search_crawl.protocols import UrlType

_q = sql.load(__package__, "views.sql")
_Conn = AsyncConnection[Any]
_SLICES = 60


class Crawl(Struct, kw_only=True, frozen=True):
    """A search crawl and its progress."""

    id: int
    site: str
    provider: Annotated[str, doc("Provider of the pages.")]
    status: JobStatus
    keywords: list[str]
    max_pages: Annotated[int, doc("Pages of results per keyword.")]
    country: Annotated[str | None, doc("Country from which the site is requested; null for the provider's choice.")]
    gap_min_seconds: Annotated[float, doc("Shortest time between two submissions, in seconds.")]
    gap_max_seconds: Annotated[float, doc("Longest time between two submissions of pages that are ready, in seconds.")]
    mixing_threshold: Annotated[
        int, doc("Number of ready pages from which pages are submitted without waiting for more candidates.")
    ]
    max_retries: Annotated[int, doc("Number of retries of a page after its first attempt.")]
    retry_base_minutes: Annotated[float, doc("Wait before the first retry, in minutes; doubles with each.")]
    unthrottled_since: Annotated[
        Instant | None, doc("Time from which pages are submitted without waiting for more candidates; null if not set.")
    ]
    next_submission_at: Annotated[Instant | None, doc("Time of the next step; null after the crawl has ended.")]
    created_at: Instant
    created_by: Annotated[str | None, doc("User who started the crawl; null if unknown.")]
    completed_at: Annotated[Instant | None, doc("When the last page finished; null before.")]
    cancelled_at: Annotated[Instant | None, doc("When the crawl was cancelled; null if it was not.")]
    pages: Annotated[int, doc("Number of pages known so far.")]
    pending: Annotated[int, doc("Number of pages not yet submitted.")]
    submitted: Annotated[int, doc("Number of pages submitted and not yet received.")]
    completed: int
    failed: Annotated[int, doc("Number of pages that failed permanently.")]
    products: Annotated[int, doc("Number of products found.")]
    progress: Annotated[float, doc("Share of the known pages that have ended, 0 to 1.")]
    seconds_left: Annotated[
        int | None,
        doc("Estimated seconds for the remaining known pages at the usual pace, without retries; null if unknown."),
    ]


class CrawlKind(Struct, kw_only=True, frozen=True):
    """Progress of one kind of page."""

    url_type: UrlType
    pages: int
    pending: Annotated[int, doc("Number of pages not yet submitted.")]
    submitted: Annotated[int, doc("Number of pages submitted and not yet received.")]
    completed: int
    failed: Annotated[int, doc("Number of pages that failed permanently.")]
    removed: Annotated[int, doc("Number of products that are no longer sold.")]


class CrawlKeyword(Struct, kw_only=True, frozen=True):
    """Progress of the pages found by one keyword."""

    keyword: str
    pages: int
    product_pages: Annotated[int, doc("Number of product pages.")]
    completed: int
    failed: Annotated[int, doc("Number of pages that failed permanently.")]


class CrawlAttempts(Struct, kw_only=True, frozen=True):
    """Totals of all submissions."""

    submissions: int
    retries: int
    good: Annotated[int, doc("Number of submissions that returned a valid page.")]
    bad: Annotated[int, doc("Number of submissions that failed.")]
    first_at: Annotated[Instant | None, doc("Time of the first submission; null if there is none.")]
    last_at: Annotated[Instant | None, doc("Time of the last submission; null if there is none.")]
    mean_wait_seconds: Annotated[
        float | None, doc("Mean time from submission to valid page, in seconds; null if there is none.")
    ]


class CrawlError(Struct, kw_only=True, frozen=True):
    """Why pages failed or are waiting for a retry."""

    cause: Annotated[str, doc("Key of the cause; equal for failures of the same kind.")]
    error: Annotated[str, doc("Error message without the parts that differ from page to page.")]
    pages: int
    failed: Annotated[int, doc("Number of those pages that failed permanently.")]


class CrawlSlice(Struct, kw_only=True, frozen=True):
    """Submissions in one interval of time."""

    at: Annotated[Instant, doc("Start of the interval.")]
    submissions: int
    good: Annotated[int, doc("Number of submissions that returned their page.")]
    bad: Annotated[int, doc("Number of submissions that failed.")]


class CrawlDetail(Crawl, kw_only=True, frozen=True):
    """A search crawl with statistics."""

    by_type: Annotated[list[CrawlKind], doc("Progress by kind of page.")]
    by_keyword: Annotated[list[CrawlKeyword], doc("Progress by keyword.")]
    attempts: Annotated[CrawlAttempts, doc("Totals of all submissions of the crawl.")]
    errors: Annotated[list[CrawlError], doc("Why pages failed or are waiting for a retry, most frequent first.")]
    slice_seconds: Annotated[int, doc("Length of an interval of `timeline`, in seconds.")]
    timeline: Annotated[list[CrawlSlice], doc("Submissions over time.")]


class CrawlItem(Struct, kw_only=True, frozen=True):
    """One page of a search crawl."""

    id: int
    url: str
    url_type: UrlType
    keyword: Annotated[str, doc("Keyword that found the page first.")]
    page: Annotated[int | None, doc("Number of the result page, from 1; null for product pages.")]
    priority: Annotated[int, doc("Priority: 1 is submitted before 2.")]
    status: ItemStatus
    retry_count: Annotated[int, doc("Number of retries used, of the crawl's `max_retries`.")]
    attempt: int
    next_attempt_at: Annotated[Instant, doc("Earliest time of the next submission.")]
    created_at: Annotated[Instant, doc("When the page was found.")]
    submitted_at: Annotated[Instant | None, doc("Time of the last submission; null if never submitted.")]
    deadline_at: Annotated[Instant | None, doc("Deadline for the response; null if none is expected.")]
    completed_at: Annotated[Instant | None, doc("When the page finished; null before.")]
    error_message: Annotated[str | None, doc("Last error; null if there was none.")]
    parent_id: Annotated[int | None, doc("Id of the page that linked to it; null for start pages.")]
    new_urls: Annotated[int | None, doc("Number of new URLs on the page; null if not processed.")]
    removed: Annotated[bool, doc("Whether the page says that the product is no longer sold.")]


class CrawlAttempt(Struct, kw_only=True, frozen=True):
    """One submission to the provider."""

    submitted_at: Annotated[Instant, doc("When it was submitted.")]
    item_id: int
    attempt: Annotated[int, doc("Number of the submission of that page, from 1.")]
    url: str
    url_type: UrlType
    keyword: Annotated[str, doc("Keyword that found the page first.")]
    request_id: Annotated[str | None, doc("Id of the order at the provider; null if there is none.")]
    ended_at: Annotated[Instant | None, doc("When it ended; null while it is running.")]
    ok: Annotated[
        bool | None,
        doc("Whether it returned the page; null while it is running or if the result was no longer needed."),
    ]
    error: str | None
    path: Annotated[str | None, doc("Path of the stored page, relative to the storage root; null if none is stored.")]


class CrawledProduct(Struct, kw_only=True, frozen=True):
    """A product found by a search crawl."""

    id: int
    job_id: int
    site_product_id: Annotated[str, doc("Id of the product on the site.")]
    keyword: Annotated[str, doc("Keyword that found the product first.")]
    name: str
    url: str
    price_min: Annotated[Decimal | None, doc("Lowest price, in `currency`; null if there is none.")]
    price_max: Annotated[Decimal | None, doc("Highest price, in `currency`; null if there is none.")]
    currency: Annotated[str, doc("Currency of the prices.")]
    weight_g: Annotated[Decimal | None, doc("Packed weight in grams; null if unknown.")]
    listed: Annotated[
        int | None, doc("Number of shops that list the product, as the site counts them; null if unknown.")
    ]
    score: Annotated[
        Decimal,
        doc(
            "Score from 0 to 100: 40 points for demand (`listed`), 30 for low weight, 15 for a single price, "
            "15 for variants with both price and weight."
        ),
    ]
    images: list[str]
    seen_at: Annotated[Instant, doc("When the product page was processed.")]
    variant_count: int


class CrawledVariant(Struct, kw_only=True, frozen=True):
    """One variant of a product."""

    variant_id: str
    sku: Annotated[str | None, doc("Stock keeping unit (SKU); null if there is none.")]
    name: Annotated[str | None, doc("Name of the variant.")]
    price: Annotated[Decimal | None, doc("Price of the variant; null if there is none.")]
    weight_g: Annotated[Decimal | None, doc("Packed weight in grams; null if unknown.")]


class CrawledProductDetail(CrawledProduct, kw_only=True, frozen=True):
    """A product with its variants."""

    variants: Annotated[list[CrawledVariant], doc("Variants in page order.")]


class ItemFilter(Struct, kw_only=True, frozen=True):
    """Which pages of a crawl."""

    status: ItemStatus | None = None
    url_type: UrlType | None = None
    keyword: str | None = None


class ProductFilter(Struct, kw_only=True, frozen=True):
    """Which products of a crawl. `search`: text that the name contains."""

    keyword: str | None = None
    search: str | None = None


async def list_crawls(
    conn: _Conn, *, status: JobStatus | None = None, after: int | None = None, limit: int = 50
) -> list[Crawl]:
    """Crawls, newest first, before the one with the id `after`."""
    rows = await fetch_all(conn, _q.jobs, {"status": status, "after": after, "limit": limit})
    return [_crawl(row) for row in rows]


async def get_crawl(conn: _Conn, job_id: int) -> Crawl:
    """Raises NotFound."""
    row = await fetch_one(conn, _q.job, {"id": job_id})
    if row is None:
        raise NotFound(f"crawl {job_id} does not exist")
    return _crawl(row)


def _crawl(row: Row) -> Crawl:
    ended = row["completed"] + row["failed"]
    left = row["pending"] + row["submitted"]
    gap = (row["gap_min_seconds"] + row["gap_max_seconds"]) / 2
    return Crawl(
        **row,
        progress=round(ended / row["pages"], 4) if row["pages"] else 0.0,
        seconds_left=round(left * gap) if row["status"] == JobStatus.RUNNING else None,
    )


async def get_statistics(conn: _Conn, job_id: int) -> CrawlDetail:
    """Raises NotFound."""
    crawl = await get_crawl(conn, job_id)
    key = {"id": job_id}
    attempts = await fetch_struct(conn, CrawlAttempts, _q.attempts_in_all, key)
    assert attempts is not None, "an aggregate returns one row"
    seconds = _slice_seconds(attempts.first_at, attempts.last_at)
    return CrawlDetail(
        **structs.asdict(crawl),
        by_type=await fetch_structs(conn, CrawlKind, _q.by_type, key),
        by_keyword=await fetch_structs(conn, CrawlKeyword, _q.by_keyword, key),
        attempts=attempts,
        errors=await fetch_structs(conn, CrawlError, _q.errors, key),
        slice_seconds=seconds,
        timeline=await fetch_structs(conn, CrawlSlice, _q.timeline, {**key, "seconds": seconds}),
    )


def _slice_seconds(first: datetime | None, last: datetime | None) -> int:
    """Length of an interval, so that there are about 60."""
    span = timedelta(0) if first is None or last is None else last - first
    for seconds in (60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200):
        if span <= timedelta(seconds=seconds * _SLICES):
            return seconds
    return 86_400


async def list_items(
    conn: _Conn, job_id: int, where: ItemFilter, *, after: int = 0, limit: int = 50
) -> list[CrawlItem]:
    """Pages of a crawl by id, after the one with the id `after`."""
    values = {**structs.asdict(where), "id": job_id, "after": after, "limit": limit}
    return await fetch_structs(conn, CrawlItem, _q.list_items, values, prepare=False)


async def list_attempts(
    conn: _Conn, job_id: int, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[CrawlAttempt]:
    """Submissions of a crawl, newest first. `after`: time and page of the last one shown."""
    at, item = after or (None, None)
    values = {"id": job_id, "at": at, "item": item, "limit": limit}
    return await fetch_structs(conn, CrawlAttempt, _q.attempts, values, prepare=False)


async def list_products(
    conn: _Conn, job_id: int, where: ProductFilter, *, after: tuple[Decimal, int] | None = None, limit: int = 50
) -> list[CrawledProduct]:
    """Products of a crawl, highest score first. `after`: score and id of the last one shown."""
    score, product_id = after or (None, None)
    values = {
        "id": job_id,
        "keyword": where.keyword,
        "search": None if where.search is None else like_pattern(where.search),
        "score": score,
        "after": product_id,
        "limit": limit,
    }
    return await fetch_structs(conn, CrawledProduct, _q.products, values, prepare=False)


async def get_product(conn: _Conn, job_id: int, product_id: int) -> CrawledProductDetail:
    """Raises NotFound."""
    row = await fetch_one(conn, _q.product, {"job_id": job_id, "id": product_id})
    if row is None:
        raise NotFound(f"crawl {job_id} has no product {product_id}")
    variants = await fetch_structs(conn, CrawledVariant, _q.variants, {"id": product_id})
    return CrawledProductDetail(**row, variants=variants)
