"""Visitor statistics of the public site, and the place of a visitor for a search nearby.

Visitors of different days cannot be matched, because the salts differ. Uniques are therefore always **daily uniques**: over several
days their daily mean is given, never their sum; only views are summed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_structs
from menuwatch.geo import postcodes, states
from menuwatch.geo.database import GeoDatabase
from menuwatch.geo.postcodes import Place
from menuwatch.visitors.anonymous_marks import Kind

_q = sql.load(__package__, "service.sql")

USUAL_DAYS = 30
MOST_DAYS = 400
TOP = 20
"""Default number of places and pages listed."""


_UNIQUES = doc("Daily unique visitors: visitors are distinguished within one day only.")
_MEAN = doc(
    "Mean number of daily unique visitors over the period. Daily uniques cannot be added up: a visitor who returns the next day "
    "counts again."
)
_SHARE = doc("Share of all page views of the period, 0 to 1; null if there are none.")
_UNTIL = doc("The day after the last one.")


class VisitorDay(Struct, frozen=True, kw_only=True):
    """One day (UTC)."""

    day: date
    views: int
    daily_uniques: Annotated[int, _UNIQUES]
    views_without_place: Annotated[int, doc("Page views without a known location.")]


class PageKind(Struct, frozen=True, kw_only=True):
    """Views of one kind of page."""

    kind: Annotated[str, doc("`home`, `search`, `product`, `store`, `brand` or `other`.")]
    views: int
    share: Annotated[float | None, _SHARE]
    daily_uniques_mean: Annotated[float, _MEAN]
    daily_arrivals_mean: Annotated[
        float, doc("Mean daily number of visitors whose first page of the day was of this kind.")
    ]


class Visitors(Struct, frozen=True, kw_only=True):
    """Totals of a period, by day and by kind of page."""

    since: date
    until: Annotated[date, _UNTIL]
    views: int
    daily_uniques_mean: Annotated[float, _MEAN]
    views_without_place: Annotated[int, doc("Page views without a known location.")]
    share_without_place: Annotated[float | None, _SHARE]
    geography: Annotated[str | None, doc("Geolocation database in use; null if GEOIP_DATABASE is not set.")]
    days: Annotated[list[VisitorDay], doc("Every day of the period, including days without visitors.")]
    kinds: Annotated[list[PageKind], doc("Most views first.")]


class VisitorPlace(Struct, frozen=True, kw_only=True):
    """Page views from one place. A null name is unknown or beyond the requested level of detail (`by`)."""

    country: Annotated[str | None, doc("Two-letter country code (ISO 3166-1).")]
    region: Annotated[str | None, doc("English name.")]
    city: Annotated[str | None, doc("English name.")]
    views: int
    share: Annotated[float | None, _SHARE]
    daily_uniques_mean: Annotated[float, _MEAN]


class VisitorPlaces(Struct, frozen=True, kw_only=True):
    """Locations of visitors."""

    since: date
    until: Annotated[date, _UNTIL]
    items: Annotated[list[VisitorPlace], doc("Most views first.")]


class VisitedPage(Struct, frozen=True, kw_only=True):
    """Views of one page."""

    kind: Annotated[str, doc("`product`, `store` or `brand`.")]
    page: Annotated[str, doc("Last part of the page's path.")]
    path: Annotated[str, doc("Path on the public site.")]
    views: int
    daily_uniques_mean: Annotated[float, _MEAN]


class VisitedPages(Struct, frozen=True, kw_only=True):
    """Most viewed pages."""

    since: date
    until: Annotated[date, _UNTIL]
    items: Annotated[list[VisitedPage], doc("Most views first.")]


class By(StrEnum):
    """Granularity of places."""

    COUNTRY = "country"
    REGION = "region"
    CITY = "city"


class Period(Struct, frozen=True, kw_only=True):
    """Whole days in UTC: from `since` on, before `until`."""

    since: date
    until: date

    @property
    def days(self) -> int:
        """How many."""
        return (self.until - self.since).days

    def values(self) -> dict[str, Any]:
        """As query parameters."""
        return {"since": self.since, "until": self.until}


def period(today: date, since: date | None = None, until: date | None = None) -> Period:
    """The requested period; the last 30 days including today by default. Raises Refused for an empty or too long one."""
    before = until or _moved(max(today, since or today), 1)
    first = since or _moved(before, -USUAL_DAYS)
    if first >= before:
        raise Refused(f"since ({first}) must be before until ({before})")
    result = Period(since=first, until=before)
    if result.days > MOST_DAYS:
        raise Refused(f"the period from {first} to {before} has {result.days} days; at most {MOST_DAYS} are allowed")
    return result


async def visitor_totals(conn: AsyncConnection[Any], when: Period, geo: GeoDatabase | None = None) -> Visitors:
    """The period as a whole, by day, and by kind of page."""
    days = await fetch_structs(conn, VisitorDay, _q.days, when.values())
    kinds = await fetch_all(conn, _q.kinds, when.values())
    views = sum(day.views for day in days)
    without = sum(day.views_without_place for day in days)
    return Visitors(
        since=when.since,
        until=when.until,
        views=views,
        daily_uniques_mean=_mean(sum(day.daily_uniques for day in days), when),
        views_without_place=without,
        share_without_place=_share(without, views),
        geography=None if geo is None else geo.about,
        days=days,
        kinds=[
            PageKind(
                kind=row["kind"],
                views=row["views"],
                share=_share(row["views"], views),
                daily_uniques_mean=_mean(row["uniques_of_days"], when),
                daily_arrivals_mean=_mean(row["arrivals_of_days"], when),
            )
            for row in kinds
        ],
    )


async def list_places(
    conn: AsyncConnection[Any],
    when: Period,
    by: By = By.COUNTRY,
    *,
    country: str | None = None,
    region: str | None = None,
    limit: int = TOP,
) -> list[VisitorPlace]:
    """Most views first."""
    values = {**when.values(), "by": by, "country": country and country.upper(), "region": region, "limit": limit}
    views = sum(day["views"] for day in await fetch_all(conn, _q.days, when.values()))
    return [
        VisitorPlace(
            country=row["country"],
            region=row["region"],
            city=row["city"],
            views=row["views"],
            share=_share(row["views"], views),
            daily_uniques_mean=_mean(row["uniques_of_days"], when),
        )
        for row in await fetch_all(conn, _q.places, values)
    ]


async def list_pages(
    conn: AsyncConnection[Any], when: Period, kind: Kind | None = None, *, limit: int = TOP
) -> list[VisitedPage]:
    """The most viewed products, stores and brands."""
    values = {**when.values(), "kind": kind, "limit": limit}
    return [
        VisitedPage(
            kind=row["kind"],
            page=row["page"],
            path=f"{_PATHS[row['kind']]}{row['page']}",
            views=row["views"],
            daily_uniques_mean=_mean(row["uniques_of_days"], when),
        )
        for row in await fetch_all(conn, _q.pages, values)
    ]


_PATHS: Mapping[str, str] = {Kind.PRODUCT: "/p/", Kind.STORE: "/s/", Kind.BRAND: "/b/"}
"""Where the site has those pages (site/screen.py)."""


def visitor_place(geo: GeoDatabase | None, address: IPv4Address | IPv6Address | None) -> Place | None:
    """The visitor's city, to search nearby; None if unknown. Computed for each request and never stored."""
    place = None if geo is None or address is None else geo.locate(address)
    if place is None or place.city is None:
        return None
    state = states.code_of(place.region or "") if place.country == "US" else None
    if place.latitude is not None and place.longitude is not None:
        return Place(None, place.city, state or place.region or place.country, place.latitude, place.longitude)
    return postcodes.city(place.city, state) if state else None


def _mean(of_days: int, when: Period) -> float:
    return round(of_days / when.days, 2)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _moved(day: date, days: int) -> date:
    return date.fromordinal(min(max(day.toordinal() + days, 1), date.max.toordinal()))
