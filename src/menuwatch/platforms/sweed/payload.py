"""A row of a product list as it is sent: only the fields that are read, every one of them optional; and what becomes of each field of
an answer (`FIELDS`).

`pagePromos` and `pageStore` are not the platform's: `answers` adds them to a row from the answer around it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.platforms import numbers
from menuwatch.platforms.fields import declare
from menuwatch.platforms.numbers import MAX_QUANTITY, Identifier

__all__ = ["MAX_QUANTITY", "Identifier", "id_text"]


def id_text(value: object) -> str | None:
    """An id as text, without spaces around it; None if it is invalid."""
    return (numbers.id_text(value) or "").strip() or None


class Named(msgspec.Struct, gc=False):
    """A category, brand, tag or another thing that has only a name for us."""

    name: str | None = None


class Schedule(msgspec.Struct, gc=False, omit_defaults=True):
    full: str | None = None


class Promo(msgspec.Struct, gc=False, omit_defaults=True):
    """One promotion; the rows of a list name it by id, its terms stand in `promos` of the answer."""

    id: Identifier | None = None
    name: str | None = None
    shortName: str | None = None  # noqa: N815 - the wire's names
    description: str | None = None
    isBogo: bool | None = None  # noqa: N815
    startDate: str | None = None  # noqa: N815
    endDate: str | None = None  # noqa: N815
    isConditional: bool | None = None  # noqa: N815
    discountAmount: Decimal | None = None  # noqa: N815
    discountPercent: Decimal | None = None  # noqa: N815
    minCartAmount: Decimal | None = None  # noqa: N815
    scheduleDisplayText: Schedule | None = None  # noqa: N815
    isActiveBySchedule: bool | None = None  # noqa: N815


class UnitSize(msgspec.Struct, gc=False):
    """Size of one unit of a package; `unitAbbr` is G, MG or EA in the samples."""

    value: Decimal | None = None
    unitAbbr: str | None = None  # noqa: N815


class Content(msgspec.Struct, gc=False):
    """Content of one package: one number, or the lowest and the highest."""

    value: list[Decimal | None] | Decimal | None = None
    unitAbbr: str | None = None  # noqa: N815


class LabTests(msgspec.Struct, gc=False):
    thc: msgspec.Raw = msgspec.Raw()
    cbd: msgspec.Raw = msgspec.Raw()


class MenuVariant(msgspec.Struct, gc=False):
    """One package of a product. `availableQty` is exact. Fields that a product can do without are kept raw and read one by one: a bad
    value in one of them does not cost the product."""

    id: Any = None
    name: str | None = None
    saleType: Any = None  # noqa: N815 - the wire's names
    availableQty: Decimal | None = None  # noqa: N815
    price: Decimal | None = None
    promoPrice: Decimal | None = None  # noqa: N815
    images: msgspec.Raw = msgspec.Raw()
    labTests: msgspec.Raw = msgspec.Raw()  # noqa: N815
    unitSize: msgspec.Raw = msgspec.Raw()  # noqa: N815
    unitsInPackage: msgspec.Raw = msgspec.Raw()  # noqa: N815
    promos: msgspec.Raw = msgspec.Raw()
    sku: Any = None
    strengthLevel: Any = None  # noqa: N815
    tierPricing: Any = None  # noqa: N815
    isPacked: Any = None  # noqa: N815
    qtyStepSize: msgspec.Raw = msgspec.Raw()  # noqa: N815
    stockType: Any = None  # noqa: N815


class Strain(msgspec.Struct, gc=False):
    """`terpenes` are those usual of the strain: tags, no measurements."""

    name: str | None = None
    prevalence: Named | None = None
    flavors: list[Named | None] | None = None
    terpenes: list[Named | None] | None = None


class Ids(msgspec.Struct, gc=False):
    """Fields that identify a row's product."""

    id: Identifier | None = None

    def product_id(self) -> str | None:
        """The id as text."""
        return id_text(self.id)


class Item(Ids, gc=False):
    """One row, or several rows of one product put together."""

    name: str | None = None
    customName: str | None = None  # noqa: N815
    description: str | None = None
    category: Named | None = None
    subcategory: Named | None = None
    productType: Named | None = None  # noqa: N815
    images: list[str | None] | None = None
    brand: Named | None = None
    strain: Strain | None = None
    tags: list[Named | None] | None = None
    effects: list[Named | None] | None = None
    qualityLine: Named | None = None  # noqa: N815
    variants: list[MenuVariant | None] | None = None
    pagePromos: list[Promo | None] | None = None  # noqa: N815
    pageStore: dict[str, Any] | None = None  # noqa: N815


_SHOWN = "how the shop shows it"
_ANOTHER = "one number in the list and another in the rows of the front page; the name says the same"
_PROMO_SHOWN = (
    "bannerUrl mobileBannerUrl displayInUpsellModal displayInCatalog displayInDiscountMenu productImages[] "
    "filter.promotion[]"
)
_PROMO_NULL = (
    "interval[] applicationMode minCartAmountNeeded matchedUserSegmentIds[] fulfilmentTypes[] promoWizardGeneration "
    "shopInShop"
)


def _each(prefix: str, names: str) -> str:
    return " ".join(f"{prefix}.{name}" for name in names.split())


