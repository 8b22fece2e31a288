"""`menuwatch profiles`: the browsers that requests are made as."""

from __future__ import annotations

from typing import Annotated

import typer

from menuwatch.cli.options import Output
from menuwatch.cli.output import Column, echo, print_list
from menuwatch.cli.startup import load_settings
from menuwatch.core.clock import SystemClock
from menuwatch.core.format import percent
from menuwatch.fetch.profiles import list_headers, list_profiles, load

COLUMNS = (
    Column("Name", "name", rank=1),
    Column("Target", "target"),
    Column("Platform", "platform"),
    Column("Weight", "weight"),
    Column("Share", "share", lambda share: percent(share / 100, 1), rank=2, align="right"),
    Column("Released", "released"),
    Column("Retires", "retires"),
    Column("Status", "status"),
)


def profiles(
    out: Output,
    show: Annotated[
        str | None,
        typer.Option(
            help="Print the headers of the browser profile with this name.", metavar="NAME", show_default=False
        ),
    ] = None,
    country: Annotated[
        str | None, typer.Option(help="Shares behind a proxy in this country (two letters).", show_default=False)
    ] = None,
) -> None:
    """List browser profiles with their shares of requests."""
    catalog = load(load_settings().profiles_file).profiles
    if show is None:
        rows = list_profiles(catalog, country=country, today=SystemClock().now().date())
        print_list(rows, COLUMNS, out.format, empty="No profiles.")
        return
    headers = list_headers(catalog, show)
    if not out.is_table:
        print_list(headers, (), out.format)
        return
    for kind, heading in {"document": "Page", "fetch": "Data", "image": "Image"}.items():
        echo(f"{heading}:", *(f"  {line.header}: {line.value}" for line in headers if line.request == kind))
