"""`menuwatch products` and `menuwatch changes`: what the stores offer, and what changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.catalog import store as catalog
from menuwatch.catalog.canon.kinds import CATEGORIES, SUBCATEGORIES
from menuwatch.catalog.canon.strains import STRAINS
from menuwatch.cli.output import Format, errors, plural, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.operations.changes import Kind
from menuwatch.schedules.model import parse_state
from menuwatch.stores import store as stores

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

StoreOption = Annotated[str | None, typer.Option(help="Only this store: its slug, platform id or number.")]
LimitOption = Annotated[
    int | None, typer.Option(min=1, help="Print no more rows than this. Tables stop at 100 by themselves.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print.")]
StateOption = Annotated[list[str] | None, typer.Option(help="Only stores of this state, as NM (repeatable).")]
BrandOption = Annotated[list[str] | None, typer.Option(help="Only this brand, in any case (repeatable).")]


class Stock(StrEnum):
    """What is known of a product's stock."""

    IN = "in_stock"
    OUT = "oos"
    UNKNOWN = "unknown"


def products(
    store: StoreOption = None,
    category_canon: Annotated[
        list[str] | None,
        typer.Option(help="Only these categories, in the words of all platforms: flower, edible, … (repeatable)."),
    ] = None,
    subcategory_canon: Annotated[
        list[str] | None, typer.Option(help="Only these subcategories: gummies, cartridge, … (repeatable).")
    ] = None,
    strain_canon: Annotated[
        list[str] | None, typer.Option(help="Only these strain types: indica, sativa, hybrid, … (repeatable).")
    ] = None,
    state: StateOption = None,
    platform: Annotated[list[str] | None, typer.Option(help="Only of this platform (repeatable).")] = None,
    brand: BrandOption = None,
    stock: Annotated[list[Stock] | None, typer.Option(help="Only with this stock (repeatable).")] = None,
    fmt: FormatOption = Format.TABLE,
    limit: LimitOption = None,
) -> None:
    """List products with price, stock and potency as of their store's last crawl."""
    words = {
        "categories_canon": _known("--category-canon", category_canon, CATEGORIES),
        "subcategories_canon": _known("--subcategory-canon", subcategory_canon, SUBCATEGORIES),
        "strains_canon": _known("--strain-canon", strain_canon, STRAINS),
        "states": _states(state),
        "platforms": platform or None,
        "brands": brand or None,
        "stock": [str(one) for one in stock] if stock else None,
    }
    rows = asyncio.run(_products(store, _limit(limit, fmt), words))
    for row in rows:
        row["price"] = _lowest(row, "price_rec", "price_rec_special") or _lowest(row, "price_med", "price_med_special")
        row["thc"] = _potency(row, "thc")
        row["stock"] = _stock(row)
    shown = rows
    if fmt is not Format.TABLE:
        shown = [{k: v for k, v in row.items() if k not in ("price", "thc", "stock")} for row in rows]
    print_rows(
        shown,
        (
            ("id", "#"),
            ("store", "Store"),
            ("name", "Product"),
            ("brand_name", "Brand"),
            ("category", "Category"),
            ("price", "From $"),
            ("stock", "Stock"),
            ("thc", "THC"),
        ),
        fmt,
        empty="No such products."
        if any(words.values())
        else "No products yet. Add a store with `menuwatch stores add URL`, or try `menuwatch demo`.",
    )
    _cut(rows, limit, fmt)


def changes(
    since: Annotated[
        str | None, typer.Option(help="Only changes since then: a date, a time (ISO 8601), or an age as 90m, 6h, 7d.")
    ] = None,
    store: StoreOption = None,
    state: StateOption = None,
    kind: Annotated[Kind | None, typer.Option(help="Only such changes.")] = None,
    category_canon: Annotated[
        list[str] | None, typer.Option(help="Only these categories, in the words of all platforms (repeatable).")
    ] = None,
    brand: BrandOption = None,
    fmt: FormatOption = Format.TABLE,
    limit: LimitOption = None,
) -> None:
    """List price and stock changes, newest first."""
    now = datetime.now(UTC)
    start = parse_since(since, now) if since else None
    if start is not None and start > now:
        raise Refused(f"--since {since!r} is still to come: it is {now:%Y-%m-%dT%H:%M} UTC")
    wanted = {
        "since": start,
        "kind": None if kind is None else str(kind),
        "states": _states(state),
        "categories_canon": _known("--category-canon", category_canon, CATEGORIES),
        "brands": brand or None,
    }
    rows = asyncio.run(_changes(store, _limit(limit, fmt), wanted))
    shown = rows
    if fmt is Format.TABLE:
        shown = [row | {"price": _arrow(row, "price"), "stock": _stock_change(row)} for row in rows]
    print_rows(
        shown,
        (
            ("changed_at", "When (UTC)"),
            ("store", "Store"),
            ("name", "Product"),
            ("price", "Price from $"),
            ("stock", "Stock"),
        ),
        fmt,
        empty="No such changes."
        if any(value for name, value in wanted.items() if name != "since")
        else "No changes in that time."
        if since
        else "No changes yet: a store must have been crawled twice.",
    )
    _cut(rows, limit, fmt)


