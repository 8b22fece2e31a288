"""Figures of visitors: views are summed, uniques never are. Expected values are counted by hand from what is looked at below."""

from __future__ import annotations

from datetime import date, timedelta
from ipaddress import ip_address

import pytest
from msgspec import structs

from menuwatch.core.errors import Refused
from menuwatch.geo.database import GeoDatabase
from menuwatch.visitors import service as visitors
from menuwatch.visitors.anonymous_marks import Kind
from menuwatch.visitors.service import By, Period, VisitorPlace, visitor_place
from tests.visitors.conftest import LONDON, OSLO, PHOENIX, TUCSON, UNKNOWN, Site

DAY = date(2026, 11, 20)
NEXT = DAY + timedelta(days=1)
TWO = Period(since=DAY, until=NEXT + timedelta(days=1))


async def _two_days(site: Site) -> None:
    """The first day: 6 views by 4 visitors; the second: 3 views by 2, who both were there the day before."""
    for path in ("/", "/p/1-a", "/p/1-a"):
        await site.look(path)
    await site.look("/p/1-a", peer=TUCSON)
    await site.look("/s/7-b", peer=LONDON)
    await site.look("/", peer=UNKNOWN)
    await site.log.step()
    site.clock.advance(timedelta(days=1))
    await site.look("/p/1-a")
    await site.look("/b/c")
    await site.look("/s/7-b", peer=LONDON)
    await site.log.step()


async def test_a_period_day_by_day_and_by_kind_of_page(site: Site, geo: GeoDatabase) -> None:
    await _two_days(site)
    async with site.pool.connection() as conn:
        found = await visitors.visitor_totals(
            conn, Period(since=DAY - timedelta(days=1), until=NEXT + timedelta(days=1)), geo
        )
    assert [structs.asdict(day) for day in found.days] == [
        {"day": DAY - timedelta(days=1), "views": 0, "daily_uniques": 0, "views_without_place": 0},
        {"day": DAY, "views": 6, "daily_uniques": 4, "views_without_place": 1},
        {"day": NEXT, "views": 3, "daily_uniques": 2, "views_without_place": 0},
    ]
    assert found.views == 9
    assert found.daily_uniques_mean == 2.0
    assert (found.views_without_place, found.share_without_place) == (1, 0.1111)
    assert found.geography == "MaxMind format, Test-City, of 2026-09-21"
    assert [
        (row.kind, row.views, row.share, row.daily_uniques_mean, row.daily_arrivals_mean) for row in found.kinds
    ] == [
        ("product", 4, 0.4444, 1.0, 0.67),
        ("home", 2, 0.2222, 0.67, 0.67),
        ("store", 2, 0.2222, 0.67, 0.67),
        ("brand", 1, 0.1111, 0.33, 0.0),
    ]


async def test_places_as_finely_as_asked(site: Site) -> None:
    await _two_days(site)
    async with site.pool.connection() as conn:
        countries = await visitors.list_places(conn, TWO)
        regions = await visitors.list_places(conn, TWO, By.REGION)
        cities = await visitors.list_places(conn, TWO, By.CITY, country="us", region="Arizona")
        first = await visitors.list_places(conn, TWO, By.CITY, limit=1)

    def told(rows: list[VisitorPlace]) -> list[tuple[object, ...]]:
        return [structs.astuple(row) for row in rows]

    assert list(VisitorPlace.__struct_fields__) == ["country", "region", "city", "views", "share", "daily_uniques_mean"]
    assert told(countries) == [
        ("US", None, None, 6, 0.6667, 1.5),
        ("GB", None, None, 2, 0.2222, 1.0),
        (None, None, None, 1, 0.1111, 0.5),
    ]
    assert told(regions)[0] == ("US", "Arizona", None, 6, 0.6667, 1.5)
    assert told(cities) == [("US", "Arizona", "Phoenix", 5, 0.5556, 1.0), ("US", "Arizona", "Tucson", 1, 0.1111, 0.5)]
    assert told(first) == told(cities)[:1]


async def test_the_pages_that_were_looked_at_most(site: Site) -> None:
    await _two_days(site)
    async with site.pool.connection() as conn:
        assert [structs.asdict(page) for page in await visitors.list_pages(conn, TWO)] == [
            {"kind": "product", "page": "1-a", "views": 4, "daily_uniques_mean": 1.5, "path": "/p/1-a"},
            {"kind": "store", "page": "7-b", "views": 2, "daily_uniques_mean": 1.0, "path": "/s/7-b"},
            {"kind": "brand", "page": "c", "views": 1, "daily_uniques_mean": 0.5, "path": "/b/c"},
        ]
        assert [row.page for row in await visitors.list_pages(conn, TWO, Kind.STORE)] == ["7-b"]
        assert (
            await visitors.list_pages(conn, Period(since=NEXT + timedelta(days=1), until=NEXT + timedelta(days=2)))
            == []
        )


async def test_where_nobody_was_there_is_no_share(site: Site) -> None:
    async with site.pool.connection() as conn:
        found = await visitors.visitor_totals(conn, TWO)
    assert (found.views, found.share_without_place, found.geography, found.kinds) == (0, None, None, [])


def test_the_usual_period_is_of_thirty_days_with_today() -> None:
    found = visitors.period(DAY)
    assert (found.since, found.until, found.days) == (date(2026, 10, 22), NEXT, 30)
    assert visitors.period(DAY, DAY).days == 1
    assert visitors.period(DAY, until=date(2026, 3, 1)) == Period(since=date(2026, 1, 30), until=date(2026, 3, 1))
    assert visitors.period(DAY, since=date(2027, 1, 1)).since == date(2027, 1, 1)
    assert visitors.period(DAY, since=date.max - timedelta(days=1)).days == 1


@pytest.mark.parametrize(
    ("since", "until", "says"),
    [
        (DAY, DAY, "since (2026-11-20) must be before until (2026-11-20)"),
        (date.max, None, "must be before until"),
        (date(2020, 1, 1), None, "at most 400 are allowed"),
        (None, date.min, "must be before until"),
    ],
)
def test_a_period_that_cannot_be_says_why(since: date | None, until: date | None, says: str) -> None:
    with pytest.raises(Refused) as refusal:
        visitors.period(DAY, since, until)
    assert says in str(refusal.value)


def test_a_visitor_is_in_a_city_or_nowhere(geo: GeoDatabase) -> None:
    def place(text: str) -> tuple[str, float, float] | None:
        found = visitor_place(geo, ip_address(text))
        return None if found is None else (found.label, found.latitude, found.longitude)

    assert place(PHOENIX) == ("Phoenix, AZ", 33.4484, -112.074)
    # Of Tucson the database has no coordinates: the post's list has. 32.2, -110.9 by the gazetteer.
    tucson = place(TUCSON)
    assert tucson is not None
    assert tucson[0] == "Tucson, AZ"
    assert tucson[1:] == (pytest.approx(32.2, abs=0.2), pytest.approx(-110.9, abs=0.2))
    assert place(LONDON) == ("London, England", 51.5, -0.125)
    assert place(OSLO) is place(UNKNOWN) is place("127.0.0.1") is None
    assert visitor_place(geo, None) is visitor_place(None, ip_address(PHOENIX)) is None
