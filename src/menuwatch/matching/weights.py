"""What the levels of each feature weigh, in bits, and how that is learned from listings without labels. Pure.

Fellegi–Sunter: a level weighs log2 of how much more often it occurs between two listings of one product than between two different
ones. Both shares are found by expectation maximization over all pairs of a brand, most of which are different: each pair's probability
of being one product gives the shares of each level among those that are and those that are not, and these give new probabilities.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Weights = Mapping[str, Mapping[str, float]]
"""Bits by feature and level; `prior` has the one level `pair`."""

WEIGHTS: Weights = {
    "prior": {"pair": -5.34},
    "words": {
        "equal": 12.0,
        "variant": 9.15,
        "abbreviation": 7.19,
        "line": 9.55,
        "other_lines": 4.21,
        "aside": 3.39,
        "extra": 1.49,
        "most_extra": -4.05,
        "part": -2.52,
        "little": -10.23,
        "none": -11.99,
    },
    "numbers": {"agree": 3.43, "none": 0.15, "one": -2.47},
    "brand": {"equal": 0.05, "prefix": -0.53, "house": -1.6},
    "device": {"agree": 0.31, "one": -0.45, "none": -0.1},
    "extract": {"agree": 0.26, "one": -0.82, "none": 0.03},
    "strain": {"agree": 1.14, "one": 0.27, "none": -0.34, "differ": -1.34},
    "ratio": {"agree": 4.46, "one": -0.02, "none": -0.03},
}
"""Learned without labels from 9,315 listings of Pennsylvania (November 2025) and New Mexico (May 2024)."""

START: Weights = {
    "prior": {"pair": -3.0},
    "words": {
        "equal": 8.0,
        "variant": 6.5,
        "abbreviation": 5.5,
        "line": 5.5,
        "other_lines": 4.0,
        "aside": 4.0,
        "extra": 0.5,
        "most_extra": -2.0,
        "part": -3.0,
        "little": -8.0,
        "none": -10.0,
    },
    "numbers": {"agree": 2.0, "none": 0.0, "one": -3.0},
    "brand": {"equal": 1.0, "prefix": -0.5, "house": 0.0},
    "device": {"agree": 0.5, "one": -0.5, "none": 0.0},
    "extract": {"agree": 0.5, "one": -0.5, "none": 0.0},
    "strain": {"agree": 1.0, "one": 0.0, "none": 0.0, "differ": -2.0},
    "ratio": {"agree": 2.0, "one": -2.0, "none": 0.0},
}
"""What training starts with: how sure a person would be of each level."""

_ROUNDS = 60
_SMOOTHING = 0.5
_MOST = 12.0
_BELIEF = 1500.0
"""Pairs that the weights to start with count for: levels that few pairs have keep theirs."""


class Pair(NamedTuple):
    """Two listings of one brand in different stores, as training sees them."""

    levels: Mapping[str, str]
    """Level by feature (`compare.Comparison.levels`)."""
    rarity: float
    """Bits for the rarity of their shared words."""


def train(pairs: Sequence[Pair], start: Weights = START) -> Weights:
    """Learns weights from pairs without labels: all pairs of a brand, so that nearly all of them are different."""
    features = [feature for feature in start if feature != "prior"]
    other = {feature: Counter(pair.levels[feature] for pair in pairs) for feature in features}
    counted = Counter((tuple(sorted(pair.levels.items())), round(pair.rarity * 2) / 2) for pair in pairs)
    guess = {feature: _guess(other[feature], start[feature]) for feature in features}
    weights = start
    for _ in range(_ROUNDS if counted else 0):
        same = {feature: Counter[str]() for feature in features}
        matched = 0.0
        total = 0
        for (levels, rarity), count in counted.items():
            score = weights["prior"]["pair"] + rarity + sum(weights[feature][level] for feature, level in levels)
            probability = 1 / (1 + 2 ** -max(-60.0, min(60.0, score)))
            matched += probability * count
            total += count
            for feature, level in levels:
                same[feature][level] += probability * count
        learned = {
            feature: {
                level: _bits(
                    (same[feature][level] + _BELIEF * guess[feature][level])
                    / (matched + _BELIEF)
                    / _share(other[feature] - same[feature], level, start[feature])
                )
                for level in start[feature]
            }
            for feature in features
        }
        weights = {"prior": {"pair": _bits((matched + _SMOOTHING) / (total - matched + _SMOOTHING))}} | learned
    return weights


def _guess(other: Counter[str], start: Mapping[str, float]) -> dict[str, float]:
    """Shares of the levels among listings of one product, as the weights to start with imply them."""
    shares = {level: _share(other, level, start) * 2**bits for level, bits in start.items()}
    total = sum(shares.values())
    return {level: share / total for level, share in shares.items()}


def _share(counts: Counter[str], level: str, levels: Mapping[str, float]) -> float:
    return (counts[level] + _SMOOTHING) / (counts.total() + _SMOOTHING * len(levels))


def _bits(ratio: float) -> float:
    return round(max(-_MOST, min(_MOST, math.log2(ratio))), 2)
