"""The gate: what closes it, for how long, and what it says of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from menuwatch.core.clock import ManualClock
from menuwatch.queue.model import Role
from menuwatch.workers.engine.claim_gate import PAUSED_DELAY, ClaimGate, GateChange


@pytest.fixture
def hand() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def gate(hand: ManualClock) -> ClaimGate:
    return ClaimGate(backoff=10.0, clock=hand)


def test_it_is_open_at_first(gate: ClaimGate) -> None:
    assert (gate.delay_before_claim(), gate.reason, gate.status) == (None, None, "active")
    assert (gate.is_backing_off, gate.backoff_reason, gate.paused_roles) == (False, None, ())


def test_an_operator_closes_it_until_he_opens_it(gate: ClaimGate, hand: ManualClock) -> None:
    gate.pause()
    hand.advance(timedelta(seconds=1e6))
    assert (gate.delay_before_claim(), gate.reason, gate.status) == (PAUSED_DELAY, "paused by an operator", "paused")
    assert not gate.is_backing_off
    gate.resume()
    assert (gate.delay_before_claim(), gate.reason, gate.status) == (None, None, "active")


def test_an_overload_closes_it_for_the_whole_time_even_when_it_is_soon_over(gate: ClaimGate, hand: ManualClock) -> None:
    assert gate.report_pressure("memory is full") is GateChange.CLOSED
    assert (gate.delay_before_claim(), gate.reason, gate.status) == (10.0, "memory is full", "backing_off")
    hand.advance(timedelta(seconds=4))
    assert gate.report_pressure(None) is None, "too early"
    assert gate.delay_before_claim() == pytest.approx(6.0)
    hand.advance(timedelta(seconds=6))
    assert gate.report_pressure(None) is GateChange.OPENED
    assert (gate.delay_before_claim(), gate.reason, gate.is_backing_off) == (None, None, False)


def test_an_overload_that_lasts_closes_it_again_and_is_news_only_once(gate: ClaimGate, hand: ManualClock) -> None:
    assert gate.report_pressure("memory at 90 %") is GateChange.CLOSED
    hand.advance(timedelta(seconds=5))
    assert gate.report_pressure("memory at 95 %") is None
    assert (gate.delay_before_claim(), gate.backoff_reason) == (pytest.approx(5.0), "memory at 95 %")
    hand.advance(timedelta(seconds=5))
    assert gate.report_pressure("memory at 91 %") is None
    assert gate.delay_before_claim() == 10.0
    hand.advance(timedelta(seconds=10))
    assert gate.report_pressure(None) is GateChange.OPENED
    assert gate.report_pressure(None) is None


def test_it_stays_closed_until_the_machine_was_measured_again(gate: ClaimGate, hand: ManualClock) -> None:
    gate.report_pressure("the processor is busy")
    hand.advance(timedelta(seconds=60))
    look = gate.delay_before_claim()
    assert look is not None
    assert 0 < look < 1


def test_both_at_once(gate: ClaimGate, hand: ManualClock) -> None:
    gate.report_pressure("memory is full")
    gate.pause("Ada")
    assert (gate.reason, gate.status) == ("paused by Ada; memory is full", "paused")
    gate.resume()
    assert (gate.delay_before_claim(), gate.status) == (10.0, "backing_off")


def test_closed_roles_are_shown_and_leave_the_others_open(gate: ClaimGate) -> None:
    gate.set_paused_roles({Role.STORE_DISCOVERY, Role.PAYLOAD_FETCH}, "no active proxy")
    assert gate.delay_before_claim() is None
    assert gate.paused_roles == (Role.PAYLOAD_FETCH, Role.STORE_DISCOVERY)
    assert gate.paused_roles_reason == "no active proxy"
    gate.set_paused_roles(())
    assert (gate.paused_roles, gate.paused_roles_reason) == ((), None)


def test_a_backoff_of_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        ClaimGate(backoff=0)
