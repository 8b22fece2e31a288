"""`menuwatch tasks failures`, `mute` and `unmute`: failures by cause, role and host."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from menuwatch.cli.options import Output, check_text, limit_option, parse_since
from menuwatch.cli.output import Column, echo, print_list
from menuwatch.cli.startup import in_transaction, read
from menuwatch.cli.task_selection import RolesOption
from menuwatch.core.format import timestamp
from menuwatch.db.pool import Connection
from menuwatch.queue.failures import (
    MAX_GROUPS,
    FailureGroup,
    FailureStatus,
    FailureWindow,
    list_failures,
    mute,
    unmute,
)
from menuwatch.queue.model import parse_role
from menuwatch.system import System

FAILURE_COLUMNS = (
    Column("Cause", "cause", rank=1),
    Column("Status", "status", rank=2),
    Column("Role", "role"),
    Column("Host", "host", rank=4),
    Column("Failures", "count", rank=2),
    Column("Stores", "stores"),
    Column("Open", "open"),
    Column("Last (UTC)", "last_at"),
    Column("Last task", "example_id"),
    Column("Error", "kind", rank=3),
)


def failures(
    out: Output,
    window: Annotated[
        FailureWindow, typer.Option(help="Only tasks that failed within this time; `all`: as long as kept.")
    ] = FailureWindow.DAY,
    role: RolesOption = None,
    status: Annotated[FailureStatus | None, typer.Option(help="Only failures with this status.")] = None,
    limit: Annotated[int, limit_option(MAX_GROUPS)] = 50,
) -> None:
    """List failures by cause, role and host: open ones first, then the most frequent."""
    roles = [parse_role(name) for name in role] if role else None

    async def act(system: System, conn: Connection) -> list[FailureGroup]:
        kept = system.settings.task_history_days
        return await list_failures(conn, window, roles=roles, status=status, limit=limit, kept_days=kept)

    print_list(read(act), FAILURE_COLUMNS, out.format, empty="No matching failures in this period.")


CauseArgument = Annotated[str, typer.Argument(help="Cause, from `menuwatch tasks failures`.", metavar="CAUSE")]
FailureRoleOption = Annotated[str, typer.Option("--role", help="Role of the failure.")]
PlatformOption = Annotated[str, typer.Option(help="Platform of the failure.")]


def mute_failure(
    cause: CauseArgument,
    role: FailureRoleOption,
    reason: Annotated[str, typer.Option(help="Why it is muted.")],
    platform: PlatformOption = "dutchie",
    length: Annotated[
        str | None,
        typer.Option("--for", help="End the mute after, for example, 4h or 7d; default: never.", metavar="TIME"),
    ] = None,
) -> None:
    """Mute a failure: health checks leave it out. Its tasks still run and fail."""
    check_text("--reason", reason)
    now = datetime.now(UTC)
    end = None if length is None else parse_since(length, now, "--for", sign=1) - now
    kind = parse_role(role)
    muted = in_transaction(
        lambda _, conn: mute(conn, cause=cause, role=kind, platform=platform, reason=reason, until=end)
    )
    echo(f"Muted {cause}" + (f" until {timestamp(muted.until)}." if muted.until else " until it is unmuted."))


def unmute_failure(cause: CauseArgument, role: FailureRoleOption, platform: PlatformOption = "dutchie") -> None:
    """Unmute a failure."""
    kind = parse_role(role)
    in_transaction(lambda _, conn: unmute(conn, cause=cause, role=kind, platform=platform))
    echo(f"Unmuted {cause}.")
