"""`menuwatch schedules`: recurring schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, TypeVar

import typer

from menuwatch.cli.options import Commands, JsonOption, LimitedOutput
from menuwatch.cli.output import Column, echo, notice, print_json
from menuwatch.cli.startup import read, with_system
from menuwatch.core.clock import SystemClock
from menuwatch.core.errors import Refused
from menuwatch.core.format import duration, pluralize, timestamp
from menuwatch.db.pool import Connection
from menuwatch.queue.model import parse_role
from menuwatch.queue.schedules import service as schedules
from menuwatch.queue.schedules import timetable
from menuwatch.queue.schedules.model import INTERVALS, PRIORITIES, ROLES, Schedule
from menuwatch.system import System, ensure_default_schedules

T = TypeVar("T")

app = Commands("Manage recurring schedules.")

NameArgument = Annotated[str, typer.Argument(help="Name or id of the schedule.", metavar="SCHEDULE")]

CronOption = Annotated[
    str | None,
    typer.Option(
        "--cron", help="Time of day (02:30) or cron line (0 2 * * 1-5) instead of an interval.", metavar="LINE"
    ),
]
TimezoneOption = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        help="Time zone of --cron: an IANA name, or store for each store's own. Default: store for payload_fetch, else UTC.",
        metavar="ZONE",
    ),
]


def _due(schedule: Schedule, now: datetime) -> str:
    if not schedule.enabled:
        return "paused" if schedule.paused_at else "disabled"
    if schedule.late_seconds:
        return f"late by {_minutes(schedule.late_seconds)}"
    return f"in {_minutes((schedule.next_run_at - now).total_seconds())}" if schedule.next_run_at > now else "due now"


def _minutes(seconds: float) -> str:
    """A duration, to the minute."""
    return duration(max(1, round(seconds / 60)) * 60)


COLUMNS = (
    Column("#", "id"),
    Column("Name", "name", rank=2),
    Column("Role", "role"),
    Column("Enabled", "enabled", rank=3),
    Column("Runs", lambda schedule: schedule.timing, rank=1),
    Column("Priority", "priority"),
    Column("State", "state_code", rank=4),
    Column("Last run", "last_run_at", rank=6),
    Column("Tasks", "last_task_count", rank=7),
    Column("Next run", "next_run_at", rank=5),
    Column("Due", lambda schedule: _due(schedule, SystemClock().now()), rank=1),
)


@app.command("list")
def list_(out: LimitedOutput) -> None:
    """List schedules with their last and next run, delays and errors."""
    rows = _in_transaction(lambda _, conn: schedules.list_schedules(conn))
    out.show(rows, COLUMNS, "schedule", empty="No schedules.")
    for schedule in rows if out.is_table else ():
        if schedule.last_error is not None:
            failing = " failed and is retried every minute" if schedule.next_run_at <= SystemClock().now() else ""
            notice(f"{schedule.name}{failing}: {schedule.last_error}")


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Unique name.", metavar="NAME")],
    role: Annotated[str, typer.Option(help=f"Role of its tasks: {', '.join(ROLES)}.")],
    every: Annotated[
        float | None,
        typer.Option(min=float(INTERVALS[0]), max=float(INTERVALS[1]), help="Interval in hours.", metavar="HOURS"),
    ] = None,
    cron: CronOption = None,
    timezone: TimezoneOption = None,
    state: Annotated[str | None, typer.Option(help="Only this state or province (two letters).")] = None,
    platform: Annotated[str | None, typer.Option(help="Platform of its tasks; the first one by default.")] = None,
    priority: Annotated[int, typer.Option(min=PRIORITIES[0], max=PRIORITIES[1], help="Priority of its tasks.")] = 0,
    disabled: Annotated[bool, typer.Option("--disabled", help="Create it disabled.")] = False,
    json: JsonOption = False,
) -> None:
    """Create a schedule, for example one per state. With an interval its first run is due at once."""
    fields = {
        "name": name,
        "role": parse_role(role),
        "interval_hours": None if every is None else Decimal(str(every)),
        "cron": cron,
        "timezone": timezone,
        "priority": priority,
        "enabled": not disabled,
        **({} if state is None else {"state_code": state}),
        **({} if platform is None else {"platform": platform}),
    }

    async def act(system: System, conn: Connection) -> Schedule:
        return await schedules.create(conn, fields, platforms=tuple(system.platforms), now=system.clock.now())

    schedule = _in_transaction(act)
    if json:
        print_json(schedule)
    else:
        echo(f"Schedule {schedule.name} created (id {schedule.id}): {schedule.timing}.")


@app.command("preview")
def preview(
    name: Annotated[str | None, typer.Argument(help="Name or id of a schedule.", metavar="[SCHEDULE]")] = None,
    cron: CronOption = None,
    timezone: TimezoneOption = None,
    json: JsonOption = False,
) -> None:
    """Show the next five runs of a schedule, or of a cron line without saving it."""
    if (name is None) == (cron is None):
        raise Refused("give a schedule or --cron")

    async def act(system: System, conn: Connection) -> list[datetime]:
        now = system.clock.now()
        if name is not None:
            return await timetable.upcoming(conn, await schedules.find_schedule(conn, name), now)
        fields = {"role": ROLES[0], "cron": cron, "timezone": timezone}
        return await schedules.preview(conn, fields, platforms=tuple(system.platforms), now=now)

    runs = read(act)
    if json:
        print_json({"runs": runs})
    else:
        echo(*(timestamp(at) for at in runs))


@app.command("pause-all")
def pause_all() -> None:
    """Pause all schedules: they enqueue nothing until `resume-all`."""
    names = _in_transaction(lambda _, conn: schedules.pause_all(conn))
    echo(f"{pluralize(len(names), 'schedule')} paused.")


@app.command("resume-all")
def resume_all() -> None:
    """Resume the schedules that were paused with `pause-all`."""
    names = _in_transaction(lambda _, conn: schedules.resume_all(conn))
    echo(f"{pluralize(len(names), 'schedule')} resumed.")


@app.command("remove")
def remove(name: NameArgument) -> None:
    """Delete a schedule with its runs. Its tasks stay. Default schedules can only be disabled."""

    async def act(system: System, conn: Connection) -> Schedule:
        schedule_id = (await schedules.find_schedule(conn, name)).id
        return await schedules.remove(conn, schedule_id, platforms=tuple(system.platforms))

    echo(f"Schedule {_in_transaction(act).name} is removed.")


@app.command("trigger")
def trigger(name: NameArgument, json: JsonOption = False) -> None:
    """Trigger a schedule now, in addition to its planned runs."""

    async def act(system: System, conn: Connection) -> tuple[Schedule, int]:
        schedule_id = (await schedules.find_schedule(conn, name)).id
        return await schedules.trigger(conn, schedule_id, now=system.clock.now())

    schedule, created = _in_transaction(act)
    if json:
        print_json({"tasks_created": created, "schedule": schedule})
    else:
        echo(f"{schedule.name}: {pluralize(created, 'new task')}.")


@app.command("enable")
def enable(name: NameArgument) -> None:
    """Enable a schedule. If a run is overdue, a running server starts it within a minute."""
    schedule = _set_enabled(name, True)
    echo(f"{schedule.name} is enabled; next run: {schedule.next_run_at:%Y-%m-%d %H:%M} UTC.")


@app.command("disable")
def disable(name: NameArgument) -> None:
    """Disable a schedule; it can still be triggered."""
    echo(f"{_set_enabled(name, False).name} is disabled.")


def _set_enabled(name: str, enabled: bool) -> Schedule:
    async def act(system: System, conn: Connection) -> Schedule:
        schedule_id = (await schedules.find_schedule(conn, name)).id
        return await schedules.change(
            conn, schedule_id, {"enabled": enabled}, platforms=tuple(system.platforms), now=system.clock.now()
        )

    return _in_transaction(act)


def _in_transaction(act: Callable[[System, Connection], Awaitable[T]]) -> T:
    """As `in_transaction`, after adding the default schedules."""

    async def run(system: System) -> T:
        await ensure_default_schedules(system)
        async with system.pool.connection() as conn, conn.transaction():
            return await act(system, conn)

    return with_system(run)
