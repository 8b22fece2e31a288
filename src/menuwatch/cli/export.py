"""`menuwatch export`: products, snapshots, states and changes as files for other programs."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from menuwatch import bootstrap
from menuwatch.cli.output import errors, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.cli.products import parse_since
from menuwatch.core.errors import Refused
from menuwatch.exports.packs import Packs
from menuwatch.exports.sheets import Format, What
from menuwatch.operations import export as operations
from menuwatch.operations.export import Cut, Wanted
from menuwatch.schedules.model import parse_state
from menuwatch.stores import store as stores


class Sheet(StrEnum):
    """What can be asked for."""

    PRODUCTS = "products"
    SNAPSHOTS = "snapshots"
    CHANGES = "changes"


def export(
    what: Annotated[
        Sheet, typer.Argument(help="products (as they are now), snapshots (one row per product and crawl), or changes.")
    ],
    out: Annotated[
        Path, typer.Argument(help="The file to write, a folder with --partition, or - for standard output.")
    ],
    fmt: Annotated[
        Format | None, typer.Option("--format", help="How to write; where it is left out the file's ending says it.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only from then on: a date, a time (ISO 8601), or an age as 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only before then.")] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only stores of this state, by its two letters (NM, ON); may be repeated.")
    ] = None,
    store: Annotated[
        list[str] | None, typer.Option(help="Only this store: its slug, platform id or number; may be repeated.")
    ] = None,
    platform: Annotated[list[str] | None, typer.Option(help="Only of this platform; may be repeated.")] = None,
    states: Annotated[
        bool, typer.Option("--states", help="Of snapshots: one row per change instead of per crawl.")
    ] = False,
    partition: Annotated[Cut | None, typer.Option(help="A folder with a Parquet file for each state or month.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Say what was written as one JSON object.")] = False,
) -> None:
    """Write products, snapshots or changes to a file. It is there when it is whole: whatever goes wrong leaves no half file."""
    if states and what is not Sheet.SNAPSHOTS:
        raise Refused("--states is for snapshots")
    if str(out) == "-" and (partition is not None or json):
        raise Refused("standard output takes one file and nothing else: leave out --partition and --json")
    now = datetime.now(UTC)
    wanted = Wanted(
        what=What.STATES if states else What(what.value),
        fmt=fmt or _by_ending(out, partition),
        since=parse_since(since, now) if since else None,
        until=parse_since(until, now, "--until") if until else None,
        states=[_state(text) for text in state] if state else None,
        platforms=platform or None,
    )
    if wanted.since and wanted.until and wanted.since >= wanted.until:
        raise Refused("--until is not after --since: there is no such time")
    report = asyncio.run(_export(wanted, out, store or [], partition, overwrite=overwrite))
    if json:
        print_json(report)
    elif str(out) != "-":
        files = f"{plural(report['files'], 'file')} in {out}" if partition else str(out)
        errors.print(
            f"Wrote {plural(report['rows'], 'row')}, {report['bytes']:,} bytes: {files}", markup=False, soft_wrap=True
        )


def _state(text: str) -> str:
    try:
        return parse_state(text)
    except Refused as error:
        raise Refused(f"--state: {error}") from error


def _by_ending(out: Path, partition: Cut | None) -> Format:
    if partition is not None:
        return Format.PARQUET
    try:
        return Format(out.suffix.removeprefix(".").lower().replace("ndjson", "jsonl"))
    except ValueError:
        raise Refused(
            f"{out}: what format? Say --format {', '.join(Format)}, or give the file such an ending"
        ) from None


async def _export(
    wanted: Wanted, out: Path, named: list[str], partition: Cut | None, *, overwrite: bool
) -> dict[str, Any]:
    report: dict[str, Any] = {"what": wanted.what, "format": wanted.fmt, "rows": 0, "bytes": 0, "files": 1}
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        for name in wanted.platforms or ():
            if name not in system.platforms:
                raise Refused(f"--platform {name}: is not known here ({', '.join(system.platforms)})")
        if named:
            wanted = replace(wanted, stores=[await _store(conn, text) for text in named])
        packs = Packs(system.archive.root)
        with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
            bar = progress.add_task(f"Exporting {wanted.what}", total=None)

            def told(rows: int, size: int) -> None:
                report["rows"] += rows
                report["bytes"] += size
                progress.update(
                    bar,
                    description=f"Exporting {wanted.what}: {report['rows']:,} rows, {report['bytes'] / 1e6:,.1f} MB",
                )

            if partition is not None:
                report["files"] = await operations.to_folder(
                    conn, wanted, partition, out, packs, overwrite=overwrite, told=told
                )
            elif str(out) == "-":
                async with operations.one_moment(conn, wanted, packs):
                    await operations.write(conn, wanted, sys.stdout.buffer, told=told)
                sys.stdout.buffer.flush()
            else:
                await operations.to_file(conn, wanted, out, packs, overwrite=overwrite, told=told)
    return report


async def _store(conn: Any, text: str) -> int:
    found = await stores.find(conn, text)
    if found is None:
        raise Refused(f"--store {text}: there is no such store; `menuwatch stores list` shows those there are")
    return found.id
