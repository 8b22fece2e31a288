"""A product as Dutchie Plus sends it: only the fields that are read, every one of them optional."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from menuwatch.platforms.dutchie.payload import Brand, CannabinoidRow, Quantity, TerpeneRow


class Image(msgspec.Struct, gc=False):
    url: str | None = None


class PlusVariant(msgspec.Struct, gc=False):
    """One option. `quantity` is capped at 25."""

    option: str | None = None
    priceMed: Decimal | None = None  # noqa: N815 - the wire's names
    priceRec: Decimal | None = None  # noqa: N815
    specialPriceMed: Decimal | None = None  # noqa: N815
    specialPriceRec: Decimal | None = None  # noqa: N815
    quantity: Quantity = None
    specialConditionIds: list[str | None] | None = None  # noqa: N815
    specialRewardIds: list[str | None] | None = None  # noqa: N815


class Potency(msgspec.Struct, gc=False):
    """`formatted` repeats it as text and is not read."""

    range: list[Decimal | None] | None = None
    unit: str | None = None


class PosMetaData(msgspec.Struct, gc=False):
    sku: str | None = None
    category: str | None = None


class Item(msgspec.Struct, gc=False):
    """One element of `products_list[]`."""

    id: str | None = None
    name: str | None = None
    image: str | None = None
    images: list[Image | None] | None = None
    description: str | None = None
    enterpriseProductId: str | None = None  # noqa: N815
    category: str | None = None
    subcategory: str | None = None
    tags: list[str | None] | None = None
    strainType: str | None = None  # noqa: N815
    menuTypes: list[str | None] | None = None  # noqa: N815
    slug: str | None = None
    staffPick: bool | None = None  # noqa: N815
    effects: list[str | None] | None = None
    productBatchId: str | None = None  # noqa: N815
    posId: str | None = None  # noqa: N815
    variants: list[PlusVariant | None] | None = None
    brand: Brand | None = None
    potencyThc: Potency | None = None  # noqa: N815
    potencyCbd: Potency | None = None  # noqa: N815
    posMetaData: PosMetaData | None = None  # noqa: N815
    terpenes: list[TerpeneRow | None] | None = None
    cannabinoids: list[CannabinoidRow | None] | None = None
