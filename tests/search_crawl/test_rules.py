"""When a job does what, as rules; and what a score is made of."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.search_crawl.model import Reference, parse_reference
from menuwatch.search_crawl.protocols import UrlType
from menuwatch.search_crawl.rules import Over, Pacing, Standing, Submit, Wait, decide, gap, retry_wait, score
from tests.search_crawl.world import product_of

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
LATER = st.floats(0.001, 100_000.0).map(lambda seconds: NOW + timedelta(seconds=seconds))
COUNT = st.integers(0, 40)


@st.composite
def standings(draw: st.DrawFn) -> Standing:
    waiting, under_way = draw(COUNT), draw(COUNT)
    return Standing(
        begun=draw(st.booleans()),
        mixing=draw(st.booleans()),
        mixing_threshold=draw(st.integers(1, 60)),
        next_submit_after=draw(st.one_of(LATER, st.just(NOW - timedelta(seconds=1)), st.just(NOW))),
        ready=(draw(COUNT), draw(COUNT)),
        waiting=waiting,
        retry_at=draw(LATER) if waiting else None,
        under_way=under_way,
        funnel=draw(st.integers(0, under_way)),
        deadline_at=draw(LATER) if under_way else None,
    )


@given(standings())
def test_what_is_done_and_when(one: Standing) -> None:
    done = decide(one, NOW)
    ready = sum(one.ready)
    held = one.begun and not one.mixing and ready < one.mixing_threshold and one.funnel > 0
    if isinstance(done, Over):
        assert not ready
        assert not one.waiting
        assert not one.under_way
    elif isinstance(done, Submit):
        assert one.next_submit_after <= NOW
        assert not held
        assert done.priority == (1 if one.ready[0] else 2)
        assert one.ready[done.priority - 1] > 0
    else:
        assert done.until > NOW, "else it would be looked at again and again"
        if ready and not held:
            assert done == Wait(one.next_submit_after), "never further than needed"
        else:
            assert done.until == min(moment for moment in (one.retry_at, one.deadline_at) if moment is not None)
    # Nothing is ever stranded: where there is anything left, something is done or a time is set.
    assert isinstance(done, Over) == (not ready and not one.waiting and not one.under_way)


@given(st.integers())
def test_waits(seed: int) -> None:
    """Without other values: 5 to 15 s, and 15 min x 2^(n-1) plus 0 to 5 min, three times (SPEC section 12)."""
    rng, pacing = random.Random(seed), Pacing()
    assert timedelta(seconds=5) <= gap(pacing, rng) <= timedelta(seconds=15)
    for failures, minutes in ((1, 15), (2, 30), (3, 60)):
        wait = retry_wait(pacing, failures, rng)
        assert wait is not None
        assert timedelta(minutes=minutes) <= wait <= timedelta(minutes=minutes + 5)
    assert retry_wait(pacing, 4, rng) is None
    with pytest.raises(ValueError, match="from 1"):
        retry_wait(pacing, 0, rng)
    slow = Pacing(gap_min_seconds=60, gap_max_seconds=60, max_retries=1, retry_base_minutes=120)
    assert gap(slow, rng) == timedelta(minutes=1)
    wait = retry_wait(slow, 1, rng)
    assert wait is not None
    assert timedelta(hours=2) <= wait <= timedelta(hours=2, minutes=40)
    assert retry_wait(slow, 2, rng) is None
    assert retry_wait(Pacing(max_retries=0), 1, rng) is None


@given(st.integers(1, 10**18 - 1), st.sampled_from(UrlType), st.integers(1, 10**18 - 1), st.integers(1, 9999))
def test_references_come_back_as_they_went(job: int, url_type: UrlType, item: int, attempt: int) -> None:
    one = Reference(job_id=job, url_type=url_type, item_id=item, attempt=attempt)
    assert parse_reference(str(one)) == one


@given(st.text(max_size=40))
def test_nothing_else_is_one(text: str) -> None:
    found = parse_reference(text)
    assert found is None or str(found) == text


def test_a_score_by_hand() -> None:
    """40 for demand, 30 for lightness, 15 for one price, 15 for complete variants."""
    from dataclasses import replace

    best = replace(product_of("x/1"), listed=10_000, price_min=Decimal(5), price_max=Decimal(5))
    assert score(best) == Decimal("100.0")
    assert score(replace(best, listed=99)) == Decimal("80.0"), "log10(100) of log10(10,001) is half of the 40"
    assert score(replace(best, listed=None)) == Decimal("60.0")
    assert score(replace(best, weight_g=Decimal(1000))) == Decimal("85.0"), "halfway from 100 g to 10 kg in tens"
    assert score(replace(best, weight_g=Decimal(50_000))) == Decimal("70.0")
    assert score(replace(best, weight_g=None)) == Decimal("70.0")
    assert score(replace(best, price_max=Decimal(10))) == Decimal("92.5")
    assert score(replace(best, price_max=None)) == Decimal("85.0")
    half = (best.variants[0], replace(best.variants[1], price=None))
    assert score(replace(best, variants=half)) == Decimal("92.5")
    nothing = replace(best, listed=0, weight_g=None, price_min=None, price_max=None, variants=())
    assert score(nothing) == Decimal("0.0")
