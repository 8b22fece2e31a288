"""`menuwatch history`: history that has grown cold, moved from the database to Parquet files."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from menuwatch import bootstrap
from menuwatch.cli.output import Format, console, errors, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.exports.packs import Packs
from menuwatch.operations import history as operations
from menuwatch.operations.history import Packed

app = typer.Typer(help="History that has grown cold.", no_args_is_help=True)


@app.command("pack")
def pack(
    before: Annotated[str, typer.Option(help="The first month that stays, as 2026-06.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Move months of states to Parquet files, where a product's history still finds them.

    Nothing is deleted before its file was read back and compared.
    """
    done = asyncio.run(_pack(_month(before)))
    states = sum(one.states for one in done)
    if json:
        months = [
            {"month": one.month, "states": one.states, "file": one.file, "partition_dropped": one.dropped}
            for one in done
        ]
        print_json({"states": states, "months": months})
        return
    moved = sum(one.states > 0 for one in done)
    console.print(f"Packed {plural(states, 'state')} of {plural(moved, 'month')}." if states else "Nothing to pack.")


@app.command("list")
def list_(fmt: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE) -> None:
    """List the files of packed states."""
    rows: list[dict[str, Any]] = [
        {"month": one.month, "states": one.states, "bytes": one.size, "file": one.file}
        for one in Packs(settings().storage).contents()
    ]
    columns = (("month", "Month"), ("states", "States"), ("bytes", "Bytes"), ("file", "File"))
    print_rows(rows, columns, fmt, empty="Nothing is packed.")


def _month(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
    except ValueError:
        raise Refused(f"--before {text!r} is no month: write it as 2026-06") from None


async def _pack(before: datetime) -> list[Packed]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
            bar = progress.add_task("Looking at months", total=None)

            def told(month: str, done: int) -> None:
                progress.update(bar, description=f"Packing {month}: {done:,} states")

            packs = Packs(system.archive.root)
            window = timedelta(days=system.settings.analytics_window_days)
            return await operations.pack(conn, packs, before, now=system.clock.now(), window=window, told=told)
