"""`menuwatch products` and `menuwatch changes`: products of the stores, and their changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import typer

from menuwatch.catalog.changes import (
    AnyChange,
    Change,
    ChangeFilter,
    ChangeSide,
    Kind,
    list_changes,
    resolve,
    why_empty,
)
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.match_changes import MatchChange
from menuwatch.catalog.service import Product, ProductFilter, Span, brand_spellings, list_products
from menuwatch.catalog.taxonomy.categories import CATEGORIES, SUBCATEGORIES
from menuwatch.catalog.taxonomy.strains import STRAINS
from menuwatch.cli.options import (
    LimitedOutput,
    MilesOption,
    NearOption,
    PlatformsOption,
    SinceOption,
    StatesOption,
    StoreOption,
    UpdatedOption,
    check_platform,
    find_store_ids,
    parse_circle,
    parse_past,
    parse_states,
    parse_updated,
)
from menuwatch.cli.output import Column, Format, format_potency, notice, print_list, standard_output
from menuwatch.cli.startup import read
from menuwatch.core.errors import Refused
from menuwatch.core.format import money
from menuwatch.db.pool import Connection
from menuwatch.exports.tables import Format as FileFormat
from menuwatch.geo.units import currency
from menuwatch.ops import export
from menuwatch.stores.service import StoreFilter, list_stores
from menuwatch.system import System

BrandsOption = Annotated[
    list[str] | None, typer.Option("--brand", help="Only this brand, case-insensitive (repeatable).")
]
CategoriesOption = Annotated[
    list[str] | None,
    typer.Option("--category-canon", help="Only these canonical categories: flower, edible, … (repeatable)."),
]

CanonicalProductsOption = Annotated[
    list[int] | None,
    typer.Option("--canonical-product", min=1, max=2**63 - 1, help="Only this canonical product, by id (repeatable)."),
]
BrandIdsOption = Annotated[
    list[int] | None,
    typer.Option("--brand-id", min=1, max=2**31 - 1, help="Only canonical products of this brand, by id (repeatable)."),
]
LocationsOption = Annotated[
    list[int] | None, typer.Option("--location", min=1, max=2**31 - 1, help="Only this location, by id (repeatable).")
]

_PAGE = 1000
_STOCK = {"in_stock": "in stock", "oos": "out of stock", "unknown": "unknown"}


def _stock(product: Product) -> str:
    if product.quantity is None or product.stock_status == "oos":
        return _STOCK[product.stock_status]
    return f"{product.quantity}{'+' if product.quantity_capped else ''}"


def _sides(change: Change) -> tuple[ChangeSide, ChangeSide]:
    return msgspec.json.decode(change.before, type=ChangeSide), msgspec.json.decode(change.after, type=ChangeSide)


def _money(price: Decimal | None, unit: str) -> str | None:
    return None if price is None else money(price, unit)


def _price_change(change: AnyChange) -> str | None:
    if isinstance(change, MatchChange) or not change.price_changed:
        return None
    before, after = _sides(change)
    prices, what = (before.price, after.price), ""
    if before.price == after.price:
        # What the cheapest option costs is as it was: the regular price behind a special moved, or another option's.
        prices, what = (before.price_rec, after.price_rec), "regular "
        if before.price_rec == after.price_rec:
            return "of another option"
    return what + " → ".join(_money(price, currency(change.state)) or "-" for price in prices)


def _stock_change(change: AnyChange) -> str | None:
    if isinstance(change, MatchChange) or not change.stock_changed:
        return None
    return " → ".join(
        _STOCK[side.stock_status] if side.quantity is None or side.stock_status == "oos" else str(side.quantity)
        for side in _sides(change)
    )


def _match_change(change: AnyChange) -> str | None:
    if not isinstance(change, MatchChange):
        return None
    return f"{change.kind}: {change.from_canonical_product_id} {change.from_name} → {change.canonical_product_id}"


PRODUCT_COLUMNS = (
    Column("#", "id"),
    Column("Store", "store"),
    Column("Product", "name"),
    Column("Brand", "brand_name"),
    Column("Category", "category"),
    Column("From", lambda product: _money(product.price, product.currency), align="right"),
    Column("Stock", _stock),
    Column("THC", lambda product: format_potency(product.thc)),
)
CHANGE_COLUMNS = (
    Column("When (UTC)", "changed_at"),
    Column("Store", lambda change: None if isinstance(change, MatchChange) else change.store),
    Column("Product", "name"),
    Column("Price from", _price_change),
    Column("Stock", _stock_change),
    Column("Canonical products", _match_change),
)


def products(
    out: LimitedOutput,
    store: StoreOption = None,
    category_canon: CategoriesOption = None,
    subcategory_canon: Annotated[
        list[str] | None, typer.Option(help="Only these subcategories: gummies, cartridge, … (repeatable).")
    ] = None,
    strain_canon: Annotated[
        list[str] | None, typer.Option(help="Only these strain types: indica, sativa, hybrid, … (repeatable).")
    ] = None,
    state: StatesOption = None,
    platform: PlatformsOption = None,
    brand: BrandsOption = None,
    stock: Annotated[
        list[str] | None, typer.Option(help=f"Only this stock status (repeatable): {', '.join(_STOCK)}.")
    ] = None,
    new_since: Annotated[
        str | None,
        typer.Option(help="Only products seen for the first time since then: a date, a time or an age (7d)."),
    ] = None,
    gone_since: Annotated[
        str | None, typer.Option(help="Only products that left the menu since then: a date, a time or an age (7d).")
    ] = None,
    canonical_product: CanonicalProductsOption = None,
    brand_id: BrandIdsOption = None,
    location: LocationsOption = None,
    near: NearOption = None,
    miles: MilesOption = None,
    updated_since: UpdatedOption = None,
) -> None:
    """List products with price, stock and potency as of their store's last crawl, by name."""
    now = datetime.now(UTC)
    where = ProductFilter(
        new_since=parse_past(new_since, now, "--new-since") if new_since else None,
        gone_since=parse_past(gone_since, now, "--gone-since") if gone_since else None,
        categories_canon=_check("--category-canon", category_canon, CATEGORIES),
        subcategories_canon=_check("--subcategory-canon", subcategory_canon, SUBCATEGORIES),
        strains_canon=_check("--strain-canon", strain_canon, STRAINS),
        states=parse_states(state),
        stock=_check("--stock", stock, _STOCK),
        canonical_products=canonical_product or None,
        brand_ids=brand_id or None,
        locations=location or None,
        circle=parse_circle(near, miles),
        updated_since=parse_updated(updated_since),
    )

    async def act(system: System, conn: Connection) -> tuple[list[Product], bool]:
        stores = await find_store_ids(conn, [store] if store is not None else None)
        if platform:
            for name in platform:
                check_platform(system.platforms, name)
            by_platform = [await list_stores(conn, StoreFilter(platform=name), limit=None) for name in platform]
            ids = [row.id for rows in by_platform for row in rows]
            stores = ids if stores is None else [store_id for store_id in stores if store_id in ids]
        brands = await brand_spellings(conn, brand) if brand else None
        selected = replace(where, stores=stores, brands=brands)
        return await _collect(lambda after, limit: list_products(conn, selected, after=after, limit=limit), out.rows)

    rows, more = read(act)
    filtered = where != ProductFilter() or platform or brand
    print_list(
        rows,
        PRODUCT_COLUMNS,
        out.format,
        empty="No matching products."
        if filtered
        else "No products yet. Add a store with `menuwatch stores add URL`, or try `menuwatch demo`.",
    )
    out.note_limit(more)


