"""`menuwatch top`: workers, running tasks, queue and blocked hosts, live."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from menuwatch.cli.options import JsonOption
from menuwatch.cli.output import Column, Format, console, echo, print_json, print_list
from menuwatch.cli.startup import with_system
from menuwatch.cli.workers import ACTIVE
from menuwatch.cli.workers import COLUMNS as WORKER_COLUMNS
from menuwatch.core.format import duration, pluralize
from menuwatch.ops.overview import Overview, overview
from menuwatch.queue.model import Status
from menuwatch.queue.task_list import TaskFilter, TaskRow, list_tasks, store_names
from menuwatch.queue.throughput import STEPS, Interval, throughput
from menuwatch.system import System
from menuwatch.workers import service as workers
from menuwatch.workers.service import Worker

_TASKS = 20
_HOURS = 3
"""Time whose intervals are read; the last full one is shown."""
_COLUMNS = tuple(column for column in WORKER_COLUMNS if column.heading not in ("Id", "Process", "Roles"))


class _Reading(NamedTuple):
    overview: Overview
    series: list[Interval]
    workers: list[Worker]
    tasks: list[TaskRow]
    stores: dict[int, Any]


def top(
    every: Annotated[
        float, typer.Option(min=0.5, max=3600, help="Seconds between two readings.", metavar="SECONDS")
    ] = 2,
    once: Annotated[
        bool, typer.Option("--once", help="Print one reading and exit; the default without a terminal.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show workers, running tasks, queue and blocked hosts, updated until Ctrl-C."""

    async def act(system: System) -> None:
        if once or json or not sys.stdout.isatty():
            reading = await _read(system)
            if json:
                print_json(_plain(reading))
            else:
                _print(reading)
            return
        with Live(console=Console(), screen=True, auto_refresh=False) as live:
            while True:
                with console.capture() as shown:
                    _print(await _read(system))
                live.update(Text.from_ansi(shown.get(), no_wrap=True, overflow="crop"), refresh=True)
                await asyncio.sleep(every)

    with_system(act, read_only=True)


async def _read(system: System) -> _Reading:
    async with system.pool.connection() as conn:
        now = await overview(conn)
        series = await throughput(conn, _HOURS)
        running = await list_tasks(conn, TaskFilter(statuses=[Status.RUNNING]), limit=_TASKS)
        listed = await workers.list_workers(conn, ACTIVE, limit=None)
        listed.sort(key=lambda worker: (worker.pod or "", worker.friendly_name))
        stores = await store_names(conn, [task.dispensary_id for task in running])
        return _Reading(now, series, listed, running, stores)


def _counts(now: Overview) -> dict[str, int]:
    roles = now.roles
    return {name: sum(getattr(role, name) for role in roles) for name in ("ready", "blocked", "scheduled", "running")}


def _last(series: list[Interval]) -> dict[str, int]:
    """What came and ended in the last full interval."""
    last = series[-2]
    return {"enqueued": last.enqueued, "completed": last.completed, "failed": last.failed}


def _plain(reading: _Reading) -> dict[str, Any]:
    now = reading.overview
    return {
        "at": now.at,
        "queue": _counts(now),
        "interval_seconds": STEPS[_HOURS].total_seconds(),
        "interval": _last(reading.series),
        "crew": now.workers,
        "closed_hosts": now.closed_hosts,
        "workers": reading.workers,
        "tasks": reading.tasks,
    }


def _print(reading: _Reading) -> None:
    now, crew = reading.overview, reading.overview.workers
    silent = f", {crew.silent} silent" if crew.silent else ""
    counts = ", ".join(f"{count:,} {name}" for name, count in _counts(now).items())
    ends = ", ".join(f"{count:,} {name}" for name, count in _last(reading.series).items())
    echo(
        f"Workers  {crew.live} in {pluralize(crew.pods, 'pod')}{silent}; {pluralize(crew.slots, 'slot')}",
        f"Queue    {counts}",
        f"Tasks    {ends} from {reading.series[-2].start:%H:%M} to {reading.series[-1].start:%H:%M} UTC",
    )
    for host in now.closed_hosts:
        until = f" until {host.until:%H:%M} UTC" if host.until else ""
        echo(f"Blocked  {host.host}{until}: {host.reason or host.code}")
    echo("")
    print_list(reading.workers, _COLUMNS, Format.TABLE, empty="No running workers.")
    if reading.tasks:
        echo("")
        print_list(reading.tasks, _task_columns(reading), Format.TABLE)


def _task_columns(reading: _Reading) -> tuple[Column, ...]:
    names = {worker.worker_id: worker.friendly_name for worker in reading.workers}

    def store(task: TaskRow) -> str | None:
        found = reading.stores.get(task.dispensary_id or 0)
        return found and (found["slug"] or found["name"])

    def elapsed(task: TaskRow) -> str | None:
        started: datetime | None = task.started_at
        return None if started is None else duration((reading.overview.at - started).total_seconds())

    return (
        Column("#", "id"),
        Column("Role", "role"),
        Column("Store", store, rank=1),
        Column("Worker", lambda task: names.get(task.worker_id or "", task.worker_id), rank=2),
        Column("Elapsed", elapsed, rank=3, align="right"),
        Column("Attempt", "attempt", rank=4),
    )
