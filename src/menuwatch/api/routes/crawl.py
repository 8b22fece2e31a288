"""Search crawls, and the webhooks of crawl providers."""

from __future__ import annotations

import asyncio
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from msgspec import Struct
from pydantic import AfterValidator, Field, Strict, WithJsonSchema
from starlette.requests import ClientDisconnect

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import BIGINT_MAX, Input, NoQuery, PageQuery, Search, Text, between
from menuwatch.api.paging import Keyset
from menuwatch.api.problems import BodyTooLarge, LoginNeeded, MalformedBody
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.core.shapes import doc
from menuwatch.db.clock import database_now
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl import views, webhook
from menuwatch.search_crawl.model import ItemStatus, JobStatus
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.protocols import UrlType
from menuwatch.search_crawl.reparse import MAX_PAGES as MAX_REPARSED
from menuwatch.search_crawl.reparse import CrawlReparse, reparse
from menuwatch.search_crawl.rules import PACING_BOUNDS
from menuwatch.search_crawl.service import MAX_KEYWORD_CHARS, MAX_KEYWORDS, MAX_PAGES, PAGES_BOUNDS
from menuwatch.search_crawl.setup import default_pacing
from menuwatch.search_crawl.views import (
    Crawl,
    CrawlAttempt,
    CrawlDetail,
    CrawledProduct,
    CrawledProductDetail,
    CrawlItem,
    ItemFilter,
    ProductFilter,
)
from menuwatch.search_crawl.webhook import WebhookResult
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

router = APIRouter(prefix="/api/crawl/jobs", tags=["crawls"], dependencies=[require_by_method(Permission.TASKS)])
webhooks = APIRouter(prefix="/api/crawl/webhook", tags=["crawls"])

JobPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the crawl.")]
ProductPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the product.")]
SecretPath = Annotated[str, Path(description="Secret that the provider received from this server.")]


def _bounds(name: str) -> Any:
    low, high = PACING_BOUNDS[name]
    return Field(ge=low, le=high)


class NewCrawl(Input):
    """A search crawl to start."""

    keywords: list[Text] = Field(
        description=f"Keywords to search for: 1 to {MAX_KEYWORDS}, each of up to {MAX_KEYWORD_CHARS} characters. Duplicates "
        "count once, case-insensitive.",
    )
    site: Text | None = Field(None, max_length=100, description="Site to search; the first available one if omitted.")
    provider: Text | None = Field(
        None,
        max_length=100,
        description="Provider of the pages: `serpwatch` (requires its token) or `identities`, our own workers. The "
        "first available one if omitted.",
    )
    max_pages: Annotated[
        int,
        Strict(),
        AfterValidator(between(*PAGES_BOUNDS)),
        WithJsonSchema({"type": "integer", "minimum": PAGES_BOUNDS[0], "maximum": PAGES_BOUNDS[1]}),
    ] = Field(MAX_PAGES, description="Pages of results per keyword.")
    country: Text | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="Country from which the site is requested (two letters); the provider's choice if omitted.",
    )
    gap_min_seconds: Annotated[float, Strict(), _bounds("gap_min_seconds")] | None = Field(
        None, description="Shortest time between two submissions, in seconds; the server's setting if omitted."
    )
    gap_max_seconds: Annotated[float, Strict(), _bounds("gap_max_seconds")] | None = Field(
        None, description="Longest time between two submissions, in seconds; the server's setting if omitted."
    )
    mixing_threshold: Annotated[int, Strict(), _bounds("mixing_threshold")] | None = Field(
        None,
        description="Number of ready pages from which pages are submitted without waiting for more candidates; the "
        "server's setting if omitted.",
    )
    max_retries: Annotated[int, Strict(), _bounds("max_retries")] | None = Field(
        None, description="Retries of a page after its first attempt; the server's setting if omitted."
    )
    retry_base_minutes: Annotated[float, Strict(), _bounds("retry_base_minutes")] | None = Field(
        None,
        description="Wait before the first retry, in minutes. Doubles each time; up to a third of this value is added at random. "
        "The server's setting if omitted.",
    )


class CrawlQuery(PageQuery):
    """Which crawls."""

    status: JobStatus | None = Field(None, description="Only these statuses.")


