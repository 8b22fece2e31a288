"""`menuwatch migrate-legacy`: coming from the old system."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.output import console, errors, plain, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.core.clock import SystemClock
from menuwatch.core.errors import Refused
from menuwatch.db import address
from menuwatch.db.pool import connect
from menuwatch.operations.legacy import fields, jobs
from menuwatch.operations.legacy.jobs import Done, Status
from menuwatch.operations.legacy.report import Report
from menuwatch.operations.legacy.sources import CsvFiles, Dump, Source, of_database
from menuwatch.operations.legacy.taking import take
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


PathOption = list[Path] | None


@app.command("import")
def import_(
    stores: Annotated[PathOption, typer.Option("--stores", help="CSV of `dispensaries`.")] = None,
    products: Annotated[PathOption, typer.Option("--products", help="CSV of `store_products`.")] = None,
    snapshots: Annotated[PathOption, typer.Option("--snapshots", help="CSV of `store_product_snapshots`.")] = None,
    dump: Annotated[Path | None, typer.Option("--dump", help="A plain dump of the former database (pg_dump).")] = None,
    database: Annotated[str | None, typer.Option("--database", help="Address of the former database.")] = None,
    schema: Annotated[
        str | None,
        typer.Option("--schema", help="Where the tables lie; in this database `legacy`, unless said otherwise."),
    ] = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Take over stores, products and price history: from CSV files, a dump, another database, or a schema of this one.

    What is here already is passed over, so that an import that was interrupted can be run again. Exit code 1 when a store's history
    could not be taken.
    """
    files = {fields.STORES: stores or [], fields.PRODUCTS: products or [], fields.SNAPSHOTS: snapshots or []}
    given = [
        name
        for name, there in (("CSV files", any(files.values())), ("--dump", dump), ("--database", database))
        if there
    ]
    if len(given) > 1:
        raise Refused(f"name one source, not {' and '.join(given)}")
    if schema is not None and given and database is None:
        raise Refused(f"--schema is of a database: {given[0]} has none")
    report = asyncio.run(_import(files, dump, database, schema, dry_run))
    if json:
        print_json(report.plain())
    else:
        for line in told(report):
            console.print(line, markup=False, soft_wrap=True)
    if report.failed:
        raise typer.Exit(1)


def told(report: Report) -> list[str]:
    """The report, for people."""
    would = "would be " if report.dry_run else ""
    lines = []
    for name, tally in (("store", report.stores), ("product", report.products), ("snapshot", report.snapshots)):
        lines.append(f"{plural(tally.read, name)} read, {tally.taken:,} {would}taken.")
        for reason, count in tally.skipped.most_common():
            examples = ", ".join(tally.examples.get(reason, ()))
            lines.append(f"  {count:,} not: {plain(reason)}" + (f" ({plain(examples)})" if examples else ""))
    lines.append(f"{plural(report.crawls, 'menu')} {would}made of them.")
    if report.without_zone:
        lines.append(f"{plural(report.without_zone, 'time')} said no zone, and were taken as UTC.")
    return [*lines, *(f"Failed: {plain(one)}" for one in report.failed)]


async def _import(
    files: Mapping[str, Sequence[Path]], dump: Path | None, database: str | None, schema: str | None, dry_run: bool
) -> Report:
    async with bootstrap.open_system(settings()) as system:
        source: Source
        if any(files.values()):
            source = CsvFiles(files)
        elif dump is not None:
            source = Dump(dump)
        elif database is not None:
            address.check(database)
            async with await connect(database) as conn:
                source = await of_database(conn, database, schema)
        else:
            async with system.pool.connection() as conn:
                source = await of_database(conn, _address(system), schema or "legacy")
        with Progress(*_COLUMNS, console=errors, transient=True, disable=not errors.is_terminal) as progress:
            bar = progress.add_task("Reading", total=None)

            def of(done: int, stores: int) -> None:
                progress.update(bar, description="Taking over, stores", completed=done, total=stores)

            now = SystemClock().now()
            return await take(system.pool, source, platforms=system.platforms, now=now, dry_run=dry_run, told=of)


def _address(system: System) -> str:
    """The address of our own database; it is a text, as `open_pool` has it."""
    found = system.pool.conninfo
    assert isinstance(found, str)
    return found


_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


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
