"""`menuwatch hosts`: list, configure and resume hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from msgspec import structs

from menuwatch.cli.hours import HOUR_COLUMNS
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput, check_text, parse_since
from menuwatch.cli.output import Column, Format, ago, console, echo, notice, print_detail, print_json, print_list, wrap
from menuwatch.cli.startup import in_transaction, read
from menuwatch.core.errors import Refused
from menuwatch.core.format import duration, per_second, percent, pluralize, timestamp
from menuwatch.db.pool import Connection
from menuwatch.hosts import service as hosts
from menuwatch.hosts.model import State
from menuwatch.hosts.service import Host, HostDetail, HostScore
from menuwatch.queue import service as tasks_service
from menuwatch.queue.service import PostponedTasks
from menuwatch.system import System

app = Commands("Manage target hosts: rate limits, pause, circuit breaker.")

HostArgument = Annotated[str, typer.Argument(help="Host name, with the port if its URLs contain one.", metavar="HOST")]
TasksOption = Annotated[bool, typer.Option("--tasks", help="Also run the tasks this host postponed.")]

_ROBOTS = {
    "unknown": "robots.txt not requested yet",
    "found": "robots.txt read",
    "none": "no robots.txt",
    "unreachable": "robots.txt unavailable",
}
_EVENTS = {
    "cooldown": "cools down",
    "rate_reduced": "slower",
    "circuit_opened": "circuit open",
    "circuit_closed": "circuit closed",
    "changed": "changed",
    "robots": "robots.txt",
}


def _reopens(host: Host) -> str | None:
    if host.until is not None:
        return f"in {duration(-_age(host.until))}"
    return "when resumed" if host.state is State.PAUSED else None


def _until(host: Host) -> str | None:
    if host.until is None:
        return "resumed by an operator" if host.state is State.PAUSED else None
    return f"{timestamp(host.until)}, {_reopens(host)}"


def _rate(host: Host) -> str:
    return f"{per_second(host.current_rate)} of {per_second(host.rate)}"


def _limits(host: Host) -> str:
    gap = f", {host.min_gap:g} s apart" if host.min_gap else ""
    return f"{_rate(host)} requests per second, burst {host.burst}{gap}"


def _last_ok(host: Host) -> str:
    blocked = host.blocked_identities
    return ago(host.last_ok_at) + (f"; {pluralize(blocked, 'identity', 'identities')} refused since" if blocked else "")


def _robots(host: Host) -> str:
    robots = _ROBOTS[host.robots]
    if host.robots_checked_at is not None:
        status = "" if host.robots_status is None else f" (status {host.robots_status})"
        robots += f"{status}, {ago(host.robots_checked_at)}"
    return robots + (f"; crawl delay {host.crawl_delay:g} s" if host.crawl_delay else "")


COLUMNS = (
    Column("Host", "host", rank=1),
    Column("State", lambda host: host.state.label, rank=2),
    Column("Reopens", _reopens, rank=3),
    Column("Rate (req/s)", _rate, rank=4),
    Column("Leases", lambda host: f"{host.leases} of {host.concurrency}", rank=6),
    Column("Blocked tasks", lambda host: host.blocked_tasks or None, rank=8),
    Column("Requests", "requests", rank=7),
    Column("Refused", "refusals"),
    Column("Last success", "last_ok_at", ago),
    Column("Reason", "reason", rank=5),
)
STATE = (
    Column("Reason", "reason"),
    Column("Until", _until),
    Column("Remedy", "advice"),
    Column("Rate", _limits),
    Column("Leases", lambda host: f"{host.leases} of {pluralize(host.concurrency, 'identity', 'identities')}"),
)
DETAIL = (*STATE, Column("Last OK", _last_ok), Column("Robots", _robots))
VERDICT_COLUMNS = (Column("Requests", "verdict"), Column("Last 24 h", "day"), Column("Total", "total"))
SCORE_COLUMNS = (
    Column("Chance", "chance", percent, align="right"),
    Column("Succeeded", "good", "{:,.1f}".format, align="right"),
    Column("Refused", "bad", "{:,.1f}".format, align="right"),
)


@app.command("list")
def list_(out: LimitedOutput) -> None:
    """List known hosts with state, current rate and limits."""
    rows = read(lambda _, conn: hosts.list_hosts(conn))
    empty = "No known hosts. Set limits for a new one with `menuwatch hosts set HOST --rate …`."
    out.show(rows, COLUMNS, "host", empty=empty)
    if out.is_table and any(host.state.is_closed for host in rows):
        notice("See `menuwatch hosts show HOST` for the remedy.")


@app.command("show")
def show(host: HostArgument, json: JsonOption = False) -> None:
    """Show one host: state with reason and remedy, limits, active leases, request outcomes and events."""
    detail = read(lambda _, conn: hosts.detail(conn, host))
    if json:
        print_json(detail)
    else:
        _print_detail(detail, console.width)


@app.command("set")
def set_(
    host: HostArgument,
    rate: Annotated[float | None, typer.Option(help="Rate limit, in requests per second.")] = None,
    burst: Annotated[int | None, typer.Option(help="Maximum number of requests in a burst.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Maximum number of concurrent identities.")] = None,
    min_gap: Annotated[float | None, typer.Option(help="Minimum time between two requests, in seconds.")] = None,
    json: JsonOption = False,
) -> None:
    """Set the limits of a host for all workers. A new host gets the other limits from the settings."""
    limits = {"rate": rate, "burst": burst, "concurrency": concurrency, "min_gap": min_gap}
    if all(value is None for value in limits.values()):
        raise Refused("nothing to set: give --rate, --burst, --concurrency or --min-gap")
    _print_state(in_transaction(lambda system, conn: hosts.change(conn, host, system.settings, **limits)), json)


@app.command("pause")
def pause(
    host: HostArgument,
    reason: Annotated[str | None, typer.Option(help="Reason, shown with the host.")] = None,
    length: Annotated[
        str | None,
        typer.Option("--for", help="Resume automatically after, for example, 15m, 1h or 2d.", metavar="TIME"),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Resume automatically at a time (2026-11-20T14:30, UTC).", metavar="TIME")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Pause all requests to a host: for a time, until a time, or until it is resumed."""
    check_text("--reason", reason)
    if length is not None and until is not None:
        raise Refused("give either --for or --until")
    now = datetime.now(UTC)
    end: datetime | timedelta | None = None
    if length is not None:
        end = parse_since(length, now, "--for", sign=1) - now
    elif until is not None:
        end = parse_since(until, now, "--until", sign=1)

    async def act(system: System, conn: Connection) -> tuple[Host, list[str]]:
        paused = await hosts.pause(conn, host, system.settings, reason, until=end)
        return paused, [] if paused.requests else await hosts.similar_hosts(conn, paused.host)

    paused, similar = in_transaction(act)
    _print_state(paused, json)
    if not paused.requests:
        hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
        notice(f"Note: {paused.host} has not been requested so far{hint}")