class CrawlItemQuery(PageQuery):
    """Which pages."""

    status: ItemStatus | None = Field(None, description="Only these statuses.")
    url_type: UrlType | None = Field(None, description="Only pages of this kind.")
    keyword: Search | None = Field(None, description="Only pages found by this keyword.")


class CrawlProductQuery(PageQuery):
    """Which products."""

    keyword: Search | None = Field(None, description="Only products found by this keyword.")
    search: Search | None = Field(None, description="Only products whose name contains this text.")


class ReparseCrawl(Input):
    """How to read archived pages again."""

    dry_run: Annotated[bool, Strict()] = Field(False, description="Only report what would change.")
    follow: Annotated[bool, Strict()] = Field(
        False, description="Add new URLs found on the pages; an ended crawl resumes to fetch them."
    )
    after: Annotated[int, Strict(), Field(ge=0, le=BIGINT_MAX)] = Field(
        0, description="`next` of the previous answer, to continue."
    )
    limit: Annotated[int, Strict(), Field(ge=1, le=MAX_REPARSED)] = Field(
        MAX_REPARSED, description="Maximum number of pages to read in this call."
    )


class CrawlRetryResult(Struct, kw_only=True, frozen=True):
    """Result of a retry."""

    pages: Annotated[int, doc("Number of pages that will be retried.")]
    job: Crawl


@router.post("", **returns(Crawl, 201), summary="Start a search crawl")
async def start_crawl(request: Request, system: AppDep, conn: WriteConn, new: NewCrawl) -> Response:
    """Searches a shop for keywords and reads the products found. The first page is submitted immediately, the others with
    a random gap (`gap_min_seconds` to `gap_max_seconds`)."""
    job = await crawls.start(
        conn,
        keywords=new.keywords,
        sites=system.sites,
        providers=system.providers,
        now=await database_now(conn),
        site=new.site,
        provider=new.provider,
        max_pages=new.max_pages,
        country=new.country,
        defaults=default_pacing(system.settings),
        pacing={name: getattr(new, name) for name in PACING_BOUNDS},
    )
    crawl = await views.get_crawl(conn, job.id)
    return answer(request, crawl, status=201, headers={"Location": f"/api/crawl/jobs/{job.id}"})


@router.get("", **returns_page(Crawl), summary="List search crawls, newest first")
async def list_crawls(request: Request, conn: ReadConn, query: Annotated[CrawlQuery, Query()]) -> Response:
    """Lists search crawls with their progress."""
    keys = Keyset(query, int, "crawls", query.status)
    rows = await views.list_crawls(conn, status=query.status, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda crawl: crawl.id)


@router.get("/{job_id}", **returns(CrawlDetail), summary="Get a search crawl")
async def get_crawl(request: Request, conn: ReadConn, job_id: JobPath, query: Annotated[NoQuery, Query()]) -> Response:
    """Returns progress and statistics."""
    return answer(request, await views.get_statistics(conn, job_id))


@router.get("/{job_id}/items", **returns_page(CrawlItem), summary="List a crawl's pages")
async def list_crawl_items(
    request: Request, conn: ReadConn, job_id: JobPath, query: Annotated[CrawlItemQuery, Query()]
) -> Response:
    """Lists every URL of the crawl once, in the order found."""
    await views.get_crawl(conn, job_id)
    where = ItemFilter(status=query.status, url_type=query.url_type, keyword=query.keyword)
    keys = Keyset(query, int, "crawl items", job_id, where)
    rows = await views.list_items(conn, job_id, where, after=keys.after or 0, limit=keys.limit)
    return keys.page(request, rows, lambda item: item.id)


@router.get("/{job_id}/attempts", **returns_page(CrawlAttempt), summary="List a crawl's submissions, newest first")
async def list_crawl_attempts(
    request: Request, conn: ReadConn, job_id: JobPath, query: Annotated[PageQuery, Query()]
) -> Response:
    """Lists submissions with their outcomes."""
    await views.get_crawl(conn, job_id)
    keys = Keyset(query, tuple[datetime, int], "crawl attempts", job_id)
    rows = await views.list_attempts(conn, job_id, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda attempt: (attempt.submitted_at, attempt.item_id))


