"""Prices that can be compared between packages: per gram, per piece, per milligram of content."""

from __future__ import annotations

from decimal import Decimal

from menuwatch.catalog.taxonomy.package import package

IMPLAUSIBLE = 8
"""A price per gram this many times the median of its category, or below it by that factor, is taken for an error of the menu, such as
0.01 g for a cartridge of 1 g. Holds for categories sold by their own mass."""

_PLACES = Decimal("0.0001")


def per(price: Decimal | None, amount: Decimal | int | None) -> Decimal | None:
    """Money for one of `amount`, to 4 places (half to even); None where either is unknown or there is none of it."""
    if price is None or not amount:
        return None
    return (price / amount).quantize(_PLACES)


def effective(
    rec: Decimal | None, special_rec: Decimal | None, med: Decimal | None, special_med: Decimal | None
) -> Decimal | None:
    """What a package costs: the special recreational price, else the recreational one; of goods for patients alone, theirs."""
    for price in (special_rec, rec, special_med, med):
        if price is not None:
            return price
    return None


UnitPrices = tuple[Decimal | None, int | None, Decimal | None, Decimal | None, Decimal | None]
"""`price_per_g`, `pieces`, `content_mg`, `price_per_piece`, `price_per_mg`: the end of a Variant."""


def unit_prices(price: Decimal | None, grams: Decimal | None, option: str, *, dosed: bool) -> UnitPrices:
    """What `price` means per gram, and per piece and milligram where the option's text says them. `dosed`: milligrams are the
    content; of other goods they are the mass."""
    _, pieces, milligrams = package(option)
    if pieces is None and milligrams is None:
        return per(price, grams), None, None, None, None
    content = milligrams if dosed else None
    return per(price, grams), pieces, content, per(price, pieces), per(price, content)
