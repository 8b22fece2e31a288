"""Whether a menu can be the store's truth, by its size and by what it would take from the store. Pure.

A block, a race in the shop's own software or a changed schema shows as a menu that is far too short, or as one in which many products
are gone, sold out, without stock or without a price at once. Such a menu is kept but not applied: its missing products are no misses
until a person says so.

| rule | a menu is suspect when |
|------|------------------------|
| size | it has less than SUSPECT_SHARE of the products that the store usually has |
| rows | more than 5 % of its rows are missing by its own pages or totals, and it is smaller than usual by half of these or more |
| gone | more than a quarter of the store's products are not on it, and more than 8; of 12 and fewer: more than half and 2 |
| bereft | as many are in stock no more at once; or a quarter, and more than 2, have no word of stock or no price any more |
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from statistics import median

LOST_SHARE = 0.25
"""The part of a store's products that may be lost to a menu at once."""
ALWAYS_LOST = 8
"""So many may be lost however small the store, unless it is tiny."""
SHORT_SHARE = 0.05
"""The part of its rows that a menu may lack by its own pages and totals: totals lie a little."""
SILENCE = timedelta(days=7)
"""A store that gave no menu for so long may well be another one by now: what it lost meanwhile does not count as lost at once."""


def suspicion(products: int, usual: Sequence[int], share: float, *, short: int = 0) -> str | None:
    """Why a menu of that many products is suspect, None where it is not.

    `usual` are the sizes of the store's last applied menus; `share` is the part of their median below which a menu is
    quarantined (`SUSPECT_SHARE`); `short` are rows that the menu's own pages and totals show to be missing.
    """
    if not usual:
        return None
    expected = median(usual)
    if products < share * expected:
        return f"shrunk: {products} products where this store usually has {expected:g}"
    if short > SHORT_SHARE * (products + short) and expected - products >= short / 2:
        return (
            f"cut short: about {short} rows did not come by the menu's own pages and totals, and {products} products are "
            f"fewer than the {expected:g} that this store usually has"
        )
    return None


def may_lose(products: int) -> float:
    """How many of so many products may be lost to one menu."""
    return max(LOST_SHARE * products, min(ALWAYS_LOST, products / 2 + 2))


def gone(missing: int, known: int) -> str | None:
    """Why a menu is suspect that lacks so many of the products that the store is known to have, None where it is not."""
    if missing <= may_lose(known):
        return None
    return f"gone at once: {missing} of {known} products are not on this menu"


def may_be_blank(products: int) -> float:
    """How many of so many products may at once have no word of their stock, or no price, any more: shops do not take these back."""
    return max(LOST_SHARE * products, 2)


def bereft(products: int, *, stock: int, unknown: int, price: int) -> str | None:
    """Why a menu of so many products is suspect, None where it is not: `stock` of them were in stock and are no more, of `unknown` the
    stock was known and nothing is said of it, and `price` had a price and have none."""
    if price > may_be_blank(products):
        return f"schema changed: {price} of {products} products have lost their price at once"
    if unknown > may_be_blank(products):
        return f"schema changed: the menu says no more of the stock of {unknown} of {products} products"
    if stock > may_lose(products):
        return f"sold out at once: {stock} of {products} products are not in stock any more"
    return None
