"""The rule of the three misses: when an absent product counts as out of stock. Pure.

A menu that was fetched whole and applied is an observation. A product that is in it is seen; one that is not has a miss. The
third miss in a row makes it out of stock; further ones change nothing; the next time it is seen it is back at once. Failed,
partial and quarantined crawls are no observations and never come here.
"""

from __future__ import annotations

from dataclasses import dataclass

MISSES_UNTIL_OOS = 3


@dataclass(frozen=True, slots=True)
class Absence:
    """Where an absent product stands after one more crawl without it."""

    misses: int
    first: bool
    """It was there in the crawl before: its state ends with that crawl."""
    declared_oos: bool
    """This is the miss that makes it out of stock."""


def absent(misses: int) -> Absence:
    """One more miss for a product that already has `misses` (0 to 3)."""
    if not 0 <= misses <= MISSES_UNTIL_OOS:
        raise ValueError(f"misses are 0 to {MISSES_UNTIL_OOS}, got {misses}")
    after = min(misses + 1, MISSES_UNTIL_OOS)
    return Absence(after, first=misses == 0, declared_oos=after == MISSES_UNTIL_OOS and misses < MISSES_UNTIL_OOS)


def says_nothing(*, whole: bool, nameless: bool, long_unseen: bool) -> bool:
    """Whether a menu without a product is no observation of it: it may be in the part that is not there (`whole` false), or be an item
    whose id cannot be read (`nameless`), unless nobody has seen it for so long that it is none of these."""
    return not whole or (nameless and not long_unseen)
