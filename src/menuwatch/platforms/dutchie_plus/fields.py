"""What becomes of each field of a page of Dutchie Plus."""

from __future__ import annotations

from menuwatch.platforms.fields import declared

_SITE = "how the shop's site shows the list"
_AGAIN = "repeats another field"

FIELDS = declared(
    "",
    used={
        "data.products_count data.prods_per_page data.pagination_show_current_page_text": "whether this is all of the menu"
    },
    kept={},
    ignored={
        "success": "true in everything seen; an answer without products says why by itself",
        "data.products_html": _AGAIN + ": the products as HTML",
        "data.specials_filter_html.** data.prod_filter_attrs.** data.available_filters.** data.filter data.testprod_categories.** "
        "data.pagination_show_current_page_with_no data.pagination_style data.prod_slider data.menutype": _SITE,
        "data.current_products_set data.products_list_count data.current_page data.prods_pageNumber": "says which page this is",
        "data.excluded_specials_products_count": "0 in everything seen",
    },
) + declared(
    "data.products_list[]",
    used={
        "id": "provider_product_id",
        "name": "name_raw, name",
        "brand.name": "brand_name_raw, brand_name",
        "category": "category, category_canon",
        "subcategory": "subcategory, subcategory_canon",
        "strainType": "strain_type, strain_canon",
        "image": "image_url",
        "images[].url": "images, image_url",
        "description": "description",
        "variants[].option": "variants.option, weight_g, pieces, content_mg",
        "variants[].priceRec variants[].priceMed": "variants: price",
        "variants[].specialPriceRec variants[].specialPriceMed": "variants: special price",
        "variants[].quantity": "variants.quantity, stock_status",
        "potencyThc.range[] potencyThc.unit": "thc",
        "potencyCbd.range[] potencyCbd.unit": "cbd",
        "cannabinoids[].value cannabinoids[].unit cannabinoids[].cannabinoid.name": "cannabinoids",
        "effects[]": "extra.effects",
    },
    kept={
        "enterpriseProductId": "extra.enterprise_product_id",
        "productBatchId": "extra.batch_id",
        "posId": "extra.pos_id",
        "posMetaData.category": "extra.pos_category",
        "posMetaData.sku": "extra.sku",
        "brand.id": "extra.brand_id",
        "slug": "extra.slug",
        "menuTypes[]": "extra.menu_types",
        "tags[]": "extra.tags",
        "staffPick": "extra.staff_pick",
        "variants[].specialConditionIds[] variants[].specialRewardIds[]": "extra.special_ids",
        "terpenes[].value terpenes[].unit terpenes[].libraryTerpene.name": "extra.terpenes",
    },
    ignored={
        "descriptionHtml": _AGAIN + ": description",
        "potencyThc.formatted potencyCbd.formatted": _AGAIN + ": range",
        "variants[].id": _AGAIN + ": product id and option",
        "variants[].flowerEquivalent.unit variants[].flowerEquivalent.value": "for purchase limits; no weight",
        "images[].id images[].label images[].description": "null or empty in everything seen",
        "brand.description brand.imageUrl": "of the brand, not of the product",
        "posMetaData.id": _AGAIN + ": posId",
        "posMetaData.labResultUrl": "null in everything seen",
        "cannabinoids[].cannabinoidId cannabinoids[].cannabinoid.id cannabinoids[].cannabinoid.description "
        "terpenes[].id terpenes[].terpeneId terpenes[].unitSymbol "
        "terpenes[].libraryTerpene.**": "of the substance, not of the product",
    },
)
