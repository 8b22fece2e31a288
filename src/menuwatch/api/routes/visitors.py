"""How many look at the public site, from where and at what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api.answers import answer
from menuwatch.api.schemas.visitors import PagesQuery, PeriodQuery, PlacesQuery, VisitedPages, VisitorPlaces, Visitors
from menuwatch.operations import visitors
from menuwatch.operations.visitors import By, Period
from menuwatch.visitors.model import Kind
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys

router = APIRouter(prefix="/api/visitors", tags=["visitors"], dependencies=[allowed(Permission.READ)])


def _period(query: PeriodQuery) -> Period:
    return visitors.period(datetime.now(UTC).date(), query.since, query.until)


def _listed(request: Request, when: Period, items: list[dict[str, Any]]) -> Response:
    return answer(request, {"since": when.since, "until": when.until, "items": items})


@router.get("", response_model=Visitors, summary="Views and daily uniques")
async def show_visitors(
    request: Request, conn: Reading, system: Sys, query: Annotated[PeriodQuery, Query()]
) -> Response:
    """Of the public site, day by day and by kind of page. Programs are left out, and whoever asks not to be counted (DNT, GPC)."""
    return answer(request, await visitors.figures(conn, _period(query), system.geo))


@router.get("/places", response_model=VisitorPlaces, summary="Where visitors were")
async def list_visitor_places(request: Request, conn: Reading, query: Annotated[PlacesQuery, Query()]) -> Response:
    """By country, region or city, as the database of GEOIP_DATABASE had it when they came."""
    when = _period(query)
    found = visitors.places(conn, when, By(query.by), country=query.country, region=query.region, limit=query.limit)
    return _listed(request, when, await found)


@router.get("/pages", response_model=VisitedPages, summary="What was looked at")
async def list_visited_pages(request: Request, conn: Reading, query: Annotated[PagesQuery, Query()]) -> Response:
    """Products, stores and brands of the last 400 days, those with most views first."""
    when = _period(query)
    kind = None if query.kind is None else Kind(query.kind)
    return _listed(request, when, await visitors.pages(conn, when, kind, limit=query.limit))
