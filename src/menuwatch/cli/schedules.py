"""`menuwatch schedules`: what is enqueued by itself."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, chosen_format, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.clock import SystemClock
from menuwatch.operations import schedules as operations
from menuwatch.schedules.model import Schedule

app = typer.Typer(help="What is enqueued by itself, and when.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Name or number of the schedule.", metavar="SCHEDULE")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """List schedules with their last and next run, how late they are, and what went wrong."""
    fmt = chosen_format(json, fmt)
    found, now = asyncio.run(_list()), SystemClock().now()
    rows = [_row(one, now) | ({"when": _when(one, now)} if fmt is Format.TABLE else {}) for one in found]
    print_rows(
        rows,
        (
            ("id", "#"),
            ("name", "Name"),
            ("role", "Role"),
            ("enabled", "Enabled"),
            ("interval_hours", "Hours"),
            ("priority", "Priority"),
            ("state_code", "State"),
            ("last_run_at", "Last run"),
            ("last_task_count", "Tasks"),
            ("next_run_at", "Next run"),
            ("when", "When"),
        ),
        fmt,
        empty="No schedules.",
        keep=("when", "name", "enabled", "state_code", "next_run_at", "last_run_at", "last_task_count"),
    )
    if fmt is Format.TABLE:
        for one in found:
            if one.last_error is not None:
                errors.print(
                    f"{one.name} could not be fired, and is tried again every minute: {plain(one.last_error)}",
                    markup=False,
                    soft_wrap=True,
                )


def _row(one: Schedule, now: datetime) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "late_seconds": int(one.late(now).total_seconds())}


def _when(one: Schedule, now: datetime) -> str:
    """When it fires next, as people say it."""
    if not one.enabled:
        return "disabled"
    if late := one.late(now):
        return f"late by {_span(late)}"
    return "due now" if one.next_run_at <= now else f"in {_span(one.next_run_at - now)}"


def _span(length: timedelta) -> str:
    minutes = max(1, round(length / timedelta(minutes=1)))
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [f"{count} {unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if count]
    return " ".join(parts[:2])


@app.command("trigger")
def trigger(name: NameArgument, json: JsonOption = False) -> None:
    """Fire a schedule now, besides its times."""
    found, made = asyncio.run(_trigger(name))
    if json:
        print_json({"tasks_created": made, "schedule": _row(found, SystemClock().now())})
        return
    console.print(f"{found.name}: {plural(made, 'new task')}.", markup=False)


@app.command("enable")
def enable(name: NameArgument) -> None:
    """Let a schedule fire. A running server fires it within a minute if its time has passed."""
    found = asyncio.run(_switch(name, True))
    console.print(f"{found.name} is enabled; it fires next at {found.next_run_at:%Y-%m-%d %H:%M} UTC.", markup=False)


@app.command("disable")
def disable(name: NameArgument) -> None:
    """Keep a schedule from firing; it can still be triggered."""
    console.print(f"{asyncio.run(_switch(name, False)).name} is disabled.", markup=False)


async def _list() -> list[Schedule]:
    async with bootstrap.open_system(settings()) as system:
        await bootstrap.default_schedules(system)
        async with system.pool.connection() as conn:
            return await operations.listed(conn)


async def _trigger(name: str) -> tuple[Schedule, int]:
    async with bootstrap.open_system(settings()) as system:
        await bootstrap.default_schedules(system)
        async with system.pool.connection() as conn, conn.transaction():
            found = await operations.find(conn, name)
            return await operations.trigger(conn, found.id, now=system.clock.now())


async def _switch(name: str, enabled: bool) -> Schedule:
    async with bootstrap.open_system(settings()) as system:
        await bootstrap.default_schedules(system)
        async with system.pool.connection() as conn, conn.transaction():
            found = await operations.find(conn, name)
            return await operations.change(
                conn, found.id, {"enabled": enabled}, platforms=tuple(system.platforms), now=system.clock.now()
            )
