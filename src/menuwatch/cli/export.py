"""`menuwatch export`: products, snapshots, states and changes as files for other programs."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.cli.options import (
    JsonOption,
    PlatformsOption,
    SinceOption,
    StatesOption,
    StoresOption,
    UntilOption,
    check_platform,
    parse_period,
    parse_states,
)
from menuwatch.cli.output import notice, print_json, progress_bar, standard_output
from menuwatch.cli.startup import read
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize, size
from menuwatch.db.pool import Connection
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import export as exporting
from menuwatch.ops import incremental as increments
from menuwatch.ops.export import ExportRequest, PartitionBy
from menuwatch.stores import store as stores
from menuwatch.system import System


class TableChoice(StrEnum):
    """Tables that can be exported."""

    PRODUCTS = "products"
    OFFERS = "offers"
    STORES = "stores"
    SNAPSHOTS = "snapshots"
    CHANGES = "changes"
    DETAILS = "details"
    CANONICAL_PRODUCTS = "canonical-products"
    BRANDS = "brands"
    LOCATIONS = "locations"
    PRODUCT_MATCHES = "product-matches"
    MATCH_EVENTS = "match-events"


def export(
    what: Annotated[
        TableChoice,
        typer.Argument(
            help="products (current), offers (one row per size or package), stores, snapshots (one row per product and crawl), "
            "changes, details (batches, lab values and sold counts over time), canonical-products, brands and locations, "
            "product-matches (the canonical product of each product), or match-events (merged and split canonical products)."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="File to write, a directory with --partition, or - for standard output.")],
    fmt: Annotated[
        Format | None, typer.Option("--format", help="Output format; default: from the file extension.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    state: StatesOption = None,
    store: StoresOption = None,
    platform: PlatformsOption = None,
    states: Annotated[
        bool, typer.Option("--states", help="For snapshots: one row per change instead of per crawl.")
    ] = False,
    partition: Annotated[
        PartitionBy | None, typer.Option(help="Write a directory with one Parquet file per state or month.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")] = False,
    incremental: Annotated[
        bool,
        typer.Option(
            "--incremental", help="Add the rows that are new since the last run to a directory, as one more file."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Export products, their history or their matches. The file appears when it is complete; a failed export leaves no
    partial file."""
    if states and what is not TableChoice.SNAPSHOTS:
        raise Refused("--states is for snapshots only")
    if str(out) == "-" and (partition is not None or json):
        raise Refused("standard output takes a single file only: omit --partition and --json")
    if incremental and (str(out) == "-" or partition or states or overwrite or since or until):
        raise Refused("--incremental takes a directory, without --since, --until, --states, --partition or --overwrite")
    start, end = parse_period(since, until)
    request = ExportRequest(
        what=ExportTable.STATES if states else ExportTable(what.value),
        fmt=fmt or (Format.PARQUET if incremental else _by_ending(out, partition)),
        since=start,
        until=end,
        states=parse_states(state),
        platforms=platform or None,
    )
    if str(out) == "-" and request.fmt is Format.PARQUET and sys.stdout.isatty():
        raise Refused("Parquet is binary: redirect standard output to a file, or choose --format csv or jsonl")

    async def act(system: System, conn: Connection) -> dict[str, Any]:
        for name in platform or ():
            check_platform(system.platforms, name)
        ids = [(await stores.resolve(conn, text)).id for text in store or ()]
        archived = ParquetPartitions(system.archive.storage)
        chosen = replace(request, stores=ids or None)
        return await _export(conn, chosen, out, partition, archived, overwrite=overwrite, incremental=incremental)

    report = read(act)
    if json:
        print_json(report)
    elif incremental and not report["files"]:
        notice(f"Nothing new since the last export to {out}")
    elif str(out) != "-":
        files = f"{pluralize(report['files'], 'file')} in {out}" if partition else str(out)
        notice(f"Wrote {pluralize(report['rows'], 'row')}, {report['bytes']:,} bytes: {files}")


def _by_ending(out: Path, partition: PartitionBy | None) -> Format:
    if partition is not None:
        return Format.PARQUET
    try:
        return Format(out.suffix.removeprefix(".").lower().replace("ndjson", "jsonl"))
    except ValueError:
        raise Refused(
            f"{out}: unknown format; use --format {', '.join(Format)}, or a matching file extension"
        ) from None


async def _export(
    conn: Connection,
    request: ExportRequest,
    out: Path,
    partition: PartitionBy | None,
    archived: ParquetPartitions,
    *,
    overwrite: bool,
    incremental: bool,
) -> dict[str, Any]:
    report: dict[str, Any] = {"what": request.what, "format": request.fmt, "rows": 0, "bytes": 0, "files": 1}
    with progress_bar(f"Exporting {request.what}", remaining=False) as update:

        def on_progress(rows: int, count: int) -> None:
            report["rows"] += rows
            report["bytes"] += count
            update(report["rows"], description=f"Exporting {request.what}: {size(report['bytes'])}, rows")

        if incremental:
            part = await increments.to_folder(conn, request, out, archived, on_progress=on_progress)
            report |= {"files": 0, "bytes": 0} if part is None else {"file": part.file}
        elif partition is not None:
            report["files"] = await exporting.to_folder(
                conn, request, partition, out, archived, overwrite=overwrite, on_progress=on_progress
            )
        elif str(out) == "-":
            out_file = standard_output()
            async with exporting.read_snapshot(conn, request, archived):
                await exporting.write(conn, request, out_file, on_progress=on_progress)
            out_file.flush()
        else:
            await exporting.to_file(conn, request, out, archived, overwrite=overwrite, on_progress=on_progress)
    return report
