"""Dutchie's product as it is sent: only the fields that are read, every one of them optional.

Field names follow the wire. Numbers that are money or measurements decode to Decimal straight from the JSON text (never through
a float); a text such as "75" or "40.00" does as well, because the same field comes as number here and text there. Everything
may be null, also inside lists (`pastCNames` begins with null on real menus), so that one bad value can be left out by
itself. Fields that are not listed cost a skip and cannot break anything.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import msgspec

MAX_QUANTITY = 10_000_000
"""A quantity beyond this is no stock level but a mistake."""

Whole = Annotated[int, msgspec.Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]
Fraction = Annotated[float, msgspec.Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]
Quantity = Whole | Fraction | None
"""Packages, or a fraction for goods sold by weight. An integer in everything seen."""


class Brand(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None


class ImageRef(msgspec.Struct, gc=False):
    url: str | None = None
    active: bool | None = None


class Child(msgspec.Struct, gc=False):
    """One option as the point of sale counts it. `quantity` is capped at 25; `quantityAvailable` is it minus a reserve."""

    option: str | None = None
    quantity: Quantity = None
    quantityAvailable: Quantity = None  # noqa: N815 - the wire's name


class PosMetaData(msgspec.Struct, gc=False):
    children: list[Child | None] | None = None


class ManualInventory(msgspec.Struct, gc=False):
    option: str | None = None
    inventory: Quantity = None


class Content(msgspec.Struct, gc=False):
    """THCContent or CBDContent: `range` is null, [x] or [lo, hi]."""

    unit: str | None = None
    range: list[Decimal | None] | None = None


class CannabinoidName(msgspec.Struct, gc=False):
    name: str | None = None


class CannabinoidRow(msgspec.Struct, gc=False):
    value: Decimal | None = None
    unit: str | None = None
    cannabinoid: CannabinoidName | None = None


class TerpeneRow(msgspec.Struct, gc=False):
    value: Decimal | None = None
    unit: str | None = None
    libraryTerpene: CannabinoidName | None = None  # noqa: N815


class Measure(msgspec.Struct, gc=False):
    unit: str | None = None
    values: list[Decimal | None] | None = None


class Measurements(msgspec.Struct, gc=False):
    netWeight: Measure | None = None  # noqa: N815


class SaleDiscount(msgspec.Struct, gc=False):
    discountType: str | None = None  # noqa: N815
    discountAmount: Decimal | None = None  # noqa: N815


class SaleSpecial(msgspec.Struct, gc=False):
    """`discount` is a bare number; one of three booleans says of what."""

    specialId: str | None = None  # noqa: N815
    specialName: str | None = None  # noqa: N815
    menuType: str | None = None  # noqa: N815
    discount: Decimal | None = None
    percentDiscount: bool | None = None  # noqa: N815
    dollarDiscount: bool | None = None  # noqa: N815
    targetPrice: bool | None = None  # noqa: N815
    saleDiscounts: list[SaleDiscount | None] | None = None  # noqa: N815
    endStamp: str | int | None = None  # noqa: N815


class TotalQuantity(msgspec.Struct, gc=False):
    quantity: Quantity = None


class BogoCondition(msgspec.Struct, gc=False):
    quantity: Quantity = None
    totalQuantity: TotalQuantity | None = None  # noqa: N815


class BogoReward(msgspec.Struct, gc=False):
    quantity: Quantity = None
    totalQuantity: TotalQuantity | None = None  # noqa: N815
    discountType: str | None = None  # noqa: N815
    discountAmount: Decimal | None = None  # noqa: N815
    percentDiscount: Decimal | bool | None = None  # noqa: N815 - a number here, while it is a boolean in SaleSpecial


class DiscountBundle(msgspec.Struct, gc=False):
    discountType: str | None = None  # noqa: N815
    value: Decimal | None = None


class ItemsForAPrice(msgspec.Struct, gc=False):
    value: Decimal | None = None
    quantity: Quantity = None


class BogoSpecial(msgspec.Struct, gc=False):
    specialId: str | None = None  # noqa: N815
    specialName: str | None = None  # noqa: N815
    menuType: str | None = None  # noqa: N815
    endStamp: str | int | None = None  # noqa: N815
    itemsForAPrice: ItemsForAPrice | None = None  # noqa: N815
    discountBundle: DiscountBundle | None = None  # noqa: N815
    bogoConditions: list[BogoCondition | None] | None = None  # noqa: N815
    bogoRewards: list[BogoReward | None] | None = None  # noqa: N815


class SpecialData(msgspec.Struct, gc=False):
    saleSpecials: list[SaleSpecial | None] | None = None  # noqa: N815
    bogoSpecials: list[BogoSpecial | None] | None = None  # noqa: N815


class Item(msgspec.Struct, gc=False):
    """One element of `products[]`."""

    id: str | None = None
    _id: str | None = None
    Name: str | None = None
    DispensaryID: str | None = None
    duplicatedProductId: str | None = None  # noqa: N815
    libraryProductId: str | None = None  # noqa: N815
    enterpriseProductId: str | None = None  # noqa: N815
    cName: str | None = None  # noqa: N815
    pastCNames: list[str | None] | None = None  # noqa: N815
    brandId: str | None = None  # noqa: N815
    brandName: str | None = None  # noqa: N815
    brand: Brand | None = None
    type: str | None = None
    subcategory: str | None = None
    strainType: str | None = None  # noqa: N815
    Status: str | None = None
    description: str | None = None
    Image: str | None = None
    images: list[ImageRef | None] | None = None
    Options: list[str | None] | None = None
    rawOptions: list[str | None] | None = None  # noqa: N815
    Prices: list[Decimal | None] | None = None
    recPrices: list[Decimal | None] | None = None  # noqa: N815
    medicalPrices: list[Decimal | None] | None = None  # noqa: N815
    recSpecialPrices: list[Decimal | None] | None = None  # noqa: N815
    medicalSpecialPrices: list[Decimal | None] | None = None  # noqa: N815
    POSMetaData: PosMetaData | None = None
    manualInventory: list[ManualInventory | None] | None = None  # noqa: N815
    isBelowThreshold: bool | None = None  # noqa: N815
    optionsBelowThreshold: list[str | None] | None = None  # noqa: N815
    measurements: Measurements | None = None
    THCContent: Content | None = None
    CBDContent: Content | None = None
    cannabinoidsV2: list[CannabinoidRow | None] | None = None  # noqa: N815
    terpenes: list[TerpeneRow | None] | None = None
    effects: dict[str, int | float | None] | None = None
    special: bool | None = None
    specialData: SpecialData | None = None  # noqa: N815
    medicalOnly: bool | None = None  # noqa: N815
    recOnly: bool | None = None  # noqa: N815
    weight: int | float | None = None
    createdAt: str | int | None = None  # noqa: N815
    updatedAt: str | int | None = None  # noqa: N815
