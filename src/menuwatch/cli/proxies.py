"""`menuwatch proxies`: the proxies that every request goes through."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, ago, console, print_rows
from menuwatch.cli.process import settings
from menuwatch.operations import proxies as operations
from menuwatch.operations.proxies import Added, ProxyView, Tested

app = typer.Typer(help="The proxies that every request goes through.", no_args_is_help=True)

FormatOption = Annotated[Format, typer.Option("--format", help="How to print.")]


@app.command("add")
def add(
    proxies: Annotated[
        list[str],
        typer.Argument(
            help="http://USER:PASSWORD@HOST:PORT, https://…, socks5://…, HOST:PORT or HOST:PORT:USER:PASSWORD.",
            metavar="PROXY...",
        ),
    ],
    state: Annotated[
        str | None, typer.Option(help="State it stands in, two letters; decides language and headers.")
    ] = None,
    city: Annotated[str | None, typer.Option(help="City it stands in.")] = None,
    country: Annotated[str | None, typer.Option(help="Country it stands in, two letters.")] = None,
    timezone: Annotated[str | None, typer.Option(help="Its time zone, as America/Phoenix.")] = None,
) -> None:
    """Add proxies. One that is known already gets its new password and place."""
    for added in asyncio.run(_add(proxies, state=state, city=city, country=country, timezone=timezone)):
        console.print(f"{'Added' if added.created else 'Updated'} proxy {added.id}: {added.address}", markup=False)


@app.command("list")
def list_(fmt: FormatOption = Format.TABLE) -> None:
    """List proxies with their health. Passwords are never shown."""
    rows = [dataclasses.asdict(view) for view in asyncio.run(_list())]
    if fmt is Format.TABLE:
        for row in rows:
            row["last_used_at"] = ago(row["last_used_at"])
            row["avg_response_time_ms"] = row["avg_response_time_ms"] and round(row["avg_response_time_ms"])
    print_rows(
        rows,
        (
            ("id", "#"),
            ("address", "Proxy"),
            ("status", "Status"),
            ("state", "State"),
            ("success_count", "Good"),
            ("failure_count", "Failures in a row"),
            ("consecutive_403_count", "403 in a row"),
            ("avg_response_time_ms", "ms"),
            ("last_used_at", "Last used"),
            ("last_error", "Last error"),
        ),
        fmt,
        empty="No proxies yet. Add one with `menuwatch proxies add http://USER:PASSWORD@HOST:PORT`.",
    )


@app.command("test")
def try_out(
    numbers: Annotated[
        list[int] | None, typer.Argument(help="Numbers of the proxies; all of them when none is given.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="What to ask for; the platform's own address when none is given.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Make one request through each proxy and say what came back. Exit code 1 when one does not answer."""
    results = asyncio.run(_test(numbers or [], url))
    rows: list[dict[str, Any]] = [dataclasses.asdict(result) for result in results]
    if fmt is Format.TABLE:
        rows = [row | {"elapsed_ms": round(row["elapsed_ms"])} for row in rows]
    print_rows(
        rows,
        (
            ("id", "#"),
            ("address", "Proxy"),
            ("ok", "Works"),
            ("status", "Answer"),
            ("elapsed_ms", "ms"),
            ("reason", "What came of it"),
        ),
        fmt,
        empty="No proxies to test. Add one with `menuwatch proxies add http://USER:PASSWORD@HOST:PORT`.",
    )
    if not all(result.ok for result in results):
        raise typer.Exit(1)


async def _add(lines: list[str], **place: str | None) -> list[Added]:
    async with bootstrap.open_system(settings()) as system:
        return [await operations.add(system.pool, line, **place) for line in lines]


async def _list() -> list[ProxyView]:
    async with bootstrap.open_system(settings()) as system:
        return await operations.listed(system.pool)


async def _test(numbers: list[int], url: str | None) -> list[Tested]:
    found = settings()
    async with bootstrap.open_system(found) as system:
        return await operations.test(system.pool, found, proxy_ids=numbers, url=url)
