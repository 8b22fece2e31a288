"""Search crawls: starting, looking, ending; and the door for what fetching services bring."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.requests import ClientDisconnect

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.access import LoginNeeded
from menuwatch.api.answers import answer, page
from menuwatch.api.problems import BodyTooLarge, MalformedBody
from menuwatch.api.schemas.common import BIGINT_MAX, NoQuery
from menuwatch.api.schemas.crawl import (
    Crawl,
    CrawlAttemptPage,
    CrawlAttemptQuery,
    CrawlDetail,
    CrawledProductDetail,
    CrawledProductPage,
    CrawlItemPage,
    CrawlItemQuery,
    CrawlPage,
    CrawlProductQuery,
    CrawlQuery,
    CrawlRetried,
    NewCrawl,
    WebhookTaken,
)
from menuwatch.operations import crawl_views, crawl_webhook, crawls
from menuwatch.operations.crawl_views import ItemFilter
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/crawl/jobs", tags=["crawls"], dependencies=[allowed_by_method(Permission.TASKS)])
webhooks = APIRouter(prefix="/api/crawl/webhook", tags=["crawls"])

JobPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Number of the crawl.")]
NumberPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Number of the product.")]
SecretPath = Annotated[str, Path(description="What we gave to the service, and nobody else.")]


@router.post("", response_model=Crawl, status_code=201, summary="Start a search crawl")
async def start_crawl(request: Request, system: Sys, conn: Writing, asked: NewCrawl) -> Response:
    """Searches a shop for keywords and reads the products that it finds. The first page is submitted at once; the others follow 5
    to 15 seconds apart."""
    job = await crawls.start(
        conn,
        keywords=asked.keywords,
        sites=system.sites,
        providers=system.providers,
        now=datetime.now(UTC),
        site=asked.site,
        provider=asked.provider,
        max_pages=asked.max_pages,
        country=asked.country,
    )
    shown = await crawl_views.job(conn, job.id)
    return answer(request, shown, status=201, headers={"Location": f"/api/crawl/jobs/{job.id}"})


@router.get("", response_model=CrawlPage, summary="List search crawls, newest first")
async def list_crawls(request: Request, conn: Reading, query: Annotated[CrawlQuery, Query()]) -> Response:
    """Search crawls, and how far they are."""
    mark = paging.mark("crawls", query.status)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[int])[0]
    found = await crawl_views.jobs(conn, status=query.status, after=after, limit=query.limit + 1)
    return _page(request, found, query.limit, mark, "id")


def _page(request: Request, found: list[dict[str, Any]], limit: int, mark: str, *keys: str) -> Response:
    """The first `limit` rows, and where the next ones start."""
    shown = found[:limit]
    behind = paging.encode(mark, *(shown[-1][key] for key in keys)) if len(found) > limit else None
    return page(request, shown, behind)


@router.get("/{job_id}", response_model=CrawlDetail, summary="One search crawl with its figures")
async def get_crawl(request: Request, conn: Reading, job_id: JobPath, query: Annotated[NoQuery, Query()]) -> Response:
    """How far it is, and what came of it so far."""
    return answer(request, await crawl_views.figures(conn, job_id))


@router.get("/{job_id}/items", response_model=CrawlItemPage, summary="A crawl's pages, as they were found")
async def list_crawl_items(
    request: Request, conn: Reading, job_id: JobPath, query: Annotated[CrawlItemQuery, Query()]
) -> Response:
    """Every address of the crawl, once."""
    await crawl_views.job(conn, job_id)
    where = ItemFilter(status=query.status, url_type=query.url_type, keyword=query.keyword)
    mark = paging.mark("crawl items", job_id, where)
    after = 0 if query.cursor is None else paging.decode(query.cursor, mark, tuple[int])[0]
    found = await crawl_views.items(conn, job_id, where, after=after, limit=query.limit + 1)
    return _page(request, found, query.limit, mark, "id")


@router.get("/{job_id}/attempts", response_model=CrawlAttemptPage, summary="A crawl's submissions, newest first")
async def list_crawl_attempts(
    request: Request, conn: Reading, job_id: JobPath, query: Annotated[CrawlAttemptQuery, Query()]
) -> Response:
    """What was submitted when, and what came of it."""
    await crawl_views.job(conn, job_id)
    mark = paging.mark("crawl attempts", job_id)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[datetime, int])
    found = await crawl_views.attempts(conn, job_id, after=after, limit=query.limit + 1)
    return _page(request, found, query.limit, mark, "submitted_at", "item_id")


@router.get("/{job_id}/products", response_model=CrawledProductPage, summary="A crawl's products, the best first")
async def list_crawl_products(
    request: Request, conn: Reading, job_id: JobPath, query: Annotated[CrawlProductQuery, Query()]
) -> Response:
    """Products that it found, each once, by their score."""
    await crawl_views.job(conn, job_id)
    mark = paging.mark("crawl products", job_id, query.keyword, query.search)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[Decimal, int])
    found = await crawl_views.products(
        conn, job_id, keyword=query.keyword, search=query.search, after=after, limit=query.limit + 1
    )
    return _page(request, found, query.limit, mark, "score", "id")


@router.get("/{job_id}/products/{product_id}", response_model=CrawledProductDetail, summary="One product of a crawl")
async def get_crawl_product(
    request: Request, conn: Reading, job_id: JobPath, product_id: NumberPath, query: Annotated[NoQuery, Query()]
) -> Response:
    """A product with its variants."""
    return answer(request, await crawl_views.product(conn, job_id, product_id))


@router.post("/{job_id}/cancel", response_model=Crawl, summary="Cancel a search crawl")
async def cancel_crawl(request: Request, conn: Writing, job_id: JobPath) -> Response:
    """Submits nothing more; pages that have not ended fail, and what still comes is ignored."""
    await crawls.cancel(conn, job_id, now=datetime.now(UTC))
    return answer(request, await crawl_views.job(conn, job_id))


@router.post("/{job_id}/retry", response_model=CrawlRetried, summary="Retry a crawl's failed pages")
async def retry_crawl(request: Request, conn: Writing, job_id: JobPath) -> Response:
    """Puts its failed pages back, each with all its retries, also those of a cancelled crawl; it runs again."""
    _, pages = await crawls.retry_failed(conn, job_id, now=datetime.now(UTC))
    return answer(request, {"pages": pages, "job": await crawl_views.job(conn, job_id)})


@webhooks.post(
    "/{secret}",
    response_model=WebhookTaken,
    summary="What a fetching service brings",
    openapi_extra={
        "requestBody": {
            "description": "As the service sends it: a list of results, one result, or results in an envelope.",
            "required": True,
            "content": {"application/json": {"schema": {}}},
        }
    },
)
async def take_webhook(request: Request, system: Sys, secret: SecretPath) -> Response:
    """Kept, and answered at once; it is read a moment later. The same may come twice, late, and in any order. The secret in the
    address is all that it takes."""
    # Before a byte of the body is read; and nobody who sends slowly keeps a connection to the database meanwhile.
    async with system.pool.connection(timeout=10) as conn:
        try:
            provider = await crawl_webhook.caller(
                conn, secret, configured=system.settings.secret_key, providers=system.providers
            )
        except crawl_webhook.WrongSecret as error:
            raise LoginNeeded(str(error), headers={"WWW-Authenticate": 'Bearer realm="menuwatch"'}) from None
    try:
        body = await request.body()
    except ClientDisconnect:
        raise MalformedBody("the body ended before its end") from None
    try:
        told = crawl_webhook.decoded(provider, request.headers.get("content-encoding", ""), body)
        async with system.pool.connection(timeout=10) as conn, conn.transaction():
            taken = await crawl_webhook.take(conn, provider, told, now=datetime.now(UTC))
    except crawl_webhook.TooLarge as error:
        raise BodyTooLarge(str(error)) from None
    except crawl_webhook.BrokenBody as error:
        raise MalformedBody(str(error)) from None
    return answer(request, {"taken": taken.taken, "ignored": taken.ignored, "unknown": taken.unknown})
