"""Bargains: the cheapest basket near a place, and lowest prices."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.analytics import basket, lowest_prices
from menuwatch.analytics.basket import CheapestBasket
from menuwatch.analytics.products import CanonicalFilter
from menuwatch.analytics.service import ALL, UNKNOWN, Report, ReportFilter, read_report
from menuwatch.catalog.asked_prices import WINDOW
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.analytics import CATEGORY_CHOICES, REPORT_GROUPS, list_states
from menuwatch.dashboard.table_file import csv_response
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, parse_area
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/analytics", dependencies=[require(Permission.READ)])

_BASKETS = (
    ("one_store", "At one store", "No store has all items."),
    ("two_stores", "At two stores at most", "No store has any of the items."),
    ("any_stores", "At any number of stores", "No store has any of the items."),
)
_FORM = fields("items", "near", "miles", "medical", "format")


@router.get("/cheapest-basket")
async def show_cheapest_basket(request: Request, form: Annotated[FormInput, _FORM], conn: ReadConn) -> Response:
    """Where several products cost least together, as tables or as a file."""
    asked = bool(form.text("items") or form.text("near"))
    found = await _find(conn, form) if asked else None
    if found is not None and form.value("format") == "csv":
        return csv_response("cheapest-basket", basket.ROW_FIELDS, basket.basket_rows(found))
    if form.text("miles") is None:
        form = replace(form, values={**form.values, "miles": f"{DEFAULT_MILES:g}"})
    context = {
        "form": form,
        "report_groups": REPORT_GROUPS,
        "info": (await read_report(conn, Report.COVERAGE, ReportFilter(), limit=1)).info,
        "found": found,
        "baskets": [(title, getattr(found, name), nothing) for name, title, nothing in _BASKETS] if found else [],
    }
    return screen.render(request, "analytics/cheapest_basket.html", context)


async def _find(conn: Connection, form: FormInput) -> CheapestBasket | None:
    """The baskets; None with errors in the form."""
    miles = form.parse_decimal("miles", f"a distance up to {FARTHEST_MILES} miles", 0, FARTHEST_MILES) or DEFAULT_MILES
    circle = None
    try:
        circle = parse_area(form.text("near") or "", float(miles)).circle
    except Refused as error:
        form.add_error("near", str(error))
    try:
        wants = basket.parse_items([line for line in form.value("items").splitlines() if line.strip()])
        if circle is None or not form.ok:
            return None
        return await basket.find_cheapest_basket(conn, wants, circle, medical=form.value("medical") == "on")
    except InvalidField as error:
        form.add_error("items", "; ".join(map(str, error.errors)))
        return None


@router.get("/lowest-prices")
async def show_lowest_prices(
    request: Request,
    conn: ReadConn,
    app: AppDep,
    state: Annotated[str, Query(max_length=20)] = ALL,
    category: Annotated[str, Query(max_length=20)] = "",
    q: Annotated[str, Query(max_length=200)] = "",
    product: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    as_file: Annotated[Literal["csv"] | None, Query(alias="format")] = None,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """The lowest price of each size of canonical products, as a table or as a file of the same page."""
    where = CanonicalFilter(q=q.replace("\0", "").strip() or None, category=category or None, product=product)
    after = screen.parse_cursor(request, cursor, tuple[int, int])
    page = await lowest_prices.list_lowest_prices(
        conn,
        where,
        state=None if state == ALL else state,
        after=after,
        limit=lowest_prices.USUAL_PRODUCTS,
        archived=ParquetPartitions(app.archive.storage),
    )
    if as_file:
        rows = [lowest_prices.flat_lowest(row) for row in page.items]
        return csv_response("lowest-prices", lowest_prices.FLAT_FIELDS, rows)
    context = {
        "form": FormInput({"state": state, "category": category, "q": q}),
        "states": [one for one in await list_states(conn) if one[0] != UNKNOWN],
        "categories": [one for one in CATEGORY_CHOICES if one[0] != UNKNOWN],
        "report_groups": REPORT_GROUPS,
        "info": (await read_report(conn, Report.COVERAGE, ReportFilter(), limit=1)).info,
        "rows": page.items,
        "long_ago": await database_now(conn) - WINDOW,
        **screen.page_links(request, paging.encode(*page.next) if page.next else None),
    }
    return screen.render(request, "analytics/lowest_prices.html", context)
