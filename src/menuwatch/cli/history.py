"""`menuwatch history`: a product's states over time, and the months that are packed into Parquet files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from json import loads
from typing import Annotated, Any

import msgspec
import typer

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import ProductDetails, ProductHistory, ProductState, get_history, list_details
from menuwatch.catalog.packing import PackedMonth
from menuwatch.catalog.service import Span, get_product
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput, SinceOption, UntilOption, parse_period
from menuwatch.cli.output import Column, Format, echo, format_potency, print_json, print_list, progress_bar
from menuwatch.cli.startup import in_connection, load_settings, read
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.core.shapes import to_row
from menuwatch.db.pool import Connection
from menuwatch.storage.service import open_storage
from menuwatch.system import System

app = Commands("Show a product's history and manage packed history.")

STATE_COLUMNS = (
    Column("From (UTC)", "from"),
    Column("To (UTC)", "to"),
    Column("What", "what", rank=1),
    Column("Price", "price", rank=2),
    Column("Stock", "stock_status", rank=3),
    Column("Quantity", "quantity"),
    Column("THC", "thc", format_potency),
    Column("CBD", "cbd", format_potency),
)
DETAIL_COLUMNS = (
    Column("From (UTC)", "from"),
    Column("To (UTC)", "to"),
    Column("Batch", lambda row: (row["batch"] or {}).get("batch_id"), rank=1),
    Column("Tested", lambda row: (row["batch"] or {}).get("tested_on"), rank=2),
    Column("Cannabinoids", lambda row: len(row["cannabinoids"]), rank=3),
    Column("Terpenes", lambda row: len(row["terpenes"]), rank=3),
    Column("Sold", "quantity_sold"),
)
FILE_COLUMNS = (
    Column("Month", "month"),
    Column("States", "states"),
    Column("Bytes", "bytes"),
    Column("File", "file"),
)


@app.command("show")
def show(
    product: Annotated[int, typer.Argument(help="Id of the product, as `menuwatch products` lists it.", min=1)],
    out: LimitedOutput,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Show prices, stock and potency of a product, newest first, with the periods without observations. Packed history is
    included."""
    start, end = parse_period(since, until)
    span = Span(since=start, until=end)

    async def act(system: System, conn: Connection) -> tuple[dict[str, Any], ProductHistory]:
        detail = await get_product(conn, product)
        names = ("id", "dispensary_id", "store", "provider", "provider_product_id", "name", "currency")
        archived = ParquetPartitions(system.archive.storage)
        history = await get_history(conn, product, span, limit=out.rows, archived=archived)
        return {name: getattr(detail, name) for name in names}, history

    named, history = read(act)
    if out.format is Format.JSON:
        print_json({"product": named, "items": history.states, "gaps": history.gaps})
        return
    rows: list[dict[str, Any]] = [{"what": "state", **_flat(state)} for state in history.states]
    empty = dict.fromkeys([*(rows[0] if rows else ()), *(str(column.value) for column in STATE_COLUMNS)])
    rows += [{**empty, "what": gap.reason, "from": gap.from_, "to": gap.to} for gap in history.gaps]
    rows.sort(key=lambda row: row["from"], reverse=True)
    if out.is_table:
        echo(f"{named['name']}, {named['store']}; prices in {named['currency']}")
    print_list(rows, STATE_COLUMNS, out.format, empty="No history in that period.")
    out.note_limit(history.next is not None, "state")


@app.command("details")
def details(
    product: Annotated[int, typer.Argument(help="Id of the product, as `menuwatch products` lists it.", min=1)],
    out: LimitedOutput,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Show batches, cannabinoids, terpenes and sold counts of a product over time, newest first. The formats other than the table
    have every value."""
    start, end = parse_period(since, until)

    async def act(_: System, conn: Connection) -> list[ProductDetails]:
        return await list_details(conn, product, Span(since=start, until=end), limit=out.rows + 1)

    rows = read(act)
    print_list(
        [_flat(row) for row in rows[: out.rows]],
        DETAIL_COLUMNS,
        out.format,
        empty="The menu had no batch, lab values or sold count in that period.",
    )
    out.note_limit(len(rows) > out.rows, "row")


def _flat(state: ProductState | ProductDetails) -> dict[str, Any]:
    return {
        key: loads(bytes(value)) if isinstance(value, msgspec.Raw) else value for key, value in to_row(state).items()
    }


@app.command("pack")
def pack(
    before: Annotated[str, typer.Option(help="First month to keep in the database, for example 2026-06.")],
    json: JsonOption = False,
) -> None:
    """Move old months of history to Parquet files. They stay part of the product history. Rows are deleted only after the file
    was read back and compared."""
    month = _parse_month(before)

    async def act(system: System, conn: Connection) -> list[PackedMonth]:
        with progress_bar("Checking months") as update:
            return await packing.pack(
                conn,
                ParquetPartitions(system.archive.storage),
                month,
                now=system.clock.now(),
                window=timedelta(days=system.settings.analytics_window_days),
                on_progress=lambda name, done: update(done, description=f"Packing states of {name}"),
            )

    months = in_connection(act)
    states = sum(packed.states for packed in months)
    if json:
        rows = [
            {"month": packed.month, "states": packed.states, "file": packed.file, "partition_dropped": packed.dropped}
            for packed in months
        ]
        print_json({"states": states, "months": rows})
        return
    moved = sum(packed.states > 0 for packed in months)
    echo(f"Packed {pluralize(states, 'state')} of {pluralize(moved, 'month')}." if states else "Nothing to pack.")


@app.command("list")
def list_(out: LimitedOutput) -> None:
    """List the files of packed history."""
    rows = [
        {"month": content.month, "states": content.states, "bytes": content.size, "file": content.file}
        for content in ParquetPartitions(open_storage(load_settings())).contents()
    ]
    out.show(rows, FILE_COLUMNS, "file", empty="No packed history.")


def _parse_month(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
    except ValueError:
        raise Refused(f"--before {text!r} is not a month: use a month such as 2026-06") from None
