"""Search crawls: jobs with how far they are, starting one, and one job with its figures, products, pages and submissions."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.crawls.base import UrlType
from menuwatch.crawls.model import ItemStatus, JobStatus
from menuwatch.dashboard import screen
from menuwatch.dashboard.svg.crawl_timeline import timeline
from menuwatch.db.pool import Connection
from menuwatch.operations import crawl_views, crawls
from menuwatch.operations.crawl_views import ItemFilter
from menuwatch.operations.reading import Row
from menuwatch.operations.refusals import Unusable
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys, System, Writing
from menuwatch.web.words import many

router = APIRouter(prefix="/crawls", dependencies=[allowed(Permission.READ)])
MAY = Permission.TASKS
may = allowed(MAY)

ON_PAGE = 50
_FIELDS = ("keywords", "site", "provider", "max_pages", "country")
_LONGEST_FORM = 50_000
JobPath = Annotated[int, Path(ge=1, le=2**63 - 1)]
Cursor = Annotated[str, Query(max_length=400)]

SITES = {"cj": "CJ Dropshipping"}
PROVIDERS = {"identities": "our own identities", "serpwatch": "SerpWatch"}
"""Names as people write them."""

KINDS = {UrlType.SEARCH: "searches", UrlType.PAGINATION: "further pages of results", UrlType.PRODUCT: "products"}


@router.get("")
async def listed(
    request: Request, system: Sys, conn: Reading, status: Annotated[str, Query(max_length=20)] = "", cursor: Cursor = ""
) -> Response:
    """All of them, newest first."""
    return await _list(request, system, conn, Form({"status": status}), Form({}), cursor)


async def _list(
    request: Request, system: System, conn: Connection, form: Form, new: Form, cursor: str = "", *, code: int = 200
) -> Response:
    status = form.one_of("status", [str(one) for one in JobStatus])
    after = screen.place(request, cursor, tuple[int])
    found = []
    if form.ok:
        wanted = JobStatus(status) if status else None
        found = await crawl_views.jobs(conn, status=wanted, after=after[0] if after else None, limit=ON_PAGE + 1)
    shown = found[:ON_PAGE]
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
        "may": screen.principal(request).may(MAY),
        "next": paging.encode(shown[-1]["id"]) if len(found) > ON_PAGE else None,
        "first": bool(cursor),
        "query": lambda **changed: screen.query(request, **changed),
    }
    if not form.ok and code == 200:
        code = 422
    return screen.show(request, "crawls/list.html", context, live="crawls", status=code)


async def _sent(request: Request) -> Form:
    given = await request.form()
    return Form({name: str(given.get(name, ""))[:_LONGEST_FORM] for name in _FIELDS})


Sent = Annotated[Form, Depends(_sent)]
"""What was typed. It stands before a route's connection, so that whoever sends slowly keeps none from others."""


@router.post("", dependencies=[may])
async def start(request: Request, new: Sent, system: Sys, conn: Writing) -> Response:
    """Starts one; a form that cannot be used is shown again, with what is wrong beside the field."""
    pages = new.whole("max_pages", low=crawls.PAGES_BOUNDS[0], high=crawls.PAGES_BOUNDS[1])
    if new.ok:
        try:
            job = await crawls.start(
                conn,
                keywords=[line for line in new.value("keywords").splitlines() if line.strip()],
                sites=system.sites,
                providers=system.providers,
                now=datetime.now(UTC),
                site=new.text("site"),
                provider=new.text("provider"),
                max_pages=crawls.MAX_PAGES if pages is None else pages,
                country=new.text("country"),
            )
        except Unusable as error:
            new.refuse(error.field if error.field in _FIELDS else "keywords", str(error))
        else:
            said = f"Crawl {job.id} has begun with {many(len(job.keywords), 'keyword')}."
            return screen.back(request, f"/crawls/{job.id}", said)
    return await _list(request, system, conn, Form({}), new, code=422)


@router.get("/{job_id}")
async def one(request: Request, conn: Reading, job_id: JobPath) -> Response:
    """What came of it so far."""
    figures = await crawl_views.figures(conn, job_id)
    context = {
        **_head(request, figures, "figures"),
        "figures": figures,
        "chart": timeline(figures["timeline"], figures["slice_seconds"]),
        "kinds": {str(kind): words for kind, words in KINDS.items()},
        "best": await crawl_views.products(conn, job_id, limit=5),
    }
    return screen.show(request, "crawls/figures.html", context, live="crawls")


