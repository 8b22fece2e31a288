"""Visitor statistics of the public site."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import AfterValidator, Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Input, Text
from menuwatch.api.responses import answer, returns
from menuwatch.visitors import service as visitors
from menuwatch.visitors.anonymous_marks import Kind
from menuwatch.visitors.service import By, Period, VisitedPages, VisitorPlaces, Visitors
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn


def _country(text: str) -> str:
    code = text.strip().upper()
    if len(code) != 2 or not (code.isascii() and code.isalpha()):
        raise ValueError("must be a two-letter country code (ISO 3166-1), for example US")
    return code


Country = Annotated[Text, AfterValidator(_country)]


class PeriodQuery(Input):
    """Which days."""

    since: date | None = Field(None, description="First day (UTC), for example 2026-11-20; 30 days ago if omitted.")
    until: date | None = Field(None, description="Day after the last one (UTC); tomorrow if omitted. At most 400 days.")


class PlacesQuery(PeriodQuery):
    """Which places."""

    by: Literal["country", "region", "city"] = Field("country", description="Level of detail.")
    country: Country | None = Field(None, description="Only this country (two letters).")
    region: Text | None = Field(None, max_length=100, description="Only this region, by name, for example `Arizona`.")
    limit: int = Field(20, ge=1, le=200, description="Maximum number of places.")


class PagesQuery(PeriodQuery):
    """Which pages."""

    kind: Literal["product", "store", "brand"] | None = Field(None, description="Only pages of this kind.")
    limit: int = Field(20, ge=1, le=200, description="Maximum number of pages.")


router = APIRouter(prefix="/api/visitors", tags=["visitors"], dependencies=[require(Permission.READ)])


def _period(query: PeriodQuery) -> Period:
    return visitors.period(datetime.now(UTC).date(), query.since, query.until)


@router.get("", **returns(Visitors), summary="Get views and daily unique visitors")
async def show_visitors(
    request: Request, conn: ReadConn, system: AppDep, query: Annotated[PeriodQuery, Query()]
) -> Response:
    """Views of the public site by day and by kind of page. Bots and visitors who opt out (DNT, GPC) are not counted."""
    return answer(request, await visitors.visitor_totals(conn, _period(query), system.geo))


@router.get("/places", **returns(VisitorPlaces), summary="List visitor locations")
async def list_visitor_places(request: Request, conn: ReadConn, query: Annotated[PlacesQuery, Query()]) -> Response:
    """By country, region or city, as the GEOIP_DATABASE resolved them at the time of the visit."""
    when = _period(query)
    places = await visitors.list_places(
        conn, when, By(query.by), country=query.country, region=query.region, limit=query.limit
    )
    return answer(request, VisitorPlaces(since=when.since, until=when.until, items=places))


@router.get("/pages", **returns(VisitedPages), summary="List the most viewed pages")
async def list_visited_pages(request: Request, conn: ReadConn, query: Annotated[PagesQuery, Query()]) -> Response:
    """Products, stores and brands within the last 400 days, most views first."""
    when = _period(query)
    kind = None if query.kind is None else Kind(query.kind)
    pages = await visitors.list_pages(conn, when, kind, limit=query.limit)
    return answer(request, VisitedPages(since=when.since, until=when.until, items=pages))
