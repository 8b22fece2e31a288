"""The rules of a proxy's counters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.proxies.health import Health, ProxyOutcome, apply_event


def run(*events: ProxyOutcome, start: Health | None = None) -> Health:
    health = start or Health()
    for event in events:
        health = apply_event(health, event, elapsed_ms=100.0 if event is ProxyOutcome.SUCCESS else None)
    return health


@pytest.mark.parametrize("event", [ProxyOutcome.FAULT, ProxyOutcome.REFUSED])
def test_the_fifth_in_a_row_deactivates_and_the_fourth_does_not(event: ProxyOutcome) -> None:
    assert run(*[event] * 4).is_active
    assert not run(*[event] * 5).is_active


@pytest.mark.parametrize("event", [ProxyOutcome.FAULT, ProxyOutcome.REFUSED])
def test_a_success_between_starts_the_count_anew(event: ProxyOutcome) -> None:
    health = run(*[event] * 4, ProxyOutcome.SUCCESS, *[event] * 4)
    assert health.is_active
    assert health.success_count == 1


def test_faults_and_refusals_are_counted_apart() -> None:
    health = run(*[ProxyOutcome.FAULT] * 4, *[ProxyOutcome.REFUSED] * 4)
    assert health.is_active
    assert (health.failure_count, health.consecutive_403_count) == (4, 4)


def test_a_host_that_refuses_everybody_takes_no_proxy_out() -> None:
    health = run(*[ProxyOutcome.HOST_REFUSES] * 50)
    assert health.is_active
    assert health.consecutive_403_count == 0
    assert run(ProxyOutcome.REFUSED, start=health).is_active, "one refusal of its own is not the last straw"


def test_the_average_moves_a_fifth_of_the_way_to_each_new_time() -> None:
    health = apply_event(Health(), ProxyOutcome.SUCCESS, elapsed_ms=200.0)
    assert health.avg_response_time_ms == 200.0
    health = apply_event(health, ProxyOutcome.SUCCESS, elapsed_ms=300.0)
    assert health.avg_response_time_ms == pytest.approx(220.0)
    assert apply_event(health, ProxyOutcome.FAULT, elapsed_ms=9999.0).avg_response_time_ms == pytest.approx(220.0)


@given(st.lists(st.sampled_from(ProxyOutcome), max_size=60))
def test_counts_agree_with_the_events(events: list[ProxyOutcome]) -> None:
    health = run(*events)
    assert health.success_count == events.count(ProxyOutcome.SUCCESS)
    tail = (
        events[len(events) - events[::-1].index(ProxyOutcome.SUCCESS) :] if ProxyOutcome.SUCCESS in events else events
    )
    assert health.failure_count == tail.count(ProxyOutcome.FAULT)
    assert health.consecutive_403_count == tail.count(ProxyOutcome.REFUSED)
    # Once out it stays out: no event activates.
    states = [run(*events[:n]).is_active for n in range(len(events) + 1)]
    assert states == sorted(states, reverse=True)
