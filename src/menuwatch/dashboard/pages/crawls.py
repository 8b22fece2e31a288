"""Search crawls: jobs with how far they are, starting one, and one job with its overview, products, pages and submissions."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts.bars import submissions as submissions_chart
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl import views
from menuwatch.search_crawl.model import ItemStatus, JobStatus
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.protocols import UrlType
from menuwatch.search_crawl.reparse import reparse
from menuwatch.search_crawl.rules import PACING_BOUNDS
from menuwatch.search_crawl.setup import default_pacing
from menuwatch.search_crawl.views import Crawl, ItemFilter, ProductFilter
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/crawls", dependencies=[require(Permission.READ)])
MAY = Permission.TASKS
may = require(MAY)

ON_PAGE = 50
_FIELDS = ("keywords", "site", "provider", "max_pages", "country", *PACING_BOUNDS)
JobPath = Annotated[int, Path(ge=1, le=2**63 - 1)]
Cursor = Annotated[str, Query(max_length=400)]

SITES = {"cj": "CJ Dropshipping"}
PROVIDERS = {"identities": "our own workers", "serpwatch": "SerpWatch"}
"""Names as people write them."""

KINDS = {UrlType.SEARCH: "searches", UrlType.PAGINATION: "further result pages", UrlType.PRODUCT: "products"}


@router.get("")
async def listed(
    request: Request,
    system: AppDep,
    conn: ReadConn,
    status: Annotated[str, Query(max_length=20)] = "",
    cursor: Cursor = "",
) -> Response:
    """All of them, newest first."""
    return await _list(request, system, conn, FormInput({"status": status}), FormInput({}), cursor)


async def _list(
    request: Request,
    system: AppContext,
    conn: Connection,
    form: FormInput,
    new: FormInput,
    cursor: str = "",
    *,
    status_code: int | None = None,
) -> Response:
    status = form.parse_choice("status", [str(one) for one in JobStatus])
    after = screen.parse_number_cursor(request, cursor)
    found = []
    if form.ok:
        wanted = JobStatus(status) if status else None
        found = await views.list_crawls(conn, status=wanted, after=after, limit=ON_PAGE + 1)
    shown, links = screen.paginate(request, found, ON_PAGE, "id")
    context = {
        "form": form,
        "new": new,
        "jobs": shown,
        "statuses": [str(one) for one in JobStatus],
        "sites": [(name, SITES.get(name, name)) for name in system.sites],
        "providers": [(name, PROVIDERS.get(name, name)) for name in system.providers],
        "site_names": SITES,
        "provider_names": PROVIDERS,
        "most_pages": crawls.MAX_PAGES,
        "pacing": default_pacing(system.settings),
        "pacing_open": any(new.value(name) or new.error(name) for name in PACING_BOUNDS),
        "may": screen.may(request, MAY),
        **links,
    }
    return screen.render(request, "crawls/list.html", context, live="crawls", status=status_code)


@router.post("", dependencies=[may])
async def start(
    request: Request, new: Annotated[FormInput, fields(*_FIELDS, longest=50_000)], system: AppDep, conn: WriteConn
) -> Response:
    """Starts a crawl; an invalid form is shown again with errors beside the fields."""
    pages = new.parse_int("max_pages", low=crawls.PAGES_BOUNDS[0], high=crawls.PAGES_BOUNDS[1])
    pacing: dict[str, float | None] = {}
    for name, (low, high) in PACING_BOUNDS.items():
        if name in ("mixing_threshold", "max_retries"):
            pacing[name] = new.parse_int(name, low=low, high=high)
        else:
            number = new.parse_decimal(name, f"a number from {low:,} to {high:,}", low, high)
            pacing[name] = None if number is None else float(number)
    if new.ok:
        try:
            job = await crawls.start(
                conn,
                keywords=[line for line in new.value("keywords").splitlines() if line.strip()],
                sites=system.sites,
                providers=system.providers,
                now=await database_now(conn),
                site=new.text("site"),
                provider=new.text("provider"),
                max_pages=crawls.MAX_PAGES if pages is None else pages,
                country=new.text("country"),
                defaults=default_pacing(system.settings),
                pacing=pacing,
            )
        except InvalidField as error:
            new.add_error(error.field if error.field in _FIELDS else "keywords", str(error))
        else:
            said = f"Crawl {job.id} started with {pluralize(len(job.keywords), 'keyword')}."
            return screen.flash_to(request, f"/crawls/{job.id}", said)
    return await _list(request, system, conn, FormInput({}), new, status_code=422)


@router.get("/{job_id}")
async def one(request: Request, conn: ReadConn, job_id: JobPath) -> Response:
    """A crawl and its results so far."""
    figures = await views.get_statistics(conn, job_id)
    context = {
        **_head(request, figures, "overview"),
        "figures": figures,
        "chart": submissions_chart(figures.timeline, figures.slice_seconds),
        "kinds": {str(kind): words for kind, words in KINDS.items()},
        "best": await views.list_products(conn, job_id, ProductFilter(), limit=5),
    }
    return screen.render(request, "crawls/overview.html", context, live="crawls")


@router.get("/{job_id}/products")
async def products(
    request: Request,
    conn: ReadConn,
    job_id: JobPath,
    q: Annotated[str, Query(max_length=200)] = "",
    keyword: Annotated[str, Query(max_length=400)] = "",
    cursor: Cursor = "",
) -> Response:
    """Its products, the best score first."""
    job = await views.get_crawl(conn, job_id)
    form = FormInput({"q": q.replace("\x00", ""), "keyword": keyword})
    form.parse_choice("keyword", job.keywords)
    after = screen.parse_cursor(request, cursor, tuple[Decimal, int])
    found = []
    if form.ok:
        found = await views.list_products(
            conn,
            job_id,
            ProductFilter(keyword=form.text("keyword"), search=form.text("q")),
            after=after,
            limit=ON_PAGE + 1,
        )
    shown, links = screen.paginate(request, found, ON_PAGE, "score", "id")
    context = {
        **_head(request, job, "products"),
        "form": form,
        "products": shown,
        "filtered": bool(q or keyword),
        **links,
    }
    return screen.render(request, "crawls/products.html", context, live="crawls")


@router.get("/{job_id}/products/{product_id}")
async def product(request: Request, conn: ReadConn, job_id: JobPath, product_id: JobPath) -> Response:
    """One product with its variants."""
    job = await views.get_crawl(conn, job_id)
    found = await views.get_product(conn, job_id, product_id)
    context = {**_head(request, job, "products"), "product": found}
    return screen.render(request, "crawls/product.html", context, live="crawls")


@router.get("/{job_id}/pages")
async def pages(
    request: Request,
    conn: ReadConn,
    job_id: JobPath,
    status: Annotated[str, Query(max_length=20)] = "",
    kind: Annotated[str, Query(max_length=20)] = "",
    keyword: Annotated[str, Query(max_length=400)] = "",
    cursor: Cursor = "",
) -> Response:
    """The pages that it is made of, in the order in which they were found."""
    job = await views.get_crawl(conn, job_id)
    form = FormInput({"status": status, "kind": kind, "keyword": keyword})
    chosen = form.parse_choice("status", [str(one) for one in ItemStatus])
    of_kind = form.parse_choice("kind", [str(one) for one in UrlType])
    form.parse_choice("keyword", job.keywords)
    after = screen.parse_number_cursor(request, cursor)
    found = []
    if form.ok:
        where = ItemFilter(
            status=ItemStatus(chosen) if chosen else None,
            url_type=UrlType(of_kind) if of_kind else None,
            keyword=form.text("keyword"),
        )
        found = await views.list_items(conn, job_id, where, after=after or 0, limit=ON_PAGE + 1)
    shown, links = screen.paginate(request, found, ON_PAGE, "id")
    context = {
        **_head(request, job, "pages"),
        "form": form,
        "pages": shown,
        "statuses": [(str(one), str(one)) for one in ItemStatus],
        "kinds": [(str(kind), words) for kind, words in KINDS.items()],
        "filtered": bool(status or kind or keyword),
        **links,
    }
    return screen.render(request, "crawls/pages.html", context, live="crawls")


@router.get("/{job_id}/submissions")
async def submissions(request: Request, conn: ReadConn, job_id: JobPath, cursor: Cursor = "") -> Response:
    """Submissions with their results, newest first."""
    job = await views.get_crawl(conn, job_id)
    after = screen.parse_cursor(request, cursor, tuple[datetime, int])
    found = await views.list_attempts(conn, job_id, after=after, limit=ON_PAGE + 1)
    shown, links = screen.paginate(request, found, ON_PAGE, "submitted_at", "item_id")
    context = {
        **_head(request, job, "submissions"),
        "attempts": shown,
        **links,
    }
    return screen.render(request, "crawls/submissions.html", context, live="crawls")


@router.post("/{job_id}/cancel", dependencies=[may])
async def cancel(request: Request, conn: WriteConn, job_id: JobPath) -> Response:
    """Nothing more of it is submitted."""
    await crawls.cancel(conn, job_id, now=await database_now(conn))
    said = f"Crawl {job_id} is cancelled: no more pages are submitted, and pending results are ignored."
    return screen.flash_to(request, f"/crawls/{job_id}", said)


@router.post("/{job_id}/retry", dependencies=[may])
async def retry(request: Request, conn: WriteConn, job_id: JobPath) -> Response:
    """Its failed pages queued for retry."""
    _, count = await crawls.retry_failed(conn, job_id, now=await database_now(conn))
    return screen.flash_to(
        request, f"/crawls/{job_id}", f"{pluralize(count, 'page')} of crawl {job_id} queued for retry."
    )


@router.post("/{job_id}/reparse", dependencies=[may])
async def reread(request: Request, system: AppDep, job_id: JobPath) -> Response:
    """Its archived pages read again, the first ones of a large crawl."""
    archive = PageArchive(system.archive.storage)
    result = await reparse(system.pool, archive, system.sites, job_id)
    said = f"{pluralize(result.pages, 'archived page')} read again: {result.changed:,} changed, {result.unreadable:,} unreadable"
    said += f", {result.missing:,} no longer archived." if result.missing else "."
    if result.new_urls:
        said += f" {pluralize(result.new_urls, 'new URL')} found: to fetch them, run `menuwatch crawl reparse {job_id} --follow`."
    if result.next is not None:
        said += f" For the other pages, run `menuwatch crawl reparse {job_id}`."
    return screen.flash_to(request, f"/crawls/{job_id}", said)


def _head(request: Request, job: Crawl, tab: str) -> dict[str, object]:
    """Template context shared by all pages of a job."""
    return {
        "job": job,
        "tab": tab,
        "keywords": [(one, one) for one in job.keywords],
        "site_names": SITES,
        "provider_names": PROVIDERS,
        "may": screen.may(request, MAY),
    }