def changes(
    out: LimitedOutput,
    since: SinceOption = None,
    store: StoreOption = None,
    state: StatesOption = None,
    kind: Annotated[Kind | None, typer.Option(help="Only this kind of change.")] = None,
    category_canon: CategoriesOption = None,
    brand: BrandsOption = None,
    percent: Annotated[
        float | None, typer.Option(min=0.01, help="Only prices that changed by at least this percentage.")
    ] = None,
    canonical_product: CanonicalProductsOption = None,
    brand_id: BrandIdsOption = None,
    location: LocationsOption = None,
    near: NearOption = None,
    miles: MilesOption = None,
) -> None:
    """List price and stock changes, and canonical products that were merged or split, newest first. CSV has the columns of
    `menuwatch export changes`."""
    start = parse_past(since, datetime.now(UTC)) if since else None
    where = ChangeFilter(
        kind=kind,
        states=parse_states(state),
        categories=_check("--category-canon", category_canon, CATEGORIES),
        brands=brand or None,
        percent=None if percent is None else Decimal(str(percent)),
        canonical_products=canonical_product or None,
        brand_ids=brand_id or None,
        locations=location or None,
        circle=parse_circle(near, miles),
    )
    filtered = where != ChangeFilter()
    where = replace(where, span=Span(since=start))

    async def find(conn: Connection) -> ChangeFilter:
        return replace(where, stores=await find_store_ids(conn, [store] if store is not None else None))

    no_match = "No matching changes." if filtered else "No changes in that period." if since else "No changes yet."

    async def write_csv(system: System, conn: Connection) -> str | None:
        chosen = await find(conn)
        request = export.changes_of(await resolve(conn, chosen), FileFormat.CSV, newest_first=True, limit=out.limit)
        file, written = standard_output(), 0

        def count(rows: int, _: int) -> None:
            nonlocal written
            written += rows

        async with export.read_snapshot(conn, request, ParquetPartitions(system.archive.storage)):
            await export.write(conn, request, file, on_progress=count)
        file.flush()
        return None if written else await why_empty(conn, chosen) or no_match

    async def act(_: System, conn: Connection) -> tuple[list[AnyChange], bool, str | None]:
        chosen = await find(conn)
        rows, more = await _collect(lambda after, limit: list_changes(conn, chosen, after=after, limit=limit), out.rows)
        return rows, more, None if rows else await why_empty(conn, chosen)

    if out.format is Format.CSV:
        if (why := read(write_csv)) is not None:
            notice(why)
        return
    rows, more, why = read(act)
    matched = any(isinstance(row, MatchChange) for row in rows)
    print_list(
        rows,
        CHANGE_COLUMNS if matched else CHANGE_COLUMNS[:-1],
        out.format,
        empty=why or no_match,
    )
    out.note_limit(more)


async def _collect(page: Callable[[Any, int], Awaitable[Any]], limit: int) -> tuple[list[Any], bool]:
    """The first `limit` rows of a list that is read by pages, and whether there are more."""
    rows: list[Any] = []
    after = None
    while True:
        part = await page(after, min(limit - len(rows), _PAGE))
        rows, after = rows + part.items, part.next
        if after is None or len(rows) == limit:
            return rows, after is not None


def _check(option: str, words: list[str] | None, allowed: Any) -> list[str] | None:
    """The words; None for none. Raises Refused for one that is not allowed."""
    for word in words or ():
        if word not in allowed:
            raise Refused(f"{option} {word!r}: unknown value; use one of: {', '.join(sorted(allowed))}")
    return words or None
