"""`menuwatch payloads`: the archive and the quarantine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import structs

from menuwatch.archive import diff as archive_diff
from menuwatch.archive import service as payloads
from menuwatch.archive.diff import DiffDetails, DiffItem, DiffPrices, DiffStock, PayloadDiff
from menuwatch.archive.service import STATUSES, PayloadFilter
from menuwatch.archive.store import Payload
from menuwatch.cli.options import Commands, JsonOption, Output, StoreOption, find_store_id, limit_option
from menuwatch.cli.output import (
    Column,
    Format,
    ago,
    cell,
    echo,
    notice,
    print_detail,
    print_json,
    print_list,
    standard_output,
)
from menuwatch.cli.startup import in_transaction, read, with_system
from menuwatch.core.errors import Refused, unknown_value
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.exports.atomic_files import atomic_file
from menuwatch.system import System

app = Commands("Manage archived responses and quarantined menus.")

NumberArgument = Annotated[int, typer.Argument(min=1, max=2**63 - 1, metavar="NUMBER", help="Id of the payload.")]

COLUMNS = (
    Column("#", "id"),
    Column("Store", "dispensary_id"),
    Column("Fetched", "fetched_at", ago),
    Column("Products", "product_count"),
    Column("Bytes", "bytes"),
    Column("Status", "status"),
    Column("Applied", lambda payload: payload.applied_at is not None),
    Column("Reason", "reason"),
)
DIFF_COLUMNS = (
    Column("Change", "what", rank=1),
    Column("Product", "name", rank=2),
    Column("Before", "before", rank=3),
    Column("After", "after", rank=4),
    Column("Id", "product_id"),
)


@app.command("list")
def list_(
    out: Output,
    store: StoreOption = None,
    status: Annotated[str | None, typer.Option(help="Only this status: ok, partial, quarantined or rejected.")] = None,
    limit: Annotated[int, limit_option()] = 50,
) -> None:
    """List archived payloads, newest first."""
    if status is not None and status not in STATUSES:
        raise Refused(unknown_value("--status", status, STATUSES))

    async def act(_: System, conn: Connection) -> list[Payload]:
        where = PayloadFilter(dispensary_id=await find_store_id(conn, store), status=status)
        return await payloads.list_payloads(conn, where, limit=limit)

    print_list(read(act), COLUMNS, out.format, empty="No matching payloads.")


@app.command("show")
def show(number: NumberArgument, json: JsonOption = False) -> None:
    """Show one payload: metadata, the crawl made from it, and payloads with the same content."""

    async def act(_: System, conn: Connection) -> tuple[Payload, dict[str, Any]]:
        payload = await payloads.get_payload(conn, number)
        return payload, await payloads.get_usage(conn, payload)

    payload, usage = read(act)
    if json:
        print_json({**structs.asdict(payload), **usage})
        return
    echo(f"Payload {payload.id}: {payload.status}" + (f", {payload.reason}" if payload.reason else ""), "")
    print_detail(payload, _detail(usage))


@app.command("data")
def data(
    number: NumberArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to this file instead of standard output.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")] = False,
) -> None:
    """Print the uncompressed archived document: `pages` holds the platform's responses verbatim."""
    if overwrite and out is None:
        raise Refused("--overwrite requires --out")

    async def act(system: System) -> bytes:
        async with system.pool.connection() as conn:
            payload = await payloads.get_payload(conn, number)
        return await payloads.unpacked(system.archive, payload)

    document = with_system(act, read_only=True)
    if out is None or str(out) == "-":
        stdout = standard_output()
        stdout.write(document)
        stdout.flush()
        return
    with atomic_file(out, overwrite=overwrite) as file:
        file.write(document)
    notice(f"Wrote {len(document):,} bytes to {out}")


