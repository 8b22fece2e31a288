"""One format of durations and ages for all interfaces."""

from __future__ import annotations

from decimal import Decimal

import pytest

from menuwatch.core.format import age, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.0001, "< 1 ms"), (0.42, "420 ms"), (0.9999, "1 s"), (1.3, "1.3 s"), (5, "5 s"), (9.99, "10 s"),
        (45.4, "45 s"), (59.7, "1 min"), (125, "2 min 5 s"), (12_000, "3 h 20 min"), (183_600, "2 d 3 h"), (-3, "0 s"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (None, "–"), (Decimal("0.00"), "under 1 min"), (Decimal("0.01"), "1 min"), (Decimal("0.30"), "18 min"), (1, "1 h"),
        (Decimal("2.60"), "2 h 36 min"), (Decimal("76.20"), "3 d 4 h"),
    ],
)  # fmt: skip
def test_ages_of_hours(hours: Decimal | float | None, text: str) -> None:
    assert age(hours) == text
