"""`menuwatch match`: which listings are the same product, across stores and platforms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from menuwatch.cli import match_review
from menuwatch.cli.options import Commands, JsonOption, require_files
from menuwatch.cli.output import echo, print_json
from menuwatch.cli.startup import read, with_system
from menuwatch.core.format import percent, pluralize
from menuwatch.matching import files
from menuwatch.matching import stats as reports
from menuwatch.matching.engine import match_all
from menuwatch.matching.explain import ExplainedListing, explain
from menuwatch.matching.model import Reason
from menuwatch.matching.rebuild import rebuild_index

app = Commands("Match products across stores and platforms.")
app.add_typer(match_review.app)

_Listing = Annotated[
    int, typer.Argument(help="Id of a product of a store, as `menuwatch products` lists it.", min=1, max=2**63 - 1)
]


@app.command("explain")
def explain_(a: _Listing, b: _Listing, json: JsonOption = False) -> None:
    """Explain why two listings are, or are not, one canonical product."""
    found = read(lambda _, conn: explain(conn, a, b))
    if json:
        print_json(found)
        return
    echo(_shown(found.a), _shown(found.b))
    if found.confidence is None:
        echo("Not matched yet: run `menuwatch match apply`, or wait for the server.")
        return
    result = "One product" if found.together else "Different products"
    echo(f"{result}, confidence {percent(found.confidence)} that they are one product.")
    if found.written_alike:
        echo("Both are written alike.")
    if found.corrected is not None:
        echo(f"Corrected by a person: {'same' if found.corrected else 'different'}.")
    for step in found.steps:
        echo(f"  {step.a} = {step.b} ({percent(step.confidence)}): {_reasons(step.reasons)}")
    if found.reasons:
        echo(f"Direct comparison: {_reasons(found.reasons)}")


def _shown(listing: ExplainedListing) -> str:
    number = f"canonical product {listing.canonical_product_id}" if listing.canonical_product_id else "not matched"
    brand = f" of {listing.brand}" if listing.brand else ""
    sizes = f" ({', '.join(listing.sizes)})" if listing.sizes else ""
    return f"{listing.product_id}: {listing.name}{brand}{sizes} at {listing.store}, {listing.platform}: {number}"


def _reasons(reasons: Sequence[Reason]) -> str:
    parts = []
    for reason in reasons:
        weight = "" if reason.weight is None else f" {reason.weight:+.1f}"
        detail = f" ({reason.detail})" if reason.detail else ""
        parts.append(f"{reason.code.replace('_', ' ')}{detail}{weight}")
    return "; ".join(parts) or "no evidence"


@app.command("stats")
def stats(json: JsonOption = False) -> None:
    """Show how many listings are matched, shared by stores, and waiting."""
    found = read(lambda _, conn: reports.read_stats(conn))
    if json:
        print_json(found)
        return
    shared = percent(found.shared_listings / found.listings) if found.listings else "none"
    echo(
        f"{pluralize(found.listings, 'listing')} in {pluralize(found.products, 'canonical product')} of "
        f"{pluralize(found.brands, 'brand')}; {found.waiting_listings:,} waiting",
        f"{shared} of listings are in the {found.shared_products:,} products at two or more stores; "
        f"{pluralize(found.products_on_platforms, 'product')} on two or more platforms",
        f"Waiting: {pluralize(found.waiting_stores, 'store')}, {pluralize(found.waiting_blocks, 'block')}. "
        f"To review: {pluralize(found.reviews, 'pair')}. Corrections: {found.corrections:,}",
    )
    for title, rows in (("Category", found.categories), ("Platform", found.platforms)):
        for row in rows:
            echo(
                f"  {title} {row.name}: {row.listings:,} listings, {row.products:,} products, {row.shared_listings:,} shared"
            )


@app.command("apply")
def apply(json: JsonOption = False) -> None:
    """Match everything that waits now. A running server does so within seconds."""
    run = with_system(lambda system: match_all(system.pool))
    counts = {
        "stores": run.taken.stores,
        "listings": run.taken.listings,
        "removed": run.taken.removed,
        "blocks": run.blocks.blocks,
        "products": run.blocks.products,
        "merged": run.blocks.merged,
        "split": run.blocks.split,
        "moved": run.blocks.moved,
        "failed": run.failed,
    }
    if json:
        print_json(counts)
    else:
        echo(
            f"{pluralize(run.taken.stores, 'store')}: {pluralize(run.taken.listings, 'changed listing')}, "
            f"{run.taken.removed:,} removed. {pluralize(run.blocks.blocks, 'block')}: "
            f"{pluralize(run.blocks.products, 'new product')}, {run.blocks.merged:,} merged, {run.blocks.split:,} split. "
            f"{run.failed:,} failed."
        )
    if run.failed:
        raise typer.Exit(1)


@app.command("rebuild")
def rebuild(json: JsonOption = False) -> None:
    """Drop all links and match every listing again. Ids and corrections stay."""
    result = with_system(lambda system: rebuild_index(system.pool))
    if json:
        print_json(result)
    else:
        echo(
            f"{pluralize(result.listings, 'listing')} matched again, numbers changed: {result.changed:,}. "
            f"{pluralize(result.products, 'new product')}, {result.merged:,} merged, {result.failed:,} failed."
        )
    if result.failed:
        raise typer.Exit(1)


@app.command("listings")
def listings(
    file: Annotated[Path, typer.Argument(help="JSON lines with `id` and `name`, plain or gzip.", metavar="FILE")],
    out: Annotated[Path, typer.Option("--out", help="CSV file to write.", metavar="FILE")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Group the listings of a file: listings of the same product get the same group id. No database is needed.

    Optional fields: `store`, `seller`, `source`, `source_id`, `brand`, `category`, `subcategory`, `strain`,
    `size` and `size_g`.
    """
    require_files([file])
    found = files.group_listings(files.read_listings(file))
    files.write_groups(out, found, overwrite=overwrite)
    sizes = Counter(one.group_id for one in found)
    shared = sum(1 for count in sizes.values() if count > 1)
    echo(
        f"{pluralize(len(found), 'listing')} in {pluralize(len(sizes), 'group')}, {shared:,} of them with several: {out}"
    )
