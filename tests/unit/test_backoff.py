"""Backoff: bounds, growth, jitter."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.backoff import Backoff

backoffs = st.builds(
    Backoff,
    base=st.floats(0, 1e6),
    cap=st.floats(0, 1e6),
    factor=st.floats(1, 10),
    jitter=st.floats(0, 1),
)


def test_doubles_until_the_cap() -> None:
    waits = Backoff(base=30, cap=600, jitter=0)
    assert [waits.delay(n, Random(1)) for n in range(7)] == [30, 60, 120, 240, 480, 600, 600]


def test_jitter_takes_away_at_most_its_share() -> None:
    class Least(Random):
        def random(self) -> float:
            return 0.0

    class Most(Random):
        def random(self) -> float:
            return 1.0

    waits = Backoff(base=10, jitter=0.25)
    assert waits.delay(1, Least()) == 20
    assert waits.delay(1, Most()) == 15


@given(backoffs, st.integers(0, 10_000), st.integers())
def test_lies_between_its_bounds_however_many_failures(waits: Backoff, failures: int, seed: int) -> None:
    ceiling = waits.ceiling(failures)
    wait = waits.delay(failures, Random(seed))
    assert 0 <= wait <= ceiling <= waits.cap
    assert wait >= ceiling * (1 - waits.jitter) * 0.999_999


@given(backoffs, st.integers(0, 2_000))
def test_never_shrinks_with_more_failures(waits: Backoff, failures: int) -> None:
    assert waits.ceiling(failures) <= waits.ceiling(failures + 1)


@given(backoffs, st.integers(0, 50), st.integers())
def test_the_same_random_source_gives_the_same_wait(waits: Backoff, failures: int, seed: int) -> None:
    assert waits.delay(failures, Random(seed)) == waits.delay(failures, Random(seed))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base": -1}, "must not be negative"),
        ({"base": 1, "cap": -1}, "must not be negative"),
        ({"base": 1, "factor": 0.5}, "at least 1"),
        ({"base": 1, "jitter": 1.5}, "between 0 and 1"),
    ],
)
def test_senseless_figures_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Backoff(**given)


def test_negative_failures_are_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        Backoff(base=1).delay(-1, Random(1))
