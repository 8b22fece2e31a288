"""Visitors of the public site: views, daily uniques, from where, and at what."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts.bars import visitor_days
from menuwatch.visitors import service as visitors
from menuwatch.visitors.anonymous_marks import NAMED, Kind
from menuwatch.visitors.service import By, Period
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter(prefix="/visitors", dependencies=[require(Permission.READ)])

SPANS = (7, 30, 90, 365)
_PLACES, _PAGES = 25, 25


@router.get("")
async def shown(
    request: Request,
    conn: ReadConn,
    system: AppDep,
    since: Annotated[str, Query(max_length=20)] = "",
    until: Annotated[str, Query(max_length=20)] = "",
    by: By = By.COUNTRY,
    country: Annotated[str, Query(max_length=2)] = "",
    kind: Literal["", "product", "store", "brand"] = "",
) -> Response:
    """The figures of a period."""
    form = FormInput({"since": since, "until": until, "by": by, "country": country, "kind": kind})
    when = _period(form)
    figures = await visitors.visitor_totals(conn, when, system.geo)
    today = datetime.now(UTC).date()
    last = when.until - timedelta(days=1)
    context = {
        "form": FormInput({**form.values, "since": since or str(when.since), "until": until or str(last)}, form.errors),
        "figures": figures,
        "chart": visitor_days(figures.days),
        "places": await visitors.list_places(conn, when, by, country=country or None, limit=_PLACES),
        "pages": await visitors.list_pages(conn, when, Kind(kind) if kind else None, limit=_PAGES),
        "last": last,
        "when": when,
        "spans": [
            (days, screen.query(request, since=today - timedelta(days=days - 1), until=today), _is(when, today, days))
            for days in SPANS
        ],
        "levels": [("country", "Country"), ("region", "Region"), ("city", "City")],
        "kinds": [(str(one), f"{one.capitalize()}s") for one in NAMED],
    }
    return screen.render(request, "visitors.html", context, live="visitors")


def _is(when: Period, today: date, days: int) -> bool:
    return when.days == days and when.until == today + timedelta(days=1)


def _period(form: FormInput) -> Period:
    """The days from `since` to `until`, both with; the usual ones where they cannot be used, and why beside the field."""
    first, last = form.parse_date("since"), form.parse_date("until")
    today = datetime.now(UTC).date()
    if form.ok:
        try:
            return visitors.period(today, first, None if last is None else last + timedelta(days=1))
        except Refused as error:
            form.add_error("since", str(error))
    return visitors.period(today)