_USED = {
    "id": "provider_product_id",
    "name": "name_raw, name",
    "description": "description",
    "category.name": "category, category_canon",
    "subcategory.name": "subcategory, category_canon, subcategory_canon",
    "images[]": "image_url, images",
    "brand.name": "brand_name_raw, brand_name",
    "strain.prevalence.name": "strain_type, strain_canon",
    "variants[].id": "which rows are one option; extra.variant_ids",
    "variants[].name": "variants.option",
    "variants[].images[]": "images",
    "variants[].labTests.thc.value[] variants[].labTests.thc.value variants[].labTests.thc.unitAbbr": "thc",
    "variants[].labTests.cbd.value[] variants[].labTests.cbd.value variants[].labTests.cbd.unitAbbr": "cbd",
    "variants[].saleType": "whether prices are price_rec or price_med",
    "variants[].availableQty": "variants.quantity, stock_status",
    "variants[].unitSize.value variants[].unitSize.unitAbbr variants[].unitsInPackage": "variants: weight_g, pieces, content_mg",
    "variants[].price": "variants: price",
    "variants[].promoPrice": "variants: special price",
    **{
        _each("variants[].promos[]", names): note
        for names, note in {
            "id name shortName isBogo discountAmount discountPercent endDate": "specials",
            "isActiveBySchedule": "specials: inactive ones are left out",
        }.items()
    },
}
_KEPT = {
    "productType.name": "extra.product_type; subcategory_canon",
    "customName": "extra.custom_name",
    "strain.name": "extra.strain",
    "strain.flavors[].name": "extra.flavors",
    "strain.terpenes[].name": "extra.strain_terpenes: usual of the strain, not measured",
    "tags[].name": "extra.tags",
    "effects[].name": "extra.effects",
    "qualityLine.name": "extra.quality_line",
    "variants[].sku": "extra.skus; cut and not unique",
    "variants[].strengthLevel": "extra.strength_levels",
    "variants[].tierPricing.**": "extra.tier_pricing",
    "variants[].stockType": "extra.stock_types, unless Default",
    "variants[].isPacked variants[].qtyStepSize": "extra.sold_by_weight, extra.quantity_steps",
    _each("variants[].promos[]", "scheduleDisplayText.full"): "extra.promo_schedules",
    _each("variants[].promos[]", "description startDate isConditional minCartAmount"): "extra.promo_terms",
}
_IGNORED = {
    "category.id subcategory.id": _ANOTHER,
    "brand.filter.** brand.tagId": "for the shop's own filters",
    "variants[].discount": "repeats price and promoPrice; 0 in the list",
    "variants[].labTests.displayThc.**": "always null in the samples",
    "variants[].tierPricePresetId": "names a price list of the shop; tierPricing has the prices",
    "variants[].reminderStatus": "of the person who asks",
    _each("variants[].promos[]", _PROMO_SHOWN + " filter"): _SHOWN,
    _each("variants[].promos[]", _PROMO_NULL): "always null or empty in the samples",
    _each("variants[].promos[]", "scheduleDisplayText.rangeType scheduleDisplayText.days scheduleDisplayText.datePart "
          "scheduleDisplayText.timePart"): "repeats scheduleDisplayText.full",
}  # fmt: skip

_ROW = ("", "data.")
"""An answer is bare or in a recorder's wrapper."""

FIELDS = tuple(
    field
    for lead in _ROW
    for rows in ("list[]", "products[]", "[].products[]", "[]")
    for field in declare(f"{lead}{rows}".replace(".[]", "[]"), used=_USED, kept=_KEPT, ignored=_IGNORED)
) + tuple(
    field
    for lead in _ROW
    for field in declare(
        "",
        used={
            f"{lead}total {lead}pageSize": "whether this is all of the menu",
            f"{lead}filters[].key {lead}filters[].options[].id": "whether this is one category of the menu",
            _each(f"{lead}promos[]", "id name shortName isBogo discountAmount discountPercent endDate"): "specials",
        },
        kept={
            _each(f"{lead}promos[]", "scheduleDisplayText.full"): "extra.promo_schedules",
            _each(f"{lead}promos[]", "description startDate isConditional minCartAmount"): "extra.promo_terms",
        },
        ignored={
            f"{lead}page {lead}source": "says what was asked for",
            f"{lead}filters[].** {lead}searchFilters[].** {lead}sortingMethods[].** {lead}attributes.**": _SHOWN,
            _each(f"{lead}promos[]", _PROMO_SHOWN + " filter isActiveBySchedule"): _SHOWN,
            _each(f"{lead}promos[]", _PROMO_NULL): "always null or empty in the samples",
            _each(f"{lead}promos[]", "scheduleDisplayText.rangeType scheduleDisplayText.days scheduleDisplayText.datePart "
                  "scheduleDisplayText.timePart"): "repeats scheduleDisplayText.full",
        },
    )
) + declare(
    "",
    used={"[].total data[].total": "a row of the front page, which is a part of the menu"},
    kept={},
    ignored={
        "url status": "of the recorder: which request it was",
        "[].filter.** data[].filter.** [].ruleType data[].ruleType [].ruleSetting data[].ruleSetting": _SHOWN,
        "detailedLabDataExists": "whether GetExtendedLabdata has measurements, which is not asked",
    },
)  # fmt: skip
"""`[].id`, `[].name` and `[].description` are those of a product in a bare list, and of the title in a list of titled rows."""
