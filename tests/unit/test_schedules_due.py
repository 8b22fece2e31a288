"""When a schedule fires: the grid, whatever happens to the clock of who looks at it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.errors import Refused
from menuwatch.schedules import due
from menuwatch.schedules.model import STATES, parse_state

T0 = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
H = timedelta(hours=1)

intervals = st.integers(36_000_000, 8760 * due.HOUR).map(lambda n: timedelta(microseconds=n))
ages = st.timedeltas(timedelta(0), timedelta(days=2000))


def test_worked_by_hand() -> None:
    assert due.interval(Decimal("0.25")) == timedelta(minutes=15)
    assert due.interval(Decimal("0.0001")) == timedelta(milliseconds=360)
    assert due.following(T0, 4 * H, T0) == T0 + 4 * H
    assert due.following(T0, 4 * H, T0 + timedelta(seconds=59)) == T0 + 4 * H, "a late poll does not move the grid"
    assert due.following(T0, 4 * H, T0 + 9 * H) == T0 + 12 * H
    assert due.latest(T0, 4 * H, T0 + 9 * H) == T0 + 8 * H
    assert due.missed(T0, 4 * H, T0 + 9 * H) == 2
    assert due.following(T0, 4 * H, T0 - H) == T0, "not due: nothing moves"
    with pytest.raises(ValueError, match="nothing is due"):
        due.latest(T0, H, T0 - H)


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
    fired, following = due.latest(T0, every, now), due.following(T0, every, now)
    assert T0 <= fired <= now < following
    assert following - fired == every
    assert (fired - T0) % every == timedelta(0)
    assert due.missed(T0, every, now) == (fired - T0) // every


@given(every=intervals, waits=st.lists(st.timedeltas(timedelta(0), timedelta(days=30)), min_size=1, max_size=20))
def test_however_it_is_polled_no_firing_comes_twice_and_the_grid_stays(
    every: timedelta, waits: list[timedelta]
) -> None:
    planned, now, fired = T0, T0, []
    for wait in waits:
        now += wait
        if planned <= now:
            fired.append(due.latest(planned, every, now))
            planned = due.following(planned, every, now)
    assert fired == sorted(set(fired))
    assert planned == due.following(T0, every, now), "the same as if it had been looked at once"


@given(before=intervals, every=intervals, ahead=ages, age=ages)
def test_a_changed_interval_never_plans_into_the_past(
    before: timedelta, every: timedelta, ahead: timedelta, age: timedelta
) -> None:
    planned, now = T0 + ahead, T0 + age
    found = due.rescheduled(planned, before, every, now)
    assert found >= min(planned, now)
    assert found <= max(planned, now, planned - before + every)


def test_states() -> None:
    assert (parse_state(" az "), parse_state("ON"), len(STATES)) == ("AZ", "ON", 67)
    for wrong in ("ZZ", "", "Arizona", "A"):
        with pytest.raises(Refused, match="as AZ or ON"):
            parse_state(wrong)
