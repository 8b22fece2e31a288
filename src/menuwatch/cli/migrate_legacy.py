"""`menuwatch migrate-legacy`: coming from the old system."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated

import typer

from menuwatch import bootstrap
from menuwatch.cli.output import console, print_json
from menuwatch.cli.process import settings
from menuwatch.operations.legacy import jobs
from menuwatch.operations.legacy.jobs import Done, Status
from menuwatch.operations.schedules import known_state

app = typer.Typer(
    help="Coming from the old system: its schedules and jobs put to rest, its stores and history taken over.",
    no_args_is_help=True,
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@app.command("status")
def status(json: JsonOption = False) -> None:
    """Say what there is of the former system in this database, and what is left to do."""
    found = asyncio.run(_status())
    if json:
        print_json(dataclasses.asdict(found))
        return
    for line in _lines(found):
        console.print(line, markup=False, soft_wrap=True)


def _lines(found: Status) -> list[str]:
    if not found.found:
        return [found.message]
    lines = [f"Former tables: {', '.join(found.tables)}."]
    if found.schedules is not None:
        lines.append(f"Schedules: {found.schedules_enabled:,} of {found.schedules:,} enabled.")
    if found.jobs is not None:
        lines.append(f"Crawl jobs: {found.jobs_pending:,} wait, {found.jobs_running:,} run, {found.jobs:,} in all.")
    if found.run_logs is not None:
        lines.append(f"Run logs: {found.run_logs:,}; they stay as they are.")
    lines.append(
        f"Stores here that can be crawled: {found.stores:,}, of which {found.stores_waiting:,} have a crawl waiting."
    )
    return [*lines, found.message]


@app.command("run")
def run(
    state: Annotated[
        str | None, typer.Option("--state", help="Only have the stores of this state crawled. Every store otherwise.")
    ] = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Disable the former schedules, cancel the former jobs that wait, and have the stores crawled from here.

    Each step is one transaction. When it is interrupted, run it again: it does what is left.
    """
    done = asyncio.run(_run(state, dry_run))
    if json:
        print_json([dataclasses.asdict(one) for one in done])
        return
    for one in done:
        console.print(one.message, markup=False, soft_wrap=True)


async def _status() -> Status:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await jobs.status(conn)


async def _run(state: str | None, dry_run: bool) -> list[Done]:
    if state is not None:
        known_state(state)  # before anything is done
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        done = [await jobs.disable_schedules(conn, dry_run=dry_run)]
        if not done[0].found:
            return done
        done.append(await jobs.cancel_jobs(conn, dry_run=dry_run))
        done.append(await jobs.create_resync(conn, state, dry_run=dry_run))
        return done
