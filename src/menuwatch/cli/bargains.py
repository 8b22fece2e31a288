"""`menuwatch analytics`, bargains: the cheapest basket near a place, and lowest prices."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec import structs

from menuwatch.analytics import basket, lowest_prices
from menuwatch.analytics.basket import Basket, CheapestBasket
from menuwatch.analytics.lowest_prices import LowestPage, ObservedPrice
from menuwatch.analytics.products import CanonicalFilter
from menuwatch.analytics.service import UNKNOWN
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.cli.analytics_options import CanonicalOption, CategoryOption, parse_category
from menuwatch.cli.options import Commands, Output, check_text, parse_circle
from menuwatch.cli.output import Column, Format, ago, echo, notice, print_json, print_list
from menuwatch.cli.startup import read
from menuwatch.core.errors import Refused
from menuwatch.core.format import money, pluralize
from menuwatch.db.pool import Connection
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, PLACE_FORMS
from menuwatch.geo.states import parse_state
from menuwatch.geo.units import distance_of_miles
from menuwatch.system import System

app = Commands("Bargains.")

_BASKETS = (
    ("one_store", "At one store"), ("two_stores", "At two stores at most"), ("any_stores", "At any number of stores")
)  # fmt: skip


def _line_columns(currency: str) -> tuple[Column, ...]:
    return (
        Column("Store", "store"), Column("Distance", lambda row: distance_of_miles(row["miles"], row["state"])),
        Column("Item", "item"), Column("Product", "name"),
        Column("Size", "size"), Column("Quantity", "quantity"), _money("Price", "price", currency), _money("Cost", "cost", currency),
        Column("Crawled", lambda row: ago(row["crawled_at"])),
    )  # fmt: skip


def _store_columns(currency: str) -> tuple[Column, ...]:
    return (
        Column("#", "dispensary_id"), Column("Store", "store"),
        Column("Distance", lambda row: distance_of_miles(row.miles, row.state)), Column("Items", "items"),
        _money("Cost", "cost", currency),
        Column("Crawled", lambda row: ago(row.crawled_at)), Column("Missing", lambda row: ", ".join(row.missing)),
    )  # fmt: skip


def _money(heading: str, name: str, currency: str) -> Column:
    return Column(heading, name, lambda amount: money(amount, currency), align="right")


@app.command("cheapest-basket")
def cheapest_basket(
    out: Output,
    item: Annotated[
        list[str],
        typer.Argument(
            help="What to buy: `4711:3.5 g` (a canonical product) or `flower:3.5 g` (any of a category); append `*2` for two.",
            metavar="ITEM",
        ),
    ],
    near: Annotated[str, typer.Option(help=f"The place: {PLACE_FORMS}.", metavar="PLACE")],
    miles: Annotated[
        float, typer.Option(min=0.1, max=FARTHEST_MILES, help="Distance from it, in miles.")
    ] = DEFAULT_MILES,
    medical: Annotated[
        bool, typer.Option("--medical", help="Use prices for patients where there is no other.")
    ] = False,
) -> None:
    """Find where several products cost least together: at one store, at two, or at any number."""
    wants = basket.parse_items(item)
    circle = parse_circle(near, miles)
    assert circle is not None, "near is given"

    async def act(_: System, conn: Connection) -> CheapestBasket:
        return await basket.find_cheapest_basket(conn, wants, circle, medical=medical)

    found = read(act)
    if out.format is Format.JSON:
        print_json(found)
    elif out.format is Format.CSV:
        print_list(basket.basket_rows(found), [Column(name, name) for name in basket.ROW_FIELDS], out.format)
    else:
        _print_baskets(found)


def _print_baskets(found: CheapestBasket) -> None:
    for name, title in _BASKETS:
        _print_basket(title, getattr(found, name), found.currency)
    if found.stores and found.currency:
        echo("", "What each store has")
        print_list(found.stores, _store_columns(found.currency), Format.TABLE)
    if found.notice:
        notice(found.notice)
    compared = [f"Compared: {pluralize(found.compared_stores, 'store')}."]
    if found.stale_stores:
        compared.append(f"Left out: {pluralize(found.stale_stores, 'stale menu')}.")
    if found.other_currency_stores:
        compared.append(f"Left out: {pluralize(found.other_currency_stores, 'menu')} in another currency.")
    if found.farther_stores:
        compared.append(f"Left out: {pluralize(found.farther_stores, 'farther menu')}.")
    if slips := sum(one.implausible for one in found.items):
        compared.append(f"Left out: {pluralize(slips, 'implausible price')}.")
    notice(" ".join(compared))


def _print_basket(title: str, one: Basket | None, currency: str | None) -> None:
    if one is None or currency is None:
        echo("", f"{title}: no store has all items." if title == _BASKETS[0][1] else f"{title}: nothing found.")
        return
    echo("", f"{title}: {money(one.cost, currency)}")
    rows = [structs.asdict(stop) | structs.asdict(line) for stop in one.stops for line in stop.lines]
    print_list(rows, _line_columns(currency), Format.TABLE)
    if one.missing:
        echo(f"Missing: {', '.join(one.missing)}")


def _price(one: ObservedPrice | None, currency: str) -> str | None:
    return None if one is None else money(one.price, currency)


def _where(one: ObservedPrice) -> str:
    return f"{one.store}, {one.from_:%Y-%m-%d}"


_LOWEST = (
    Column("#", "canonical_product_id"), Column("Product", "name"), Column("Brand", "brand"), Column("Size", "size"),
    Column("Stores", "stores"), Column("Now", lambda row: _price(row.now, row.currency), align="right"),
    Column("90 days", lambda row: _price(row.lowest_90_days, row.currency), align="right"),
    Column("Ever", lambda row: _price(row.lowest_ever, row.currency), align="right"),
    Column("At", lambda row: _where(row.lowest_ever)), Column("Since", lambda row: f"{row.observed_from:%Y-%m-%d}"),
)  # fmt: skip


@app.command("lowest-prices")
def show_lowest_prices(
    out: Output,
    product: CanonicalOption = None,
    q: Annotated[str | None, typer.Option("--q", help="Only products whose name or brand contains this text.")] = None,
    state: Annotated[str | None, typer.Option(help="Only prices at stores in this state (two letters).")] = None,
    category: CategoryOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of products.")] = lowest_prices.USUAL_PRODUCTS,
) -> None:
    """Show the lowest price of each size of canonical products: now, within 90 days and since the first observation."""
    check_text("--q", q)
    if category is not None and category.strip().lower() == UNKNOWN:
        raise Refused("--category unknown is not supported here: name a category")
    where = CanonicalFilter(q=q, category=parse_category(category), product=product)
    code = None if state is None else parse_state(state)

    async def act(system: System, conn: Connection) -> LowestPage:
        archived = ParquetPartitions(system.archive.storage)
        return await lowest_prices.list_lowest_prices(conn, where, state=code, limit=limit, archived=archived)

    found = read(act)
    if out.format is Format.JSON:
        print_json({"items": found.items})
    elif out.format is Format.CSV:
        rows = [lowest_prices.flat_lowest(row) for row in found.items]
        print_list(rows, [Column(name, name) for name in lowest_prices.FLAT_FIELDS], out.format)
    else:
        print_list(found.items, _LOWEST, out.format, empty="No matching products with a price.")
        if found.next is not None:
            notice(f"First {pluralize(limit, 'product')}; use --limit for more.")
