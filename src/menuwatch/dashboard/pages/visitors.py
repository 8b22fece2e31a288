"""Visitors of the public site: views, daily uniques, from where, and at what."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.svg.visitor_days import visitor_days
from menuwatch.operations import visitors
from menuwatch.operations.visitors import By, Period
from menuwatch.visitors.model import NAMED, Kind
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Reading, Sys

router = APIRouter(prefix="/visitors", dependencies=[allowed(Permission.READ)])

SPANS = (7, 30, 90, 365)
_PLACES, _PAGES = 25, 25


@router.get("")
async def shown(
    request: Request,
    conn: Reading,
    system: Sys,
    since: Annotated[str, Query(max_length=20)] = "",
    until: Annotated[str, Query(max_length=20)] = "",
    by: By = By.COUNTRY,
    country: Annotated[str, Query(max_length=2)] = "",
    kind: Literal["", "product", "store", "brand"] = "",
) -> Response:
    """The figures of a period."""
    form = Filled({"since": since, "until": until, "by": by, "country": country, "kind": kind})
    when = _period(form)
    figures = await visitors.figures(conn, when, system.geo)
    today = datetime.now(UTC).date()
    last = when.until - timedelta(days=1)
    context = {
        "form": Filled({**form.values, "since": since or str(when.since), "until": until or str(last)}, form.errors),
        "figures": figures,
        "chart": visitor_days(figures["days"]),
        "places": await visitors.places(conn, when, by, country=country or None, limit=_PLACES),
        "pages": await visitors.pages(conn, when, Kind(kind) if kind else None, limit=_PAGES),
        "last": last,
        "when": when,
        "spans": [
            (days, screen.query(request, since=today - timedelta(days=days - 1), until=today), _is(when, today, days))
            for days in SPANS
        ],
        "levels": [("country", "Country"), ("region", "Region"), ("city", "City")],
        "kinds": [(str(one), f"{one.capitalize()}s") for one in NAMED],
    }
    return screen.show(request, "visitors.html", context, live="visitors", status=200 if form.ok else 422)


def _is(when: Period, today: date, days: int) -> bool:
    return when.days == days and when.until == today + timedelta(days=1)


def _period(form: Filled) -> Period:
    """The days from `since` to `until`, both with; the usual ones where they cannot be used, and why beside the field."""
    first, last = _day(form, "since"), _day(form, "until")
    today = datetime.now(UTC).date()
    if form.ok:
        try:
            return visitors.period(today, first, None if last is None else last + timedelta(days=1))
        except (Refused, OverflowError) as error:
            form.refuse("since", str(error) if isinstance(error, Refused) else "there are no such days")
    return visitors.period(today)


def _day(form: Filled, name: str) -> date | None:
    text = form.text(name)
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        form.refuse(name, f"{text!r} is no day: write it as 2026-11-21")
        return None
