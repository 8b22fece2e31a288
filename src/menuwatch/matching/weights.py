"""What the levels of each feature weigh, in bits."""

from __future__ import annotations

from collections.abc import Mapping

WEIGHTS: Mapping[str, Mapping[str, float]] = {
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
    "numbers": {"agree": 2.0, "none": 0.0, "one": -3.0, "differ": -10.0},
    "brand": {"equal": 1.0, "prefix": -0.5, "house": 0.0},
    "device": {"agree": 0.5, "one": -0.5, "none": 0.0},
    "extract": {"agree": 0.5, "one": -0.5, "none": 0.0},
    "strain": {"agree": 1.0, "one": 0.0, "none": 0.0, "differ": -2.0},
    "ratio": {"agree": 2.0, "one": -2.0, "none": 0.0, "differ": -10.0},
}
