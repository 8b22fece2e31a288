"""`menuwatch replay`: import recorded responses into the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.accounts import audit
from menuwatch.catalog import store as catalog
from menuwatch.cli.options import JsonOption, check_platform, parse_states, require_files
from menuwatch.cli.output import echo, notice, print_json, progress_bar
from menuwatch.cli.startup import with_system
from menuwatch.core.format import pluralize
from menuwatch.pipeline import replay as pipeline
from menuwatch.pipeline.replay import Outcome
from menuwatch.system import System

_SHOWN = 10
_DROPPED_SHOWN = 1000
"""Maximum number of dropped items in the table; `--json` has all."""


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Recorded responses, pages of one or more menus: .json, .json.gz, or tar archives of them."
        ),
    ],
    store: Annotated[
        str | None, typer.Option(help="Slug or platform id of the store, if the files do not name it.")
    ] = None,
    platform: Annotated[str | None, typer.Option(help="Platform of the responses, if it cannot be detected.")] = None,
    state: Annotated[
        str | None,
        typer.Option(help="State (NM, ON) of stores whose state is otherwise unknown."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Import recorded responses as if they had just been crawled; archive files keep their own time. Importing a file again
    changes nothing, and a partial menu counts no product as missing. Menus without products are skipped. Exit code 1 if a menu was
    archived but not applied or a file of a tar archive is invalid, 2 if a file is invalid or all are empty."""
    require_files(files)
    states = parse_states(None if state is None else [state])

    async def act(system: System) -> tuple[Outcome, dict[str, int]]:
        check_platform(system.platforms, platform)
        async with system.pool.connection() as conn:
            await audit.record(conn, "answers_replayed", files=len(files), store=store, platform=platform)
        with progress_bar(f"Reading {pluralize(len(files), 'file')}") as update:
            outcome = await pipeline.replay(
                bootstrap.handler_context(system),
                system.platforms[platform] if platform is not None else None,
                files,
                store=store,
                state=states[0] if states else None,
                progress=lambda done, total: update(done, total, description="Importing menus"),
            )
        async with system.pool.connection() as conn:
            return outcome, await catalog.stock_counts(conn, [menu.store.id for menu in outcome.menus])

    outcome, stock = with_system(act)
    report = _report(outcome, stock)
    if json:
        print_json(report)
    else:
        _print(outcome, report)
    if any(menu.refused for menu in outcome.menus) or any(not file.empty for file in outcome.left_out):
        raise typer.Exit(1)


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
        "dropped": sum(warning["fatal"] for menu in done for warning in menu.warnings),
        "warning_count": sum(len(menu.warnings) for menu in done),
        "warnings": [
            {"store": menu.store.slug, "payload_id": menu.payload_id, **warning}
            for menu in done
            for warning in sorted(menu.warnings, key=lambda one: not one["fatal"])
        ],
        "files": outcome.files,
        "menus": len(done),
        "undated": sum(menu.undated for menu in done),
        "repeated_files": outcome.repeated,
        "left_out": [{"file": file.source, "reason": file.reason, "empty": file.empty} for file in outcome.left_out],
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


def _print(outcome: Outcome, report: dict[str, Any]) -> None:
    menus = outcome.menus
    partial = [menu for menu in menus if menu.part and not menu.refused]
    notes = [
        f"{menu.store.slug}: archived as payload {menu.payload_id}, not applied: {menu.refused}"
        for menu in menus
        if menu.refused
    ]
    notes += [
        f"{menu.store.slug}: {menu.part}, a partial menu: no other product counts as missing"
        for menu in partial[:_SHOWN]
    ]
    if len(partial) > _SHOWN:
        notes.append(f"and {len(partial) - _SHOWN} more partial menus (--json lists all)")
    notes += [f"{file.source}: skipped: {file.reason}" for file in outcome.left_out if not file.empty]
    empty = [file.source for file in outcome.left_out if file.empty]
    if len(empty) <= _SHOWN:
        notes += [f"{source}: skipped: the menu has no products" for source in empty]
    if empty:
        files = pluralize(len(empty), "file")
        notes.append(f"{files} skipped: a menu without products may be a block page (--json lists all)")
    if outcome.repeated:
        notes.append(f"{pluralize(outcome.repeated, 'file')} repeated a page of another")
    if report["undated"]:
        undated = pluralize(report["undated"], "menu")
        notes.append(f"{undated} without a crawl time: imported as crawled now (archived payloads keep their own time)")
    if stateless := len({menu.store.id for menu in menus if menu.store.state is None}):
        notes.append(
            f"{pluralize(stateless, 'store')} without a known state: not counted by state (set it with --state NM)"
        )
    notice(*(f"menuwatch: {note}" for note in notes))
    names = list(dict.fromkeys(menu.store.slug or str(menu.store.id) for menu in menus))
    where = ", ".join(names) if len(names) <= _SHOWN else pluralize(len(names), "store")
    applied = [menu.store.id for menu in menus if not menu.refused]
    several = len(applied) > len(set(applied))
    if several:
        # A product is in several of the menus; the last menu of each store counts.
        products = sum(report[key] for key in ("in_stock", "out_of_stock", "unknown_stock"))
        echo(f"{pluralize(products, 'product')} at {where}, from {len(applied):,} menus", "over all menus")
    else:
        echo(f"{pluralize(report['products'], 'product')} at {where}")
    echo(*(_count(report, key) for key in ("new", "changed", "unchanged", "missing")))
    if several:
        echo("after the last one")
    echo(*(_count(report, key) for key in ("in_stock", "out_of_stock", "unknown_stock")))
    if warnings := report["warnings"]:
        dropped = report["dropped"]
        echo(f"{pluralize(len(warnings), 'warning')}, {pluralize(dropped, 'item')} dropped:")
        # Every dropped item is named, of the other warnings the first ones.
        shown = max(_SHOWN, min(dropped, _DROPPED_SHOWN))
        echo(*(_line(warning, several=len(names) > 1) for warning in warnings[:shown]))
        if len(warnings) > shown:
            echo(f"  and {len(warnings) - shown:,} more (--json lists all)")


def _line(warning: dict[str, Any], *, several: bool) -> str:
    """`dropped: item 12 "Blue Dream" (5f00…) at a-shop: Prices: is missing`"""
    position = f"item {warning['position']}" if warning.get("position") else "an item"
    name = f' "{warning["name"]}"' if warning.get("name") else ""
    where = f" at {warning['store']}" if several else ""
    field = f"{warning['field']}: " if warning["field"] else ""
    kind = "dropped" if warning["fatal"] else "stored"
    return f"  {kind}: {position}{name} ({warning.get('product_id') or 'no id'}){where}: {field}{warning['message']}"


def _count(report: dict[str, Any], key: str) -> str:
    return f"  {key.replace('_', ' '):14}{report[key]:>7,}"
