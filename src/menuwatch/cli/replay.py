"""`menuwatch replay`: recorded answers into the catalogue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from menuwatch import bootstrap
from menuwatch.catalog import store as read
from menuwatch.cli.output import console, errors, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.pipeline import replay as pipeline
from menuwatch.pipeline.replay import Replayed

_SHOWN = 10


def replay(
    files: Annotated[
        list[Path], typer.Argument(help="Recorded answers (.json or .json.gz), pages of one or several menus.")
    ],
    store: Annotated[
        str | None, typer.Option(help="Slug or platform id of the store, where the files do not name it.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Put recorded answers through archive, normalizer and catalogue, as if crawled now; archive files keep their own time.

    The same file again changes nothing, and a part of a menu counts no product as missing. Exit code 1 when a menu was archived
    but not applied, 2 when a file cannot be used.
    """
    done, stock = asyncio.run(_replay(files, store))
    report = _report(done, stock)
    if json:
        print_json(report)
    else:
        _print(done, report)
    if any(menu.refused for menu in done):
        raise typer.Exit(1)


async def _replay(files: list[Path], store: str | None) -> tuple[list[Replayed], dict[str, int]]:
    async with bootstrap.open_system(settings()) as system:
        with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
            progress.add_task(f"Replaying {plural(len(files), 'file')}", total=None)
            platform = system.platforms["dutchie"]
            done = await pipeline.replay(bootstrap.parts(system), platform, files, store=store)
        async with system.pool.connection() as conn:
            stock = await read.stock_counts(conn, [menu.store.id for menu in done])
        return done, stock


def _report(done: list[Replayed], stock: dict[str, int]) -> dict[str, Any]:
    totals = {
        key: sum(menu.counts.get(key, 0) for menu in done)
        for key in ("products", "new", "changed", "unchanged", "returned", "missing", "price_changes", "stock_changes")
    }
    return {
        **totals,
        "in_stock": stock.get("in_stock", 0),
        "out_of_stock": stock.get("oos", 0),
        "unknown_stock": stock.get("unknown", 0),
        "warnings": [warning for menu in done for warning in menu.warnings],
        "stores": [
            {
                "id": menu.store.id,
                "slug": menu.store.slug,
                "payload_id": menu.payload_id,
                "refused": menu.refused,
                "part": menu.part,
                "already_applied": bool(menu.counts.get("already_applied")),
            }
            for menu in done
        ],
    }


def _print(done: list[Replayed], report: dict[str, Any]) -> None:
    for menu in done:
        if menu.refused:
            errors.print(
                f"menuwatch: {menu.store.slug}: archived as payload {menu.payload_id}, not applied: {menu.refused}",
                markup=False,
                soft_wrap=True,
            )
        elif menu.part:
            errors.print(
                f"menuwatch: {menu.store.slug}: {menu.part}, a part of the menu: no other product counts as missing",
                markup=False,
                soft_wrap=True,
            )
    names = ", ".join(dict.fromkeys(menu.store.slug or str(menu.store.id) for menu in done))
    console.print(f"{plural(report['products'], 'product')} at {names}", markup=False)
    for key in ("new", "changed", "unchanged", "missing"):
        console.print(f"  {key.replace('_', ' '):14}{report[key]:>7,}")
    for key in ("in_stock", "out_of_stock", "unknown_stock"):
        console.print(f"  {key.replace('_', ' '):14}{report[key]:>7,}")
    warnings = report["warnings"]
    if warnings:
        console.print(f"{plural(len(warnings), 'warning')}:")
        for warning in warnings[:_SHOWN]:
            console.print(
                f"  {warning.get('product_id') or '(no id)'} {warning['field']}: {warning['message']}", markup=False
            )
        if len(warnings) > _SHOWN:
            console.print(f"  and {len(warnings) - _SHOWN} more (--json lists all)")
