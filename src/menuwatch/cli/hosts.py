"""`menuwatch hosts`: what is asked how often, what the hosts made of it, and saying otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from menuwatch.bootstrap import System
from menuwatch.cli import host_sheet
from menuwatch.cli.inside import inside
from menuwatch.cli.output import Format, ago, chosen_format, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.task_filter import searchable
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.operations import hosts as operations
from menuwatch.operations import put_off
from menuwatch.operations.hosts import CLOSED, HostView
from menuwatch.operations.put_off import PutOff
from menuwatch.operations.wording import at, per_second, span

app = typer.Typer(
    help="What is asked how often, what the hosts made of it, and saying otherwise.", no_args_is_help=True
)

HostArgument = Annotated[
    str, typer.Argument(help="The host, with its port where its addresses name one.", metavar="HOST")
]
TasksOption = Annotated[bool, typer.Option("--tasks", help="Have the tasks that it put off due now.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """List the hosts that were ever asked: their state, pace and limits."""
    fmt = chosen_format(json, fmt)
    found = inside(lambda _, conn: operations.all_of(conn))
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
    found = inside(lambda _, conn: operations.detail(conn, host))
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
    """Have nobody ask a host until it is resumed, also one that was never asked."""
    if reason is not None:
        searchable("--reason", reason)

    async def act(system: System, conn: Connection) -> tuple[HostView, list[str]]:
        found = await operations.pause(conn, host, system.settings, reason)
        return found, [] if found.requests else await operations.near(conn, found.host)

    found, near = inside(act)
    _show(found, json)
    if not found.requests:
        like = f"; did you mean {' or '.join(near)}?" if near else ""
        errors.print(plain(f"Note: {found.host} was never asked so far{like}"), markup=False, soft_wrap=True)


@app.command("resume")
def resume(host: HostArgument, tasks: TasksOption = False, json: JsonOption = False) -> None:
    """Take back a pause."""
    _open(operations.resume, "resume", host, tasks, json)


@app.command("reset")
def reset(host: HostArgument, tasks: TasksOption = False, json: JsonOption = False) -> None:
    """Forget a host's cool-down, circuit and slower pace: it is asked again at once. A pause stays."""
    _open(operations.reset, "reset", host, tasks, json)


@app.command("remove")
def remove(host: HostArgument, json: JsonOption = False) -> None:
    """Forget a host that nobody talks to: its limits, what befell it, and who fares how there. Sums of its requests stay."""
    found = inside(lambda _, conn: operations.remove(conn, host))
    if json:
        print_json(found)
    else:
        console.print(f"{found.host} is removed.", markup=False, soft_wrap=True)


def _open(act: Callable[[Connection, str], Awaitable[HostView]], name: str, host: str, tasks: bool, json: bool) -> None:
    """Has a host asked again, and its tasks due where they are wanted; else says that they wait."""

    async def do(_: System, conn: Connection) -> tuple[HostView, PutOff]:
        found = await act(conn, host)
        if tasks and found.state not in CLOSED:
            return found, await put_off.make_due(conn, found.host)
        return found, await put_off.by(conn, found.host)

    found, left = inside(do)
    if json:
        print_json({**dataclasses.asdict(found), "tasks_put_off": left.waiting, "tasks_made_due": left.made_due})
        return
    _show(found, json)
    if tasks and found.state in CLOSED:
        errors.print(plain(f"{found.host} is not asked yet, so no task was made due."), markup=False, soft_wrap=True)
    elif tasks:
        console.print(f"{plural(left.made_due, 'task')} that it had put off made due now.")
    elif left.waiting and left.until is not None:
        wait = "task waits" if left.waiting == 1 else "tasks wait"
        errors.print(
            f"{left.waiting:,} {wait} that it had put off, until {at(left.until)} at the latest: `menuwatch hosts {name} "
            f"{found.host} --tasks` has them due now, `menuwatch tasks retry --error {found.host}` as well.",
            markup=False,
            soft_wrap=True,
        )


def _act(act: Callable[[System, Connection], Awaitable[HostView]], json: bool) -> None:
    _show(inside(act), json)


def _show(found: HostView, json: bool) -> None:
    if json:
        print_json(found)
        return
    for line in host_sheet.state_lines(found):
        console.print(plain(line), markup=False, soft_wrap=True)
