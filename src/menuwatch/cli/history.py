"""`menuwatch history`: one product's states over time, and those that have grown cold, moved from the database to Parquet files."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from json import loads
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from menuwatch import bootstrap
from menuwatch.cli.output import Format, chosen_format, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.cli.products import parse_since
from menuwatch.core.errors import Refused
from menuwatch.exports.packs import Packs
from menuwatch.operations import history as operations
from menuwatch.operations import products
from menuwatch.operations.history import Packed
from menuwatch.operations.products import History, Span

app = typer.Typer(help="A product's history, and history that has grown cold.", no_args_is_help=True)


@app.command("show")
def show(
    product: Annotated[int, typer.Argument(help="Number of the product, as `menuwatch products` lists it.", min=1)],
    since: Annotated[
        str | None, typer.Option(help="Only from then on: a date, a time (ISO 8601), or an age as 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only before then.")] = None,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="No more states than this. Tables stop at 100 by themselves.")
    ] = None,
) -> None:
    """What a product cost, how much there was and how strong it was, newest first, with the times of which nothing is known.

    States that were packed are there too.
    """
    form, now = chosen_format(json, fmt), datetime.now(UTC)
    span = Span(
        since=parse_since(since, now) if since else None, until=parse_since(until, now, "--until") if until else None
    )
    if span.since and span.until and span.since >= span.until:
        raise Refused("--until is not after --since: there is no such time")
    most = limit or (_TABLE_LIMIT if form is Format.TABLE else _ALL_STATES)
    named, found = asyncio.run(_history(product, span, most))
    if form is Format.JSON:
        print_json({"product": named, "items": found.states, "gaps": found.gaps})
        return
    rows: list[dict[str, Any]] = [{"what": "state", **_flat(one)} for one in found.states]
    empty = dict.fromkeys(rows[0]) if rows else {}
    rows += [{**empty, "what": gap["reason"], "from": gap["from"], "to": gap["to"]} for gap in found.gaps]
    rows.sort(key=lambda row: row["from"], reverse=True)
    columns = (
        ("from", "From (UTC)"), ("to", "To (UTC)"), ("what", "What"), ("price", "From $"), ("stock_status", "Stock"),
        ("quantity", "Quantity"), ("thc", "THC"), ("cbd", "CBD"),
    )  # fmt: skip
    if form is Format.TABLE:
        rows = [row | {kind: _potency(row.get(kind)) for kind in ("thc", "cbd")} for row in rows]
        console.print(f"{plain(named['name'])}, {plain(named['store'])}", markup=False, soft_wrap=True)
    print_rows(rows, columns, form, empty="Nothing is known of that time.", keep=("what", "price", "stock_status"))
    if form is Format.TABLE and found.next is not None and limit is None:
        errors.print(f"The first {plural(_TABLE_LIMIT, 'state')}; --limit or --format csv prints more.")


_TABLE_LIMIT, _ALL_STATES = 100, 10_000_000


async def _history(product: int, span: Span, limit: int) -> tuple[dict[str, Any], History]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        one = await products.one(conn, product)
        named = {key: one[key] for key in ("id", "dispensary_id", "store", "provider", "provider_product_id", "name")}
        return named, await products.history(conn, product, span, limit=limit, packs=Packs(system.archive.root))


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    return {key: loads(bytes(value)) if isinstance(value, msgspec.Raw) else value for key, value in state.items()}


def _potency(given: dict[str, Any] | None) -> str | None:
    if given is None:
        return None
    low, high = given["lo"], given["hi"]
    return f"{low}–{high} {given['unit']}" if low != high else f"{low} {given['unit']}"


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
