"""`menuwatch crawl`: search crawls. A running server does the work; these start it and look at it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from menuwatch.bootstrap import System
from menuwatch.cli.inside import inside
from menuwatch.cli.output import Format, chosen_format, console, errors, plain, plural, print_json, print_rows, shown
from menuwatch.core.errors import Refused
from menuwatch.crawls.model import JobStatus
from menuwatch.db.pool import Connection
from menuwatch.operations import crawl_views, crawls
from menuwatch.operations.reading import Row
from menuwatch.operations.refusals import Unusable

app = typer.Typer(help="Search crawls: products of a shop, found by keyword.", no_args_is_help=True)

JobArgument = Annotated[int, typer.Argument(help="Number of the crawl.", metavar="CRAWL", min=1)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FormatOption = Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")]

_MOST = 10_000
_LARGEST_FILE = 1_000_000
_OPTIONS = {"site": "--site", "provider": "--provider", "max_pages": "--pages", "country": "--country"}


@app.command("start")
def start(
    keywords: Annotated[
        list[str] | None, typer.Argument(help="Keywords, each one argument.", metavar="[KEYWORD]...")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", help="File with a keyword on each line; - is standard input.")
    ] = None,
    site: Annotated[str | None, typer.Option("--site", help="The shop.")] = None,
    provider: Annotated[
        str | None, typer.Option("--provider", help="Who fetches its pages: serpwatch or identities.")
    ] = None,
    pages: Annotated[int, typer.Option("--pages", help="Pages of results for each keyword.")] = crawls.MAX_PAGES,
    country: Annotated[
        str | None, typer.Option("--country", help="Two letters: where pages are fetched from, if that can be chosen.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Start a crawl. Its first page is fetched at once, if a server runs."""
    words = [*(keywords or ()), *_lines(file)]

    async def act(system: System, conn: Connection) -> Row:
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
            )
        except Unusable as error:
            option = _OPTIONS.get(error.field)
            raise Refused(f"{option}: {error}" if option else str(error)) from None
        return await crawl_views.job(conn, job.id)

    job = inside(act)
    if json:
        print_json(job)
        return
    what = f"{plural(len(job['keywords']), 'keyword')} at {job['site']}, fetched by {job['provider']}"
    console.print(
        f"Started crawl {job['id']}: {what}. `menuwatch crawl show {job['id']}` says how far it is.", markup=False
    )


def _lines(file: str | None) -> list[str]:
    if file is None:
        return []
    try:
        data = sys.stdin.buffer.read(_LARGEST_FILE + 1) if file == "-" else _read(Path(file))
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise Refused(f"--file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"--file {file}: it is no text in UTF-8") from None
    if len(data) > _LARGEST_FILE:
        raise Refused(f"--file {file}: it is larger than {_LARGEST_FILE:,} bytes")
    return [line for line in text.splitlines() if line.strip()]


def _read(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(_LARGEST_FILE + 1)


@app.command("list")
def list_(
    status: Annotated[JobStatus | None, typer.Option("--status", help="Only crawls in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Rows at most.", min=1, max=_MOST)] = 50,
    json: JsonOption = False,
    fmt: FormatOption = None,
) -> None:
    """List crawls, newest first."""
    fmt = chosen_format(json, fmt)
    rows = inside(lambda _, conn: crawl_views.jobs(conn, status=status, limit=limit))
    if fmt is Format.TABLE:
        rows = [row | {"keywords": ", ".join(row["keywords"]), "progress": _share(row)} for row in rows]
    columns = (
        ("id", "#"), ("status", "State"), ("progress", "Progress"), ("pages", "Pages"), ("failed", "Failed"),
        ("products", "Products"), ("keywords", "Keywords"), ("site", "Site"), ("provider", "Fetched by"), ("created_at", "Started"),
    )  # fmt: skip
    empty = f"No crawl is {status}." if status else "No search crawls: `menuwatch crawl start KEYWORD` starts one."
    print_rows(rows, columns, fmt, empty=empty, keep=("keywords",))


def _share(row: Row) -> str:
    return f"{row['progress']:.0%}"


@app.command("show")
def show(crawl: JobArgument, json: JsonOption = False) -> None:
    """Show a crawl: how far it is, and what came of it so far."""
    found = inside(lambda _, conn: crawl_views.figures(conn, crawl))
    if json:
        print_json(found)
        return
    tries, ended = found["attempts"], found["completed"] + found["failed"]
    failed = "failed or cancelled" if found["status"] == JobStatus.CANCELLED else "failed"
    facts = {
        "Crawl": f"{found['id']}, {found['status']}",
        "Keywords": ", ".join(found["keywords"]),
        "Site": f"{found['site']}, fetched by {found['provider']}",
        "Pages": f"{ended:,} of {found['pages']:,} known so far ({_share(found)}), {found['failed']:,} of them {failed}",
        "Left": f"{found['pending']:,} waiting, {found['submitted']:,} under way",
        "Products": f"{found['products']:,}",
        "Submissions": f"{tries['submissions']:,}, {plural(tries['retries'], 'retry', 'retries')} among them",
        "Started": shown(found["created_at"]),
        "Ended": shown(found["completed_at"] or found["cancelled_at"]),
    }
    for name, value in facts.items():
        console.print(f"{name:12} {plain(value)}", markup=False, soft_wrap=True)
    for one in found["errors"]:
        errors.print(f"{plural(one['pages'], 'page')}: {plain(one['error'])}", markup=False, soft_wrap=True)


@app.command("cancel")
def cancel(crawl: JobArgument) -> None:
    """Cancel a crawl: nothing more is submitted, and what still comes is ignored. What was found stays."""
    inside(lambda system, conn: crawls.cancel(conn, crawl, now=system.clock.now()))
    console.print(f"Crawl {crawl} is cancelled.")


@app.command("retry")
def retry(crawl: JobArgument) -> None:
    """Try a crawl's failed pages again, also those of a cancelled one."""
    _, count = inside(lambda system, conn: crawls.retry_failed(conn, crawl, now=system.clock.now()))
    console.print(f"{plural(count, 'page')} of crawl {crawl} will be tried again.")


@app.command("products")
def products(
    crawl: JobArgument,
    keyword: Annotated[str | None, typer.Option("--keyword", help="Only those found by this keyword.")] = None,
    search: Annotated[str | None, typer.Option("--search", help="Only those with this in their name.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Rows at most.", min=1, max=_MOST)] = 100,
    json: JsonOption = False,
    fmt: FormatOption = None,
) -> None:
    """List a crawl's products, the best score first."""
    fmt = chosen_format(json, fmt)

    async def act(_: System, conn: Connection) -> list[Row]:
        await crawl_views.job(conn, crawl)
        return await crawl_views.products(conn, crawl, keyword=keyword, search=search, limit=limit)

    columns = (
        ("id", "#"), ("score", "Score"), ("name", "Name"), ("price_min", "From"), ("price_max", "To"), ("weight_g", "Grams"),
        ("listed", "Listed by"), ("variant_count", "Variants"), ("keyword", "Keyword"), ("site_product_id", "Product"),
    )  # fmt: skip
    print_rows(inside(act), columns, fmt, empty="No product is like that, or none has come yet.", keep=("name",))
