"""`menuwatch coverage`: what becomes of each field of a recorded answer."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from menuwatch.cli.output import Format, chosen_format, errors, plain, plural, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.operations import coverage as operations
from menuwatch.pipeline import recorded
from menuwatch.platforms import registry


def coverage(
    files: Annotated[
        list[Path], typer.Argument(help="Recorded answers: .json, .json.gz, archive files, or tar archives of them.")
    ],
    platform: Annotated[
        str | None, typer.Option(help="Platform of the answers, where their shape alone is not to decide.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """Say of every field of a payload whether it is used, kept as it came, or ignored, and why; with counts and nulls.

    Nothing is stored. Exit code 1 when there are fields that nobody declared: the platform has changed its schema.
    """
    fmt = chosen_format(json, fmt)
    platforms = registry.platforms(settings())
    if platform is not None and platform not in platforms:
        raise Refused(f"--platform {platform}: is not known here ({', '.join(platforms)})")
    raw = platforms[platform] if platform is not None else None
    found = recorded.collect(platforms, raw, files, store=None, anonymous=True)
    rows = []
    for name in dict.fromkeys(menu.platform.name for menu in found.menus):
        pages = [page for menu in found.menus if menu.platform.name == name for page in menu.pages]
        rows += [
            {"platform": name, **dataclasses.asdict(row)} for row in operations.coverage(platforms[name].fields, pages)
        ]
    print_rows(
        rows,
        (
            ("path", "Field"),
            ("use", "What"),
            ("note", "Where to, or why"),
            ("count", "Times"),
            ("nulls", "Null"),
            ("empty", "Empty"),
        ),
        fmt,
        empty="There is no field in these files.",
        keep=("path", "use", "note", "count"),
    )
    for one in found.left_out:
        if not one.empty:
            errors.print(f"menuwatch: {plain(one.source)}: left out: {plain(one.reason)}", markup=False, soft_wrap=True)
    if empty := sum(one.empty for one in found.left_out):
        errors.print(f"menuwatch: {plural(empty, 'file')} left out: menus without products", markup=False)
    counts = Counter(row["use"] for row in rows)
    said = ", ".join(
        f"{counts[use]} {use}" for use in ("used", "kept", "ignored", operations.UNDECLARED) if counts[use]
    )
    errors.print(f"{plural(len(rows), 'field')}: {said}", markup=False)
    if counts[operations.UNDECLARED]:
        raise typer.Exit(1)
