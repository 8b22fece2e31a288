"""A product as it is sent: only the fields that are read, every one of them optional; and what becomes of each field of a menu
(`FIELDS`).

Field names follow the wire. Numbers decode to Decimal, never through a float. `labs` has a key per substance and one more for its unit
(`thc`, `thcContentUnit`); shops have different ones, so it is a map.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from menuwatch.platforms.fields import declare
from menuwatch.platforms.numbers import Identifier, Quantity, id_text


class Brand(msgspec.Struct, gc=False):
    id: Identifier | None = None
    name: str | None = None
    description: str | None = None
    website: str | None = None


class Discount(msgspec.Struct, gc=False):
    productOffer: Identifier | None = None  # noqa: N815
    productOfferType: str | None = None  # noqa: N815
    value: Decimal | None = None
    type: str | None = None


class PointOfSale(msgspec.Struct, gc=False):
    """`batchName` is the tag of the package in the state's tracking system, or the producer's number of the batch."""

    category: str | None = None
    subCategory: str | None = None  # noqa: N815
    batchId: Identifier | None = None  # noqa: N815
    batchName: str | None = None  # noqa: N815
    quantity: Quantity = None


class Image(msgspec.Struct, gc=False):
    fileUrl: str | None = None  # noqa: N815
    order: Decimal | None = None


class Reviews(msgspec.Struct, gc=False):
    total: Quantity = None
    averageRating: Decimal | None = None  # noqa: N815


class OfWeedmaps(msgspec.Struct, gc=False):
    productId: Identifier | None = None  # noqa: N815


Labs = dict[str, msgspec.Raw]


class Owner(msgspec.Struct, gc=False):
    """The field of an item that names its store."""

    venue: Identifier | None = None

    def store_id(self) -> str | None:
        """The id as text."""
        return id_text(self.venue)


class Ids(msgspec.Struct, gc=False):
    """Fields that identify an item's product, and its store."""

    id: Identifier | None = None
    _id: Identifier | None = None
    venue: Identifier | None = None

    def product_id(self) -> str | None:
        """`id`, else `_id`."""
        return id_text(self.id) or id_text(self._id)


class Sellable(Ids, gc=False):
    """What a product and each of its variants have of their own."""

    enable: bool | None = None
    deleted: bool | None = None
    price: Decimal | None = None
    priceWithDiscounts: Decimal | None = None  # noqa: N815
    quantity: Quantity = None
    quantityTotal: Quantity = None  # noqa: N815
    quantitySold: Quantity = None  # noqa: N815
    totalSold: Quantity = None  # noqa: N815
    totalQuantitySold: Quantity = None  # noqa: N815
    weight: Decimal | None = None
    weightUnit: str | None = None  # noqa: N815
    weightFormatted: str | None = None  # noqa: N815
    size: str | None = None
    name: str | None = None
    leaflogix: PointOfSale | None = None


class Item(Sellable, gc=False):
    """One element of `data[]`."""

    variants: list[Sellable | None] | None = None
    organization: Identifier | None = None
    slug: str | None = None
    productUrl: str | None = None  # noqa: N815
    sku: Identifier | None = None
    posProductId: Identifier | None = None  # noqa: N815
    groupId: Identifier | None = None  # noqa: N815
    vendor: str | None = None
    brand: Brand | str | None = None
    productCategory: Identifier | None = None  # noqa: N815
    productCategoryName: str | None = None  # noqa: N815
    cannabisComplianceType: str | None = None  # noqa: N815
    subType: str | None = None  # noqa: N815
    cannabisType: str | None = None  # noqa: N815
    cannabisStrain: str | None = None  # noqa: N815
    flowerEquivalentInGrams: Decimal | None = None  # noqa: N815
    description: str | None = None
    image: str | None = None
    images: list[Image | None] | None = None
    effects: list[str | None] | None = None
    effectOnset: str | None = None  # noqa: N815
    effectDuration: str | None = None  # noqa: N815
    tags: list[str | None] | None = None
    terpenes: list[str | None] | None = None
    labs: Labs | None = None
    posLastSyncData: str | None = None  # noqa: N815
    discounts: list[Discount | None] | None = None
    discountValueFinal: Decimal | None = None  # noqa: N815
    discountTypeFinal: str | None = None  # noqa: N815
    priceType: str | None = None  # noqa: N815
    priceGross: Decimal | None = None  # noqa: N815
    priceNet: Decimal | None = None  # noqa: N815
    productOrderType: str | None = None  # noqa: N815
    featured: bool | None = None
    new: bool | None = None
    reviewStats: Reviews | None = None  # noqa: N815
    weedmaps: OfWeedmaps | None = None
    created: str | None = None
    modified: str | None = None


_AGAIN = "repeats another field"
_SHOWN = "how the menu shows it"