def parse_since(text: str, now: datetime, option: str = "--since") -> datetime:
    """A moment: an age before now (`90m`, `6h`, `7d`, `2w`) or an ISO 8601 date or time, in UTC unless it says otherwise.

    `option` is what it was given as.
    """
    age = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    try:
        if age:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise Refused(
            f"{option} {text!r} is no time: give a date (2026-11-20), a time (2026-11-20T14:30) or an age (6h)"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _known(option: str, words: list[str] | None, allowed: frozenset[str]) -> list[str] | None:
    """The words, which raises Refused for one that there is not."""
    for word in words or ():
        if word not in allowed:
            raise Refused(f"{option} {word!r}: there is no such word; it is one of {', '.join(sorted(allowed))}")
    return words or None


def _states(named: list[str] | None) -> list[str] | None:
    return [parse_state(text) for text in named] if named else None


async def _products(
    store: str | None, limit: int | None, words: Mapping[str, Sequence[str] | None]
) -> list[dict[str, Any]]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        for name in words["platforms"] or ():
            if name not in system.platforms:
                raise Refused(f"--platform {name}: is not known here ({', '.join(system.platforms)})")
        return await catalog.products(conn, dispensary_id=await _store_id(conn, store), limit=limit, **words)


async def _changes(store: str | None, limit: int | None, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await catalog.changes(conn, dispensary_id=await _store_id(conn, store), limit=limit, **wanted)


async def _store_id(conn: Any, store: str | None) -> int | None:
    if store is None:
        return None
    found = await stores.find(conn, store)
    if found is None:
        raise Refused(f"--store {store}: there is no such store; `menuwatch stores list` shows those there are")
    return found.id


_TABLE_LIMIT = 100


def _limit(limit: int | None, fmt: Format) -> int | None:
    return limit if limit is not None or fmt is not Format.TABLE else _TABLE_LIMIT


def _cut(rows: list[dict[str, Any]], limit: int | None, fmt: Format) -> None:
    if fmt is Format.TABLE and limit is None and len(rows) == _TABLE_LIMIT:
        errors.print(f"The first {plural(_TABLE_LIMIT, 'row')}; --limit or --format csv prints more.")


def _lowest(row: dict[str, Any], *keys: str) -> Any:
    return min((row[key] for key in keys if row[key] is not None), default=None)


def _potency(row: dict[str, Any], kind: str) -> str | None:
    low, high, unit = row[f"{kind}_lo"], row[f"{kind}_hi"], row[f"{kind}_unit"]
    if low is None:
        return None
    amount = f"{low.normalize():f}" if low == high else f"{low.normalize():f}–{high.normalize():f}"
    return f"{amount} {unit}"


def _stock(row: dict[str, Any]) -> str:
    if row["stock_status"] == "oos":
        return "out"
    if row["quantity"] is None:
        return "unknown" if row["stock_status"] == "unknown" else "in"
    return f"{row['quantity']}{'+' if row['quantity_capped'] else ''}"


def _arrow(row: dict[str, Any], key: str) -> str | None:
    if not row[f"{key}_changed"]:
        return None
    before, after, what = row[f"{key}_before"], row[f"{key}_after"], ""
    if before == after:
        # What the cheapest option costs is as it was: the regular price behind a special moved, or another option's.
        before, after, what = row["price_rec_before"], row["price_rec_after"], "regular "
        if before == after:
            return "of another option"
    return what + " → ".join("-" if value is None else f"{value:,.2f}" for value in (before, after))


def _stock_change(row: dict[str, Any]) -> str | None:
    if not row["stock_changed"]:
        return None
    words = {"in_stock": "in", "oos": "out", "unknown": "unknown"}

    def say(status: str, quantity: int | None) -> str:
        return words[status] if quantity is None or status == "oos" else str(quantity)

    return " → ".join(say(row[f"stock_status_{when}"], row[f"quantity_{when}"]) for when in ("before", "after"))
