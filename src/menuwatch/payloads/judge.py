"""Whether a menu can be the store's truth, by its size. Pure.

A block, a race in the shop's own software or a changed schema often shows as a menu that is far too short. Such a menu is kept
but not applied: its missing products are no misses until a person says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def suspicion(products: int, usual: Sequence[int], share: float) -> str | None:
    """Why a menu of that many products is suspect, None where it is not.

    `usual` are the sizes of the store's last applied menus; `share` is the part of their median below which a menu is
    quarantined (`SUSPECT_SHARE`).
    """
    if not usual:
        return None
    expected = median(usual)
    if products < share * expected:
        return f"shrunk: {products} products where this store usually has {expected:g}"
    return None
