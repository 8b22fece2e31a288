"""`menuwatch rebuild`: rebuild products and history from the archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.accounts import audit
from menuwatch.cli.options import DryRunOption, JsonOption, SinceOption, parse_since
from menuwatch.cli.output import echo, notice, print_json, progress_bar
from menuwatch.cli.startup import with_system
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.pipeline import rebuild as pipeline
from menuwatch.pipeline.rebuild import RebuildResult, RowChanges
from menuwatch.stores import store as stores
from menuwatch.stores.service import StoreFilter, list_stores
from menuwatch.stores.store import Store
from menuwatch.system import System

_SHOWN = 10
_Refusals = list[tuple[Store, str]]


def rebuild(
    store: Annotated[list[str] | None, typer.Argument(help="Stores: name, slug or ID of each.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All stores that were crawled.")] = False,
    since: SinceOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Rebuild a store's products and history from its archive with the current version. Uses one transaction per store. With
    --since, earlier history stays and need not be archived. Payloads whose file is missing or damaged are skipped and listed
    at the end. Exit code 1 if there are any, if a payload is no longer accepted, or if one of several stores was refused."""
    if everything == bool(store):
        raise Refused("give one or more stores, or --all")
    start = parse_since(since, datetime.now(UTC)) if since else None
    done, refused = with_system(lambda system: _rebuild(system, store or [], since=start, dry_run=dry_run))
    if json:
        failures = [{"id": failed.id, "slug": failed.slug, "reason": reason} for failed, reason in refused]
        results = [_report(result) for result in done]
        print_json({"dry_run": dry_run, "since": start, "stores": results, "refused": failures})
    else:
        for result in done:
            _print(result, dry_run=dry_run)
        notice(*(f"menuwatch: {failed.name}: {reason}" for failed, reason in refused))
        _print_damaged(done, dry_run=dry_run)
    if refused or any(result.refused or result.damaged for result in done):
        raise typer.Exit(1)


def _report(result: RebuildResult) -> dict[str, Any]:
    return {
        "id": result.store.id,
        "slug": result.store.slug,
        "payloads": result.payloads,
        "guessed": result.approximate,
        "same": result.same,
        "products": asdict(result.products),
        "states": asdict(result.states),
        "details": asdict(result.details),
        "crawls": asdict(result.crawls),
        "examples": result.examples,
        "damaged": [asdict(damaged) for damaged in result.damaged],
        "refused": [{"payload_id": number, "reason": reason} for number, reason in result.refused],
    }


def _describe(counts: RowChanges) -> str:
    numbers = (("new", counts.added), ("gone", counts.removed), ("changed", counts.changed))
    return ", ".join(f"{n:,} {word}" for word, n in numbers if n) or "unchanged"


def _print(result: RebuildResult, *, dry_run: bool) -> None:
    rebuilt = "would be rebuilt" if dry_run else "rebuilt"
    since = f" since {result.since:%Y-%m-%d %H:%M} UTC" if result.since else ""
    compared = {
        "products": result.products,
        "states": result.states,
        "batches and lab values": result.details,
        "crawls": result.crawls,
    }
    changes = "; ".join(f"{name} {_describe(counts)}" for name, counts in compared.items())
    echo(
        f"{result.store.name} (store {result.store.id}): {rebuilt}{since} from {pluralize(result.payloads, 'payload')}; "
        f"{'no differences' if result.same else changes}."
    )
    for example in result.examples[:_SHOWN]:
        columns = f" ({', '.join(example['columns'])})" if example["columns"] else ""
        echo(f"  {example['what']}: {example['name']} {example['provider_product_id']}{columns}")
    if result.approximate:
        echo(
            f"  For {pluralize(result.approximate, 'product')} no earlier payload has the name and other values without "
            "history: taken from the first payload since."
        )
    echo(*(f"  payload {number} is now quarantined: {reason}" for number, reason in result.refused))


def _print_damaged(results: Sequence[RebuildResult], *, dry_run: bool) -> None:
    """Prints every skipped file, and what to do."""
    files = [(result.store, damaged) for result in results for damaged in result.damaged]
    if not files:
        return
    skipped = "would be skipped" if dry_run else "skipped"
    notice(
        f"menuwatch: {pluralize(len(files), 'payload')} {skipped}: the file is missing or damaged.",
        *(f"  payload {file.payload_id} of {store.name}, {file.path}: {file.reason}" for store, file in files),
        "The history has a gap there. Run `menuwatch verify --repair`, or copy the files from a backup into the "
        "storage directory; then rebuild these stores again.",
    )


async def _rebuild(
    system: System, names: Sequence[str], *, since: datetime | None, dry_run: bool
) -> tuple[list[RebuildResult], _Refusals]:
    done: list[RebuildResult] = []
    refused: _Refusals = []
    context = bootstrap.handler_context(system)
    async with system.pool.connection() as conn:
        selected = [await stores.resolve(conn, text) for text in names]
        if not names:
            every = await list_stores(conn, StoreFilter(), limit=None)
            selected = [store for store in every if store.last_crawled_at is not None]
        if not dry_run:
            await audit.record(conn, "history_rebuilt", stores=[store.id for store in selected], since=since)
    with progress_bar("Rebuilding") as update:
        for number, store in enumerate(selected, 1):
            progress = partial(update, description=f"Store {number} of {len(selected)}, payloads")
            try:
                done.append(await pipeline.rebuild(context, store.id, since=since, dry_run=dry_run, progress=progress))
            except Refused as error:
                if len(names) == 1:
                    raise
                refused.append((store, str(error)))
    return done, refused
