"""A menu item as it is sent: only the fields that are read, every one of them optional.

Field names follow the wire (JSON:API: `id`, `type`, `attributes`, `relationships`, `links`). Money and measurements come as
numbers and as texts ("20.00", "91.41") and decode to Decimal from either, never through a float.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import msgspec

MAX_QUANTITY = 10_000_000
"""A quantity beyond this is no stock level but a mistake."""

Quantity = Annotated[int, msgspec.Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]
Identifier = int | str


class Prices(msgspec.Struct, gc=False):
    """0 means that there is no such price."""

    price_unit: Decimal | None = None
    price_half_gram: Decimal | None = None
    price_gram: Decimal | None = None
    price_two_grams: Decimal | None = None
    price_eighth: Decimal | None = None
    price_quarter: Decimal | None = None
    price_half_ounce: Decimal | None = None
    price_ounce: Decimal | None = None


class Money(msgspec.Struct, gc=False):
    amount: Decimal | None = None


class Weight(msgspec.Struct, gc=False):
    value: Decimal | None = None
    unit: str | None = None


class MenuVariant(msgspec.Struct, gc=False):
    """One weight of a product that is sold by weight."""

    name: str | None = None
    label: str | None = None
    price: Money | None = None
    weight: Weight | None = None
    inventory_quantity: Quantity | None = None


class Measurement(msgspec.Struct, gc=False):
    name: str | None = None
    unit: str | None = None
    value: Decimal | None = None


class CategoryRef(msgspec.Struct, gc=False):
    name: str | None = None


class Sale(msgspec.Struct, gc=False):
    amount: Decimal | None = None
    type: str | None = None


class Attributes(msgspec.Struct, gc=False):
    name: str | None = None
    slug: str | None = None
    category_name: str | None = None
    body: str | None = None
    is_published: bool | None = None
    license_type: str | None = None
    online_orderable: bool | None = None
    picture_url: str | None = None
    original_picture_url: str | None = None
    avatar_image_url: str | None = None
    brand_name: str | None = None
    genetics: str | None = None
    prices: Prices | None = None
    created_at: str | None = None
    updated_at: str | None = None
    sub_category: CategoryRef | None = None
    measurements: list[Measurement | None] | None = None
    variants: list[MenuVariant | None] | None = None
    external_id: str | None = None
    sale: Sale | None = None
    compliance_net_mg: int | None = None
    inventory_quantity: Quantity | None = None
    shared_inventory: bool | None = None


class Reference(msgspec.Struct, gc=False):
    id: Identifier | None = None


class ToOne(msgspec.Struct, gc=False):
    data: Reference | None = None


class ToMany(msgspec.Struct, gc=False):
    data: list[Reference | None] | None = None


class Relationships(msgspec.Struct, gc=False):
    brand: ToOne | None = None
    listing: ToOne | None = None
    product: ToOne | None = None
    strain: ToOne | None = None
    categories: ToMany | None = None
    tags: ToMany | None = None


class Links(msgspec.Struct, gc=False):
    self: str | None = None
    order: str | None = None


class Item(msgspec.Struct, gc=False):
    """One element of `data[]`."""

    id: Identifier | None = None
    attributes: Attributes | None = None
    links: Links | None = None
    relationships: Relationships | None = None