@app.command("resume")
def resume(host: HostArgument, tasks: TasksOption = False, json: JsonOption = False) -> None:
    """Resume a paused host. Tasks that the pause postponed become due within a minute."""
    _open(tasks_service.resume_host, "resume", host, tasks, json)


@app.command("reset")
def reset(host: HostArgument, tasks: TasksOption = False, json: JsonOption = False) -> None:
    """Reset a host's cool-down, circuit breaker and reduced rate: requests resume immediately. A pause stays."""
    _open(tasks_service.reset_host, "reset", host, tasks, json)


@app.command("remove")
def remove(host: HostArgument, json: JsonOption = False) -> None:
    """Remove a host without active leases: its limits, events and scores. Request totals stay."""
    removed = in_transaction(lambda _, conn: hosts.remove(conn, host))
    if json:
        print_json(removed)
    else:
        echo(f"Removed {removed.host}.")


def _open(
    act: Callable[..., Awaitable[tuple[Host, PostponedTasks]]], name: str, text: str, tasks: bool, json: bool
) -> None:
    """Resumes a host, and its tasks if requested; prints which became due and which wait."""
    host, postponed = in_transaction(lambda _, conn: act(conn, text, every=tasks))
    if json:
        print_json({**structs.asdict(host), "tasks_put_off": postponed.waiting, "tasks_made_due": postponed.made_due})
        return
    _print_state(host, json)
    if tasks and host.state.is_closed:
        notice(f"Requests to {host.host} are still blocked, so no task was made due.")
    elif tasks or postponed.made_due:
        echo(f"{pluralize(postponed.made_due, 'postponed task')} made due now.")
    if not tasks and postponed.waiting and postponed.until is not None:
        wait = "postponed task waits" if postponed.waiting == 1 else "postponed tasks wait"
        notice(
            f"{postponed.waiting:,} {wait} until {timestamp(postponed.until)} at the latest: run them now with `menuwatch "
            f"hosts {name} {host.host} --tasks` or `menuwatch tasks retry --error {host.host}`."
        )


def _print_state(host: Host, json: bool) -> None:
    if json:
        print_json(host)
        return
    echo(_state(host))
    print_detail(host, STATE, indent=2)


def _state(host: Host) -> str:
    blocked = ", no requests" if host.state.is_closed else ""
    return f"{host.host}: {host.state.label}{blocked}" + (
        "" if host.since is None else f", since {timestamp(host.since)}"
    )


def _print_detail(detail: HostDetail, width: int) -> None:
    echo(*wrap(_state(detail.host), width, 11))
    print_detail(detail.host, DETAIL, indent=2, width=width)
    if detail.leases:
        echo("", "Active leases")
    for lease in detail.leases:
        task = "" if lease.task_id is None else f", task {lease.task_id}"
        echo(f"  proxy {lease.proxy_id} ({lease.proxy}){task}, for {duration(_age(lease.leased_at))}")
    if detail.verdicts:
        echo("")
        print_list(detail.verdicts, VERDICT_COLUMNS, Format.TABLE)
    if hours := [hour for hour in detail.hours if hour.total]:
        echo("")
        print_list(hours, HOUR_COLUMNS, Format.TABLE)
    for title, scores in (
        ("Best proxies", detail.best),
        ("Worst proxies", detail.worst),
        ("Browsers", detail.browsers),
    ):
        if scores:
            echo("")
            print_list(scores, (Column(title, _score_name, rank=1), *SCORE_COLUMNS), Format.TABLE)
    if detail.events:
        echo("", "Events (UTC)")
    for event in detail.events:
        until = "" if event.until is None else f", until {event.until.astimezone(UTC):%m-%d %H:%M:%S}"
        text = f"  {event.happened_at.astimezone(UTC):%m-%d %H:%M:%S}  {_EVENTS.get(event.kind, event.kind)}{until}: "
        echo(*wrap(text + event.reason, width, 18))


def _score_name(score: HostScore) -> str:
    return score.name if score.proxy_id is None else f"{score.proxy_id} ({score.name})"


def _age(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()
