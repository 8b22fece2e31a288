"""How much there is of each option.

`inventory_quantity` of the variant, or of the item where it has no variants; null means that nobody counts, which is not zero. With
`shared_inventory` all variants are taken from one stock (9 packages of 2 g are also 2 of 7 g), so their numbers must not be added.
9,999 stands where a shop does not count: there is that much or more.
"""

from __future__ import annotations

from collections.abc import Sequence

from menuwatch.catalog.canon.bounds import MAX_TOTAL
from menuwatch.catalog.model import StockStatus

UNCOUNTED = 9_999


def packages(quantity: int | None) -> int | None:
    """Never below zero."""
    return None if quantity is None else max(0, quantity)


def is_capped(quantity: int | None) -> bool:
    """Whether there may be more than that."""
    return quantity is not None and quantity >= UNCOUNTED


def status(quantity: int | None, *, published: bool) -> StockStatus:
    """Of one option. What is not published is not for sale."""
    if not published:
        return "oos"
    if quantity is None:
        return "unknown"
    return "in_stock" if quantity > 0 else "oos"


def total(quantities: Sequence[int | None], *, shared: bool) -> int | None:
    """Packages over all options; of a shared stock the most that can be had of one. None where nothing is known."""
    known = [quantity for quantity in quantities if quantity is not None]
    if not known:
        return None
    return min(max(known) if shared else sum(known), MAX_TOTAL)
