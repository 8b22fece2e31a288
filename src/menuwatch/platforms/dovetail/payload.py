"""A product as Dovetail sends it: only the fields that are read, every one of them optional; and the use of each field of a page
(`FIELDS`, from a recorded menu)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.platforms.dutchie.payload import Content
from menuwatch.platforms.fields import Field, declare
from menuwatch.platforms.numbers import Identifier, Quantity, id_text


class Image(msgspec.Struct, gc=False):
    url: str | None = None


class Brand(msgspec.Struct, gc=False):
    id: Identifier | None = None
    name: str | None = None
    description: str | None = None


class LabRow(msgspec.Struct, gc=False):
    """A cannabinoid or a terpene; `value` is null for one that was not measured."""

    name: str | None = None
    unit: str | None = None
    value: Decimal | None = None


class MenuVariant(msgspec.Struct, gc=False):
    """One option. `price` is what is paid, `regular_price` what it costs without a promotion; `quantity` is capped at 25."""

    name: str | None = None
    option: str | None = None
    quantity: Quantity = None
    price: Decimal | None = None
    regular_price: Decimal | None = None
    special_ids: list[Identifier | None] | None = None


class MetaData(msgspec.Struct, gc=False):
    """The point of sale's record of the product, and of its package on sale."""

    id: Identifier | None = None
    category: str | None = None
    sku: Identifier | None = None
    batch_id: Identifier | None = None
    batch_name: Identifier | None = None
    alternate_name: str | None = None
    lab_result_url: str | None = None
    packaged_date: str | int | None = None


class Ids(msgspec.Struct, gc=False):
    """The id of an item, which is the one that the same product has in Dutchie's own menus."""

    id: Identifier | None = None

    def product_id(self) -> str | None:
        """The id as text, None if it is empty."""
        return id_text(self.id)


class Item(Ids, gc=False):
    """One element of `results[]`. `menu_of` is not the shop's: it names the menu that was requested (`answers`)."""

    name: str | None = None
    description: str | None = None
    informations: Any = None
    link: str | None = None
    slug: str | None = None
    images: list[Image | None] | None = None
    staff_pick: bool | None = None
    category: str | None = None
    subcategory: str | None = None
    brand: Brand | None = None
    strain_type: str | None = None
    potency_thc: Content | None = None
    potency_cbd: Content | None = None
    effects: list[str | None] | None = None
    specials: Any = None
    sku: Identifier | None = None
    tags: list[str | None] | None = None
    terpenes: list[LabRow | None] | None = None
    variants: list[MenuVariant | None] | None = None
    cannabinoids: list[LabRow | None] | None = None
    meta_data: MetaData | None = None
    menu_of: str | None = None


_NULL = "always null in the samples"
_AGAIN = "repeats another field"
_SUBSTANCE = "of the substance, not of the product"
_RECORDER = "of the program that recorded the answer"


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
            "strain_type": "strain_type, strain_canon",
            "description": "description",
            "images[].url": "images, image_url",
            "variants[].option variants[].name": "variants.option, weight_g, pieces, content_mg",
            "variants[].price variants[].regular_price": "variants: price and special price",
            "variants[].quantity": "variants.quantity, capped, stock_status",
            "potency_thc.range[] potency_thc.unit": "thc",
            "potency_cbd.range[] potency_cbd.unit": "cbd",
            "cannabinoids[].name cannabinoids[].value cannabinoids[].unit": "cannabinoids",
            "terpenes[].name terpenes[].value terpenes[].unit": "terpenes",
            "specials specials.**": "specials",
            "meta_data.batch_name": "batch.batch_id",
            "meta_data.batch_id": "batch.batch_id where it has no name; extra.batch_record_id",
            "meta_data.lab_result_url": "batch.certificate_url",
            "meta_data.packaged_date": "batch.packaged_on",
            "link": "which store; extra.menu_url",
            "menu_of": "which store; extra.dispensary_id",
        },
        kept={
            "slug": "extra.slug",
            "staff_pick": "extra.staff_pick",
            "effects[]": "extra.effects",
            "tags[]": "extra.tags",
            "informations informations.**": "extra.informations",
            "brand.id": "extra.brand_id",
            "brand.description": "extra.brand_description",
            "variants[].special_ids[]": "extra.special_ids",
            "meta_data.id": "extra.pos_id",
            "meta_data.category": "extra.pos_category",
            "sku meta_data.sku": "extra.sku",
            "meta_data.alternate_name": "extra.alternate_name",
        },
        ignored={
            "potency_thc.formatted potency_cbd.formatted": _AGAIN + ": range",
            "variants[].id": _AGAIN + ": product id and option",
            "variants[].images variants[].images.**": _NULL,
            "images[].id images[].label images[].description": "always null or empty in the samples",
            "split_source split_source.** options options.** collections collections.**": _NULL,
            "brand.informations brand.informations.** brand.images[] brand.slug brand.link": "of the brand, not of the product",
            "terpenes[].id terpenes[].description terpenes[].unit_symbol terpenes[].aromas[] terpenes[].effects[] "
            "terpenes[].benefits[]": _SUBSTANCE,
            "cannabinoids[].id cannabinoids[].description cannabinoids[].unit_symbol": _SUBSTANCE,
        },
    )


ITEMS_PATH = "results"
WRAPPED = "products"
"""Key of the answer in the envelope of an archived page."""

FIELDS = (
    *declare(
        "",
        used={
            "total pages products.total products.pages": "whether this is all of the menu",
            "api_url": "which store and menu, and whether this is all of it",
        },
        kept={},
        ignored={
            "page per_page next_page products.page products.per_page products.next_page": "says which page this is",
            "location download_timestamp product_count": _RECORDER,
        },
    ),
    *(field for path in (ITEMS_PATH, f"{WRAPPED}.{ITEMS_PATH}", WRAPPED, "") for field in _fields_of(path)),
)
