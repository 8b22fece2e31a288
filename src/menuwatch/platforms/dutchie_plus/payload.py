"""A product as Dutchie Plus sends it: only the fields that are read, every one of them optional; and what becomes of
each field of a page (`FIELDS`)."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from menuwatch.platforms.dutchie.payload import (
    Brand,
    CannabinoidRow,
    Content,
    TerpeneRow,
)
from menuwatch.platforms.fields import Field, declare
from menuwatch.platforms.numbers import Identifier, Quantity, id_text


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
    specialConditionIds: list[Identifier | None] | None = None  # noqa: N815
    specialRewardIds: list[Identifier | None] | None = None  # noqa: N815


class PosMetaData(msgspec.Struct, gc=False):
    sku: Identifier | None = None
    category: str | None = None
    labResultUrl: str | None = None  # noqa: N815


class Ids(msgspec.Struct, gc=False):
    """The id of an item, which is the one that the same product has in Dutchie's own menus."""

    id: Identifier | None = None

    def product_id(self) -> str | None:
        """The id as text, None if it is empty."""
        return id_text(self.id)


class Item(Ids, gc=False):
    """One element of `products_list[]`."""

    name: str | None = None
    image: str | None = None
    images: list[Image | None] | None = None
    description: str | None = None
    enterpriseProductId: Identifier | None = None  # noqa: N815
    category: str | None = None
    subcategory: str | None = None
    tags: list[str | None] | None = None
    strainType: str | None = None  # noqa: N815
    menuTypes: list[str | None] | None = None  # noqa: N815
    slug: str | None = None
    staffPick: bool | None = None  # noqa: N815
    effects: list[str | None] | None = None
    productBatchId: Identifier | None = None  # noqa: N815
    posId: Identifier | None = None  # noqa: N815
    variants: list[PlusVariant | None] | None = None
    brand: Brand | None = None
    potencyThc: Content | None = None  # noqa: N815
    potencyCbd: Content | None = None  # noqa: N815
    posMetaData: PosMetaData | None = None  # noqa: N815
    terpenes: list[TerpeneRow | None] | None = None
    cannabinoids: list[CannabinoidRow | None] | None = None


_SITE = "how the shop's site shows the list"
_AGAIN = "repeats another field"


def _fields_of(items: str) -> tuple[Field, ...]:
    """The declarations of the items in one envelope."""
    return declare(
        f"{items}[]",
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
            "terpenes[].value terpenes[].unit terpenes[].libraryTerpene.name": "terpenes",
            "productBatchId": "batch.batch_id",
            "posMetaData.labResultUrl": "batch.certificate_url",
            "brand.imageUrl": "images of brands: the brand's logo",
            "effects[]": "extra.effects",
        },
        kept={
            "enterpriseProductId": "extra.enterprise_product_id",
            "posId": "extra.pos_id",
            "posMetaData.category": "extra.pos_category",
            "posMetaData.sku": "extra.sku",
            "brand.id": "extra.brand_id",
            "brand.description": "extra.brand_description",
            "slug": "extra.slug",
            "menuTypes[]": "extra.menu_types",
            "tags[]": "extra.tags",
            "staffPick": "extra.staff_pick",
            "variants[].specialConditionIds[] variants[].specialRewardIds[]": "extra.special_ids",
        },
        ignored={
            "**.__typename": "the name of a GraphQL type",
            "descriptionHtml": _AGAIN + ": description",
            "potencyThc.formatted potencyCbd.formatted": _AGAIN + ": range",
            "variants[].id": _AGAIN + ": product id and option",
            "variants[].flowerEquivalent.unit variants[].flowerEquivalent.value": "for purchase limits; not a weight",
            "images[].id images[].label images[].description": "always null or empty in the samples",
            "posMetaData.id": _AGAIN + ": posId",
            "cannabinoids[].cannabinoidId cannabinoids[].cannabinoid.id cannabinoids[].cannabinoid.description "
            "terpenes[].id terpenes[].terpeneId terpenes[].unitSymbol "
            "terpenes[].libraryTerpene.**": "of the substance, not of the product",
        },
    )


ITEMS_PATH = "data.products_list"
OTHER_PATHS = ("data.menu.products", "data.dutchieplus.menu.products", "products_list", "menu.products", "data.products",
               "products", "")  # fmt: skip
"""Where recordings have items of menus, besides; "" is a bare list."""

FIELDS = (
    *declare(
        "",
        used={
            "data.products_count data.prods_per_page data.pagination_show_current_page_text": "whether this is all of the menu",
            "data.menu.productsCount data.dutchieplus.menu.productsCount products_count "
            "menu.productsCount": "whether this is all of the menu",
        },
        kept={},
        ignored={
            "success": "always true in the samples; a response without products gives the reason",
            "data.products_html": _AGAIN + ": the products as HTML",
            "data.specials_filter_html.** data.prod_filter_attrs.** data.available_filters.** data.filter data.testprod_categories.** "
            "data.pagination_show_current_page_with_no data.pagination_style data.prod_slider data.menutype": _SITE,
            "data.current_products_set data.products_list_count data.current_page data.prods_pageNumber": "says which page this is",
            "data.excluded_specials_products_count": "always 0 in the samples",
        },
    ),
    *(field for path in (ITEMS_PATH, *OTHER_PATHS) for field in _fields_of(path)),
)
