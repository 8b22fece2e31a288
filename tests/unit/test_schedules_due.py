"""When a schedule fires: the grid, whatever happens to the clock of who looks at it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.queue.schedules import due

T0 = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
H = timedelta(hours=1)

intervals = st.integers(36_000_000, 8760 * due.HOUR).map(lambda n: timedelta(microseconds=n))
ages = st.timedeltas(timedelta(0), timedelta(days=2000))


def test_worked_by_hand() -> None:
    assert due.interval(Decimal("0.25")) == timedelta(minutes=15)
    assert due.interval(Decimal("0.0001")) == timedelta(milliseconds=360)
    assert due.next_due(T0, 4 * H, T0) == T0 + 4 * H
    assert due.next_due(T0, 4 * H, T0 + timedelta(seconds=59)) == T0 + 4 * H, "a late poll does not move the grid"
    assert due.next_due(T0, 4 * H, T0 + 9 * H) == T0 + 12 * H
    assert due.last_due(T0, 4 * H, T0 + 9 * H) == T0 + 8 * H
    assert due.missed_count(T0, 4 * H, T0 + 9 * H) == 2
    assert due.next_due(T0, 4 * H, T0 - H) == T0, "not due: nothing moves"
    with pytest.raises(ValueError, match="nothing is due"):
        due.last_due(T0, H, T0 - H)


def test_a_new_interval_counts_from_the_firing_before() -> None:
    # Fired at 02:00, next at 06:00 (4 h); it is 03:30.
    now = T0 - 2.5 * H
    assert due.rescheduled(T0, 4 * H, 6 * H, now) == T0 + 2 * H
    assert due.rescheduled(T0, 4 * H, 2 * H, now) == T0 - 2 * H
    assert due.rescheduled(T0, 4 * H, H, now) == now, "03:00 is past: at once, and once"
    assert due.rescheduled(T0, 4 * H, 24 * H, T0 + H) == T0, "it is due already and stays so"


@given(every=intervals, age=ages)
def test_a_firing_lies_on_the_grid_and_never_in_the_future(every: timedelta, age: timedelta) -> None:
    now = T0 + age
    fired, following = due.last_due(T0, every, now), due.next_due(T0, every, now)
    assert T0 <= fired <= now < following
    assert following - fired == every
    assert (fired - T0) % every == timedelta(0)
    assert due.missed_count(T0, every, now) == (fired - T0) // every


@given(every=intervals, waits=st.lists(st.timedeltas(timedelta(0), timedelta(days=30)), min_size=1, max_size=20))
def test_however_it_is_polled_no_firing_comes_twice_and_the_grid_stays(
    every: timedelta, waits: list[timedelta]
) -> None:
    planned, now, fired = T0, T0, []
    for wait in waits:
        now += wait
        if planned <= now:
            fired.append(due.last_due(planned, every, now))
            planned = due.next_due(planned, every, now)
    assert fired == sorted(set(fired))
    assert planned == due.next_due(T0, every, now), "the same as if it had been looked at once"


@given(before=intervals, every=intervals, ahead=ages, age=ages)
def test_a_changed_interval_never_plans_into_the_past(
    before: timedelta, every: timedelta, ahead: timedelta, age: timedelta
) -> None:
    planned, now = T0 + ahead, T0 + age
    found = due.rescheduled(planned, before, every, now)
    assert found >= min(planned, now)
    assert found <= max(planned, now, planned - before + every)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("02:30", "30 2 * * *"),
        (" 0  2 * * 1-5 ", "0 2 * * 1-5"),
        ("*/15 * * * *", "*/15 * * * *"),
        ("23:59", "59 23 * * *"),
    ],
)
def test_a_time_of_day_is_a_cron_line(text: str, line: str) -> None:
    assert due.cron_line(text) == line


@pytest.mark.parametrize(
    "text", ["", "24:00", "0 2 * *", "0 2 * * * *", "0 25 * * *", "0 0 30 2 *", "daily", "61 * * * *", "@daily"]
)
def test_what_is_no_cron_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"cron line|never occurs"):
        due.cron_line(text)


def test_a_cron_line_follows_the_clocks_of_its_zone() -> None:
    cron = due.Cron("30 2 * * *", ["America/New_York"])
    # On 2026-03-08 02:30 does not exist there; on 2026-11-01 01:30 exists twice.
    assert cron.next_due(at("2026-03-07T12:00:00Z")) == at("2026-03-08T07:00:00Z"), (
        "made up for at 03:00, the next minute"
    )
    assert cron.next_due(at("2026-03-08T12:00:00Z")) == at("2026-03-09T06:30:00Z")
    twice = due.Cron("30 1 * * *", ["America/New_York"])
    assert twice.upcoming(at("2026-10-31T12:00:00Z"), 2) == [at("2026-11-01T05:30:00Z"), at("2026-11-02T06:30:00Z")]


def test_each_zone_has_its_own_firing() -> None:
    cron = due.Cron("0 2 * * *", ["America/New_York", "America/Phoenix", ""])
    night = [at("2026-11-23T02:00:00Z"), at("2026-11-23T07:00:00Z"), at("2026-11-23T09:00:00Z")]
    assert cron.upcoming(at("2026-11-22T20:00:00Z"), 4) == [*night, at("2026-11-24T02:00:00Z")]
    assert cron.next_due(night[0]) == night[1]
    assert cron.last_due(night[1], night[1]) == (night[1], ["America/New_York"])
    # After a stop from 06:00 to 10:00 both zones whose time passed are due at once.
    fire_at, zones = cron.last_due(night[1], at("2026-11-23T10:00:00Z"))
    assert (fire_at, sorted(zones)) == (night[2], ["America/New_York", "America/Phoenix"])
    assert cron.interval(night[0]) == 24


def test_an_unknown_zone_is_utc_as_it_is_for_stores() -> None:
    assert due.Cron("0 2 * * *", ["Mars/Olympus"]).next_due(at("2026-11-23T00:00:00Z")) == at("2026-11-23T02:00:00Z")


def test_the_interval_of_a_cron_line_is_the_shortest() -> None:
    assert due.Cron("0 2,4 * * *", ["UTC"]).interval(at("2026-11-23T00:00:00Z")) == 2
