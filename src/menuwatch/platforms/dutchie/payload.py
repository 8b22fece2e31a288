"""Dutchie's product schema: only the fields that are read, all optional; and the use of each field of a menu (`FIELDS`, from recorded
pages and the statistics of 2,548 real products).

Field names are those of the wire format. Money and measurements decode to Decimal straight from the JSON text (never through
a float); so does a text such as "75" or "40.00", because the same field occurs as number and as text. Everything
may be null, also inside lists (`pastCNames` begins with null on real menus), so that a single bad value can be left
out. Unlisted fields are skipped and cannot cause errors.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.platforms.fields import declare
from menuwatch.platforms.numbers import Identifier, Quantity, id_text


class Brand(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    description: str | None = None


class ImageRef(msgspec.Struct, gc=False):
    url: str | None = None
    active: bool | None = None


class Child(msgspec.Struct, gc=False):
    """One option as the point of sale counts it. `quantity` is capped at 25; `quantityAvailable` is it minus a reserve, and
    `kioskQuantityAvailable`, in the recordings, it without one. That is of any type here: a bad one must not cost the stock."""

    option: str | None = None
    quantity: Quantity = None
    quantityAvailable: Quantity = None  # noqa: N815 - the wire's name
    kioskQuantityAvailable: Any = None  # noqa: N815


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


class Ids(msgspec.Struct, gc=False):
    """Fields that identify an item's product. The only place that decides it, for comparing items and for normalizing them; otherwise
    a product could be stored under one id and looked up under another."""

    id: Identifier | None = None
    _id: Identifier | None = None

    def product_id(self) -> str | None:
        """`id`, else `_id`."""
        return id_text(self.id) or id_text(self._id)


class Item(Ids, gc=False):
    """One element of `products[]`."""

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


_AGAIN = "repeats another field"
_SITE = "how the site shows it"
_POS = "the point of sale's own record of it"
_RULES = "rules of the promotion; the special price lists contain the result"
_NULL = "always null in the samples"
_TYPE = "the name of a GraphQL type"
_LIMITS = "for purchase limits and taxes"

_SALE = "specialData.saleSpecials[]"
_BOGO = "specialData.bogoSpecials[]"

FIELDS = declare(
    "data.filteredProducts",
    used={"queryInfo.totalCount queryInfo.totalPages": "whether this is all of the menu"},
    kept={},
    ignored={"__typename queryInfo.__typename": _TYPE},
) + declare(
    "data.filteredProducts.products[]",
    used={
        "id _id": "provider_product_id",
        "Name": "name_raw, name",
        "DispensaryID": "which store; extra.dispensary_id",
        "brandName brand.name": "brand_name_raw, brand_name; extra.brand_record_name where they differ",
        "type": "category, category_canon",
        "subcategory": "subcategory, subcategory_canon",
        "strainType": "strain_type, strain_canon",
        "Status": "status_raw, stock_status",
        "description": "description",
        "Image images[].url images[].active": "image_url, images",
        "Options[]": "variants.option, weight_g, pieces, content_mg",
        "rawOptions[]": "variants.weight_g where the option says none; extra.raw_options",
        "recPrices[] medicalPrices[]": "variants: price",
        "Prices[]": "variants: price, where another list is missing",
        "recSpecialPrices[] medicalSpecialPrices[]": "variants: special price",
        "POSMetaData.children[].option POSMetaData.children[].quantity POSMetaData.children[].quantityAvailable": "variants.quantity, "
        "capped, stock_status",
        "manualInventory[].option manualInventory[].inventory": "variants.quantity where the point of sale counts none",
        "isBelowThreshold optionsBelowThreshold[]": "stock_status",
        "measurements.netWeight.unit measurements.netWeight.values[]": "variants.weight_g of a single option; extra.net_weight",
        "THCContent.unit THCContent.range[]": "thc",
        "CBDContent.unit CBDContent.range[]": "cbd",
        "cannabinoidsV2[].value cannabinoidsV2[].unit cannabinoidsV2[].cannabinoid.name": "cannabinoids",
        "createdAt": "platform_created_at",
        "updatedAt": "platform_updated_at",
        "effects.*": "extra.effects, in one spelling",
        f"{_SALE}.specialId {_SALE}.specialName {_SALE}.menuType {_SALE}.discount {_SALE}.percentDiscount {_SALE}.dollarDiscount "
        f"{_SALE}.targetPrice {_SALE}.saleDiscounts[].discountType {_SALE}.saleDiscounts[].discountAmount "
        f"{_SALE}.endStamp": "specials",
        f"{_BOGO}.specialId {_BOGO}.specialName {_BOGO}.menuType {_BOGO}.endStamp {_BOGO}.itemsForAPrice.value "
        f"{_BOGO}.itemsForAPrice.quantity {_BOGO}.discountBundle.discountType {_BOGO}.discountBundle.value "
        f"{_BOGO}.bogoConditions[].quantity {_BOGO}.bogoConditions[].totalQuantity.quantity "
        f"{_BOGO}.bogoRewards[].quantity {_BOGO}.bogoRewards[].totalQuantity.quantity {_BOGO}.bogoRewards[].discountType "
        f"{_BOGO}.bogoRewards[].discountAmount {_BOGO}.bogoRewards[].percentDiscount": "specials",
    },
    kept={
        "duplicatedProductId": "extra.duplicated_product_id",
        "libraryProductId": "extra.library_product_id",
        "enterpriseProductId": "extra.enterprise_product_id",
        "brandId brand.id": "extra.brand_id",
        "brand.description": "extra.brand_description",
        "POSMetaData.children[].kioskQuantityAvailable": "extra.kiosk_quantity, by option",
        "cName": "extra.slug",
        "pastCNames[]": "extra.aliases",
        "terpenes[].value terpenes[].unit terpenes[].libraryTerpene.name": "extra.terpenes",
        "special": "extra.special",
        "medicalOnly": "extra.medical_only",
        "recOnly": "extra.rec_only",
        "weight": "extra.weight_rank; position in the menu's order, not a weight",
    },
    ignored={
        "**.__typename": _TYPE,
        "brand.imageUrl": "not of the product: the brand's logo, which is downloaded with the images",
        "brand._id brand.parentBrandId brandLogo": "of the brand, not of the product",
        "AdditionalOptions": "always empty in the samples",
        "THC CBD wholesalePrices nonArmsLength pricingTierData comingSoon bottleDepositTaxCents vapeTaxApplicable "
        "measurements.volume provider": _NULL,
        "descriptionHtml": _AGAIN + ": description",
        "images[].description": "image metadata, usually empty",
        "imgixSettings.** featured.** collectionCardBadge.** collectionCardBadge certificateOfAnalysisEnabled StoreName": _SITE,
        "limitsPerCustomer[].** useBetterPotencyTaxes": _LIMITS,
        "libraryProductScore": "confidence of libraryProductId",
        "isBelowKioskThreshold optionsBelowKioskThreshold[]": "stock in the shop's kiosk, not online",
        "specialIdsPerOption[].**": "which promotion is of which option; their prices are in the lists",
        "cannabinoidsV2[].cannabinoid.description terpenes[].id terpenes[].terpeneId terpenes[].unitSymbol "
        "terpenes[].libraryTerpene.**": "of the substance, not of the product",
        "POSMetaData.**": _POS,
        "POSMetaData.children[].**": _POS + "; its prices are null or those of the lists",
        "specialData.**": _RULES,
    },
)
