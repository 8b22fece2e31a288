"""How much there is of each option.

    POSMetaData.children, by option text → else manualInventory, by option text → else unknown (which is not zero)

62 % of real products have no POSMetaData at all and are counted by hand in `manualInventory`. `children` is not aligned with
`Options`: it may be longer or shorter, so an option is looked up by its text and never by its place. Where one text stands
for several options, the n-th of them takes the n-th entry of that text, else the last.

A point of sale shows no more than 25 ("25" means "25 or more"), and `quantityAvailable` is its `quantity` less what the store
keeps back. Counts by hand are not capped.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from menuwatch.catalog.canon.bounds import MAX_TOTAL
from menuwatch.catalog.model import StockStatus
from menuwatch.platforms.dutchie.payload import Child, ManualInventory

POS_CAP = 25


class Level(NamedTuple):
    """What is there of one option. `source` tells entries apart, so that one shared by two options is counted once."""

    available: int
    capped: bool
    source: int


def _of_child(child: Child, source: int) -> Level | None:
    available = child.quantityAvailable if child.quantityAvailable is not None else child.quantity
    if available is None:
        return None
    counted = child.quantity if child.quantity is not None else available
    return Level(_packages(available), counted >= POS_CAP, source)


def _packages(amount: int | float) -> int:
    """Never below zero (stores oversell); a fraction counts up, so that some is not none."""
    if type(amount) is not int:
        amount = ceil(amount)
    return max(0, amount)


def levels(
    options: Sequence[str],
    children: Sequence[Child | None] | None,
    manual: Sequence[ManualInventory | None] | None,
) -> list[Level | None]:
    """The level of each option, None where nothing is known of it."""
    found: list[Level | None] = []
    taken: dict[str, int] = {}
    for option in options:
        nth = taken.get(option, 0)
        taken[option] = nth + 1
        level = None
        if children:
            at = _nth(children, option, nth)
            if at is not None:
                child = children[at]
                assert child is not None, "only entries are found"
                level = _of_child(child, at)
        if level is None and manual:
            at = _nth(manual, option, nth)
            if at is not None:
                entry = manual[at]
                assert entry is not None, "only entries are found"
                if entry.inventory is not None:
                    # Numbered below the children, so that the two kinds of entry never look like one.
                    level = Level(_packages(entry.inventory), False, -1 - at)
        found.append(level)
    return found


def _nth(entries: Sequence[Child | None] | Sequence[ManualInventory | None], option: str, nth: int) -> int | None:
    """Place of the n-th entry of that text, of the last where there are fewer, None where there is none."""
    place = None
    for at, entry in enumerate(entries):
        if entry is not None and entry.option == option:
            place = at
            if nth == 0:
                break
            nth -= 1
    return place


def is_active(status: str | None) -> bool:
    """Only a status that says otherwise makes a product inactive."""
    return status is None or status == "Active" or status.casefold() == "active"


def option_status(level: Level | None, *, below_threshold: bool) -> StockStatus:
    """Of one option. `below_threshold`: it is named in optionsBelowThreshold, its product is below, or is not active."""
    if below_threshold:
        return "oos"
    if level is None:
        return "unknown"
    return "in_stock" if level.available > 0 else "oos"


def total(found: Sequence[Level | None]) -> int | None:
    """Packages over all options, each entry counted once, at most MAX_TOTAL; None where nothing is known."""
    if len(found) == 1:
        return found[0].available if found[0] is not None else None
    known = {level.source: level.available for level in found if level is not None}
    return min(sum(known.values()), MAX_TOTAL) if known else None
