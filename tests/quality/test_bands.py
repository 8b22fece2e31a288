"""The bands of measures: what they must withstand, and what they must not."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.quality.bands import LEAST_CRAWLS, Band, Observation, band, least_width, weekday_pays
from menuwatch.quality.measures import Measure, measure_of
from menuwatch.quality.score import LEAST_CRAWLS as SCORED
from menuwatch.quality.score import completeness, score

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
SHARE = Measure(0.10)
SHARES = st.lists(st.floats(0, 1), min_size=LEAST_CRAWLS, max_size=40)


def _past(values: list[float], gap: float = 24.0) -> list[Observation]:
    days = [START + timedelta(hours=gap * n) for n in range(len(values))]
    return [Observation(value, day.weekday(), gap, day) for value, day in zip(values, days, strict=True)]


def _band(
    values: list[float],
    measure: Measure = SHARE,
    *,
    pool: float | None = None,
    gap: float = 24.0,
    products: float = 200,
) -> Band | None:
    past = _past(values)
    at = START + timedelta(days=len(values))
    return band(measure, past, Observation(0.0, at.weekday(), gap, at), products=products, pool=pool)


@given(SHARES, st.floats(0, 0.5))
def test_a_band_contains_what_it_expects_and_is_at_least_as_wide_as_stated(values: list[float], pool: float) -> None:
    found = _band(values, pool=pool)
    assert found is not None
    assert 0 <= found.low <= found.expected <= found.high <= 1
    assert found.high - found.expected >= min(0.1, 1 - found.expected) - 1e-9
    assert found.expected - found.low >= min(0.1, found.expected) - 1e-9
    assert found.direction(found.expected) is None
    assert found.lean(found.expected) is None


@given(st.floats(0, 1), st.integers(LEAST_CRAWLS, 40), st.floats(0, 1))
def test_a_constant_past_finds_what_moves_by_more_than_the_stated_size(level: float, crawls: int, value: float) -> None:
    found = _band([level] * crawls)
    assert found is not None
    if abs(value - level) > 0.1 + 1e-9:
        assert found.direction(value) == ("up" if value > level else "down")
    elif abs(value - level) < 0.1 - 1e-9:
        assert found.direction(value) is None


@given(st.integers(0, 2**32), st.integers(20, 40))
def test_single_faults_of_the_past_move_no_band(seed: int, crawls: int) -> None:
    rng = Random(seed)
    values = [0.2 + rng.uniform(-0.005, 0.005) for _ in range(crawls)]
    faulty = list(values)
    faulty[rng.randrange(crawls)] = 1.0
    clean, found = _band(values), _band(faulty)
    assert clean is not None
    assert found is not None
    assert abs(found.expected - clean.expected) <= 0.01
    assert found.direction(1.0) == "up"


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_noise_that_is_usual_is_no_finding(seed: int) -> None:
    rng = Random(seed)
    values = [min(max(rng.gauss(0.5, 0.08), 0), 1) for _ in range(40)]
    found = _band(values)
    assert found is not None
    assert all(found.direction(min(max(rng.gauss(0.5, 0.08), 0), 1)) is None for _ in range(20))


def test_too_little_past_has_no_band_without_a_platform_that_knows() -> None:
    assert _band([]) is None
    assert _band([], pool=0.01) is None
    assert _band([0.2] * (LEAST_CRAWLS - 1)) is None
    assert _band([0.2], pool=0.01) is not None
    # A platform that varies a lot widens the band of a store with a short past, and hardly that of one with a long one.
    wide, short, long = _band([0.2], pool=0.1), _band([0.2] * 6, pool=0.1), _band([0.2] * 60, pool=0.1)
    assert wide is not None
    assert short is not None
    assert long is not None
    assert wide.high > short.high > long.high


def test_the_weekday_counts_only_where_it_pays() -> None:
    """Specials on Tuesdays and Fridays."""
    days = 28
    special = [0.6 if n % 7 in (1, 4) else 0.1 for n in range(days)]
    past = _past(special)
    assert weekday_pays(past, special)
    monday = band(SHARE, past, Observation(0, 0, 24, START), products=200, pool=None)
    tuesday = band(SHARE, past, Observation(0, 1, 24, START), products=200, pool=None)
    assert monday is not None
    assert tuesday is not None
    assert (monday.direction(0.6), tuesday.direction(0.6)) == ("up", None)
    assert (monday.direction(0.1), tuesday.direction(0.1)) == (None, "down")
    rng = Random(1)
    noise = [rng.gauss(0.3, 0.05) for _ in range(days)]
    assert not weekday_pays(_past(noise), noise)
    assert not weekday_pays(past[:20], special[:20])


def test_more_may_have_happened_after_a_longer_time() -> None:
    lost = measure_of("lost")
    assert lost is not None
    day, week = _band([0.03] * 20, lost), _band([0.03] * 20, lost, gap=24 * 7)
    assert day is not None
    assert week is not None
    assert day.direction(0.2) == "up"
    assert math.isclose(week.expected, 0.21)
    assert week.direction(0.2) is None


def test_few_products_must_move_as_products() -> None:
    """A share by four products, a level by two that change fourfold; a median by more the fewer it has."""
    assert least_width(SHARE, 1000) == 0.10
    assert least_width(SHARE, 20) == 0.20
    level, price = measure_of("level.price"), measure_of("price.flower")
    assert level is not None
    assert price is not None
    assert math.isclose(least_width(level, 10), math.log(16) / 10)
    assert math.isclose(least_width(price, 40), math.log(1.5))
    assert math.isclose(least_width(price, 10), 2 * math.log(1.5))
    assert measure_of("price") is None
    assert measure_of("null.") is None


@given(st.floats(0, 1), st.lists(st.sampled_from(["critical", "warning", "info"])), st.integers(0, 20))
def test_the_score_falls_with_findings_and_needs_a_past(whole: float, severities: list[str], crawls: int) -> None:
    points, reason = score(whole, severities, crawls)
    if crawls < SCORED:
        assert points is None
        assert reason == f"{crawls} of 5 earlier menus measured"
        return
    assert reason is None
    assert points is not None
    worse, _ = score(whole, [*severities, "critical"], crawls)
    same, _ = score(whole, [*severities, "info"], crawls)
    assert 0 <= (worse or 0) <= points <= 100
    assert same == points


def test_the_score_of_a_known_menu() -> None:
    """All six fields but a quarter of THC: 23/24 are complete; one critical and one other finding take a fifth."""
    values = {
        **dict.fromkeys(("null.price", "null.stock", "null.brand", "null.category", "null.weight"), 0.0),
        "null.thc": 0.25,
    }
    assert math.isclose(completeness(values), 23 / 24)
    assert score(23 / 24, ["critical", "warning", "info"], 5) == (round(100 * 23 / 24 * 0.8), None)
    assert completeness({}) == 0
