"""The three-miss rule: when an absent product counts as out of stock. Pure.

A complete menu that was applied is an observation. A product in it is seen; one that is not gets a miss. The third miss in a row
makes it out of stock; further misses change nothing; when it is seen again it is back at once. Failed, partial and quarantined
crawls are not observations and never get here.
"""

from __future__ import annotations

from msgspec import Struct

MISSES_UNTIL_OOS = 3


class Absence(Struct, frozen=True):
    """Status of an absent product after one more crawl without it."""

    misses: int
    first: bool
    """It was present in the previous crawl: its state ends with that crawl."""
    declared_oos: bool
    """This is the miss that makes it out of stock."""


def absent(misses: int) -> Absence:
    """Adds a miss to a product that has `misses` (0 to 3)."""
    if not 0 <= misses <= MISSES_UNTIL_OOS:
        raise ValueError(f"misses are 0 to {MISSES_UNTIL_OOS}, got {misses}")
    after = min(misses + 1, MISSES_UNTIL_OOS)
    return Absence(after, first=misses == 0, declared_oos=after == MISSES_UNTIL_OOS and misses < MISSES_UNTIL_OOS)


def says_nothing(*, whole: bool, nameless: bool, long_unseen: bool) -> bool:
    """Whether the absence of a product from a menu proves nothing: the menu is partial (`whole` false), or an item has no readable
    id (`nameless`) and may be this product, if that was seen recently.
    """
    return not whole or (nameless and not long_unseen)
