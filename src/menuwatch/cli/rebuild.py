"""`menuwatch rebuild`: products and history made anew from the archive."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from menuwatch import bootstrap
from menuwatch.cli.output import console, errors, plain, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.cli.products import parse_since
from menuwatch.core.errors import Refused
from menuwatch.operations import audit
from menuwatch.pipeline import rebuild as pipeline
from menuwatch.pipeline.rebuild import Counts, Rebuilt
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

_SHOWN = 10
_Refusals = list[tuple[Store, str]]


def rebuild(
    store: Annotated[list[str] | None, typer.Argument(help="The stores: slug, platform id or number of each.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every store that was ever crawled.")] = False,
    since: Annotated[
        str | None,
        typer.Option(help="Only what was crawled from then on: a date, a time (ISO 8601), or an age as 7d."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would differ.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make a store's products and history anew from its archive, as if today's version had read every menu.

    One transaction a store. With --since what was before stays as it is, and need not be in the archive any more. Exit code 1 when a
    payload is not taken any more or, with --all, a store was refused.
    """
    if everything == bool(store):
        raise Refused("name the stores, or say --all")
    start = parse_since(since, datetime.now(UTC)) if since else None
    done, refused = asyncio.run(_rebuild(store or [], since=start, dry_run=dry_run))
    if json:
        print_json({"dry_run": dry_run, "since": start, "stores": [_report(one) for one in done], "refused": [
            {"id": one.id, "slug": one.slug, "reason": reason} for one, reason in refused
        ]})  # fmt: skip
    else:
        for one in done:
            _print(one, dry_run=dry_run)
        for one_store, reason in refused:
            errors.print(f"menuwatch: {plain(one_store.name)}: {plain(reason)}", markup=False, soft_wrap=True)
    if refused or any(one.refused for one in done):
        raise typer.Exit(1)


def _report(one: Rebuilt) -> dict[str, Any]:
    return {
        "id": one.store.id,
        "slug": one.store.slug,
        "payloads": one.payloads,
        "guessed": one.guessed,
        "same": one.same,
        "products": asdict(one.products),
        "states": asdict(one.states),
        "crawls": asdict(one.crawls),
        "examples": one.examples,
        "refused": [{"payload_id": number, "reason": reason} for number, reason in one.refused],
    }


def _said(counts: Counts) -> str:
    words = [
        f"{n:,} {word}"
        for word, n in (("new", counts.added), ("gone", counts.removed), ("changed", counts.changed))
        if n
    ]
    return ", ".join(words) or "as before"


def _print(one: Rebuilt, *, dry_run: bool) -> None:
    would = "would be rebuilt" if dry_run else "rebuilt"
    since = f" since {one.since:%Y-%m-%d %H:%M} UTC" if one.since else ""
    what = "nothing differs" if one.same else "; ".join(
        f"{name} {_said(counts)}" for name, counts in (("products", one.products), ("states", one.states), ("crawls", one.crawls))
    )  # fmt: skip
    console.print(
        f"{plain(one.store.name)} (store {one.store.id}): {would}{since} from {plural(one.payloads, 'payload')}; {what}.",
        markup=False,
        soft_wrap=True,
    )
    for example in one.examples[:_SHOWN]:
        columns = f" ({', '.join(example['columns'])})" if example["columns"] else ""
        text = f"  {example['what']}: {plain(example['name'])} {plain(example['provider_product_id'])}{columns}"
        console.print(text, markup=False, soft_wrap=True)
    if one.guessed:
        console.print(
            f"  No payload from before tells the name, and what else has no history, of {plural(one.guessed, 'product')}: taken to "
            "have been as in the first payload since.",
            markup=False,
            soft_wrap=True,
        )
    for number, reason in one.refused:
        console.print(f"  payload {number} is quarantined now: {plain(reason)}", markup=False, soft_wrap=True)


async def _rebuild(named: Sequence[str], *, since: datetime | None, dry_run: bool) -> tuple[list[Rebuilt], _Refusals]:
    done: list[Rebuilt] = []
    refused: _Refusals = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    async with bootstrap.open_system(settings()) as system:
        parts = bootstrap.parts(system)
        async with system.pool.connection() as conn:
            chosen = [await _store(conn, text) for text in named]
            if not named:
                chosen = [one for one in await stores.page(conn, limit=1_000_000) if one.last_crawled_at is not None]
            if not dry_run:
                await audit.record(conn, "history_rebuilt", stores=[one.id for one in chosen], since=since)
        with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
            bar = progress.add_task("Rebuilding", total=None)
            for number, one in enumerate(chosen, 1):

                def told(payloads: int, of: int, said: str = f"Store {number} of {len(chosen)}, payloads") -> None:
                    progress.update(bar, description=said, completed=payloads, total=of)

                try:
                    done.append(await pipeline.rebuild(parts, one.id, since=since, dry_run=dry_run, told=told))
                except Refused as error:
                    if named:
                        raise
                    refused.append((one, str(error)))
    return done, refused


async def _store(conn: Any, text: str) -> Store:
    found = await stores.find(conn, text)
    if found is None:
        raise Refused(f"{text}: there is no such store; `menuwatch stores list` shows those there are")
    return found
