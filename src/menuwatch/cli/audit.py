"""`menuwatch audit`: the audit log."""

from __future__ import annotations

from typing import Annotated

import typer

from menuwatch.accounts.audit import AuditFilter, list_entries
from menuwatch.accounts.tokens import parse_span
from menuwatch.cli.options import Output, limit_option
from menuwatch.cli.output import Column, print_list
from menuwatch.cli.startup import read
from menuwatch.core.clock import SystemClock

COLUMNS = (
    Column("Time", "at", rank=1),
    Column("Actor", "actor", rank=2),
    Column("Via", "via"),
    Column("Action", "action", rank=3),
    Column(
        "Subject",
        lambda entry: "" if entry.subject_kind is None else f"{entry.subject_kind} {entry.subject_id}",
        rank=4,
    ),
    Column("Details", lambda entry: bytes(entry.details).decode()),
)


def audit(
    out: Output,
    actor: Annotated[str | None, typer.Option(help="Only entries of this actor; `cli:NAME` for commands.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, for example task_cancelled.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only objects of this kind, for example user or alert_rule.")] = None,
    subject: Annotated[str | None, typer.Option("--id", help="Only the object with this id or name.")] = None,
    since: Annotated[str | None, typer.Option(help="Only entries of this period, for example 12h, 90d or 4w.")] = None,
    until: Annotated[str | None, typer.Option(help="Only entries older than this: 12h, 90d, 4w.")] = None,
    limit: Annotated[int, limit_option(100_000)] = 50,
) -> None:
    """Show the audit log, newest first."""
    now = SystemClock().now()
    where = AuditFilter(
        actor=actor,
        action=action,
        subject_kind=kind,
        subject_id=subject,
        since=None if since is None else now - parse_span(since),
        until=None if until is None else now - parse_span(until),
    )
    entries = read(lambda _, conn: list_entries(conn, where, limit=limit))
    print_list(entries, COLUMNS, out.format, empty="No audit entries yet.")
