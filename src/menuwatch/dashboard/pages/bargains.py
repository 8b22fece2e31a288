"""The cheapest basket near a place."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.analytics import basket
from menuwatch.analytics.basket import CheapestBasket
from menuwatch.analytics.service import Report, ReportFilter, read_report
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.csv_file import csv_response
from menuwatch.dashboard.pages.analytics import REPORTS
from menuwatch.db.pool import Connection
from menuwatch.stores.service import FARTHEST_MILES, Circle
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/analytics", dependencies=[require(Permission.READ)])

_MILES = 25
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
        form = replace(form, values={**form.values, "miles": str(_MILES)})
    context = {
        "form": form,
        "reports": REPORTS,
        "info": (await read_report(conn, Report.COVERAGE, ReportFilter(), limit=1)).info,
        "found": found,
        "baskets": [(title, getattr(found, name), nothing) for name, title, nothing in _BASKETS] if found else [],
    }
    return screen.render(request, "analytics/cheapest_basket.html", context)


async def _find(conn: Connection, form: FormInput) -> CheapestBasket | None:
    """The baskets; None with errors in the form."""
    miles = form.parse_decimal("miles", f"a distance up to {FARTHEST_MILES} miles", 0, FARTHEST_MILES) or _MILES
    circle = None
    try:
        circle = Circle.around((form.text("near") or ""), float(miles))
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
