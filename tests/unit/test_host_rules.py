"""What hosts say, in any order and at any time: what must hold whatever happened before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.hosts.model import HostAvailability, HostEvent, HostState
from menuwatch.hosts.rules import (
    Accepted,
    Delays,
    HostSignal,
    IdentityBlocked,
    RateLimited,
    ServerError,
    all_closed,
    apply_signals,
)

START = datetime(2026, 6, 1, tzinfo=UTC)
WAITS = Delays(cooldown=timedelta(seconds=60), circuit=timedelta(minutes=15))
HOUR = timedelta(hours=1)


def fresh(rate: float = 2.0, current_rate: float | None = None) -> HostState:
    return HostState(rate=rate, current_rate=rate if current_rate is None else current_rate, rate_changed_at=START)


def tell(
    course: HostState, *signals: HostSignal, at: float = 0.0, proxies: int = 20
) -> tuple[HostState, list[HostEvent]]:
    return apply_signals(course, signals, START + timedelta(seconds=at), proxies=proxies, delays=WAITS)


def away(proxy: int, profile: str = "p") -> IdentityBlocked:
    return IdentityBlocked(proxy, profile, "refused with HTTP 403")


kinds: st.SearchStrategy[HostSignal] = st.one_of(
    st.builds(Accepted, st.integers(1, 5)),
    st.builds(IdentityBlocked, st.integers(1, 8), st.sampled_from("abcdef"), st.just("HTTP 403")),
    st.builds(RateLimited, st.none() | st.sampled_from([0.0, 0.5, 9.0, 600.0, 86_400.0 * 3, 3e9]), st.just("HTTP 429")),
    st.builds(ServerError, st.just("HTTP 500")),
)
stories = st.lists(st.tuples(st.sampled_from([0.0, 0.01, 1.0, 11.0, 70.0, 1000.0, 40_000.0]), kinds), max_size=40)


@given(story=stories, rate=st.sampled_from([1e-6, 0.3, 2.0, 1e6]), proxies=st.sampled_from([0, 1, 2, 4, 100]))
def test_whatever_happens(story: Sequence[tuple[float, HostSignal]], rate: float, proxies: int) -> None:
    course = fresh(rate)
    at = 0.0
    for since, item in story:
        at += since
        now = START + timedelta(seconds=at)
        before = course
        course, events = tell(course, item, at=at, proxies=proxies)
        # The pace: within its bounds, never up but by being let in, and then no faster than a tenth of the rate a minute.
        assert rate * 0.02 <= course.current_rate <= rate
        if isinstance(item, Accepted):
            grown = rate * 0.1 * (now - before.rate_changed_at).total_seconds() / 60
            assert before.current_rate <= course.current_rate <= before.current_rate + grown * (1 + 1e-9) + 1e-12
        else:
            assert course.current_rate <= before.current_rate
            assert course.current_rate >= before.current_rate / 2 or course.current_rate == pytest.approx(rate * 0.02)
        # The cool-down: never shortened, and as long as the host asked for.
        if before.cooldown_until is not None and course.cooldown_until is not None:
            assert course.cooldown_until >= before.cooldown_until
        if isinstance(item, RateLimited):
            assert course.cooldown_until is not None
            if item.retry_after is not None:
                assert course.cooldown_until >= now + timedelta(seconds=item.retry_after)
            else:
                assert course.cooldown_until >= now + WAITS.cooldown
                own = max(now + HOUR, before.cooldown_until or now)
                assert course.cooldown_until <= own, "what it did not ask for is an hour at most"
        else:
            assert course.cooldown_until == before.cooldown_until
        # The circuit: what the table allows and its rows are complete.
        assert (course.circuit == "open") is (course.circuit_until is not None) is (course.circuit_reason is not None)
        assert (course.cooldown_until is None) is (course.cooldown_reason is None)
        if isinstance(item, Accepted):
            assert (course.circuit, course.blocked_identities, course.consecutive_opens) == ("closed", (), 0)
        if course.circuit == "open" and before.circuit == "closed":
            assert isinstance(item, IdentityBlocked)
            assert len(course.blocked_identities) >= 6
            assert len({proxy for proxy, _ in course.blocked_identities}) >= min(5, max(proxies, 1))
        if course.circuit_until is not None and course.circuit_until != before.circuit_until:
            assert timedelta(minutes=15) <= course.circuit_until - now <= timedelta(hours=6)
        for event in events:
            assert event.reason


@pytest.mark.parametrize("retry_after", [None, 5.0, 3600.0])
@pytest.mark.parametrize("many", [1, 2, 50])
def test_one_cool_down_counts_once_however_many_are_told_to_slow_down(retry_after: float | None, many: int) -> None:
    course = fresh()
    for n in range(many):
        course, _ = tell(course, RateLimited(retry_after, "HTTP 429"), at=n * 0.01)
    assert (course.consecutive_throttles, course.current_rate) == (1, 1.0)
    # All in one report as well.
    together, _ = tell(fresh(), *[RateLimited(retry_after, "HTTP 429")] * many)
    assert (together.consecutive_throttles, together.current_rate) == (1, 1.0)


def test_a_wait_that_the_host_named_is_honoured_in_full_and_never_shortened() -> None:
    course, (event,) = tell(fresh(), RateLimited(3 * 86_400.0, "HTTP 429"))
    until = START + timedelta(days=3)
    assert course.cooldown_until == event.until == until
    for shorter in (
        RateLimited(1.0, "x"),
        RateLimited(None, "x"),
        Accepted(),
        ServerError("x"),
        RateLimited(0.0, "x"),
        away(1),
    ):
        course, _ = tell(course, shorter, at=60)
        assert (course.cooldown_until, course.cooldown_reason) == (until, "HTTP 429")
    course, _ = tell(course, RateLimited(4 * 86_400.0, "longer"), at=60)
    assert course.cooldown_until == START + timedelta(days=4, seconds=60)


def test_a_wait_that_was_not_named_doubles_up_to_an_hour_and_begins_anew_once_let_in() -> None:
    course, at, delays = fresh(), 0.0, []
    for _ in range(9):
        course, _ = tell(course, RateLimited(None, "HTTP 429"), at=at)
        assert course.cooldown_until is not None
        delays.append((course.cooldown_until - START).total_seconds() - at)
        at = (course.cooldown_until - START).total_seconds()
    assert delays == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    course, _ = tell(course, Accepted(), at=at)
    course, _ = tell(course, RateLimited(None, "HTTP 429"), at=at + 1)
    assert course.cooldown_until == START + timedelta(seconds=at + 61)


def test_an_answer_from_before_a_cool_down_does_not_make_light_of_it() -> None:
    course, _ = tell(fresh(), RateLimited(None, "HTTP 429"))
    course, _ = tell(course, Accepted(), at=1)
    assert (course.consecutive_throttles, course.current_rate) == (1, 1.0)
    assert course.cooldown_until == START + timedelta(seconds=60)


@pytest.mark.parametrize(("minutes", "current_rate"), [(0.5, 0.55), (1, 0.6), (3, 0.8), (5, 1.0), (600, 1.0)])
def test_the_pace_grows_by_a_tenth_of_the_rate_a_minute(minutes: float, current_rate: float) -> None:
    course, _ = tell(fresh(10.0, 5.0), Accepted(), at=60 * minutes)
    assert course.current_rate == pytest.approx(10 * current_rate)
    # The same in steps as at once.
    steps = fresh(10.0, 5.0)
    for n in range(1, 61):
        steps, _ = tell(steps, Accepted(), at=minutes * n)
    assert steps.current_rate == pytest.approx(10 * current_rate)


@pytest.mark.parametrize("wait", [60.0, 600.0, 7200.0])
def test_a_cool_down_is_no_time_to_grow_in(wait: float) -> None:
    """Else whoever is told to wait ten minutes would be as quick as before, right after."""
    course, _ = tell(fresh(10.0), RateLimited(wait, "HTTP 429"))
    course, _ = tell(course, Accepted(), at=wait + 6)
    assert course.current_rate == pytest.approx(5.0 + 0.1)
    course, _ = tell(course, Accepted(), at=wait + 66)
    assert course.current_rate == pytest.approx(5.0 + 1.1)


def test_trouble_slows_down_from_the_third_time_in_a_row_and_once_in_ten_seconds() -> None:
    course = fresh(8.0)
    paces = []
    for at in (0, 1, 2, 3, 11.9, 12.1, 22.2):
        course, _ = tell(course, ServerError("HTTP 500"), at=at)
        paces.append(course.current_rate)
    assert paces == [8, 8, 4, 4, 4, 2, 1]
    course, _ = tell(course, Accepted(), at=23)
    course, _ = tell(course, ServerError("x"), ServerError("x"), at=60)
    assert course.current_rate > 1


def test_trouble_never_makes_it_faster() -> None:
    """The rate was raised a hundredfold by hand, and the pace has not grown into it yet."""
    course, events = tell(fresh(200.0, 2.0), ServerError("x"), ServerError("x"), ServerError("x"))
    assert course.current_rate <= 2.0
    assert events == []
    course, _ = tell(fresh(200.0, 2.0), RateLimited(None, "HTTP 429"))
    assert course.current_rate <= 2.0


def refusals(proxies: int, identities: int) -> list[IdentityBlocked]:
    """So many identities, spread evenly."""
    return [away(n % proxies + 1, f"profile{n // proxies}") for n in range(identities)]


@pytest.mark.parametrize(
    ("pool", "spread", "identities", "opens"),
    [
        (1, 1, 5, False),
        (1, 1, 6, True),
        (2, 2, 5, False),
        (2, 2, 6, True),
        (2, 1, 12, False),
        (4, 4, 5, False),
        (4, 4, 6, True),
        (4, 3, 12, False),
        (100, 4, 40, False),
        (100, 5, 5, False),
        (100, 5, 6, True),
        (100, 6, 6, True),
        (100, 100, 5, False),
    ],
)
def test_the_circuit_opens_when_enough_identities_of_enough_proxies_were_refused(
    pool: int, spread: int, identities: int, opens: bool
) -> None:
    course, events = tell(fresh(), *refusals(spread, identities), proxies=pool)
    assert course.circuit == ("open" if opens else "closed")
    assert [event.kind for event in events] == (["circuit_opened"] if opens else [])
    # The same identity again is nothing new.
    again = refusals(spread, identities)[:5]
    course, _ = tell(fresh(), *again * 20, proxies=pool)
    assert course.circuit == "closed"


def test_nothing_opens_while_one_in_three_is_let_in() -> None:
    course = fresh()
    for n in range(300):
        course, events = tell(course, away(n % 10, f"a{n}"), away(n % 10 + 1, f"b{n}"), Accepted(), at=n)
        assert events == []
    assert course.circuit == "closed"


def test_an_open_circuit_is_tried_again_and_stays_shut_twice_as_long_each_time_up_to_six_hours() -> None:
    course, _ = tell(fresh(), *refusals(6, 6))
    at, delays = 0.0, []
    for _ in range(8):
        assert course.circuit_until is not None
        delays.append((course.circuit_until - START).total_seconds() - at)
        # A straggler from before changes nothing.
        same, events = tell(course, away(77, "late"), at=at + 1)
        assert (same.circuit_until, same.consecutive_opens, events) == (
            course.circuit_until,
            course.consecutive_opens,
            [],
        )
        at = (course.circuit_until - START).total_seconds()
        course, _ = tell(course, away(1, "again"), away(2, "again"), at=at)
    assert delays == [60 * m for m in (15, 30, 60, 120, 240, 360, 360, 360)]
    assert course.circuit_opened_at == START
    course, (event,) = tell(course, Accepted(), at=at)
    assert (event.kind, course.circuit, course.circuit_until, course.circuit_opened_at) == (
        "circuit_closed",
        "closed",
        None,
        None,
    )
    course, _ = tell(course, *refusals(6, 6), at=at)
    assert course.circuit_until == START + timedelta(seconds=at, minutes=15)


@given(many=st.integers(1, 400))
def test_what_is_remembered_is_bounded(many: int) -> None:
    course, _ = tell(fresh(), *[away(n, f"x{n}") for n in range(many)], proxies=10_000)
    assert len(course.blocked_identities) <= 50
    # An old course of a host that answers stays as small as a new one.
    course, _ = tell(course, Accepted())
    assert course.blocked_identities == ()


def test_the_course_that_was_given_is_not_touched() -> None:
    course = fresh()
    copy = replace(course)
    tell(course, *refusals(6, 6), RateLimited(1, "x"), ServerError("x"), Accepted())
    assert course == copy


def look(host: str, code: str | None, leases: int = 0) -> HostAvailability:
    return HostAvailability(host=host, code=code, reason=code, wait=1.0, leases=leases, concurrency=2)


@pytest.mark.parametrize(
    ("asked", "outlooks", "closed", "again"),
    [
        ((), [], False, None),
        (("a",), [], False, None),
        (("a",), [look("a", None)], False, None),
        (("a",), [look("a", "cooling")], True, None),
        (("a",), [look("a", None, leases=2)], True, 0.5),
        (("a", "b"), [look("a", "paused")], False, None),
        (("a", "b"), [look("a", "paused"), look("b", None, leases=1)], False, None),
        (("a", "b"), [look("a", "paused"), look("b", "circuit")], True, None),
        (("a", "b"), [look("a", "paused"), look("b", None, leases=3)], True, 0.5),
    ],
)
def test_nobody_claims_for_hosts_that_are_all_closed(
    asked: tuple[str, ...], outlooks: list[HostAvailability], closed: bool, again: float | None
) -> None:
    found = all_closed(asked, outlooks)
    assert (found is not None) is closed
    if found is not None:
        codes = {outlook.code for outlook in outlooks}
        assert (found[1], found[2] in (codes if again is None else {"busy"})) == (again, True)


def test_a_storm_that_names_no_wait_halves_the_pace_once() -> None:
    start = HostState(rate=8.0, current_rate=8.0, rate_changed_at=START)
    course, _ = apply_signals(start, [RateLimited(0.0, "HTTP 429, wait 0 s")] * 8, START, proxies=10, delays=Delays())
    assert (course.current_rate, course.consecutive_throttles) == (4.0, 1)
    course, _ = apply_signals(
        course, [RateLimited(0.0, "again")], START + timedelta(seconds=2), proxies=10, delays=Delays()
    )
    assert (course.current_rate, course.consecutive_throttles) == (2.0, 2)
