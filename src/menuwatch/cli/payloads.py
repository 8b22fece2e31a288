"""`menuwatch payloads`: the archive, and what waits in quarantine."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, ago, console, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.operations import payloads as operations
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


@app.command("release")
def release(number: Annotated[int, typer.Argument(help="Number of the payload.")]) -> None:
    """Take a payload out of quarantine: it is the store's true menu after all. A worker applies it."""
    task = asyncio.run(_release(number))
    console.print(f"Released payload {number}; task {task} applies it as soon as a worker is free.")


async def _list(store: str | None, status: str | None, limit: int) -> list[Payload]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        store_id = None
        if store is not None:
            found = await stores.find(conn, store)
            if found is None:
                raise Refused(f"--store {store}: there is no such store; `menuwatch stores list` shows those there are")
            store_id = found.id
        return await payloads.page(conn, dispensary_id=store_id, status=status, limit=limit)


async def _release(number: int) -> int:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        return await operations.release(conn, number)
