"""`menuwatch crawl`: start and inspect search crawls. A running server does the work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from menuwatch.cli.options import Commands, JsonOption, Output, limit_option
from menuwatch.cli.output import Column, echo, notice, print_detail, print_json, print_list
from menuwatch.cli.startup import in_connection, in_transaction, read
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.format import percent, pluralize
from menuwatch.db.pool import Connection
from menuwatch.search_crawl import service as crawls
from menuwatch.search_crawl import views
from menuwatch.search_crawl.model import JobStatus
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.reparse import CrawlReparse, with_pages
from menuwatch.search_crawl.reparse import reparse as reparse_pages
from menuwatch.search_crawl.setup import default_pacing
from menuwatch.search_crawl.views import Crawl, CrawlDetail, CrawledProduct, ProductFilter
from menuwatch.system import System

app = Commands("Manage search crawls: products of a shop, found by keyword.")

JobArgument = Annotated[int, typer.Argument(help="Id of the crawl.", metavar="CRAWL", min=1)]

_LARGEST_FILE = 1_000_000
MAX_CRAWL_PAGES = 10_000_000
"""More pages than any crawl has."""
_OPTIONS = {
    "site": "--site",
    "provider": "--provider",
    "max_pages": "--pages",
    "country": "--country",
    "gap_min_seconds": "--gap-min",
    "gap_max_seconds": "--gap-max",
    "mixing_threshold": "--mixing",
    "max_retries": "--retries",
    "retry_base_minutes": "--retry-base",
}

COLUMNS = (
    Column("#", "id"),
    Column("Status", "status"),
    Column("Progress", "progress", percent, align="right"),
    Column("Pages", "pages"),
    Column("Failed", "failed"),
    Column("Products", "products"),
    Column("Keywords", "keywords", rank=1),
    Column("Site", "site"),
    Column("Provider", "provider"),
    Column("Started", "created_at"),
)
PRODUCT_COLUMNS = (
    Column("#", "id"),
    Column("Score", "score"),
    Column("Name", "name", rank=1),
    Column("From", "price_min"),
    Column("To", "price_max"),
    Column("Grams", "weight_g"),
    Column("Listed by", "listed"),
    Column("Variants", "variant_count"),
    Column("Keyword", "keyword"),
    Column("Product", "site_product_id"),
)


def _pages(crawl: CrawlDetail) -> str:
    ended = crawl.completed + crawl.failed
    failed = "failed or cancelled" if crawl.status == JobStatus.CANCELLED else "failed"
    share = percent(crawl.progress)
    return f"{ended:,} of {crawl.pages:,} known so far ({share}), {crawl.failed:,} of them {failed}"


def _submissions(crawl: CrawlDetail) -> str:
    attempts = crawl.attempts
    return f"{attempts.submissions:,}, {pluralize(attempts.retries, 'retry', 'retries')} among them"


def _pacing(crawl: CrawlDetail) -> str:
    gap = f"{crawl.gap_min_seconds:g} to {crawl.gap_max_seconds:g} s apart"
    if not crawl.max_retries:
        return f"{gap}, no retries"
    retries = pluralize(crawl.max_retries, "retry", "retries")
    return f"{gap}, {retries}, the first after {crawl.retry_base_minutes:g} min"


DETAIL = (
    Column("Crawl", lambda crawl: f"{crawl.id}, {crawl.status}"),
    Column("Keywords", "keywords"),
    Column("Site", lambda crawl: f"{crawl.site}, fetched by {crawl.provider}"),
    Column("Pages", _pages),
    Column("Pacing", _pacing),
    Column("Left", lambda crawl: f"{crawl.pending:,} waiting, {crawl.submitted:,} in progress"),
    Column("Products", "products"),
    Column("Submissions", _submissions),
    Column("Started", "created_at"),
    Column("Ended", lambda crawl: crawl.completed_at or crawl.cancelled_at or "-"),
)


@app.command("start")
def start(
    keywords: Annotated[
        list[str] | None, typer.Argument(help="Keywords; quote those with spaces.", metavar="[KEYWORD]...")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", help="File with one keyword per line; - reads standard input.")
    ] = None,
    site: Annotated[str | None, typer.Option("--site", help="Site to search.")] = None,
    provider: Annotated[
        str | None, typer.Option("--provider", help="Provider of the pages: serpwatch or identities.")
    ] = None,
    pages: Annotated[int, typer.Option("--pages", help="Pages of results per keyword.")] = crawls.MAX_PAGES,
    country: Annotated[
        str | None, typer.Option("--country", help="Country to fetch from (two letters), if the provider supports it.")
    ] = None,
    gap_min: Annotated[
        float | None,
        typer.Option("--gap-min", help="Shortest time between two pages, seconds [CRAWL_GAP_MIN_SECONDS]."),
    ] = None,
    gap_max: Annotated[
        float | None, typer.Option("--gap-max", help="Longest time between two pages, seconds [CRAWL_GAP_MAX_SECONDS].")
    ] = None,
    mixing: Annotated[
        int | None,
        typer.Option(
            "--mixing",
            help="Number of ready pages at which the crawl stops holding pages back [CRAWL_MIXING_THRESHOLD].",
        ),
    ] = None,
    retries: Annotated[int | None, typer.Option("--retries", help="Retries of a page [CRAWL_MAX_RETRIES].")] = None,
    retry_base: Annotated[
        float | None,
        typer.Option("--retry-base", help="Wait before the first retry, minutes [CRAWL_RETRY_BASE_MINUTES]."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Start a crawl. A running server fetches its first page immediately. Parser and webhook were tested against a simulator, not
    against the real services: check the products of a first small crawl."""
    words = [*(keywords or ()), *_read_lines(file)]

    async def act(system: System, conn: Connection) -> Crawl:
        try:
            job = await crawls.start(
                conn,
                keywords=words,
                sites=system.sites,
                providers=system.providers,
                now=system.clock.now(),
                site=site,
                provider=provider,
                max_pages=pages,
                country=country,
                defaults=default_pacing(system.settings),
                pacing={
                    "gap_min_seconds": gap_min,
                    "gap_max_seconds": gap_max,
                    "mixing_threshold": mixing,
                    "max_retries": retries,
                    "retry_base_minutes": retry_base,
                },
            )
        except InvalidField as error:
            option = _OPTIONS.get(error.field)
            raise Refused(f"{option}: {error}" if option else str(error)) from None
        return await views.get_crawl(conn, job.id)

    job = in_transaction(act)
    if json:
        print_json(job)
        return
    what = f"{pluralize(len(job.keywords), 'keyword')} at {job.site}, fetched by {job.provider}"
    echo(f"Started crawl {job.id}: {what}. Show its progress with `menuwatch crawl show {job.id}`.")