FIELDS = declare(
    "",
    used={"count": "whether this is all of the menu"},
    kept={},
    ignored={"pageCount skip limit": "says which page was asked for"},
) + declare(
    "data[]",
    used={
        "id _id": "provider_product_id",
        "venue": "which store; extra.dispensary_id",
        "name": "name_raw, name; whether variants.content_mg is certain",
        "brand brand.name": "brand_name_raw, brand_name",
        "productCategoryName": "category; category_canon without a known cannabisComplianceType",
        "cannabisComplianceType": "category_canon; extra.compliance_type",
        "subType": "subcategory, category_canon, subcategory_canon",
        "cannabisType": "strain_type, strain_canon",
        "description": "description",
        "image images[].fileUrl images[].order": "image_url, images",
        "enable deleted": "status_raw, stock_status",
        "price": "variants: price",
        "priceWithDiscounts": "variants: special price",
        "quantity quantityTotal": "variants.quantity, stock_status",
        "quantitySold": "quantity_sold",
        "weight weightUnit weightFormatted size": "variants.option, weight_g, content_mg",
        "discounts[].productOffer discounts[].productOfferType discounts[].value discounts[].type": "specials",
        "discountValueFinal discountTypeFinal": "specials, where discounts is empty",
        "leaflogix.batchId leaflogix.batchName": "batch",
        "labs.* labs.terpenes[]": "thc, cbd, cannabinoids, terpenes; extra.potency",
        "terpenes terpenes[]": "terpenes",
        "posLastSyncData": "thc, cbd, cannabinoids, terpenes, where labs has none",
        "created": "platform_created_at",
        "modified": "platform_updated_at",
        "variants[].**": "variants, quantity_sold, batch: each has the fields of a product, of which those of the first variant "
        "are the product's own",
    },
    kept={
        "totalSold": "extra.total_sold",
        "totalQuantitySold": "extra.total_quantity_sold",
        "organization": "extra.organization_id",
        "slug": "extra.slug",
        "productUrl": "extra.menu_url",
        "sku": "extra.sku",
        "posProductId": "extra.pos_id",
        "groupId": "extra.group_id",
        "vendor": "extra.vendor",
        "brand.id": "extra.brand_id",
        "brand.description": "extra.brand_description",
        "brand.website": "extra.brand_website",
        "productCategory": "extra.category_id",
        "cannabisStrain": "extra.strain",
        "flowerEquivalentInGrams": "extra.flower_equivalent_g",
        "effects effects[]": "extra.effects",
        "effectOnset": "extra.effect_onset",
        "effectDuration": "extra.effect_duration",
        "tags tags[]": "extra.tags",
        "priceType": "extra.price_type",
        "priceGross": "extra.price_gross",
        "priceNet": "extra.price_net",
        "productOrderType": "extra.order_type",
        "featured": "extra.featured",
        "new": "extra.is_new",
        "leaflogix.category": "extra.pos_category",
        "leaflogix.subCategory": "extra.pos_subcategory",
        "leaflogix.quantity": "extra.pos_quantity: what the point of sale has, before open orders are taken off",
        "reviewStats.total": "extra.reviews",
        "reviewStats.averageRating": "extra.rating",
        "weedmaps.productId": "extra.weedmaps_id",
    },
    ignored={
        "productCategoryIconImage brand.logo score search.** modifierGroups.**": _SHOWN,
        "type": _AGAIN + ": cannabisComplianceType",
        "seoDescription": _AGAIN + ": description",
        "weightInGrams": _AGAIN + ": weight, weightUnit",
        "images[].originalFileUrl": _AGAIN + ": the same picture at its source",
        "discountValue discountType discountAmountFinal": _AGAIN + ": discounts, priceWithDiscounts",
        "discounts[].disableStacking discounts[].stackingLimit discounts[].weights.** discounts[].orderPickUpTypes.** "
        "discounts[].days.** discounts[].startAndEndMinutesByTimezone.**": "conditions that priceWithDiscounts has accounted for",
        "quantityThreshold isBelowQuantityThreshold": "when the shop wants to be warned",
        "reviewStats.totalOneStarRatings reviewStats.totalTwoStarRatings reviewStats.totalThreeStarRatings "
        "reviewStats.totalFourStarRatings reviewStats.totalFiveStarRatings": _AGAIN + ": the average",
        "leaflogix.productId leaflogix.sku": _AGAIN + ": posProductId, sku",
        "leaflogix.strain leaflogix.strainType": _AGAIN + ": cannabisStrain, cannabisType",
        "leaflogix.roomQuantities.**": "always empty in the samples",
        "fourleaf.** cova.** flowhubMaui.**": "of another point of sale; empty in the samples",
        "groupOrder tiers.**": "described in public, never seen",
    },
)
