"""`menuwatch payloads`: the archive, and what waits in quarantine."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.cli import payload_sheet
from menuwatch.cli.output import Format, ago, console, errors, plain, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.exports.target import whole_file
from menuwatch.operations import payloads as operations
from menuwatch.operations.payload_diff import shown
from menuwatch.operations.payloads import Compared
from menuwatch.payloads import store as payloads
from menuwatch.payloads.store import Payload
from menuwatch.stores import store as stores

app = typer.Typer(help="Archived answers, and what waits in quarantine.", no_args_is_help=True)

_STATUSES = ("ok", "partial", "quarantined", "rejected")


@app.command("list")
def list_(
    store: Annotated[str | None, typer.Option(help="Only this store: its slug, platform id or number.")] = None,
    status: Annotated[str | None, typer.Option(help="Only these: ok, partial, quarantined or rejected.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 50,
    fmt: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List archived answers, newest first."""
    if status is not None and status not in _STATUSES:
        raise Refused(f"--status {status!r} does not exist: it is one of {', '.join(_STATUSES)}")
    keys = (
        "id",
        "dispensary_id",
        "status",
        "reason",
        "product_count",
        "page_count",
        "bytes",
        "fetched_at",
        "applied_at",
        "path",
    )
    rows: list[dict[str, Any]] = [
        {key: getattr(payload, key) for key in keys} for payload in asyncio.run(_list(store, status, limit))
    ]
    if fmt is Format.TABLE:
        rows = [
            row | {"fetched_at": ago(row["fetched_at"]), "applied_at": row["applied_at"] is not None} for row in rows
        ]
    print_rows(
        rows,
        (
            ("id", "#"),
            ("dispensary_id", "Store"),
            ("fetched_at", "Fetched"),
            ("product_count", "Products"),
            ("bytes", "Bytes"),
            ("status", "Status"),
            ("applied_at", "Applied"),
            ("reason", "Reason"),
        ),
        fmt,
        empty="No payloads of that kind.",
    )


NumberArgument = Annotated[int, typer.Argument(min=1, max=2**63 - 1, metavar="NUMBER", help="Number of the payload.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("show")
def show(number: NumberArgument, json: JsonOption = False) -> None:
    """Show one archived answer: what is known of it, what the catalogue took from it, and who else has the same."""
    payload, usage = asyncio.run(_show(number))
    if json:
        print_json({**asdict(payload), **usage})
        return
    for line in payload_sheet.lines(payload, usage):
        console.print(plain(line), markup=False, soft_wrap=True)


@app.command("data")
def data(
    number: NumberArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to this file instead of standard output.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Print the archived document itself, as it was before compression: `pages` holds the platform's answers verbatim."""
    if overwrite and out is None:
        raise Refused("--overwrite is for --out")
    document = asyncio.run(_data(number))
    if out is None or str(out) == "-":
        sys.stdout.buffer.write(document)
        sys.stdout.buffer.flush()
        return
    with whole_file(out, overwrite=overwrite) as file:
        file.write(document)
    errors.print(f"Wrote {len(document):,} bytes: {out}", markup=False, soft_wrap=True)


@app.command("diff")
def diff(
    older: Annotated[
        int | None, typer.Argument(min=1, max=2**63 - 1, metavar="[FROM]", help="Number of the older payload.")
    ] = None,
    newer: Annotated[
        int | None,
        typer.Argument(
            min=1, max=2**63 - 1, metavar="[TO]", help="Number of the newer one; the store's newest ok one if left out."
        ),
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="The two newest ok ones of this store: its slug, platform id or number.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two archived menus of a store product by product."""
    if older is None and store is None:
        raise Refused("name the payloads, or the store with --store")
    found = shown(asyncio.run(_diff(older, newer, store)))
    if json:
        print_json(found)
        return
    for line in payload_sheet.summary(found):
        console.print(plain(line), markup=False, soft_wrap=True)
    rows = payload_sheet.differences(found["details"])
    if rows:
        columns = (
            ("what", "What"),
            ("name", "Product"),
            ("before", "Before"),
            ("after", "After"),
            ("product_id", "Id"),
        )
        print_rows(rows, columns, Format.TABLE, empty="", keep=("what", "name", "before", "after"))


@app.command("release")
def release(number: Annotated[int, typer.Argument(help="Number of the payload.")]) -> None:
    """Take a payload out of quarantine: it is the store's true menu after all. A worker applies it."""
    task = asyncio.run(_release(number))
    console.print(f"Released payload {number}; task {task} applies it as soon as a worker is free.")


async def _show(number: int) -> tuple[Payload, dict[str, Any]]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        payload = await operations.one(conn, number)
        return payload, await operations.usage(conn, payload)


async def _data(number: int) -> bytes:
    async with bootstrap.open_system(settings()) as system:
        async with system.pool.connection() as conn:
            payload = await operations.one(conn, number)
        return await operations.unpacked(system.archive, payload)


async def _diff(older: int | None, newer: int | None, store: str | None) -> Compared:
    async with bootstrap.open_system(settings()) as system:
        async with system.pool.connection() as conn:
            if store is not None:
                store_id = await _store_id(conn, store)
            else:
                assert older is not None, "one of them is given"
                store_id = (await operations.one(conn, older)).dispensary_id
            first, second = await operations.to_compare(conn, store_id, older, newer)
        return await operations.compare(system.archive, system.platforms, first, second)


async def _store_id(conn: Any, store: str) -> int:
    found = await stores.find(conn, store)
    if found is None:
        raise Refused(f"--store {store}: there is no such store; `menuwatch stores list` shows those there are")
    return found.id


async def _list(store: str | None, status: str | None, limit: int) -> list[Payload]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        store_id = None if store is None else await _store_id(conn, store)
        return await payloads.page(conn, dispensary_id=store_id, status=status, limit=limit)


async def _release(number: int) -> int:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        return await operations.release(conn, number)
