"""`menuwatch profiles`: the browsers that requests are made as."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from menuwatch.cli.output import Format, console, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.clock import SystemClock
from menuwatch.fetch import profiles as catalogue
from menuwatch.operations import profiles as operations


def profiles(
    show: Annotated[
        str | None, typer.Option(help="Print what the browser of this name sends.", metavar="NAME", show_default=False)
    ] = None,
    country: Annotated[
        str | None, typer.Option(help="Shares behind a proxy in this country, two letters.", show_default=False)
    ] = None,
    fmt: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List the browsers that requests are made as, with how often each is drawn."""
    found = catalogue.load(settings().profiles_file).profiles
    if show is not None:
        _print_sent(operations.sent(found, show), fmt)
        return
    rows = [
        dataclasses.asdict(view) for view in operations.listed(found, country=country, today=SystemClock().now().date())
    ]
    if fmt is Format.TABLE:
        rows = [row | {"share": f"{row['share']:.1f} %"} for row in rows]
    print_rows(
        rows,
        (
            ("name", "Name"),
            ("target", "Target"),
            ("platform", "Platform"),
            ("weight", "Weight"),
            ("share", "Share"),
            ("released", "Released"),
            ("retires", "Retires"),
            ("status", "Status"),
        ),
        fmt,
        empty="No profiles.",
        keep=("name", "share"),
    )


_REQUESTS = {"document": "For a page", "fetch": "For data", "image": "For a picture"}


def _print_sent(lines: list[operations.SentView], fmt: Format) -> None:
    if fmt is not Format.TABLE:
        print_rows([dataclasses.asdict(line) for line in lines], (), fmt, empty="")
        return
    for kind, heading in _REQUESTS.items():
        console.print(f"{heading}:")
        for line in lines:
            if line.request == kind:
                console.print(f"  {line.header}: {line.value}", markup=False, soft_wrap=True)
