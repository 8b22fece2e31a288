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
from menuwatch.dashboard.pages.analytics import REPORT_GROUPS
from menuwatch.dashboard.report_filters import CATEGORY_CHOICES, list_states, parse_category, parse_scope
from menuwatch.dashboard.table_file import csv_response
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, parse_area
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/analytics", dependencies=[require(Permission.READ)])

_LONGEST = 4000
_BASKETS = (
    ("one_store", "At one store", "No store has all items."),
    ("two_stores", "At two stores at most", "No store has any of the items."),
    ("any_stores", "At any number of stores", "No store has any of the items."),
)
_FORM = fields("item", "near", "miles", "medical", "format")


@router.get("/cheapest-basket")
async def show_cheapest_basket(request: Request, form: Annotated[FormInput, _FORM], conn: ReadConn) -> Response:
    """Where several products cost least together, as tables or as a file."""
    # As in the API the parameter may be repeated; a text field has an item in each line.
    items = "\n".join(request.query_params.getlist("item")).replace("\0", "")
    form = replace(form, values={**form.values, "item": items[:_LONGEST]})
    if len(items) > _LONGEST:
        form.add_error("item", f"must have at most {_LONGEST:,} characters")
    asked = bool(form.text("item") or form.text("near"))
    found = await _find(conn, form) if asked else None
    if form.parse_choice("format", ("csv",)) is not None:
        screen.refuse_invalid(form)
        if found is not None:
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
    miles = (
        form.parse_decimal("miles", f"a distance up to {FARTHEST_MILES} miles", 0.01, FARTHEST_MILES) or DEFAULT_MILES
    )
    circle = None
    try:
        circle = parse_area(form.text("near") or "", float(miles)).circle
    except Refused as error:
        form.add_error("near", str(error))
    try:
        medical = form.parse_choice("medical", ("true", "false")) == "true"
        wants = basket.parse_items([line for line in form.value("item").splitlines() if line.strip()])
        if circle is None or not form.ok:
            return None
        return await basket.find_cheapest_basket(conn, wants, circle, medical=medical)
    except InvalidField as error:
        form.add_error("item", "; ".join(map(str, error.errors)))
        return None


@router.get("/lowest-prices")
async def show_lowest_prices(
    request: Request,
    conn: ReadConn,
    app: AppDep,
    state: Annotated[str, Query(max_length=20)] = ALL,
    category: Annotated[str, Query(max_length=20)] = "",
    q: Annotated[str, Query(max_length=200)] = "",
    canonical_product: Annotated[str, Query(max_length=20)] = "",
    as_file: Annotated[Literal["csv"] | None, Query(alias="format")] = None,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """The lowest price of each size of canonical products, as a table or as a file of the same page."""
    values = {"state": state, "category": category, "q": q.replace("\0", ""), "canonical_product": canonical_product}
    form = FormInput(values)
    if (scope := parse_scope(form)) == UNKNOWN:
        form.add_error("state", "this list leaves out stores without a known state; choose a state")
    product = form.parse_int("canonical_product", low=1, high=2**63 - 1)
    where = CanonicalFilter(q=form.text("q"), category=parse_category(form), product=product)
    if as_file:
        screen.refuse_invalid(form)
    after = screen.parse_cursor(request, cursor, tuple[int, int])
    page = None
    if form.ok:
        page = await lowest_prices.list_lowest_prices(
            conn,
            where,
            state=None if scope == ALL else scope,
            after=after,
            limit=lowest_prices.USUAL_PRODUCTS,
            archived=ParquetPartitions(app.archive.storage),
        )
    rows = page.items if page is not None else []
    if as_file:
        return csv_response(
            "lowest-prices", lowest_prices.FLAT_FIELDS, [lowest_prices.flat_lowest(row) for row in rows]
        )
    context = {
        "form": form,
        "states": [one for one in await list_states(conn, scope) if one[0] != UNKNOWN],
        "categories": [one for one in CATEGORY_CHOICES if one[0] != UNKNOWN],
        "report_groups": REPORT_GROUPS,
        "info": (await read_report(conn, Report.COVERAGE, ReportFilter(), limit=1)).info,
        "rows": rows,
        "long_ago": await database_now(conn) - WINDOW,
        **screen.page_links(request, paging.encode(*page.next) if page is not None and page.next else None),
    }
    return screen.render(request, "analytics/lowest_prices.html", context)
