"""Strain types: indica, sativa, hybrid and the two that lean one way; `cbd` for what is bred for it.

Ratios ("1 to 1"), "THC" and "N/A" name no strain type.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, get_args

from menuwatch.catalog.taxonomy.text import key

Strain = Literal["indica", "sativa", "hybrid", "indica_hybrid", "sativa_hybrid", "cbd"]

STRAINS: frozenset[str] = frozenset(get_args(Strain))

_STRAINS: dict[str, Strain] = {
    "indica": "indica",
    "sativa": "sativa",
    "hybrid": "hybrid",
    "indica hybrid": "indica_hybrid",
    "hybrid indica": "indica_hybrid",
    "indica dominant": "indica_hybrid",
    "indica dominant hybrid": "indica_hybrid",
    "indica leaning hybrid": "indica_hybrid",
    "sativa hybrid": "sativa_hybrid",
    "hybrid sativa": "sativa_hybrid",
    "sativa dominant": "sativa_hybrid",
    "sativa dominant hybrid": "sativa_hybrid",
    "sativa leaning hybrid": "sativa_hybrid",
    "high cbd": "cbd",
    "cbd": "cbd",
}


@lru_cache(maxsize=1024)
def strain(word: str | None) -> Strain | None:
    """The strain type of a platform's word, None if it is none."""
    return _STRAINS.get(key(word)) if word else None
