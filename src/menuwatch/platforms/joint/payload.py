"""A product as it is sent: only the fields that are read, every one of them optional; and what becomes of each field of a menu
(`FIELDS`).

Field names follow the wire. Numbers come as texts ("30.00") or numbers, mixed within one menu, and as empty texts; `amount` reads
either, never through a float.
"""

from __future__ import annotations

import re
from decimal import Decimal

import msgspec

from menuwatch.catalog.taxonomy.limits import shorten
from menuwatch.platforms.fields import declare
from menuwatch.platforms.items import UnusableItem
from menuwatch.platforms.numbers import Identifier, Quantity, id_text

Amount = msgspec.Raw
"""A number, a text with one, null, or nothing."""

_NUMBER = re.compile(r"[+-]?(?:\d{1,12}(?:\.\d{0,60})?|\.\d{1,60})", re.ASCII)
_text = msgspec.json.Decoder(str)


def amount(raw: Amount, field: str) -> Decimal | None:
    """The number; None for null and an empty text. Raises UnusableItem with the field's name for anything else that is none."""
    written = bytes(raw)
    if written in (b"", b"null", b'""'):
        return None
    if len(written) <= 100:
        try:
            text = _text.decode(written).strip() if written.startswith(b'"') else written.decode("ascii")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            text = "?"
        if not text:
            return None
        if _NUMBER.fullmatch(text):
            return Decimal(text)
    raise UnusableItem(field, f"invalid number {shorten(written[:80].decode('utf-8', 'replace'))}")


class Special(msgspec.Struct, gc=False):
    specialId: Identifier | None = None  # noqa: N815
    posSpecialId: Identifier | None = None  # noqa: N815
    specialName: str | None = None  # noqa: N815
    discountAmount: Amount = msgspec.Raw()  # noqa: N815
    discountType: str | None = None  # noqa: N815


class MenuVariant(msgspec.Struct, gc=False):
    jointId: Identifier | None = None  # noqa: N815
    option: str | None = None
    menuType: str | None = None  # noqa: N815
    price: Amount = msgspec.Raw()
    specialPrice: Amount = msgspec.Raw()  # noqa: N815
    quantity: Quantity = None
    appliedSpecials: list[Special | None] | None = None  # noqa: N815
    createdAt: str | None = None  # noqa: N815
    updatedAt: str | None = None  # noqa: N815


class Content(msgspec.Struct, gc=False):
    type: str | None = None
    rangeLow: Amount = msgspec.Raw()  # noqa: N815
    rangeHigh: Amount = msgspec.Raw()  # noqa: N815
    unit: str | None = None


class LabRow(msgspec.Struct, gc=False):
    name: str | None = None
    value: Amount = msgspec.Raw()
    unit: str | None = None


class Owner(msgspec.Struct, gc=False):
    """The field of an item that names its store."""

    businessId: Identifier | None = None  # noqa: N815

    def store_id(self) -> str | None:
        """The id as text."""
        return id_text(self.businessId)


class Ids(msgspec.Struct, gc=False):
    """Fields that identify an item's product, and its store."""

    jointId: Identifier | None = None  # noqa: N815
    posId: Identifier | None = None  # noqa: N815
    businessId: Identifier | None = None  # noqa: N815

    def product_id(self) -> str | None:
        """`jointId`, else `posId`."""
        return id_text(self.jointId) or id_text(self.posId)


class Item(Ids, gc=False):
    """One `_source`."""

    globalProductId: Identifier | None = None  # noqa: N815
    providerBusinessId: Identifier | None = None  # noqa: N815
    name: str | None = None
    category: str | None = None
    subCategory: str | None = None  # noqa: N815
    menuType: list[str | None] | str | None = None  # noqa: N815
    description: str | None = None
    descriptionHtml: str | None = None  # noqa: N815
    effects: list[str | None] | None = None
    primaryImage: str | None = None  # noqa: N815
    images: list[str | None] | None = None
    staffPick: bool | None = None  # noqa: N815
    strainType: str | None = None  # noqa: N815
    tagList: list[str | None] | None = None  # noqa: N815
    collections: list[str | None] | None = None
    urlFragment: str | None = None  # noqa: N815
    brandId: Identifier | None = None  # noqa: N815
    brandName: str | None = None  # noqa: N815
    potencyThcRangeLow: Amount = msgspec.Raw()  # noqa: N815
    potencyThcRangeHigh: Amount = msgspec.Raw()  # noqa: N815
    potencyThcUnit: str | None = None  # noqa: N815
    potencyCbdRangeLow: Amount = msgspec.Raw()  # noqa: N815
    potencyCbdRangeHigh: Amount = msgspec.Raw()  # noqa: N815
    potencyCbdUnit: str | None = None  # noqa: N815
    potencies: list[Content | None] | None = None
    variants: list[MenuVariant | None] | None = None
    cannabinoids: list[LabRow | None] | None = None
    terpenes: list[LabRow | None] | None = None
    applicableSpecials: list[Special | None] | None = None  # noqa: N815


