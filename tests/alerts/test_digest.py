"""When a digest is told, on days that are not 24 hours long. Expected moments are found by walking over instants: no arithmetic on
wall clocks."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from menuwatch.alerts.model import Rule

STEP = timedelta(minutes=5)
DAY = timedelta(days=1)


def rule(digest: str, at: time | None = None, zone: str = "UTC") -> Rule:
    values = {spec.name: None for spec in dataclasses.fields(Rule)}
    return Rule(**{**values, "id": 1, "name": "r", "digest": digest, "digest_at": at, "timezone": zone})  # type: ignore[arg-type]


def told_on(day: date, at: time, zone: ZoneInfo) -> datetime:
    """The first instant of that local day at which clocks show the time, or, where none do, the time an hour later."""
    for wanted in (at, time(at.hour + 1, at.minute)):
        instant = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=15)
        while instant < datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=40):
            local = instant.astimezone(zone)
            if (local.date(), local.hour, local.minute) == (day, wanted.hour, wanted.minute):
                return instant
            instant += STEP
    raise AssertionError(f"{zone} has no {at} on {day}")


# fmt: off
CHANGES = [
    ("America/New_York", date(2027, 3, 14)),     # 02:00 to 03:00 is missing
    ("America/New_York", date(2027, 11, 7)),     # 01:00 to 02:00 comes twice
    ("Europe/Berlin", date(2027, 3, 28)),
    ("Europe/Berlin", date(2027, 10, 31)),
    ("America/Havana", date(2027, 3, 14)),       # midnight itself is missing
    ("America/Havana", date(2027, 11, 7)),
    ("America/Phoenix", date(2027, 3, 14)),      # knows no summer time
]
TIMES = [time(0, 0), time(0, 30), time(1, 30), time(2, 0), time(2, 30), time(3, 0), time(8, 0), time(22, 55)]
# fmt: on


@pytest.mark.parametrize(("name", "day"), CHANGES)
@pytest.mark.parametrize("at", TIMES)
def test_a_daily_digest_over_a_change_of_the_clocks(name: str, day: date, at: time) -> None:
    """Whatever fires in the days around it is told at the next time of the digest's, which comes once a day."""
    zone = ZoneInfo(name)
    moments = [told_on(day + n * DAY, at, zone) for n in range(-2, 4)]
    assert moments == sorted(set(moments))
    daily = rule("daily", at, name)
    fired = moments[0]
    while fired < moments[-1]:
        assert daily.due_at(fired) == next(moment for moment in moments if moment > fired), fired
        fired += STEP
    # A breath before and after each moment, which no walk in steps meets.
    for before, after in pairwise(moments):
        assert daily.due_at(before - timedelta(microseconds=1)) == before
        assert daily.due_at(before) == after
        assert daily.due_at(after - timedelta(microseconds=1)) == after


@pytest.mark.parametrize(
    ("fired", "told"),
    [
        # EST is five hours behind, EDT four: a digest at 08:00 is told 23 and 25 hours after the last one.
        ("2027-03-13T13:00:00", "2027-03-14T12:00:00"),
        ("2027-11-06T12:00:00", "2027-11-07T13:00:00"),
        ("2027-03-14T12:00:00", "2027-03-15T12:00:00"),
        ("2027-11-07T13:00:00", "2027-11-08T13:00:00"),
    ],
)
def test_the_hours_between_two_digests_are_the_days(fired: str, told: str) -> None:
    daily = rule("daily", time(8, 0), "America/New_York")
    assert daily.due_at(datetime.fromisoformat(fired + "+00:00")) == datetime.fromisoformat(told + "+00:00")


def test_a_time_that_is_missing_is_told_an_hour_later_and_one_that_comes_twice_the_first_time() -> None:
    missing = rule("daily", time(2, 30), "America/New_York")
    assert missing.due_at(datetime(2027, 3, 14, 5, tzinfo=UTC)) == datetime(2027, 3, 14, 7, 30, tzinfo=UTC), "03:30 EDT"
    twice = rule("daily", time(1, 30), "America/New_York")
    first = datetime(2027, 11, 7, 5, 30, tzinfo=UTC)
    assert twice.due_at(first - timedelta(minutes=1)) == first
    assert twice.due_at(first + timedelta(minutes=59)) == datetime(2027, 11, 8, 6, 30, tzinfo=UTC), "not once more"


def test_the_full_hour_is_the_full_hour_whatever_the_clocks_do() -> None:
    hourly = rule("hourly", zone="Australia/Lord_Howe")  # half an hour off, in summer
    fired = datetime(2027, 4, 3, 14, 59, 59, 999_999, tzinfo=UTC)
    assert hourly.due_at(fired) == datetime(2027, 4, 3, 15, tzinfo=UTC)
    assert hourly.due_at(datetime(2027, 4, 3, 15, tzinfo=UTC)) == datetime(2027, 4, 3, 16, tzinfo=UTC)
    assert rule("immediately").due_at(fired) == fired