def _read_lines(file: str | None) -> list[str]:
    if file is None:
        return []
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as stream:
            data = stream.read(_LARGEST_FILE + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise Refused(f"--file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"--file {file}: not UTF-8 text") from None
    if len(data) > _LARGEST_FILE:
        raise Refused(f"--file {file}: larger than {_LARGEST_FILE:,} bytes")
    return [line for line in text.splitlines() if line.strip()]


@app.command("list")
def list_(
    out: Output,
    status: Annotated[JobStatus | None, typer.Option("--status", help="Only this status.")] = None,
    limit: Annotated[int, limit_option(10_000)] = 50,
) -> None:
    """List crawls, newest first."""
    rows = read(lambda _, conn: views.list_crawls(conn, status=status, limit=limit))
    empty = f"No {status} crawls." if status else "No search crawls. Start one with `menuwatch crawl start KEYWORD`."
    print_list(rows, COLUMNS, out.format, empty=empty)


@app.command("show")
def show(crawl: JobArgument, json: JsonOption = False) -> None:
    """Show a crawl with its progress and statistics."""
    detail = read(lambda _, conn: views.get_statistics(conn, crawl))
    if json:
        print_json(detail)
        return
    print_detail(detail, DETAIL)
    notice(*(f"{pluralize(error.pages, 'page')}: {error.error}" for error in detail.errors))


@app.command("cancel")
def cancel(crawl: JobArgument) -> None:
    """Cancel a crawl: nothing more is submitted, and later results are ignored. Products found so far stay."""
    in_transaction(lambda system, conn: crawls.cancel(conn, crawl, now=system.clock.now()))
    echo(f"Cancelled crawl {crawl}.")


@app.command("retry")
def retry(crawl: JobArgument) -> None:
    """Retry a crawl's failed pages. A cancelled crawl resumes."""
    _, count = in_transaction(lambda system, conn: crawls.retry_failed(conn, crawl, now=system.clock.now()))
    echo(f"{pluralize(count, 'page')} of crawl {crawl} will be retried.")


REPARSE_COLUMNS = (
    Column("Crawl", "job_id"),
    Column("Pages", "pages"),
    Column("Changed", "changed"),
    Column("Unreadable", "unreadable"),
    Column("Missing", "missing"),
    Column("New URLs", "new_urls"),
)


@app.command("reparse")
def reparse(
    out: Output,
    crawl: Annotated[int | None, typer.Argument(help="Id of the crawl.", metavar="CRAWL", min=1)] = None,
    every: Annotated[bool, typer.Option("--all", help="All crawls with archived pages.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would change.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Fetch new URLs found on the pages; ended crawls resume.")
    ] = False,
) -> None:
    """Read archived pages again after a parser was corrected, without requests. Pages that cannot be read keep their result."""
    if (crawl is None) != every:
        raise Refused("give either the id of a crawl or --all")

    async def act(system: System, conn: Connection) -> list[CrawlReparse]:
        archive = PageArchive(system.archive.storage)
        jobs = await with_pages(conn) if crawl is None else [crawl]
        return [
            await reparse_pages(
                system.pool,
                archive,
                system.sites,
                job,
                limit=MAX_CRAWL_PAGES,
                dry_run=dry_run,
                follow=follow,
            )
            for job in jobs
        ]

    results = in_connection(act)
    print_list(results, REPARSE_COLUMNS, out.format, empty="No crawl has an archived page.")
    notice(*(f"crawl {one.job_id}, {error.path}: {error.error}" for one in results for error in one.errors))
    if dry_run:
        notice("Nothing was changed (--dry-run).")
    if not follow and any(one.new_urls for one in results):
        notice("New URLs are fetched only with --follow.")


@app.command("products")
def products(
    crawl: JobArgument,
    out: Output,
    keyword: Annotated[str | None, typer.Option("--keyword", help="Only products found by this keyword.")] = None,
    search: Annotated[str | None, typer.Option("--search", help="Only products whose name contains this text.")] = None,
    limit: Annotated[int, limit_option(10_000)] = 100,
) -> None:
    """List a crawl's products, highest score first."""

    async def act(_: System, conn: Connection) -> list[CrawledProduct]:
        await views.get_crawl(conn, crawl)
        where = ProductFilter(keyword=keyword, search=search)
        return await views.list_products(conn, crawl, where, limit=limit)

    print_list(read(act), PRODUCT_COLUMNS, out.format, empty="No matching products, or none processed yet.")
