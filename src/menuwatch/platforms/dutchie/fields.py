"""What becomes of each field of a Dutchie menu: in the recorded pages, and in the statistics of 2,548 real products."""

from __future__ import annotations

from menuwatch.platforms.fields import declared

_AGAIN = "repeats another field"
_SITE = "how the site shows it"
_POS = "the point of sale's own record of it"
_RULES = "rules of the promotion; the special price lists are what comes of them"
_NULL = "null in everything seen"
_TYPE = "the name of a GraphQL type"
_LIMITS = "for purchase limits and taxes"

_SALE = "specialData.saleSpecials[]"
_BOGO = "specialData.bogoSpecials[]"

FIELDS = declared(
    "data.filteredProducts",
    used={"queryInfo.totalCount queryInfo.totalPages": "whether this is all of the menu"},
    kept={},
    ignored={"__typename queryInfo.__typename": _TYPE},
) + declared(
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
        "cName": "extra.slug",
        "pastCNames[]": "extra.aliases",
        "terpenes[].value terpenes[].unit terpenes[].libraryTerpene.name": "extra.terpenes",
        "special": "extra.special",
        "medicalOnly": "extra.medical_only",
        "recOnly": "extra.rec_only",
        "weight": "extra.weight_rank; a place in the menu's order, no weight",
    },
    ignored={
        "**.__typename": _TYPE,
        "brand._id brand.description brand.imageUrl brand.parentBrandId brandLogo": "of the brand, not of the product",
        "AdditionalOptions": "empty in everything seen",
        "THC CBD wholesalePrices nonArmsLength pricingTierData comingSoon bottleDepositTaxCents vapeTaxApplicable "
        "measurements.volume provider": _NULL,
        "descriptionHtml": _AGAIN + ": description",
        "images[].description": "of the picture, empty as a rule",
        "imgixSettings.** featured.** collectionCardBadge.** collectionCardBadge certificateOfAnalysisEnabled StoreName": _SITE,
        "limitsPerCustomer[].** useBetterPotencyTaxes": _LIMITS,
        "libraryProductScore": "how sure Dutchie is of libraryProductId",
        "isBelowKioskThreshold optionsBelowKioskThreshold[]": "stock in the shop's kiosk, not online",
        "specialIdsPerOption[].**": "which promotion is of which option; their prices are in the lists",
        "cannabinoidsV2[].cannabinoid.description terpenes[].id terpenes[].terpeneId terpenes[].unitSymbol "
        "terpenes[].libraryTerpene.**": "of the substance, not of the product",
        "POSMetaData.**": _POS,
        "POSMetaData.children[].**": _POS + "; its prices are null or those of the lists",
        "specialData.**": _RULES,
    },
)
