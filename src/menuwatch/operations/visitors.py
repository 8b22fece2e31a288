"""How many looked at the public site, from where and at what; and where a visitor is, for a search around there.

A visitor of today and one of yesterday may be the same person: nobody can tell, because the salts differ. Uniques therefore are always
**daily uniques**. Of several days there is their mean a day, never their sum; only views are summed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.geo import postcodes, states
from menuwatch.geo.database import GeoDatabase
from menuwatch.geo.postcodes import Place
from menuwatch.operations.reading import Row, rows
from menuwatch.visitors.model import Kind

_q = sql.load(__package__, "visitors.sql")

USUAL_DAYS = 30
MOST_DAYS = 400
TOP = 20
"""Places and pages that are listed where nothing else is said."""


class By(StrEnum):
    """How finely places are told apart."""

    COUNTRY = "country"
    REGION = "region"
    CITY = "city"


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
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
    """What was asked for; the last 30 days with today where nothing is. Raises Refused for one without a day, or with too many."""
    before = until or _moved(max(today, since or today), 1)
    first = since or _moved(before, -USUAL_DAYS)
    if first >= before:
        raise Refused(
            f"there is no day from {first} on (since) and before {before} (until): since must be the earlier one"
        )
    found = Period(since=first, until=before)
    if found.days > MOST_DAYS:
        raise Refused(
            f"from {first} (since) to {before} (until) there are {found.days} days; it takes {MOST_DAYS} at most"
        )
    return found


async def figures(conn: AsyncConnection[Any], when: Period, geo: GeoDatabase | None = None) -> dict[str, Any]:
    """The period as a whole, day by day, and by kind of page; `geography` says whether visitors are placed now, and by what."""
    days = await rows(conn, _q.days, when.values())
    kinds = await rows(conn, _q.kinds, when.values())
    views = sum(day["views"] for day in days)
    without = sum(day["views_without_place"] for day in days)
    return {
        "since": when.since,
        "until": when.until,
        "views": views,
        "daily_uniques_mean": _mean(sum(day["daily_uniques"] for day in days), when),
        "views_without_place": without,
        "share_without_place": _share(without, views),
        "geography": None if geo is None else geo.about,
        "days": days,
        "kinds": [
            {
                "kind": row["kind"],
                "views": row["views"],
                "share": _share(row["views"], views),
                "daily_uniques_mean": _mean(row["uniques_of_days"], when),
                "daily_arrivals_mean": _mean(row["arrivals_of_days"], when),
            }
            for row in kinds
        ],
    }


async def places(
    conn: AsyncConnection[Any],
    when: Period,
    by: By = By.COUNTRY,
    *,
    country: str | None = None,
    region: str | None = None,
    limit: int = TOP,
) -> list[Row]:
    """Where visitors were, most views first. `share` is of all views of the period, wherever from. None in a name: not known."""
    wanted = {**when.values(), "by": by, "country": country and country.upper(), "region": region, "limit": limit}
    views = sum(day["views"] for day in await rows(conn, _q.days, when.values()))
    return [_averaged(row, when, views) for row in await rows(conn, _q.places, wanted)]


async def pages(conn: AsyncConnection[Any], when: Period, kind: Kind | None = None, *, limit: int = TOP) -> list[Row]:
    """The products, stores and brands that were looked at most; `page` is the last part of the page's address."""
    wanted = {**when.values(), "kind": kind, "limit": limit}
    found = await rows(conn, _q.pages, wanted)
    return [_averaged(row, when) | {"path": f"{_PATHS[row['kind']]}{row['page']}"} for row in found]


_PATHS: Mapping[str, str] = {Kind.PRODUCT: "/p/", Kind.STORE: "/s/", Kind.BRAND: "/b/"}
"""Where the site has those pages (site/screen.py)."""


def visitor_place(geo: GeoDatabase | None, address: IPv4Address | IPv6Address | None) -> Place | None:
    """The city that a visitor is in, to search around it; None where that is not known. It is made up anew each time, and not kept."""
    found = None if geo is None or address is None else geo.locate(address)
    if found is None or found.city is None:
        return None
    state = states.code_of(found.region or "") if found.country == "US" else None
    if found.latitude is not None and found.longitude is not None:
        return Place(None, found.city, state or found.region or found.country, found.latitude, found.longitude)
    return postcodes.city(found.city, state) if state else None


def _averaged(row: Row, when: Period, views: int | None = None) -> Row:
    uniques = row.pop("uniques_of_days")
    share = {} if views is None else {"share": _share(row["views"], views)}
    return row | share | {"daily_uniques_mean": _mean(uniques, when)}


def _mean(of_days: int, when: Period) -> float:
    return round(of_days / when.days, 2)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _moved(day: date, days: int) -> date:
    return date.fromordinal(min(max(day.toordinal() + days, 1), date.max.toordinal()))
