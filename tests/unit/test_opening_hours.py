"""Opening hours of stores. Expected times are worked out by hand from the records' words."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.platforms.opening_hours import OpeningHours, read_hours

PHOENIX = ZoneInfo("America/Phoenix")
NEW_YORK = ZoneInfo("America/New_York")


def dutchie(special: list[Any] | None = None, **days: tuple[str, str] | None) -> dict[str, Any]:
    hours: dict[str, Any] = {"__typename": "Dispensaries_profile_hours"}
    for name, bounds in days.items():
        start, end = bounds or ("9:00 AM", "9:00 PM")
        hours[name] = {"active": bounds is not None, "start": start, "end": end, "__typename": "dayBounds"}
    return {"pickupHours": hours, "specialHours": special}


def known(record: Any) -> OpeningHours:
    hours = read_hours(record)
    assert hours is not None
    return hours


_NINE = ("9:00 AM", "9:00 PM")
WEEK = known(
    dutchie(
        Monday=_NINE,
        Tuesday=_NINE,
        Wednesday=_NINE,
        Thursday=("12:00 PM", "12:00 AM"),
        Friday=("10:00 AM", "2:00 AM"),
        Saturday=None,
        Sunday=("12:00 AM", "12:00 AM"),
    )
)
"""November 23, 2026 is a Monday."""


@pytest.mark.parametrize(
    ("day", "hour", "minute", "is_open", "at"),
    [
        (23, 8, 59, False, (23, 9, 0)),
        (23, 9, 0, True, (23, 21, 0)),
        (23, 20, 59, True, (23, 21, 0)),
        (23, 21, 0, False, (24, 9, 0)),
        (26, 11, 0, False, (26, 12, 0)),
        (26, 23, 59, True, (27, 0, 0)),
        (27, 0, 0, False, (27, 10, 0)),
        (28, 1, 59, True, (28, 2, 0)),
        (28, 2, 0, False, (29, 0, 0)),
        (29, 13, 0, True, (30, 0, 0)),
    ],
)
def test_a_store_is_open_within_its_hours(
    day: int, hour: int, minute: int, is_open: bool, at: tuple[int, int, int]
) -> None:
    state = WEEK.state(datetime(2026, 11, day, hour, minute, tzinfo=PHOENIX))
    assert state is not None
    assert (state.is_open, state.until if is_open else state.opens) == (
        is_open,
        datetime(2026, 11, *at, tzinfo=PHOENIX),
    )


def test_special_days_come_before_weekdays() -> None:
    def on(day: str, active: bool | None, start: str, end: str) -> dict[str, Any]:
        bounds = {"active": active, "start": start, "end": end}
        return {"name": "x", "hoursPerDay": [{"date": f"{day}T12:00:00-05:00", "pickupHours": bounds}]}

    hours = known(
        dutchie(
            [on("2026-11-26", None, "00:00 AM", "00:00 AM"), on("2026-11-27", True, "6:00 AM", "11:30 PM"), "odd", {"hoursPerDay": 3}],
            Thursday=("9:00 AM", "9:00 PM"), Friday=("9:00 AM", "9:00 PM"),
        )
    )  # fmt: skip
    thanksgiving = hours.state(datetime(2026, 11, 26, 12, 0, tzinfo=NEW_YORK))
    assert thanksgiving is not None
    assert (thanksgiving.is_open, thanksgiving.today) == (False, None)
    assert thanksgiving.opens == datetime(2026, 11, 27, 6, 0, tzinfo=NEW_YORK)
    assert hours.on(date(2026, 11, 27)) == (360, 1410)


def test_a_day_that_is_not_given_is_not_known() -> None:
    hours = known(dutchie(Monday=("9:00 AM", "9:00 PM")))
    assert hours.state(datetime(2026, 11, 24, 12, 0, tzinfo=PHOENIX)) is None
    late = hours.state(datetime(2026, 11, 23, 22, 0, tzinfo=PHOENIX))
    assert late is not None
    assert (late.is_open, late.opens) == (False, None)


def test_a_weekday_with_two_periods_is_not_known() -> None:
    days = [("Monday", "9:00 AM", "1:00 PM"), ("Monday", "3:00 PM", "8:00 PM"), ("Tuesday", "9:00 AM", "8:00 PM")]
    days += days[2:]
    record = {"working_hours": [{"day": day, "period": {"from": start, "to": end}} for day, start, end in days]}
    hours = read_hours(record)
    assert hours is not None
    assert hours.week == {1: (9 * 60, 20 * 60)}


def test_jane_gives_working_hours() -> None:
    hours = known(
        {
            "working_hours": [
                {"day": "monday", "period": {"from": "8:00am", "to": "22:00"}},
                {"day": "tuesday", "period": {"from": None}},
            ]
        }
    )
    assert hours.week == {0: (480, 1320)}
    assert not hours.for_pickup


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"pickupHours": None},
        {"pickupHours": {}},
        {"pickupHours": {"Monday": None}},
        {"pickupHours": {"Monday": {"active": True, "start": "x", "end": "9:00 PM"}}},
        {"pickupHours": {"Monday": {"start": "9:00 AM", "end": "9:00 PM"}}},
        {"working_hours": [3]},
        {"working_hours": True},
        {"working_hours": [{"day": "sunday"}]},
        {"working_hours": [{"day": "sunday", "period": {"from": None, "to": None}}]},
    ],
)
def test_without_hours_none_are_known(record: Any) -> None:
    assert read_hours(record) is None


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "pickupHours": st.dictionaries(st.sampled_from(["Monday", "Friday"]), _json),
            "specialHours": _json,
            "working_hours": _json,
        },
    )
)
def test_no_record_breaks_it(record: dict[str, Any]) -> None:
    read_hours(record)
