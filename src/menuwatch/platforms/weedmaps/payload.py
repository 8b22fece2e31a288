"""A recorded menu item as it is sent: only the fields that are read, every one of them optional; and what becomes of each field
of a menu (`FIELDS`). Items of live menus: `live_payload`.

Field names follow the wire (JSON:API: `id`, `type`, `attributes`, `relationships`, `links`). Money and measurements come as
numbers and as texts ("20.00", "91.41") and decode to Decimal from either, never through a float.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import msgspec

from menuwatch.platforms.fields import declare
from menuwatch.platforms.weedmaps.ids import Identifier
from menuwatch.platforms.weedmaps.live_payload import LIVE_FIELDS, LiveItem

MAX_QUANTITY = 10_000_000
"""A larger quantity is an error, not a stock level."""

Quantity = Annotated[int, msgspec.Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]


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
    compliance_net_mg: Decimal | None = None
    cart_quantity_multiplier: Decimal | None = None


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
    cart_quantity_multiplier: Decimal | None = None
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


class Item(LiveItem, gc=False):
    """A menu item: one element of `data[]`, or of `data.menu_items[]`, whose fields `LiveItem` has."""

    attributes: Attributes | None = None
    links: Links | None = None
    relationships: Relationships | None = None


_AGAIN = "repeats another field"
_OURS = "says which page was asked for"
_KIND = "what kind of thing an id is of; there is one kind"

FIELDS = (
    LIVE_FIELDS
    + declare(
        "",
        used={"meta.total meta.per_page": "whether this is all of the menu"},
        kept={},
        ignored={"meta.page": _OURS},
    )
    + declare(
        "data[]",
        used={
            "id": "provider_product_id",
            "attributes.name": "name_raw, name",
            "attributes.category_name": "category, category_canon",
            "attributes.sub_category.name": "subcategory, category_canon, subcategory_canon",
            "attributes.body": "description",
            "attributes.is_published": "status_raw, stock_status",
            "attributes.license_type": "whether prices are price_rec or price_med; extra.license_type",
            "attributes.picture_url attributes.original_picture_url attributes.avatar_image_url": "image_url, images",
            "attributes.brand_name": "brand_name_raw, brand_name",
            "attributes.genetics": "strain_type, strain_canon",
            "attributes.prices.price_unit": "variants: price of what is sold by the package, also beside options by weight",
            "attributes.prices.price_half_gram attributes.prices.price_gram attributes.prices.price_two_grams "
            "attributes.prices.price_eighth attributes.prices.price_quarter attributes.prices.price_half_ounce "
            "attributes.prices.price_ounce": "variants, where the item lists none itself",
            "attributes.created_at": "platform_created_at",
            "attributes.updated_at": "platform_updated_at",
            "attributes.measurements[].name attributes.measurements[].unit attributes.measurements[].value": "thc, cbd, cannabinoids",
            "attributes.variants[].name attributes.variants[].label": "variants.option",
            "attributes.variants[].price.amount": "variants: price",
            "attributes.variants[].weight.value attributes.variants[].weight.unit": "variants.weight_g",
            "attributes.variants[].inventory_quantity": "variants.quantity, stock_status",
            "attributes.sale.amount attributes.sale.type": "specials, special prices",
            "attributes.inventory_quantity": "variants.quantity of what is sold by the package; extra.shared_quantity",
            "attributes.shared_inventory": "whether the options' quantities add up; extra.shared_inventory",
            "relationships.listing.data.id": "which store; extra.dispensary_id",
            "links.self": "the store's slug",
        },
        kept={
            "attributes.slug": "extra.slug",
            "attributes.online_orderable": "extra.online_orderable",
            "attributes.external_id": "extra.external_id; what follows its bar is extra.pos_id",
            "attributes.compliance_net_mg": "extra.compliance_net_mg; contradicts names and variants, so it is not a weight",
            "attributes.variants[].compliance_net_mg": "extra.options: the shop's compliance weight; it contradicts the weights",
            "attributes.variants[].cart_quantity_multiplier attributes.cart_quantity_multiplier": "extra.options, "
            "extra.cart_quantity_multiplier: how the cart counts it",
            "links.order": "extra.menu_url",
            "relationships.brand.data.id": "extra.brand_id",
            "relationships.product.data.id": "extra.library_product_id",
            "relationships.strain.data.id": "extra.strain_id",
            "relationships.categories.data[].id": "extra.category_ids",
            "relationships.tags.data[].id": "extra.tag_ids",
        },
        ignored={
            "type relationships.brand.data.type relationships.listing.data.type relationships.product.data.type "
            "relationships.strain.data.type relationships.categories.data[].type relationships.tags.data[].type": _KIND,
            "attributes.position attributes.is_badged": "how the menu shows it",
            "attributes.cannabinoids.thc attributes.cannabinoids.cbd": _AGAIN + ": percentages of measurements",
            "attributes.prices.prices_other": "always empty in the samples",
            "attributes.grams_per_eighth": "always 3.5 grams in the samples",
            "attributes.parent_category.**": _AGAIN + ": category_name",
            "attributes.sub_category.id attributes.sub_category.slug": _AGAIN + ": sub_category.name, categories",
            "attributes.measurements[].id attributes.measurements[].classification attributes.measurements[].full_name": _AGAIN
            + ": name; an id that means nothing outside",
            "attributes.variants[].price.currency": "always USD in the samples",
            "attributes.sku attributes.variants[].sku": "always null in the samples",
            "attributes.variants[].compliance_net_precalc attributes.compliance_net_precalc": "whether compliance_net_mg is computed",
            "relationships.categories.meta.total relationships.tags.meta.total": "length of a list that is there",
            "relationships.menu_parent.**": "the menu's own id; the listing says which store",
        },
    )
)
