"""One format of durations for all interfaces."""

from __future__ import annotations

import pytest

from menuwatch.core.format import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.0001, "< 1 ms"), (0.42, "420 ms"), (0.9999, "1 s"), (1.3, "1.3 s"), (5, "5 s"), (9.99, "10 s"),
        (45.4, "45 s"), (59.7, "1 min"), (125, "2 min 5 s"), (12_000, "3 h 20 min"), (183_600, "2 d 3 h"), (-3, "0 s"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
