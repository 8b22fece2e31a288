"""The gate: what closes it, for how long, and what it says of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from menuwatch.core.clock import ManualClock
from menuwatch.engine.gate import PAUSED_LOOK, Gate, Turn
from menuwatch.tasks.model import Role


@pytest.fixture
def hand() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def gate(hand: ManualClock) -> Gate:
    return Gate(backoff=10.0, clock=hand)


def test_it_is_open_at_first(gate: Gate) -> None:
    assert (gate.look(), gate.reason, gate.status) == (None, None, "active")
    assert (gate.is_backing_off, gate.backoff_reason, gate.paused_roles) == (False, None, ())


def test_an_operator_closes_it_until_he_opens_it(gate: Gate, hand: ManualClock) -> None:
    gate.pause()
    hand.advance(timedelta(seconds=1e6))
    assert (gate.look(), gate.reason, gate.status) == (PAUSED_LOOK, "paused by an operator", "paused")
    assert not gate.is_backing_off
    gate.resume()
    assert (gate.look(), gate.reason, gate.status) == (None, None, "active")


def test_an_overload_closes_it_for_the_whole_time_even_when_it_is_soon_over(gate: Gate, hand: ManualClock) -> None:
    assert gate.weigh("memory is full") is Turn.CLOSED
    assert (gate.look(), gate.reason, gate.status) == (10.0, "memory is full", "backing_off")
    hand.advance(timedelta(seconds=4))
    assert gate.weigh(None) is None, "too early"
    assert gate.look() == pytest.approx(6.0)
    hand.advance(timedelta(seconds=6))
    assert gate.weigh(None) is Turn.OPENED
    assert (gate.look(), gate.reason, gate.is_backing_off) == (None, None, False)


def test_an_overload_that_lasts_closes_it_again_and_is_news_only_once(gate: Gate, hand: ManualClock) -> None:
    assert gate.weigh("memory at 90 %") is Turn.CLOSED
    hand.advance(timedelta(seconds=5))
    assert gate.weigh("memory at 95 %") is None
    assert (gate.look(), gate.backoff_reason) == (pytest.approx(5.0), "memory at 95 %")
    hand.advance(timedelta(seconds=5))
    assert gate.weigh("memory at 91 %") is None
    assert gate.look() == 10.0
    hand.advance(timedelta(seconds=10))
    assert gate.weigh(None) is Turn.OPENED
    assert gate.weigh(None) is None


def test_it_stays_closed_until_somebody_has_looked_at_the_machine_again(gate: Gate, hand: ManualClock) -> None:
    gate.weigh("the processor is busy")
    hand.advance(timedelta(seconds=60))
    look = gate.look()
    assert look is not None
    assert 0 < look < 1


def test_both_at_once(gate: Gate, hand: ManualClock) -> None:
    gate.weigh("memory is full")
    gate.pause("Ada")
    assert (gate.reason, gate.status) == ("paused by Ada; memory is full", "paused")
    gate.resume()
    assert (gate.look(), gate.status) == (10.0, "backing_off")


def test_closed_roles_are_shown_and_leave_the_others_open(gate: Gate) -> None:
    gate.note_roles({Role.STORE_DISCOVERY, Role.PAYLOAD_FETCH}, "no active proxy")
    assert gate.look() is None
    assert gate.paused_roles == (Role.PAYLOAD_FETCH, Role.STORE_DISCOVERY)
    assert gate.paused_roles_reason == "no active proxy"
    gate.note_roles(())
    assert (gate.paused_roles, gate.paused_roles_reason) == ((), None)


def test_a_backoff_of_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        Gate(backoff=0)
