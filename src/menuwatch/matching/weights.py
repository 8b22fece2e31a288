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
    "prior": {"pair": -5.37},
    "words": {
        "equal": 12.0,
        "variant": 10.23,
        "abbreviation": 6.54,
        "line": 6.8,
        "other_lines": 4.01,
        "aside": 3.34,
        "extra": 2.65,
        "most_extra": -3.96,
        "part": 1.13,
        "little": -10.22,
        "none": -12.0,
    },
    "numbers": {"agree": 3.02, "none": 0.14, "one": -2.29},
    "brand": {"equal": 0.07, "prefix": -0.74, "house": -1.54},
    "device": {"agree": 0.36, "one": -0.48, "none": -0.09},
    "extract": {"agree": 0.29, "one": -0.79, "none": 0.05},
    "strain": {"agree": 1.11, "one": 0.24, "none": -0.36, "differ": -1.53},
    "ratio": {"agree": 4.46, "one": 0.09, "none": -0.03},
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
    levels_of = {feature: levels for feature, levels in start.items() if feature != "prior"}
    every = {feature: Counter(pair.levels[feature] for pair in pairs) for feature in levels_of}
    counted = Counter((tuple(sorted(pair.levels.items())), round(pair.rarity * 2) / 2) for pair in pairs)
    guess = {feature: _guess(every[feature], levels, len(pairs)) for feature, levels in levels_of.items()}
    weights = start
    for _ in range(_ROUNDS if pairs else 0):
        same = {feature: dict.fromkeys(levels, 0.0) for feature, levels in levels_of.items()}
        matched = 0.0
        for (found, rarity), count in counted.items():
            score = weights["prior"]["pair"] + rarity + sum(weights[feature][level] for feature, level in found)
            probability = count / (1 + 2 ** -max(-60.0, min(60.0, score)))
            matched += probability
            for feature, level in found:
                same[feature][level] += probability
        learned: dict[str, Mapping[str, float]] = {
            "prior": {"pair": _bits((matched + _SMOOTHING) / (len(pairs) - matched + _SMOOTHING))}
        }
        for feature, levels in levels_of.items():
            learned[feature] = {
                level: _bits(
                    (same[feature][level] + _BELIEF * guess[feature][level])
                    / (matched + _BELIEF)
                    / _share(every[feature][level] - same[feature][level], len(pairs) - matched, len(levels))
                )
                for level in levels
            }
        weights = learned
    return weights


def _guess(every: Counter[str], start: Mapping[str, float], total: float) -> dict[str, float]:
    """Shares of the levels among listings of one product, as the weights to start with imply them."""
    shares = {level: _share(every[level], total, len(start)) * 2**bits for level, bits in start.items()}
    return {level: share / sum(shares.values()) for level, share in shares.items()}


def _share(count: float, total: float, levels: int) -> float:
    return (count + _SMOOTHING) / (total + _SMOOTHING * levels)


def _bits(ratio: float) -> float:
    return round(max(-_MOST, min(_MOST, math.log2(ratio))), 2)
