"""The Dutchie Plus adapter. It reads recorded pages and sends no requests.

A page is `{"success": true, "data": {"products_list": [...], "products_count": 101, "prods_per_page": 20, ...}}`; the HTML beside the
products repeats them and is not read. Answers of the official GraphQL API have the same items in `data.menu.products` (`ENVELOPES`).

| matter     | rule |
|------------|------|
| identity   | `id`, which is the one that the same product has in Dutchie's own menus |
| options    | `variants[]`; prices and special prices as they are, never computed |
| stock      | `quantity`, where 25 means 25 or more; null is unknown |
| weights    | from the option's text; of what is sold by content ("10pk/100mg", "1g" of gummies) none, but pieces and milligrams |
| potency    | `range` in its `unit`; "%" of an edible is of its mass (0.38 % beside 3.82 mg/g) |
| enums      | as they come; what they mean is in the canonical columns |
| repeated   | `descriptionHtml`, `formatted`, variants' `id` and `flowerEquivalent` say nothing more |

An item that cannot be a product is a fatal warning and stops nothing else; any other bad value is left out with a warning.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from menuwatch.catalog.model import Batch, Potency, Product, ProductWarning, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, WEIGHED, kind
from menuwatch.catalog.taxonomy.limits import MAX_TOTAL
from menuwatch.catalog.taxonomy.package import package
from menuwatch.catalog.taxonomy.text import label
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dutchie.lab_results import cannabinoids, effect_name, terpenes
from menuwatch.platforms.dutchie.options import POS_CAP
from menuwatch.platforms.dutchie.payload import Content
from menuwatch.platforms.dutchie_plus.payload import FIELDS, ITEMS_PATH, Ids, Item
from menuwatch.platforms.envelope import Envelope, check_count, decode, parse_count, read_wrapped, short_value
from menuwatch.platforms.items import ItemReader
from menuwatch.platforms.model import Page
from menuwatch.platforms.numbers import id_text, packages
from menuwatch.platforms.products import check_price, make_product, make_variant, option_status, potency, required

_LAST = re.compile(r"/\s*(\d{1,6})\s*$")


class _Data(msgspec.Struct):
    products_list: list[msgspec.Raw]
    products_count: msgspec.Raw = msgspec.Raw()
    prods_per_page: msgspec.Raw = msgspec.Raw()
    pagination_show_current_page_text: msgspec.Raw = msgspec.Raw()


class _Answer(msgspec.Struct):
    data: _Data


_decoder = msgspec.json.Decoder(_Answer)


class _KnownVariant(msgspec.Struct):
    option: Any
    priceRec: Any  # noqa: N815 - the wire's name


class _Known(msgspec.Struct):
    """What every item of a menu has, whatever its envelope."""

    id: Any
    name: Any
    variants: Annotated[list[_KnownVariant], msgspec.Meta(min_length=1)]


ENVELOPES = (
    Envelope(items=ITEMS_PATH, total="data.products_count"),
    Envelope(items="data.menu.products", known=_Known, total="data.menu.productsCount"),
    Envelope(items="data.dutchieplus.menu.products", known=_Known, total="data.dutchieplus.menu.productsCount"),
    Envelope(items="products_list", known=_Known, total="products_count"),
    Envelope(items="menu.products", known=_Known, total="menu.productsCount"),
    Envelope(items="data.products", known=_Known),
    Envelope(items="products", known=_Known),
    Envelope(items="", known=_Known),
)
"""Every envelope whose items are known, the most specific first."""


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(item.product_id(), item.name, "name")
    canonical = kind(item.category, item.subcategory)
    variants = _variants(item, product_id, canonical.category, warnings)
    quantities = [variant.quantity for variant in variants if variant.quantity is not None]
    return make_product(
        product_id,
        name,
        brand=item.brand.name if item.brand is not None else None,
        category=item.category,
        subcategory=item.subcategory,
        kind=canonical,
        strain_type=item.strainType,
        status_raw=None,
        variants=variants,
        quantity=min(sum(quantities), MAX_TOTAL) if quantities else None,
        thc=_potency(item.potencyThc),
        cbd=_potency(item.potencyCbd),
        cannabinoids=cannabinoids(item.cannabinoids),
        image=item.image,
        images=tuple(dict.fromkeys(ref.url.strip() for ref in item.images or () if ref is not None and ref.url)),
        description=item.description,
        extra=_extra(item),
        terpenes=terpenes(item.terpenes),
        batch=_batch(item),
    )


def _variants(item: Item, product_id: str, category: str | None, warnings: list[ProductWarning]) -> tuple[Variant, ...]:
    dosed = category in DOSED
    variants = []
    for i, variant in enumerate(item.variants or ()):
        if variant is None:
            continue
        if not variant.option or not label(variant.option):
            warnings.append(ProductWarning(product_id, f"variants[{i}].option", "is empty; the option is left out"))
            continue
        for field in ("priceRec", "priceMed", "specialPriceRec", "specialPriceMed"):
            check_price(getattr(variant, field), f"variants[{i}].{field}")
        content = package(variant.option)
        by_content = dosed or (content.milligrams is not None and category not in WEIGHED)
        quantity = packages(variant.quantity, f"variants[{i}].quantity")
        variants.append(
            make_variant(
                variant.option,
                variant.priceRec,
                variant.priceMed,
                variant.specialPriceRec,
                variant.specialPriceMed,
                quantity=quantity,
                capped=quantity is not None and quantity >= POS_CAP,
                status=option_status(quantity, withdrawn=False),
                weight=None if by_content else content.grams,
                dosed=dosed,
            )
        )
    return tuple(variants)


def _batch(item: Item) -> Batch:
    url = item.posMetaData.labResultUrl if item.posMetaData is not None else None
    return Batch(
        batch_id=label(id_text(item.productBatchId) or "") or None, certificate_url=(url or "").strip() or None
    )


def _potency(content: Content | None) -> Potency | None:
    """The range, None without one or without a unit."""
    unit = label(content.unit) if content is not None and content.unit else ""
    return potency(content.range, unit) if content is not None and unit else None


def _extra(item: Item) -> dict[str, Any]:
    """Values without a column, only those present; flags only if true."""
    pos = item.posMetaData
    brand = item.brand
    promotions = {
        entry
        for variant in item.variants or ()
        if variant is not None
        for one in (*(variant.specialConditionIds or ()), *(variant.specialRewardIds or ()))
        if (entry := id_text(one))
    }
    extra: dict[str, Any] = {
        "enterprise_product_id": id_text(item.enterpriseProductId),
        "pos_id": id_text(item.posId),
        "pos_category": pos.category if pos is not None else None,
        "sku": id_text(pos.sku) if pos is not None else None,
        "brand_id": id_text(brand.id) if brand is not None else None,
        "brand_description": brand.description.strip() if brand is not None and brand.description else None,
        "slug": item.slug,
        "menu_types": [entry for entry in item.menuTypes or () if entry],
        "tags": [entry for entry in item.tags or () if entry],
        "effects": [effect_name(entry.lower()) for entry in item.effects or () if entry],
        "staff_pick": item.staffPick or None,
        "special_ids": sorted(promotions),
    }
    return {name: value for name, value in extra.items() if value not in (None, "", [])}


_ITEMS = ItemReader(Item, Ids, _product, essential=("name", "variants"), judged=("variants",))


class DutchiePlus(Platform):
    """Its menus are on shops' own sites, and do not say which store they are of."""

    name = "dutchie_plus"
    normalizer_version = 3
    fields = FIELDS
    items = _ITEMS
    items_path = ITEMS_PATH

    def read_page(self, body: bytes) -> Page:
        """The totals are those of the page's list; the number of pages is in "Page 1 / 6"."""
        try:
            data = decode(body, _decoder).data
        except BadPayload as error:
            page = read_wrapped(body, ENVELOPES[1:]) if error.kind == "schema" else None
            if page is None:
                raise
            return page
        check_count(len(data.products_list), body)
        total, size = parse_count(data.products_count), parse_count(data.prods_per_page)
        text = short_value(data.pagination_show_current_page_text, 1000)
        match = _LAST.search(text) if isinstance(text, str) else None
        pages = int(match[1]) if match else -(-total // size) if total is not None and size else None
        return Page(data.products_list, total, pages)
