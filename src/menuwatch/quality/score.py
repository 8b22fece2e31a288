"""The quality score of a store: how much of its menu says what it should, less what is wrong with it now. Pure.

    score = 100 × completeness × (1 - loss)

`completeness` is the mean share of products with a price, stock, brand, category, weight and THC value on the last menu; `loss` is
0.15 for each critical and 0.05 for each other open finding that is not only informative, and at most 0.6. Of fewer than LEAST_CRAWLS
measured crawls before the last one there is no score: it is not known what is usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from menuwatch.quality.bands import LEAST_CRAWLS

FIELDS = ("price", "stock", "brand", "category", "weight", "thc")
LOSS = {"critical": 0.15, "warning": 0.05, "info": 0.0}
MOST_LOSS = 0.6


def completeness(values: Mapping[str, float]) -> float:
    """The mean share of products that have a value; 0 of an empty menu."""
    return sum(1 - values.get(f"null.{field}", 1.0) for field in FIELDS) / len(FIELDS)


def score(whole: float, severities: Iterable[str], crawls: int) -> tuple[int | None, str | None]:
    """The score from 0 to 100, or why there is none."""
    if crawls < LEAST_CRAWLS:
        return None, f"{crawls} of {LEAST_CRAWLS} earlier menus measured"
    loss = min(sum(LOSS[severity] for severity in severities), MOST_LOSS)
    return round(100 * whole * (1 - loss)), None
