"""What was asked for a size, and the verdict on a special, by numbers that are worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from menuwatch.analytics.special_checks import judge
from menuwatch.catalog.asked_prices import Asked, past_of_special, usual_price, while_observed
from menuwatch.catalog.history import Unobserved

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def asked(*parts: tuple[float, float, int, bool]) -> list[Asked]:
    """Parts as (days ago from, until, price, on special)."""
    return [Asked(ago(start), ago(end), price, special) for start, end, price, special in parts]


@pytest.mark.parametrize(
    ("parts", "verdict", "score"),
    [
        # 80 days at 50, ten days at 30 instead of 50: the usual price is 50.
        ([(90, 10, 5000, False), (10, 0, 3000, True)], "genuine", 100),
        # For 50 of 90 days at 30: that is the usual price, although 50 was asked 50 days ago.
        ([(90, 50, 5000, False), (50, 0, 3000, True)], "doubtful", 0),
        # For 60 days at 38, never at 50: (38 - 30) / (50 - 30).
        ([(90, 30, 3800, False), (30, 0, 3000, True)], "never_asked", 40),
        # It usually costs less than on special.
        ([(90, 10, 2500, False), (10, 0, 3000, True)], "never_asked", 0),
        # Always on special.
        ([(90, 0, 3000, True)], "never_asked", 0),
        # 29 days are too few to say that a price was never asked, and enough to see that it was.
        ([(29, 0, 3000, True)], "unknown", None),
        ([(29, 9, 5000, False), (9, 0, 3000, True)], "genuine", None),
        ([(29, 9, 5100, False), (9, 0, 3000, True)], "genuine", None),
        ([], "unknown", None),
    ],
)
def test_verdict_and_score(parts: list[tuple[float, float, int, bool]], verdict: str, score: int | None) -> None:
    found = judge(asked(*parts), 3000, 5000, NOW)
    assert (found.verdict, found.score) == (verdict, score)


def test_the_past_of_a_special() -> None:
    past = past_of_special(
        asked((80, 60, 2900, False), (60, 40, 5000, False), (20, 10, 3500, True), (10, 0, 3000, True)), 3000, 5000, NOW
    )
    assert (past.began, past.observed_from, past.regular_until, past.lower_until) == (
        ago(20),
        ago(80),
        ago(40),
        ago(60),
    )


def test_the_usual_price_holds_for_half_of_the_time() -> None:
    assert usual_price(asked((10, 5, 100, False), (5, 0, 200, False))) == (100, timedelta(days=10))
    assert usual_price(asked((10, 5.1, 100, False), (5.1, 0, 200, False))) == (200, timedelta(days=10))
    assert usual_price([]) == (None, timedelta())


def test_time_in_which_the_store_was_not_observed_is_cut_out() -> None:
    gaps = [
        Unobserved(store_id=1, from_=ago(95), to=ago(80)),
        Unobserved(store_id=1, from_=ago(50), to=ago(40)),
        Unobserved(store_id=1, from_=ago(5), to=None),
    ]
    parts = asked((100, 60, 1, False), (60, 30, 2, False), (30, 0, 3, False))
    assert list(while_observed(parts, gaps, ago(90), NOW)) == asked(
        (80, 60, 1, False), (60, 50, 2, False), (40, 30, 2, False), (30, 5, 3, False)
    )
