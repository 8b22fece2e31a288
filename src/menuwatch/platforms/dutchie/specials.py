"""Promotions as data. The price that they lead to is in the special price lists, already the best one: nothing here is computed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from menuwatch.catalog.canon.bounds import bounded
from menuwatch.catalog.model import Special
from menuwatch.platforms.dutchie.payload import (
    BogoCondition,
    BogoReward,
    BogoSpecial,
    SaleSpecial,
    SpecialData,
    TotalQuantity,
)
from menuwatch.platforms.dutchie.text import enum, label
from menuwatch.platforms.instants import instant

_KIND_OF_TYPE = {"percentDiscount": "percent", "dollarDiscount": "amount", "targetPrice": "target_price"}


def specials(data: SpecialData | None) -> tuple[Special, ...]:
    """All promotions that name the product, sales first, in the order of the payload. Raises ArithmeticError for a value out
    of bounds."""
    if data is None:
        return ()
    found = [_sale(special) for special in data.saleSpecials or () if special is not None]
    found.extend(_bogo(special) for special in data.bogoSpecials or () if special is not None)
    return tuple(found)


def _ends(stamp: str | int | None) -> datetime | None:
    try:
        return instant(stamp)
    except ValueError:
        return None  # of no consequence: the special price goes when the special does


def _sale(special: SaleSpecial) -> Special:
    """`discount` is percent, money off or the price reached; three booleans say which, `saleDiscounts` repeats it as a word."""
    first = next((d for d in special.saleDiscounts or () if d is not None), None)
    value = special.discount
    if special.percentDiscount:
        kind = "percent"
    elif special.dollarDiscount:
        kind = "amount"
    elif special.targetPrice:
        kind = "target_price"
    else:
        kind = _KIND_OF_TYPE.get(first.discountType or "", "other") if first is not None else "other"
    if value is None and first is not None:
        value = first.discountAmount
    return Special(
        name=label(special.specialName or ""),
        kind=kind,
        value=bounded(value) if value is not None else None,
        special_id=label(special.specialId) if special.specialId else None,
        menu_type=enum(special.menuType or ""),
        ends_at=_ends(special.endStamp),
    )


def _bogo(special: BogoSpecial) -> Special:
    """Buy some, get some. "5 for $75" is a bundle: its price is `discountBundle.value` (or `itemsForAPrice.value`, null in everything
    seen) and its number stands in the conditions. Else the value is the percentage off what is rewarded; a reward in money
    has none here, because nothing would tell it from a percentage.
    """
    required = _quantity(special.bogoConditions)
    reward = _quantity(special.bogoRewards)
    bundle, items = special.discountBundle, special.itemsForAPrice
    kind = "bogo"
    value: Decimal | None = None
    if bundle is not None and bundle.value is not None:
        kind, value = "bundle", bundle.value
    elif items is not None and items.value is not None:
        kind, value = "bundle", items.value
        required = _count(items.quantity) or required
    else:
        value = next((v for v in map(_percent_off, special.bogoRewards or ()) if v is not None), None)
    return Special(
        name=label(special.specialName or ""),
        kind=kind,
        value=bounded(value) if value is not None else None,
        required_quantity=required,
        reward_quantity=reward,
        special_id=label(special.specialId) if special.specialId else None,
        menu_type=enum(special.menuType or ""),
        ends_at=_ends(special.endStamp),
    )


def _percent_off(reward: BogoReward | None) -> Decimal | None:
    if reward is None:
        return None
    if isinstance(reward.percentDiscount, Decimal):
        return reward.percentDiscount
    return reward.discountAmount if reward.discountType == "percentDiscount" or reward.percentDiscount else None


def _count(value: int | float | None) -> int | None:
    return int(value) if value else None


def _quantity(parts: Sequence[BogoCondition | None] | Sequence[BogoReward | None] | None) -> int | None:
    """The first number of items that a condition or reward names."""
    for part in parts or ():
        if part is None:
            continue
        whole: TotalQuantity | None = part.totalQuantity
        found = _count(whole.quantity if whole is not None else None) or _count(part.quantity)
        if found is not None:
            return found
    return None
