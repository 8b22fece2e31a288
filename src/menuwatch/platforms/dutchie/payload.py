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

from menuwatch.platforms.fields import Field, declare
from menuwatch.platforms.numbers import Identifier, Quantity, id_text


class Brand(msgspec.Struct, gc=False):
    id: Identifier | None = None
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
    canonicalPackageId: Identifier | None = None  # noqa: N815
    canonicalLabResultUrl: str | None = None  # noqa: N815


class PosMetaData(msgspec.Struct, gc=False):
    """The point of sale's record of the product. Its package and certificate are those of the first of `children`."""

    canonicalID: Identifier | None = None  # noqa: N815 - the wire's names
    canonicalSKU: Identifier | None = None  # noqa: N815
    canonicalCategory: str | None = None  # noqa: N815
    canonicalPackageId: Identifier | None = None  # noqa: N815
    canonicalLabResultUrl: str | None = None  # noqa: N815
    children: list[Child | None] | None = None


class Limit(msgspec.Struct, gc=False):
    """The most that one customer may buy of an option: "Unlimited" in everything seen, a number elsewhere."""

    key: str | None = None
    value: Identifier | None = None


class OptionSpecials(msgspec.Struct, gc=False):
    """The promotions that an option is a condition or a reward of."""

    option: str | None = None
    conditionIds: list[Identifier | None] | None = None  # noqa: N815
    rewardIds: list[Identifier | None] | None = None  # noqa: N815


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

    specialId: Identifier | None = None  # noqa: N815
    specialName: str | None = None  # noqa: N815
    menuType: str | None = None  # noqa: N815
    discount: Decimal | None = None
    percentDiscount: bool | None = None  # noqa: N815
    dollarDiscount: bool | None = None  # noqa: N815
    targetPrice: bool | None = None  # noqa: N815
    saleDiscounts: list[SaleDiscount | None] | None = None  # noqa: N815
    endStamp: str | int | None = None  # noqa: N815
    eligibleProductOptions: list[str | None] | None = None  # noqa: N815


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
    """ "$40 for two": `value` "40"; how many is in the rewards' total quantity."""

    enabled: bool | None = None
    value: Decimal | None = None
    quantity: Quantity = None


class BogoSpecial(msgspec.Struct, gc=False):
    specialId: Identifier | None = None  # noqa: N815
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
    DispensaryID: Identifier | None = None
    duplicatedProductId: Identifier | None = None  # noqa: N815
    libraryProductId: Identifier | None = None  # noqa: N815
    enterpriseProductId: Identifier | None = None  # noqa: N815
    cName: str | None = None  # noqa: N815
    pastCNames: list[str | None] | None = None  # noqa: N815
    brandId: Identifier | None = None  # noqa: N815
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
    limitsPerCustomer: list[Limit | None] | None = None  # noqa: N815
    specialIdsPerOption: list[OptionSpecials | None] | None = None  # noqa: N815
    optionsBelowKioskThreshold: list[str | None] | None = None  # noqa: N815
    provider: str | None = None
    subcategories: Any = None
    totalTerpenes: Any = None  # noqa: N815


class StoreId(msgspec.Struct, gc=False):
    """The field of an item that names its store."""

    DispensaryID: Identifier | None = None

    def store_id(self) -> str | None:
        """The platform's id of the store."""
        return id_text(self.DispensaryID)


_AGAIN = "repeats another field"
_SITE = "how the site shows it"
_POS = "the point of sale's own record of it"
_RULES = "rules of the promotion; the special price lists contain the result"
_NULL = "always null in the samples"
_TYPE = "the name of a GraphQL type"
_LIMITS = "for purchase limits and taxes"

_SALE = "specialData.saleSpecials[]"
_BOGO = "specialData.bogoSpecials[]"
_CHILD = "POSMetaData.children[]"


