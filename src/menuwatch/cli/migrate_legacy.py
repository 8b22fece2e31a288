"""`menuwatch migrate-legacy`: coming from the legacy system."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from menuwatch.cli.options import Commands, DryRunOption, JsonOption, require_files
from menuwatch.cli.output import echo, print_json, progress_bar
from menuwatch.cli.startup import in_connection, load_settings, read, with_system
from menuwatch.core.clock import SystemClock
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.db import address, embedded
from menuwatch.db import migrate as migrations
from menuwatch.db.pool import Connection, connect
from menuwatch.ops.legacy import columns, jobs
from menuwatch.ops.legacy.importer import Target, take
from menuwatch.ops.legacy.jobs import MigrationResult, MigrationStatus
from menuwatch.ops.legacy.sources import CsvFiles, Dump, Source, of_database
from menuwatch.ops.legacy.staging import Report
from menuwatch.queue.schedules.service import known_state
from menuwatch.system import System

app = Commands("Migrate from the legacy system: schedules, jobs, stores and history.")

PathOption = list[Path] | None
_SINGULAR = {"proxies": "proxy"}


@app.command("status")
def status(json: JsonOption = False) -> None:
    """Show the legacy migration status of this database."""
    result = read(lambda _, conn: jobs.status(conn))
    if json:
        print_json(result)
    else:
        echo(*_lines(result))


def _lines(status: MigrationStatus) -> list[str]:
    if not status.found:
        return [status.message]
    lines = [f"Legacy tables: {', '.join(status.tables)}."]
    if status.schedules is not None:
        lines.append(f"Schedules: {status.schedules_enabled:,} of {status.schedules:,} enabled.")
    if status.jobs is not None:
        lines.append(
            f"Crawl jobs: {status.jobs_pending:,} pending, {status.jobs_running:,} running, {status.jobs:,} in total."
        )
    if status.run_logs is not None:
        lines.append(f"Run logs: {status.run_logs:,}; they are left unchanged.")
    lines.append(
        f"Stores that can be crawled: {status.stores:,}, of which {status.stores_waiting:,} have a pending crawl."
    )
    return [*lines, status.message]


@app.command("move-tables")
def move_tables(
    schema: Annotated[
        str, typer.Option("--schema", help="New name of the schema that holds the legacy tables.")
    ] = migrations.FORMER_SCHEMA,
    force: Annotated[bool, typer.Option("--force", help="Move them while other clients are connected.")] = False,
) -> None:
    """Move the legacy tables out of the way of Menuwatch's: their schema is renamed, and an empty one created in its place."""
    settings = load_settings()
    with embedded.database_url(settings) as url:
        names = migrations.move_tables(url, schema, force=force)
    echo(f"{pluralize(len(names), 'table or view', 'tables and views')} moved to the schema {schema}.")


@app.command("run")
def run(
    state: Annotated[
        str | None, typer.Option("--state", help="Only create tasks for stores in this state. Default: every store.")
    ] = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Disable legacy schedules, cancel pending legacy jobs, and create resync tasks. Each step is one transaction. An interrupted
    migration can be run again: it does what is left."""
    if state is not None:
        known_state(state)  # before anything is done

    async def act(_: System, conn: Connection) -> list[MigrationResult]:
        done = [await jobs.disable_schedules(conn, dry_run=dry_run)]
        if done[0].found:
            done.append(await jobs.cancel_jobs(conn, dry_run=dry_run))
            done.append(await jobs.create_resync(conn, state, dry_run=dry_run))
        return done

    done = in_connection(act)
    if json:
        print_json(done)
    else:
        echo(*(step.message for step in done))


@app.command("import")
def import_(
    stores: Annotated[PathOption, typer.Option("--stores", help="CSV of `dispensaries`.")] = None,
    products: Annotated[PathOption, typer.Option("--products", help="CSV of `store_products`.")] = None,
    snapshots: Annotated[PathOption, typer.Option("--snapshots", help="CSV of `store_product_snapshots`.")] = None,
    proxies: Annotated[PathOption, typer.Option("--proxies", help="CSV of `proxies`.")] = None,
    schedules: Annotated[PathOption, typer.Option("--schedules", help="CSV of `task_schedules`.")] = None,
    payloads: Annotated[PathOption, typer.Option("--payloads", help="CSV of `raw_crawl_payloads`.")] = None,
    storage: Annotated[
        Path | None,
        typer.Option(
            "--storage", help="Storage folder of the legacy system, with payloads/ and images/, for files to import."
        ),
    ] = None,
    dump: Annotated[Path | None, typer.Option("--dump", help="Plain dump of the legacy database (pg_dump).")] = None,
    database: Annotated[str | None, typer.Option("--database", help="URL of the legacy database.")] = None,
    schema: Annotated[
        str | None,
        typer.Option("--schema", help="Schema of the legacy tables; in this database `legacy` by default."),
    ] = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Import stores, products, price history, proxies, schedules, payloads and images from CSV files, a dump, another database, or
    a schema of this one. Existing rows are skipped, so that an interrupted import can be run again. Exit code 1 if the history of a
    store could not be imported."""
    given = (stores, products, snapshots, proxies, schedules, payloads)
    files = {table: paths or [] for table, paths in zip(columns.TABLES, given, strict=True)}
    if storage is not None and not storage.is_dir():
        raise Refused(f"--storage {storage} is not a folder")
    sources = [
        name
        for name, value in (("CSV files", any(files.values())), ("--dump", dump), ("--database", database))
        if value
    ]
    if len(sources) > 1:
        raise Refused(f"give one source, not {' and '.join(sources)}")
    if schema is not None and sources and database is None:
        raise Refused(f"--schema is for databases: {sources[0]} has none")
    require_files([*itertools.chain(*files.values()), *filter(None, (dump,))])
    report = with_system(lambda system: _import(system, files, dump, database, schema, storage, dry_run))
    if json:
        print_json(report.plain())
    else:
        echo(*report_lines(report))
    if report.failed:
        raise typer.Exit(1)


def report_lines(report: Report) -> list[str]:
    """The report as text."""
    would = "would be " if report.dry_run else ""
    lines = []
    for names, tally in report.tallies.items():
        if not tally.read and names not in ("stores", "products", "snapshots"):
            continue
        found = pluralize(tally.read, _SINGULAR.get(names, names.removesuffix("s")), names)
        lines.append(f"{found} read, {tally.taken:,} {would}imported.")
        for reason, count in tally.skipped.most_common():
            examples = ", ".join(tally.examples.get(reason, ()))
            lines.append(f"  {count:,} skipped: {reason}" + (f" ({examples})" if examples else ""))
    lines.append(f"{pluralize(report.crawls, 'menu')} {would}created from snapshots.")
    if report.without_zone:
        lines.append(f"{pluralize(report.without_zone, 'time')} without a time zone, interpreted as UTC.")
    return [*lines, *(f"Failed: {failure}" for failure in report.failed)]


async def _import(
    system: System,
    files: Mapping[str, Sequence[Path]],
    dump: Path | None,
    database: str | None,
    schema: str | None,
    storage: Path | None,
    dry_run: bool,
) -> Report:
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
            source = await of_database(conn, system.database_url, schema or "legacy")
    with progress_bar("Reading") as update:
        return await take(
            system.pool,
            source,
            platforms=system.platforms,
            target=Target(
                archive=system.archive,
                secret_box=SecretBox(system.settings.secret_key),
                image_hosts=system.settings.image_hosts,
                folder=storage,
            ),
            now=SystemClock().now(),
            dry_run=dry_run,
            on_progress=lambda done, stores: update(done, stores, description="Importing, stores"),
        )
