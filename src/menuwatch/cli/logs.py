"""`menuwatch tasks logs` and `menuwatch workers logs`: log lines that workers stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from menuwatch.cli.options import JsonOption, limit_option
from menuwatch.cli.output import echo, notice, print_json
from menuwatch.cli.startup import with_system
from menuwatch.core.errors import NotFound
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.queue.service import FINAL
from menuwatch.queue.task_list import get_task
from menuwatch.system import System
from menuwatch.workers import logs
from menuwatch.workers import service as workers
from menuwatch.workers.logs import Level, LogGaps, LogLine
from menuwatch.workers.service import WorkerFilter

FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they are written.")]
LevelOption = Annotated[Level, typer.Option(help="Lowest level.")]
LinesOption = Annotated[int, limit_option(logs.LINES)]

_POLL_SECONDS = 1.0
_LAST_LINES = timedelta(seconds=5)
"""Time within which the last lines of a finished task are stored."""

_Read = Callable[[Connection, Any, int | None], Awaitable[list[LogLine]]]
"""Up to the given number of lines after a key, newest first."""


def task_logs(
    task_id: Annotated[int, typer.Argument(help="Id of the task.", metavar="ID", min=1, max=2**63 - 1)],
    follow: FollowOption = False,
    level: LevelOption = "info",
    limit: LinesOption = 200,
    json: JsonOption = False,
) -> None:
    """Show what workers logged about a task, oldest first. --follow ends with the task."""

    async def read(conn: Connection, after: Any, most: int | None) -> list[LogLine]:
        return await logs.list_task_lines(conn, task_id, level=level, after=after, limit=most)

    async def is_over(conn: Connection) -> bool:
        task = await get_task(conn, task_id)
        return (
            task.status in FINAL
            and task.completed_at is not None
            and datetime.now(UTC) - task.completed_at > _LAST_LINES
        )

    async def act(system: System) -> None:
        async with system.pool.connection() as conn:
            gaps = await logs.task_gaps(conn, task_id)
        shown = await _show(system, read, logs.task_key, is_over, follow=follow, limit=limit, json=json)
        _note(gaps, shown, "No log lines of this task.")

    with_system(act, read_only=True)


def worker_logs(
    worker: Annotated[
        str, typer.Argument(help="Id or name of the worker, or pod/name if several have that name.", metavar="WORKER")
    ],
    follow: FollowOption = False,
    level: LevelOption = "info",
    limit: LinesOption = 200,
    json: JsonOption = False,
) -> None:
    """Show the log of a worker, oldest first. A name without a running worker means the last one that had it."""

    async def act(system: System) -> None:
        async with system.pool.connection() as conn:
            worker_id = await _find(conn, worker)
            gaps = await logs.worker_gaps(conn, worker_id)

        async def read(conn: Connection, after: Any, most: int | None) -> list[LogLine]:
            return await logs.list_worker_lines(conn, worker_id, level=level, after=after, limit=most)

        async def never(_: Connection) -> bool:
            return False

        shown = await _show(system, read, lambda line: line.seq, never, follow=follow, limit=limit, json=json)
        _note(gaps, shown, "No log lines of this worker.")

    with_system(act, read_only=True)


async def _find(conn: Connection, text: str) -> str:
    try:
        return await workers.find_worker(conn, text)
    except NotFound:
        for one in await workers.list_workers(conn, WorkerFilter(statuses=["stopped"]), limit=None):
            if text.lower() in (one.friendly_name.lower(), one.display_name.lower()):
                return one.worker_id
        raise


async def _show(
    system: System,
    read: _Read,
    key: Callable[[LogLine], Any],
    is_over: Callable[[Connection], Awaitable[bool]],
    *,
    follow: bool,
    limit: int,
    json: bool,
) -> int:
    """Prints the newest lines, and with `follow` those that come until it is over; returns how many."""
    after, most, shown = None, limit, 0
    while True:
        async with system.pool.connection() as conn:
            over = not follow or await is_over(conn)
            lines = (await read(conn, after, most))[::-1]
        for line in lines:
            if json:
                print_json(line)
            else:
                echo(*format_line(line))
        if lines:
            after, shown = key(lines[-1]), shown + len(lines)
        if over:
            return shown
        # Of what comes now, nothing is left out.
        most = logs.LINES
        await asyncio.sleep(_POLL_SECONDS)


def format_line(line: LogLine) -> Sequence[str]:
    """A line as text: time in UTC, level, message, fields; then its traceback."""
    fields, trace = logs.split_details(line)
    about = [] if line.task_id is None else [("task", f"{line.task_id}")]
    if line.attempt is not None:
        about.append(("attempt", f"{line.attempt}"))
    pairs = " ".join(f"{name}={text}" for name, text in (*about, *fields))
    at = f"{line.at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    return [
        f"{at}  {line.level:<7}  {line.message}  {pairs}".rstrip(),
        *(f"    {text}" for text in (trace or "").splitlines()),
    ]


def _note(gaps: LogGaps, shown: int, empty: str) -> None:
    """Says what is missing, on standard error."""
    if not shown:
        notice(empty)
    if gaps.dropped:
        notice(
            f"{pluralize(gaps.dropped, 'line')} of the same time dropped: too many at once, or the database was unreachable."
        )
    if gaps.deleted:
        notice("Older lines were deleted: lines are kept for 7 days, and the newest 50,000 of each worker.")