@router.get("/{job_id}/products")
async def products(
    request: Request,
    conn: Reading,
    job_id: JobPath,
    q: Annotated[str, Query(max_length=200)] = "",
    keyword: Annotated[str, Query(max_length=400)] = "",
    cursor: Cursor = "",
) -> Response:
    """Its products, the best score first."""
    job = await crawl_views.job(conn, job_id)
    form = Form({"q": q.replace("\x00", ""), "keyword": keyword})
    form.one_of("keyword", job["keywords"])
    after = screen.place(request, cursor, tuple[Decimal, int])
    found = []
    if form.ok:
        found = await crawl_views.products(
            conn,
            job_id,
            keyword=form.text("keyword"),
            search=form.text("q"),
            after=after,
            limit=ON_PAGE + 1,
        )
    shown = found[:ON_PAGE]
    context = {
        **_head(request, job, "products"),
        "form": form,
        "products": shown,
        "filtered": bool(q or keyword),
        "next": paging.encode(str(shown[-1]["score"]), shown[-1]["id"]) if len(found) > ON_PAGE else None,
        "first": bool(cursor),
    }
    return screen.show(request, "crawls/products.html", context, live="crawls", status=200 if form.ok else 422)


@router.get("/{job_id}/products/{product_id}")
async def product(request: Request, conn: Reading, job_id: JobPath, product_id: JobPath) -> Response:
    """One product with its variants."""
    job = await crawl_views.job(conn, job_id)
    found = await crawl_views.product(conn, job_id, product_id)
    context = {**_head(request, job, "products"), "product": found}
    return screen.show(request, "crawls/product.html", context, live="crawls")


@router.get("/{job_id}/pages")
async def pages(
    request: Request,
    conn: Reading,
    job_id: JobPath,
    status: Annotated[str, Query(max_length=20)] = "",
    kind: Annotated[str, Query(max_length=20)] = "",
    keyword: Annotated[str, Query(max_length=400)] = "",
    cursor: Cursor = "",
) -> Response:
    """The pages that it is made of, in the order in which they were found."""
    job = await crawl_views.job(conn, job_id)
    form = Form({"status": status, "kind": kind, "keyword": keyword})
    chosen = form.one_of("status", [str(one) for one in ItemStatus])
    of_kind = form.one_of("kind", [str(one) for one in UrlType])
    form.one_of("keyword", job["keywords"])
    after = screen.place(request, cursor, tuple[int])
    found = []
    if form.ok:
        where = ItemFilter(
            status=ItemStatus(chosen) if chosen else None,
            url_type=UrlType(of_kind) if of_kind else None,
            keyword=form.text("keyword"),
        )
        found = await crawl_views.items(conn, job_id, where, after=after[0] if after else 0, limit=ON_PAGE + 1)
    shown = found[:ON_PAGE]
    context = {
        **_head(request, job, "pages"),
        "form": form,
        "pages": shown,
        "statuses": [(str(one), str(one)) for one in ItemStatus],
        "kinds": [(str(kind), words) for kind, words in KINDS.items()],
        "filtered": bool(status or kind or keyword),
        "next": paging.encode(shown[-1]["id"]) if len(found) > ON_PAGE else None,
        "first": bool(cursor),
    }
    return screen.show(request, "crawls/pages.html", context, live="crawls", status=200 if form.ok else 422)


@router.get("/{job_id}/submissions")
async def submissions(request: Request, conn: Reading, job_id: JobPath, cursor: Cursor = "") -> Response:
    """What was submitted when, and what came of it, newest first."""
    job = await crawl_views.job(conn, job_id)
    after = screen.place(request, cursor, tuple[datetime, int])
    found = await crawl_views.attempts(conn, job_id, after=after, limit=ON_PAGE + 1)
    shown = found[:ON_PAGE]
    context = {
        **_head(request, job, "submissions"),
        "attempts": shown,
        "next": paging.encode(shown[-1]["submitted_at"], shown[-1]["item_id"]) if len(found) > ON_PAGE else None,
        "first": bool(cursor),
    }
    return screen.show(request, "crawls/submissions.html", context, live="crawls")


@router.post("/{job_id}/cancel", dependencies=[may])
async def cancel(request: Request, conn: Writing, job_id: JobPath) -> Response:
    """Nothing more of it is submitted."""
    await crawls.cancel(conn, job_id, now=datetime.now(UTC))
    said = f"Crawl {job_id} is cancelled: nothing more is submitted, and what still comes is ignored."
    return screen.back(request, f"/crawls/{job_id}", said)


@router.post("/{job_id}/retry", dependencies=[may])
async def retry(request: Request, conn: Writing, job_id: JobPath) -> Response:
    """Its failed pages are tried again."""
    _, count = await crawls.retry_failed(conn, job_id, now=datetime.now(UTC))
    return screen.back(request, f"/crawls/{job_id}", f"{many(count, 'page')} of crawl {job_id} are tried again.")


def _head(request: Request, job: Row, tab: str) -> dict[str, object]:
    """What all pages of a job show."""
    return {
        "job": job,
        "tab": tab,
        "keywords": [(one, one) for one in job["keywords"]],
        "site_names": SITES,
        "provider_names": PROVIDERS,
        "may": screen.principal(request).may(MAY),
        "query": lambda **changed: screen.query(request, **changed),
    }