@router.get(
    "/{job_id}/products", **returns_page(CrawledProduct), summary="List a crawl's products, highest score first"
)
async def list_crawl_products(
    request: Request, conn: ReadConn, job_id: JobPath, query: Annotated[CrawlProductQuery, Query()]
) -> Response:
    """Lists each product once, by score."""
    await views.get_crawl(conn, job_id)
    where = ProductFilter(keyword=query.keyword, search=query.search)
    keys = Keyset(query, tuple[Decimal, int], "crawl products", job_id, where)
    rows = await views.list_products(conn, job_id, where, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda product: (product.score, product.id))


@router.get("/{job_id}/products/{product_id}", **returns(CrawledProductDetail), summary="Get a product of a crawl")
async def get_crawl_product(
    request: Request, conn: ReadConn, job_id: JobPath, product_id: ProductPath, query: Annotated[NoQuery, Query()]
) -> Response:
    """Returns a product with its variants."""
    return answer(request, await views.get_product(conn, job_id, product_id))


@router.post("/{job_id}/cancel", **returns(Crawl), summary="Cancel a search crawl")
async def cancel_crawl(request: Request, conn: WriteConn, job_id: JobPath) -> Response:
    """Stops submitting; unfinished pages fail, and later results are ignored."""
    await crawls.cancel(conn, job_id, now=await database_now(conn))
    return answer(request, await views.get_crawl(conn, job_id))


@router.post("/{job_id}/retry", **returns(CrawlRetryResult), summary="Retry a crawl's failed pages")
async def retry_crawl(request: Request, conn: WriteConn, job_id: JobPath) -> Response:
    """Retries all failed pages with a full number of retries. A cancelled crawl resumes."""
    _, pages = await crawls.retry_failed(conn, job_id, now=await database_now(conn))
    return answer(request, CrawlRetryResult(pages=pages, job=await views.get_crawl(conn, job_id)))


@router.post("/{job_id}/reparse", **returns(CrawlReparse), summary="Read a crawl's archived pages again")
async def reparse_crawl(request: Request, system: AppDep, job_id: JobPath, body: ReparseCrawl) -> Response:
    """Parses archived pages again after a parser was corrected, without requests. Pages that cannot be read keep their result.
    Repeat with `after` until `next` is null."""
    archive = PageArchive(system.archive.storage)
    result = await reparse(
        system.pool,
        archive,
        system.sites,
        job_id,
        after=body.after,
        limit=body.limit,
        dry_run=body.dry_run,
        follow=body.follow,
    )
    return answer(request, result)


@webhooks.post(
    "/{secret}",
    **returns(WebhookResult),
    summary="Receive a crawl webhook",
    openapi_extra={
        "requestBody": {
            "description": "Body as the provider sends it: a list of results, one result, or results in an envelope.",
            "required": True,
            "content": {"application/json": {"schema": {}}},
        }
    },
)
async def take_webhook(request: Request, system: AppDep, secret: SecretPath) -> Response:
    """Stores the results and returns immediately; they are processed a moment later. Results may arrive twice, late, and in any
    order. The secret in the URL is the only authentication."""
    # Before a byte of the body is read, and so that a slow sender holds no connection to the database.
    async with system.pool.connection(timeout=10) as conn:
        try:
            provider = await webhook.caller(
                conn, secret, configured=system.settings.secret_key, providers=system.providers
            )
        except webhook.WrongSecret as error:
            raise LoginNeeded(str(error), headers={"WWW-Authenticate": 'Bearer realm="menuwatch"'}) from None
    try:
        body = await request.body()
    except ClientDisconnect:
        raise MalformedBody("the body ended prematurely") from None
    try:
        # Not on the event loop: the body may be large, and is from outside.
        encoding = request.headers.get("content-encoding", "")
        results = await asyncio.to_thread(webhook.read, provider, encoding, body)
        async with system.pool.connection(timeout=10) as conn, conn.transaction():
            result = await webhook.take(conn, provider, results, now=await database_now(conn))
    except webhook.TooLarge as error:
        raise BodyTooLarge(str(error)) from None
    except webhook.BrokenBody as error:
        raise MalformedBody(str(error)) from None
    return answer(request, result)
