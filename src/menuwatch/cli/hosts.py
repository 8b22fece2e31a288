"""`menuwatch hosts`: what is asked how often, what the hosts made of it, and saying otherwise."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import typer

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli import host_sheet
from menuwatch.cli.output import Format, ago, chosen_format, console, errors, plain, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.cli.task_filter import searchable
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.operations import hosts as operations
from menuwatch.operations.hosts import CLOSED, HostView
from menuwatch.operations.wording import per_second, span

T = TypeVar("T")
app = typer.Typer(
    help="What is asked how often, what the hosts made of it, and saying otherwise.", no_args_is_help=True
)

HostArgument = Annotated[
    str, typer.Argument(help="The host, with its port where its addresses name one.", metavar="HOST")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """List the hosts that were ever asked: their state, pace and limits."""
    fmt = chosen_format(json, fmt)
    found = asyncio.run(_with(lambda _, conn: operations.all_of(conn)))
    rows = [dataclasses.asdict(host) for host in found]
    if fmt is Format.TABLE:
        rows = [row | _cells(host) for row, host in zip(rows, found, strict=True)]
    print_rows(
        rows,
        (
            ("host", "Host"),
            ("state", "State"),
            ("opens", "Asked again"),
            ("pace_of", "Pace/s"),
            ("talking", "Talking"),
            ("requests", "Requests"),
            ("refusals", "Refused"),
            ("last_ok", "Last let in"),
            ("reason", "Why"),
        ),
        fmt,
        empty="No host was asked yet. `menuwatch hosts set HOST --rate …` gives one its limits before that.",
        keep=("host", "state", "opens", "pace_of", "reason", "talking", "requests"),
    )
    if fmt is Format.TABLE and any(host.state in CLOSED for host in found):
        errors.print("`menuwatch hosts show HOST` says what can be done.")


def _cells(host: HostView) -> dict[str, Any]:
    left = None if host.until is None else (host.until - datetime.now(UTC)).total_seconds()
    return {
        "opens": "when resumed" if host.state == "paused" else None if left is None else f"in {span(left)}",
        "pace_of": f"{per_second(host.pace)} of {per_second(host.rate)}",
        "talking": f"{host.leases} of {host.concurrency}",
        "last_ok": ago(host.last_ok_at),
        "requests": host.requests,
        "refusals": host.refusals,
    }


@app.command("show")
def show(host: HostArgument, json: JsonOption = False) -> None:
    """Show one host: limits and pace, why it is not asked and what can be done, who talks to it, what became of requests."""
    found = asyncio.run(_with(lambda _, conn: operations.detail(conn, host)))
    if json:
        print_json(found)
        return
    for line in host_sheet.lines(found, width=console.width):
        console.print(plain(line), markup=False, soft_wrap=True)


@app.command("set")
def set_(
    host: HostArgument,
    rate: Annotated[float | None, typer.Option(help="Requests a second, at most.")] = None,
    burst: Annotated[int | None, typer.Option(help="Requests that may follow each other at once.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Identities that may talk to it at the same time.")] = None,
    min_gap: Annotated[float | None, typer.Option(help="Seconds between two requests, at least.")] = None,
    json: JsonOption = False,
) -> None:
    """Set limits of a host, for all workers at once. One that was never asked gets the others from the settings."""
    limits = {"rate": rate, "burst": burst, "concurrency": concurrency, "min_gap": min_gap}
    if all(value is None for value in limits.values()):
        raise Refused("say what to set: --rate, --burst, --concurrency or --min-gap")
    _act(lambda system, conn: operations.change(conn, host, system.settings, **limits), json)


@app.command("pause")
def pause(
    host: HostArgument,
    reason: Annotated[str | None, typer.Option(help="Why; it is shown wherever the host is.")] = None,
    json: JsonOption = False,
) -> None:
    """Have nobody ask a host until it is resumed."""
    if reason is not None:
        searchable("--reason", reason)
    _act(lambda _, conn: operations.pause(conn, host, reason), json)


@app.command("resume")
def resume(host: HostArgument, json: JsonOption = False) -> None:
    """Take back a pause."""
    _act(lambda _, conn: operations.resume(conn, host), json)


@app.command("reset")
def reset(host: HostArgument, json: JsonOption = False) -> None:
    """Forget a host's cool-down, circuit and slower pace: it is asked again at once. A pause stays."""
    _act(lambda _, conn: operations.reset(conn, host), json)


def _act(act: Callable[[System, Connection], Awaitable[HostView]], json: bool) -> None:
    found = asyncio.run(_with(act))
    if json:
        print_json(found)
        return
    for line in host_sheet.state_lines(found):
        console.print(plain(line), markup=False, soft_wrap=True)


async def _with(act: Callable[[System, Connection], Awaitable[T]]) -> T:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        return await act(system, conn)
