"""`menuwatch coverage`: field coverage of recorded responses."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from menuwatch.cli.options import Output, check_platform
from menuwatch.cli.output import Column, notice, print_list
from menuwatch.cli.startup import load_settings
from menuwatch.core.format import pluralize
from menuwatch.pipeline import recorded_files
from menuwatch.platforms import fields, registry

_NAMED = 20
"""Maximum number of undeclared fields that are repeated below the table."""

COLUMNS = (
    Column("Field", "path", rank=1),
    Column("Status", "use", rank=2),
    Column("Column or reason", "note", rank=3),
    Column("Count", "count", rank=4),
    Column("Null", "nulls"),
    Column("Empty", "empty"),
)


def coverage(
    files: Annotated[
        list[Path], typer.Argument(help="Recorded responses: .json, .json.gz, archive files, or tar archives of them.")
    ],
    out: Output,
    platform: Annotated[str | None, typer.Option(help="Platform of the responses, if it cannot be detected.")] = None,
) -> None:
    """Report field coverage of a payload: whether each field is used, kept or ignored, with the reason and counts. Nothing is
    stored. Exit code 1 if there are fields that Menuwatch does not know: the platform may have changed its schema."""
    platforms = registry.platforms(load_settings())
    check_platform(platforms, platform)
    raw = platforms[platform] if platform is not None else None
    recorded = recorded_files.collect(platforms, raw, files, store=None, anonymous=True)
    rows = []
    for name in dict.fromkeys(menu.platform.name for menu in recorded.menus):
        pages = [
            document
            for menu in recorded.menus
            if menu.platform.name == name
            for page in menu.pages
            for document in menu.platform.documents(page)
        ]
        rows += [
            {"platform": name, **dataclasses.asdict(row)} for row in fields.coverage(platforms[name].fields, pages)
        ]
    print_list(rows, COLUMNS, out.format, empty="These files contain no fields.")
    notice(*(f"menuwatch: {file.source}: skipped: {file.reason}" for file in recorded.left_out if not file.empty))
    if empty := sum(file.empty for file in recorded.left_out):
        notice(f"menuwatch: {pluralize(empty, 'file')} skipped: menus without products")
    counts = Counter(row["use"] for row in rows)
    uses = ", ".join(f"{counts[use]} {use}" for use in ("used", "kept", "ignored", fields.UNDECLARED) if counts[use])
    notice(f"{pluralize(len(rows), 'field')}: {uses}")
    if unknown := [row["path"] for row in rows if row["use"] == fields.UNDECLARED]:
        notice(
            f"menuwatch: unknown to Menuwatch: {', '.join(unknown[:_NAMED])}{' and more' if len(unknown) > _NAMED else ''}"
        )
        raise typer.Exit(1)
