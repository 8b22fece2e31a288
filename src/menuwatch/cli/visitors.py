"""`menuwatch visitors`: how many look at the public site, from where and at what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, chosen_format, errors, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.cli.products import parse_since
from menuwatch.db.pool import Connection
from menuwatch.operations import visitors as operations
from menuwatch.operations.visitors import By, Period
from menuwatch.visitors.model import NAMED, Kind

app = typer.Typer(help="How many look at the public site, from where and at what.", no_args_is_help=True)

SinceOption = Annotated[
    str | None, typer.Option(help="From this day on (UTC): a date (2026-11-20) or an age (7d). 30 days by themselves.")
]
UntilOption = Annotated[str | None, typer.Option(help="Before this day (UTC); with today by itself.")]
LimitOption = Annotated[int, typer.Option(min=1, max=100_000, help="Print no more rows than this.")]
FormatOption = Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_MEAN = ("daily_uniques_mean", "Daily uniques (mean)")


@app.command("days")
def days(
    since: SinceOption = None, until: UntilOption = None, fmt: FormatOption = None, json: JsonOption = False
) -> None:
    """Views and daily uniques, day by day, and views by kind of page. Uniques of different days cannot be summed."""
    when, form = _period(since, until), chosen_format(json, fmt)
    found = asyncio.run(_read(lambda conn: operations.figures(conn, when)))
    found.pop("geography")  # the server's, not ours
    if form is Format.JSON:
        print_json(found)
        return
    columns = (
        ("day", "Day (UTC)"),
        ("views", "Views"),
        ("daily_uniques", "Daily uniques"),
        ("views_without_place", "Without a place"),
    )
    shown = [row for row in found["days"] if row["views"]] if form is Format.TABLE else found["days"]
    print_rows(shown, columns, form, empty="Nobody was counted in that time.")
    if form is Format.TABLE and shown:
        mean = f"{found['daily_uniques_mean']:g} daily uniques on average"
        said = f"{plural(found['views'], 'view')} in {plural(when.days, 'day')}, {mean}"
        errors.print(f"{said}; " + ", ".join(f"{row['kind']} {row['views']}" for row in found["kinds"]), markup=False)


@app.command("places")
def places(
    by: Annotated[By, typer.Option(help="How finely places are told apart.")] = By.COUNTRY,
    country: Annotated[str | None, typer.Option(help="Only this country, by its two letters.")] = None,
    region: Annotated[str | None, typer.Option(help="Only this region, by its name, as `Arizona`.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = operations.TOP,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """Where visitors were. Needs GEOIP_DATABASE at the server; without it everything is without a place."""
    when, form = _period(since, until), chosen_format(json, fmt)
    rows = asyncio.run(
        _read(lambda conn: operations.places(conn, when, by, country=country, region=region, limit=limit))
    )
    if form is Format.TABLE:
        rows = [row | {"share": _percent(row["share"])} for row in rows]
    names = [(name, name.capitalize()) for name in list(By)[: list(By).index(by) + 1]]
    columns = [*names, ("views", "Views"), ("share", "Share"), _MEAN]
    print_rows(rows, columns, form, empty="Nobody was counted there in that time.")


@app.command("pages")
def pages(
    kind: Annotated[Kind | None, typer.Option(help="Only pages of this kind: product, store or brand.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = operations.TOP,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """The products, stores and brands that were looked at most."""
    when, form = _period(since, until), chosen_format(json, fmt)
    if kind is not None and kind not in NAMED:
        raise typer.BadParameter(f"{kind} pages are not counted one by one; name product, store or brand")
    rows = asyncio.run(_read(lambda conn: operations.pages(conn, when, kind, limit=limit)))
    columns = (("kind", "Kind"), ("page", "Page"), ("views", "Views"), _MEAN)
    print_rows(rows, columns, form, empty="No page was looked at in that time.")


def _period(since: str | None, until: str | None) -> Period:
    now = datetime.now(UTC)

    def day(text: str | None, option: str) -> date | None:
        return None if text is None else parse_since(text, now, option).astimezone(UTC).date()

    return operations.period(now.date(), day(since, "--since"), day(until, "--until"))


async def _read(read: Callable[[Connection], Awaitable[Any]]) -> Any:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await read(conn)


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"