_AGAIN = "repeats another field"
_PROSE = "says the same of this substance on every product"
_SEARCH = "how the search engine works"
_SPECIAL = "specialId specialName discountAmount discountType"

FIELDS = declare(
    "",
    used={"hits.total hits.total.value hits.total.relation": "whether this is all of the menu"},
    kept={},
    ignored={
        "took timed_out _shards.** hits.max_score hits.hits[]._index hits.hits[]._type hits.hits[]._score "
        "hits.hits[].sort.**": _SEARCH,
        "hits.hits[]._id": _AGAIN + ": jointId",
        "aggregations.**": "what the whole menu has by facet; the products say it",
    },
) + declare(
    "hits.hits[]._source",
    used={
        "jointId": "provider_product_id",
        "businessId": "which store; extra.dispensary_id",
        "name": "name_raw, name; whether variants.content_mg is certain",
        "category": "category, category_canon",
        "subCategory": "subcategory, category_canon, subcategory_canon",
        "description descriptionHtml": "description",
        "primaryImage images images[]": "image_url, images",
        "strainType": "strain_type, strain_canon",
        "brandName": "brand_name_raw, brand_name",
        "potencies[].type potencies[].rangeLow potencies[].rangeHigh potencies[].unit": "thc, cbd",
        "potencyThcRangeLow potencyThcRangeHigh potencyThcUnit potencyCbdRangeLow potencyCbdRangeHigh potencyCbdUnit": "thc, cbd, "
        "where potencies has none",
        "cannabinoids[].name cannabinoids[].value cannabinoids[].unit": "cannabinoids",
        "terpenes[].name terpenes[].value terpenes[].unit": "terpenes",
        "variants[].option": "variants.option, weight_g, content_mg",
        "variants[].menuType": "whether prices are price_rec or price_med",
        "variants[].price": "variants: price",
        "variants[].specialPrice": "variants: special price",
        "variants[].quantity": "variants.quantity, stock_status",
        "variants[].createdAt": "platform_created_at",
        "variants[].updatedAt": "platform_updated_at",
        " ".join(
            f"applicableSpecials[].{name} variants[].appliedSpecials[].{name}" for name in _SPECIAL.split()
        ): "specials",
    },
    kept={
        "posId": "extra.pos_id; provider_product_id without a jointId",
        "globalProductId": "extra.global_product_id",
        "providerBusinessId": "extra.provider_business_id",
        "menuType menuType[]": "extra.menu_types",
        "effects effects[]": "extra.effects",
        "staffPick": "extra.staff_pick",
        "tagList tagList[]": "extra.tags",
        "collections collections[]": "extra.collections",
        "urlFragment": "extra.slug",
        "brandId": "extra.brand_id",
        "variants[].jointId": "extra.variant_ids",
        "applicableSpecials[].posSpecialId variants[].appliedSpecials[].posSpecialId": "extra.pos_special_ids",
    },
    ignored={
        "nameText brandNameText brand.**": _AGAIN + ": name, brandName",
        "lowestPrice": _AGAIN + ": the lowest price of the variants",
        "potencyThcDisplayValue potencyCbdDisplayValue potencies[].displayValue": _AGAIN + ": the range, as text",
        "potencies[].jointId potencies[].productId potencies[].createdAt potencies[].updatedAt "
        "variants[].productId": "of the row, not of the product",
        "variants[].minQuantity": "always 0 in the samples",
        "cannabinoids[].description terpenes[].description terpenes[].effects.** terpenes[].medicalEffects.**": _PROSE,
        "applicableSpecials[].specialImageUrl applicableSpecials[].specialDescription variants[].appliedSpecials[].specialImageUrl "
        "variants[].appliedSpecials[].specialDescription": "always empty in the samples",
    },
)
