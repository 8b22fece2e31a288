"""`menuwatch replay`: recorded answers into the catalogue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from menuwatch import bootstrap
from menuwatch.catalog import store as read
from menuwatch.cli.output import console, errors, plain, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.operations import audit
from menuwatch.pipeline import replay as pipeline
from menuwatch.pipeline.replay import Outcome
from menuwatch.schedules.model import parse_state

_SHOWN = 10


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Recorded answers, pages of one or several menus: .json, .json.gz, or tar archives of them."
        ),
    ],
    store: Annotated[
        str | None, typer.Option(help="Slug or platform id of the store, where the files do not name it.")
    ] = None,
    platform: Annotated[
        str | None, typer.Option(help="Platform of the answers, where their shape alone is not to decide.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(help="Two letters (NM, ON): where the stores are of which neither the files nor anybody says it."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Put recorded answers through archive, normalizer and catalogue, as if crawled now; archive files keep their own time.

    The same file again changes nothing, and a part of a menu counts no product as missing. Exit code 1 when a menu was archived
    but not applied or a file of a tar archive cannot be used, 2 when a file cannot be used.
    """
    outcome, stock = asyncio.run(_replay(files, store, platform, _state(state)))
    report = _report(outcome, stock)
    if json:
        print_json(report)
    else:
        _print(outcome, report)
    if any(menu.refused for menu in outcome.menus) or any(not one.empty for one in outcome.left_out):
        raise typer.Exit(1)


def _state(text: str | None) -> str | None:
    try:
        return parse_state(text) if text is not None else None
    except Refused as error:
        raise Refused(f"--state: {error}") from error


async def _replay(
    files: list[Path], store: str | None, name: str | None, state: str | None
) -> tuple[Outcome, dict[str, int]]:
    async with bootstrap.open_system(settings()) as system:
        if name is not None and name not in system.platforms:
            raise Refused(f"--platform {name}: is not known here ({', '.join(system.platforms)})")
        platform = system.platforms[name] if name is not None else None
        async with system.pool.connection() as conn:
            await audit.record(conn, "answers_replayed", files=len(files), store=store, platform=name)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
            bar = progress.add_task(f"Reading {plural(len(files), 'file')}", total=None)

            def told(done: int, of: int) -> None:
                progress.update(bar, description="Replaying menus", completed=done, total=of)

            outcome = await pipeline.replay(
                bootstrap.parts(system), platform, files, store=store, state=state, progress=told
            )
        async with system.pool.connection() as conn:
            stock = await read.stock_counts(conn, [menu.store.id for menu in outcome.menus])
        return outcome, stock


def _report(outcome: Outcome, stock: dict[str, int]) -> dict[str, Any]:
    done = outcome.menus
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
        "files": outcome.files,
        "menus": len(done),
        "repeated_files": outcome.repeated,
        "left_out": [{"file": one.source, "reason": one.reason, "empty": one.empty} for one in outcome.left_out],
        "stores": [
            {
                "id": menu.store.id,
                "platform": menu.store.platform,
                "slug": menu.store.slug,
                "state": menu.store.state,
                "payload_id": menu.payload_id,
                "refused": menu.refused,
                "part": menu.part,
                "already_applied": bool(menu.counts.get("already_applied")),
            }
            for menu in done
        ],
    }


def _say(text: str) -> None:
    errors.print(f"menuwatch: {plain(text)}", markup=False, soft_wrap=True)


def _print(outcome: Outcome, report: dict[str, Any]) -> None:
    done = outcome.menus
    parts = [menu for menu in done if menu.part and not menu.refused]
    for menu in done:
        if menu.refused:
            _say(f"{menu.store.slug}: archived as payload {menu.payload_id}, not applied: {menu.refused}")
    for menu in parts[:_SHOWN]:
        _say(f"{menu.store.slug}: {menu.part}, a part of the menu: no other product counts as missing")
    if len(parts) > _SHOWN:
        _say(f"and {len(parts) - _SHOWN} more menus of which a part is there (--json lists all)")
    for one in outcome.left_out:
        if not one.empty:
            _say(f"{one.source}: left out: {one.reason}")
    if empty := sum(one.empty for one in outcome.left_out):
        _say(f"{plural(empty, 'file')} left out: a menu without products may be a block as well (--json lists all)")
    if outcome.repeated:
        _say(f"{plural(outcome.repeated, 'file')} repeated a page of another")
    nowhere = len({menu.store.id for menu in done if menu.store.state is None})
    if nowhere:
        _say(
            f"of {plural(nowhere, 'store')} nobody says which state it is in: no figure by state counts it (--state NM says it)"
        )
    names = list(dict.fromkeys(menu.store.slug or str(menu.store.id) for menu in done))
    where = ", ".join(names) if len(names) <= _SHOWN else plural(len(names), "store")
    applied = [menu.store.id for menu in done if not menu.refused]
    several = len(applied) > len(set(applied))
    if several:
        # A product is in several of the menus: what is on the last one of each store is what there is.
        products = sum(report[key] for key in ("in_stock", "out_of_stock", "unknown_stock"))
        console.print(f"{plural(products, 'product')} at {where}, from {len(applied):,} menus", markup=False)
        console.print("over all menus")
    else:
        console.print(f"{plural(report['products'], 'product')} at {where}", markup=False)
    for key in ("new", "changed", "unchanged", "missing"):
        console.print(f"  {key.replace('_', ' '):14}{report[key]:>7,}")
    if several:
        console.print("after the last one")
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