def _fields_of(items: str) -> tuple[Field, ...]:
    """The declarations of the items in one envelope."""
    return declare(
        f"{items}[]",
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
            "brand.imageUrl": "images of brands: the brand's logo",
            "Options[]": "variants.option, weight_g, pieces, content_mg",
            "rawOptions[]": "variants.weight_g where the option says none; extra.raw_options",
            "recPrices[] medicalPrices[]": "variants: price",
            "Prices[]": "variants: price, where another list is missing",
            "recSpecialPrices[] medicalSpecialPrices[]": "variants: special price",
            f"{_CHILD}.option {_CHILD}.quantity {_CHILD}.quantityAvailable": "variants.quantity, capped, stock_status",
            "manualInventory[].option manualInventory[].inventory": "variants.quantity where the point of sale counts none",
            "isBelowThreshold optionsBelowThreshold[]": "stock_status",
            "measurements.netWeight.unit measurements.netWeight.values[]": "variants.weight_g of a single option; extra.net_weight",
            "THCContent.unit THCContent.range[]": "thc",
            "CBDContent.unit CBDContent.range[]": "cbd",
            "cannabinoidsV2[].value cannabinoidsV2[].unit cannabinoidsV2[].cannabinoid.name": "cannabinoids",
            "terpenes[].value terpenes[].unit terpenes[].libraryTerpene.name": "terpenes",
            f"POSMetaData.canonicalPackageId {_CHILD}.canonicalPackageId": "batch.package_tag; extra.package_ids where options differ",
            f"POSMetaData.canonicalLabResultUrl {_CHILD}.canonicalLabResultUrl": "batch.certificate_url; extra.certificate_urls where "
            "options differ",
            "createdAt": "platform_created_at",
            "updatedAt": "platform_updated_at",
            "effects.*": "extra.effects, in one spelling",
            f"{_SALE}.specialId {_SALE}.specialName {_SALE}.menuType {_SALE}.discount {_SALE}.percentDiscount {_SALE}.dollarDiscount "
            f"{_SALE}.targetPrice {_SALE}.saleDiscounts[].discountType {_SALE}.saleDiscounts[].discountAmount "
            f"{_SALE}.endStamp": "specials",
            f"{_BOGO}.specialId {_BOGO}.specialName {_BOGO}.menuType {_BOGO}.endStamp {_BOGO}.itemsForAPrice.enabled "
            f"{_BOGO}.itemsForAPrice.value {_BOGO}.itemsForAPrice.quantity "
            f"{_BOGO}.discountBundle.discountType {_BOGO}.discountBundle.value "
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
            "POSMetaData.canonicalID": "extra.pos_id",
            "POSMetaData.canonicalSKU": "extra.sku",
            "POSMetaData.canonicalCategory": "extra.pos_category",
            "limitsPerCustomer[].key limitsPerCustomer[].value": "extra.purchase_limits, by option",
            "specialIdsPerOption[].option specialIdsPerOption[].conditionIds[] specialIdsPerOption[].rewardIds[]": "extra."
            "special_ids_by_option",
            f"{_SALE}.eligibleProductOptions[]": "extra.special_options, by promotion",
            "optionsBelowKioskThreshold[]": "extra.kiosk_below_threshold",
            "provider": "extra.provider",
            "subcategories subcategories.**": "extra.subcategories",
            "totalTerpenes totalTerpenes.**": "extra.total_terpenes",
            "special": "extra.special",
            "medicalOnly": "extra.medical_only",
            "recOnly": "extra.rec_only",
            "weight": "extra.weight_rank; position in the menu's order, not a weight",
        },
        ignored={
            "**.__typename": _TYPE,
            "brand._id brand.parentBrandId brandLogo": "of the brand, not of the product",
            "AdditionalOptions": "always empty in the samples",
            "THC CBD wholesalePrices nonArmsLength pricingTierData comingSoon bottleDepositTaxCents vapeTaxApplicable "
            "measurements.volume": _NULL,
            "descriptionHtml": _AGAIN + ": description",
            "images[].description": "image metadata, usually empty",
            "isBelowKioskThreshold": _AGAIN + ": optionsBelowKioskThreshold",
            "imgixSettings.** featured.** collectionCardBadge.** collectionCardBadge certificateOfAnalysisEnabled StoreName": _SITE,
            "useBetterPotencyTaxes": _LIMITS,
            "libraryProductScore": "confidence of libraryProductId",
            "cannabinoidsV2[].cannabinoid.description terpenes[].id terpenes[].terpeneId terpenes[].unitSymbol "
            "terpenes[].libraryTerpene.**": "of the substance, not of the product",
            "POSMetaData.**": _POS,
            "POSMetaData.children[].**": _POS + "; its prices are null or those of the lists",
            "specialData.**": _RULES,
        },
    )


ITEMS_PATH = "data.filteredProducts.products"
OTHER_PATHS = ("data.getPersonalizedProducts.products", "filteredProducts.products", "data.products", "products", "")
"""Where recordings have items of menus, besides; "" is a bare list."""

FIELDS = (
    *declare(
        "",
        used={
            "data.filteredProducts.queryInfo.totalCount data.filteredProducts.queryInfo.totalPages "
            "filteredProducts.queryInfo.totalCount filteredProducts.queryInfo.totalPages": "whether this is all of the menu"
        },
        kept={},
        ignored={
            "data.filteredProducts.__typename data.filteredProducts.queryInfo.__typename data.getPersonalizedProducts.__typename "
            "filteredProducts.__typename filteredProducts.queryInfo.__typename": _TYPE,
            "extensions.**": "of the server that answered",
        },
    ),
    *(field for path in (ITEMS_PATH, *OTHER_PATHS) for field in _fields_of(path)),
)
