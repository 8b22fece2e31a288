"""`menuwatch audit`: what was done, and by whom."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import msgspec
import typer

from menuwatch.cli.output import Format, chosen_format, print_rows
from menuwatch.cli.users import JsonOption, in_database
from menuwatch.core.clock import SystemClock
from menuwatch.operations import audit as operations
from menuwatch.operations.tokens import parse_span


def audit(
    actor: Annotated[str | None, typer.Option(help="Only what this one did; `cli:NAME` for commands.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this, as task_cancelled.")] = None,
    since: Annotated[str | None, typer.Option(help="Only so long back: 12h, 90d, 4w.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Most entries.")] = 50,
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """Show what people did, and programs for them: the newest first."""
    fmt = chosen_format(json, fmt)
    back: timedelta | None = None if since is None else parse_span(since)
    start = None if back is None else SystemClock().now() - back
    found = in_database(lambda _, conn: operations.page(conn, actor=actor, action=action, since=start, limit=limit))
    for row in found:
        on = "" if row["subject_kind"] is None else f"{row['subject_kind']} {row['subject_id']}"
        row["subject"] = on
        details = row["details"]
        row["details"] = msgspec.json.decode(details) if fmt is Format.JSON else bytes(details).decode()
    print_rows(
        found,
        (
            ("at", "When"),
            ("actor", "Who"),
            ("via", "Through"),
            ("action", "What"),
            ("subject", "To"),
            ("details", "Details"),
        ),
        fmt,
        empty="Nothing was done yet.",
        keep=("at", "actor", "action", "subject"),
    )