@app.command("diff")
def diff(
    older: Annotated[
        int | None, typer.Argument(min=1, max=2**63 - 1, metavar="[FROM]", help="Id of the older payload.")
    ] = None,
    newer: Annotated[
        int | None,
        typer.Argument(
            min=1, max=2**63 - 1, metavar="[TO]", help="Id of the newer payload; default: the store's newest ok one."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Compare the two newest ok payloads of this store: name, slug or ID."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two archived menus of a store product by product."""
    if older is None and store is None:
        raise Refused("give one or two payloads, or --store")

    async def act(system: System) -> PayloadDiff:
        async with system.pool.connection() as conn:
            store_id = await find_store_id(conn, store)
            if store_id is None:
                assert older is not None, "a payload or a store is given"
                store_id = (await payloads.get_payload(conn, older)).dispensary_id
            first, second = await payloads.choose_pair(conn, store_id, older, newer)
        return archive_diff.to_response(await archive_diff.compare(system.archive, system.platforms, first, second))

    result = with_system(act, read_only=True)
    if json:
        print_json(result)
        return
    echo(*_summarize(result))
    print_list(_difference_rows(result.details), DIFF_COLUMNS, Format.TABLE)


@app.command("release")
def release(
    number: Annotated[int, typer.Argument(help="Id of the payload.")],
    note: Annotated[str | None, typer.Option(help="Note kept with the payload.")] = None,
) -> None:
    """Release a payload from quarantine after review. A worker applies it."""
    task = in_transaction(lambda _, conn: payloads.release(conn, number, note))
    echo(f"Released payload {number}; task {task} applies it as soon as a worker is free.")


@app.command("reject")
def reject(
    number: Annotated[int, typer.Argument(help="Id of the payload.")],
    note: Annotated[str | None, typer.Option(help="Note kept with the payload.")] = None,
) -> None:
    """Reject a quarantined payload after review. It is kept and never applied."""
    in_transaction(lambda _, conn: payloads.reject(conn, number, note))
    echo(f"Rejected payload {number}.")


_SHOWN = 10
_COUNTS = {
    "new_products": "new",
    "changed": "changed",
    "unchanged": "unchanged",
    "returned": "returned",
    "missing": "missing",
}


def _detail(usage: dict[str, Any]) -> list[Column]:
    """Lines about a payload; `usage` comes from `payloads.get_usage`."""
    store = usage["store"]["name"] if usage["store"] else "gone"
    return [
        Column("Store", lambda payload: f"{payload.dispensary_id} ({store})"),
        Column("Platform", "platform"),
        Column(
            "Fetched", lambda payload: _time(payload.fetched_at) + (", the store's first" if payload.is_first else "")
        ),
        Column("By task", "task_id"),
        Column("Products", _products),
        Column("Partial", lambda payload: "absent products do not count as missed" if payload.is_partial else None),
        Column("Released", lambda payload: payload.released_at and _time(payload.released_at)),
        Column("Notes", lambda payload: "; ".join(payload.notes) or None),
        Column("Applied", lambda payload: _applied(payload, usage["crawl"])),
        Column("File", "path"),
        Column("Size", lambda payload: f"{payload.bytes:,} bytes, {payload.raw_bytes:,} uncompressed"),
        Column("SHA-256", "sha256"),
        Column("Same file", lambda _: _numbers(usage["same_file"])),
        Column("Same menu", lambda _: _numbers(usage["same_answers"])),
    ]


def _products(payload: Payload) -> str:
    of = "" if payload.total_count is None else f" of {payload.total_count:,} reported by the platform"
    return f"{payload.product_count:,}{of}, in {pluralize(payload.page_count, 'page')}"


def _time(moment: datetime) -> str:
    return f"{cell(moment)} UTC"


def _applied(payload: Payload, crawl: dict[str, Any] | None) -> str:
    if crawl is None:
        return "not in the catalog"
    counts = [f"{crawl[key]:,} {word}" for key, word in _COUNTS.items() if crawl[key]]
    when = f", applied {_time(payload.applied_at)}" if payload.applied_at else ""
    return f"crawl of {_time(crawl['crawled_at'])}{when}: {', '.join(counts) or 'no products'}"


def _numbers(ids: Sequence[int]) -> str | None:
    if not ids:
        return None
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return "payload" + ("s " if len(ids) > 1 else " ") + ", ".join(map(str, ids[:_SHOWN])) + more


def _summarize(result: PayloadDiff) -> list[str]:
    """Which two were compared, and how much differs."""
    sides = [
        f"{name:<5}payload {side.id}, {_time(side.fetched_at)}, {pluralize(side.product_count, 'product')}"
        for name, side in (("From", result.from_), ("To", result.to))
    ]
    counts = result.diff
    summary = [
        f"{counts.added:,} added",
        f"{counts.removed:,} removed",
        pluralize(counts.price_changes, "price change"),
        pluralize(counts.stock_changes, "stock change"),
        *((f"{counts.unreadable:,} unreadable",) if counts.unreadable else ()),
    ]
    return [*sides, ", ".join(summary) if any(structs.astuple(counts)) else "No differences."]


def _difference_rows(details: DiffDetails) -> list[dict[str, Any]]:
    """One row for each product and way in which it differs."""
    rows = [_row("new", item, None, _item(item)) for item in details.added]
    rows += [_row("gone", item, _item(item), None) for item in details.removed]
    for change in details.price_changes:
        rows.append(_row("price", change, *_differing(change.before, change.after, _price)))
    for stock in details.stock_changes:
        before, after = _differing(stock.before.options, stock.after.options, _stock)
        if not (before or after):
            before, after = stock.before.stock_status, stock.after.stock_status
        rows.append(_row("stock", stock, before, after))
    return rows + [_row("unreadable", item, item.before, item.after) for item in details.unreadable]


def _row(what: str, item: Any, before: str | None, after: str | None) -> dict[str, Any]:
    return {
        "what": what,
        "name": item.name,
        "before": before,
        "after": after,
        "product_id": item.provider_product_id,
    }


def _item(item: DiffItem) -> str:
    price = "no price" if item.price_rec is None else f"{item.price_rec:,.2f}"
    return f"{price}, {_WORDS[item.stock_status]}"


def _differing(before: Sequence[Any], after: Sequence[Any], text: Callable[[Any], str]) -> tuple[str, str]:
    """Both sides as text, without the options that are the same on both."""
    left = [text(option) for option in before if option not in after]
    right = [text(option) for option in after if option not in before]
    return ", ".join(left), ", ".join(right)


def _price(option: DiffPrices) -> str:
    prices = [
        f"{price:,.2f}{word}"
        for price, word in (
            (option.price_rec, ""),
            (option.price_rec_special, " special"),
            (option.price_med, " medical"),
            (option.price_med_special, " medical special"),
        )
        if price is not None
    ]
    return f"{option.option} {' / '.join(prices) or 'no price'}"


_WORDS = {"in_stock": "in stock", "oos": "out of stock", "unknown": "stock unknown"}


def _stock(option: DiffStock) -> str:
    if option.quantity is None or option.stock_status == "oos":
        return f"{option.option} {_WORDS[option.stock_status]}"
    return f"{option.option} {option.quantity:,}{'+' if option.capped else ''}"
