"""`menuwatch visitors`: visitor statistics of the public site."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from msgspec import structs

from menuwatch.cli.options import Commands, Output, limit_option, parse_past, parse_since
from menuwatch.cli.output import Column, Format, notice, print_json, print_list
from menuwatch.cli.startup import read
from menuwatch.core.format import percent, pluralize
from menuwatch.visitors import service
from menuwatch.visitors.anonymous_marks import NAMED, Kind
from menuwatch.visitors.service import By

app = Commands("Show visitor statistics of the public site.")

LimitOption = Annotated[int, limit_option(100_000)]


@dataclass(frozen=True, slots=True)
class Days:
    """The days that are shown."""

    since: Annotated[
        str | None, typer.Option(help="First day (UTC): a date (2026-11-20) or an age (7d). Default: 30 days ago.")
    ] = None
    until: Annotated[str | None, typer.Option(help="Day after the last one (UTC). Default: tomorrow.")] = None

    @property
    def period(self) -> service.Period:
        now = datetime.now(UTC)

        since = None if self.since is None else parse_past(self.since, now).astimezone(UTC).date()
        until = None if self.until is None else parse_since(self.until, now, "--until").astimezone(UTC).date()
        return service.period(now.date(), since, until)


_MEAN = Column("Daily uniques (mean)", "daily_uniques_mean")
DAY_COLUMNS = (
    Column("Day (UTC)", "day"),
    Column("Views", "views"),
    Column("Daily uniques", "daily_uniques"),
    Column("Unknown location", "views_without_place"),
)
PAGE_COLUMNS = (Column("Kind", "kind"), Column("Page", "page"), Column("Views", "views"), _MEAN)


@app.command("days")
def days(shown: Days, out: Output) -> None:
    """Show views and daily unique visitors by day, and views by kind of page. Uniques of different days cannot be added up."""
    period = shown.period
    totals = read(lambda _, conn: service.visitor_totals(conn, period))
    if out.format is Format.JSON:
        print_json({name: value for name, value in structs.asdict(totals).items() if name != "geography"})
        return
    rows = [day for day in totals.days if day.views or not out.is_table]
    print_list(rows, DAY_COLUMNS, out.format, empty="No visitors in that period.")
    if out.is_table and rows:
        kinds = ", ".join(f"{row.kind} {row.views}" for row in totals.kinds)
        notice(
            f"{pluralize(totals.views, 'view')} in {pluralize(period.days, 'day')}, {totals.daily_uniques_mean:g} daily "
            f"uniques on average; {kinds}"
        )


@app.command("places")
def places(
    shown: Days,
    out: Output,
    by: Annotated[By, typer.Option(help="Level of detail.")] = By.COUNTRY,
    country: Annotated[str | None, typer.Option(help="Only this country (two letters).")] = None,
    region: Annotated[str | None, typer.Option(help="Only this region, by name, for example `Arizona`.")] = None,
    limit: LimitOption = service.TOP,
) -> None:
    """Show visitor locations. Requires GEOIP_DATABASE on the server; without it all locations are unknown."""
    period = shown.period
    rows = read(lambda _, conn: service.list_places(conn, period, by, country=country, region=region, limit=limit))
    columns = [
        *(Column(name.capitalize(), str(name)) for name in list(By)[: list(By).index(by) + 1]),
        Column("Views", "views"),
        Column("Share", "share", lambda share: percent(share, 1), align="right"),
        _MEAN,
    ]
    print_list(rows, columns, out.format, empty="No visitors from there in that period.")


@app.command("pages")
def pages(
    shown: Days,
    out: Output,
    kind: Annotated[Kind | None, typer.Option(help="Only pages of this kind: product, store or brand.")] = None,
    limit: LimitOption = service.TOP,
) -> None:
    """Show the most viewed products, stores and brands."""
    if kind is not None and kind not in NAMED:
        raise typer.BadParameter(f"{kind} pages are not counted individually; use product, store or brand")
    period = shown.period
    rows = read(lambda _, conn: service.list_pages(conn, period, kind, limit=limit))
    print_list(rows, PAGE_COLUMNS, out.format, empty="No page views in that period.")
