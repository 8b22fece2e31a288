"""Makes a product of an item of a live menu. Pure.

What differs from the recorded menus of `normalize`:

| matter   | rule |
|----------|------|
| options  | the offers in `prices`, by their labels; without a label by count and unit ("1/8 oz"), `each` if sold by the package. `price` repeats one of them and is used only without them |
| specials | `price` is what it costs now. Of an offer on sale the regular price is `original_price` |
| stock    | such a menu says none, so it is unknown |
| potency  | numbers without a unit: percent of what is sold by its own mass (`thc_unit_price` shows it), unknown of the rest |
| category | the first ancestor of `edge_category` that is a known category is the category, its own name the subcategory |
| strain   | `genetics_tag`, or the older `category` where that is Indica, Sativa or Hybrid |
| store    | `menu_id` is not the listing's id, so an item does not say which store it is of |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from menuwatch.catalog.model import LabValue, Potency, Product, ProductWarning, Special, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, WEIGHED, Kind, kind
from menuwatch.catalog.taxonomy.limits import bounded
from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, package
from menuwatch.catalog.taxonomy.strains import strain
from menuwatch.catalog.taxonomy.text import label
from menuwatch.platforms.products import (
    check_price,
    grams,
    instant_field,
    make_product,
    make_variant,
    option_status,
    required,
)
from menuwatch.platforms.weedmaps.ids import id_text
from menuwatch.platforms.weedmaps.live_payload import Content, LiveItem, Offer

EACH = "each"
"""The option of goods sold by the package."""

_HUNDRED = Decimal(100)
_IN_GRAMS = {"oz": GRAMS_PER_OUNCE, "g": Decimal(1), "mg": Decimal("0.001")}
_UNITS = {"ounce": "oz", "gram": "g", "milligram": "mg"}
_NOT_OFFERS = frozenset({"grams_per_eighth"})


def live_product(item: LiveItem, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(item.product_id(), item.name, "name")
    category, subcategory, canonical = _category(item)
    dosed = canonical.category in DOSED
    offers = list(_offers(item, product_id, warnings))
    image, placeholder = _image(item)
    return make_product(
        product_id,
        name,
        brand=item.brand_endorsement.brand_name if item.brand_endorsement is not None else None,
        category=category,
        subcategory=subcategory,
        kind=canonical,
        strain_type=_strain(item),
        status_raw=None,
        variants=_variants(item, offers, dosed=dosed),
        quantity=None,
        thc=_potency(item, "thc", canonical),
        cbd=_potency(item, "cbd", canonical),
        cannabinoids=_lab_values(item.metrics.cannabinoids if item.metrics is not None else None, canonical),
        terpenes=_lab_values(item.metrics.terpenes if item.metrics is not None else None, canonical),
        specials=(Special(name="Sale", kind="other"),) if any(offer.on_sale for _, _, offer in offers) else (),
        images=(image,) if image else (),
        description=None,
        created_at=instant_field(item.created_at, product_id, "created_at", warnings),
        extra=_extra(item, placeholder),
    )


def _category(item: LiveItem) -> tuple[str | None, str | None, Kind]:
    """(category, subcategory) in Weedmaps' words, and in those of the catalog."""
    edge = item.edge_category
    if edge is None or not edge.name:
        older = item.category.name if item.category is not None else None
        category = None if older is not None and strain(older) else older
        return category, None, kind(category)
    above = [one.name for one in edge.ancestors or () if one is not None and one.name]
    category = next((name for name in above if kind(name).category is not None), above[0] if above else edge.name)
    return category, edge.name, kind(category, edge.name)


def _strain(item: LiveItem) -> str | None:
    if item.genetics_tag is not None and item.genetics_tag.name:
        return item.genetics_tag.name
    older = item.category.name if item.category is not None else None
    return older if older and strain(older) else None


def _offers(item: LiveItem, product_id: str, warnings: list[ProductWarning]) -> Iterator[tuple[str, str, Offer]]:
    """(field, option, offer) of every option, once each."""
    fields: list[tuple[str, str, Offer]] = []
    for unit, found in (item.prices or {}).items():
        if unit in _NOT_OFFERS or found is None:
            continue
        rows = found if isinstance(found, list) else [Offer(price=found) if isinstance(found, Decimal) else found]
        several = isinstance(found, list)
        fields += [
            (f"prices.{unit}[{i}]" if several else f"prices.{unit}", unit, row)
            for i, row in enumerate(rows)
            if row is not None
        ]
    if not fields and item.price is not None:
        fields.append(("price", item.price.unit or "unit", item.price))
    # The keys of an object have no order: the lightest option first.
    fields.sort(key=lambda one: (package(_option(one[1], one[2])).grams or Decimal(0), one[0]))
    seen: set[str] = set()
    for field, unit, offer in fields:
        option = _option(unit, offer)
        if option in seen:
            warnings.append(ProductWarning(product_id, field, f"{option!r} is offered twice; the first counts"))
            continue
        seen.add(option)
        yield field, option, offer


def _option(unit: str, offer: Offer) -> str:
    if offer.label and (text := label(offer.label)):
        return text
    words = unit.replace("_", " ").strip()
    count = label(offer.units or offer.quantity or "")
    if words in ("unit", "each", ""):
        return EACH if count in ("", "1") else f"{count} {EACH}"
    for name, short in _UNITS.items():
        if words == name:
            return f"{count or '1'} {short}"
    return label(f"{count} {words}")


def _variants(item: LiveItem, offers: list[tuple[str, str, Offer]], *, dosed: bool) -> tuple[Variant, ...]:
    medical = item.license_type is not None and item.license_type.strip().lower() == "medical"
    variants = []
    for field, option, offer in offers or [("price", EACH, Offer())]:
        check_price(offer.price, f"{field}.price")
        check_price(offer.original_price, f"{field}.original_price")
        price, special = offer.price or None, None
        before = offer.original_price or None
        if offer.on_sale is not False and price is not None and before is not None and before > price:
            price, special = before, price
        variants.append(
            make_variant(
                option,
                *((None, price, None, special) if medical else (price, None, special, None)),
                quantity=None,
                capped=False,
                status=option_status(None, withdrawn=False),
                weight=None if dosed else _grams(option, offer),
                dosed=dosed,
            )
        )
    return tuple(variants)


def _grams(option: str, offer: Offer) -> Decimal | None:
    if offer.weight is not None and offer.weight.unit is not None:
        return grams(offer.weight.value, offer.weight.unit.strip().lower(), _IN_GRAMS)
    return package(option).grams


def _potency(item: LiveItem, code: str, canonical: Kind) -> Potency | None:
    """Percent of what is sold by its own mass; None for 0, for what no mass holds, and for the unit of anything else."""
    metrics = item.metrics
    if metrics is None or canonical.category not in WEIGHED:
        return None
    value = next(
        (
            row.value
            for row in metrics.cannabinoids or ()
            if row is not None and (row.code or "").lower() == code and row.value
        ),
        getattr(metrics.aggregates, code, None),
    )
    if value is None or not 0 < bounded(value) <= _HUNDRED:
        return None
    return Potency(value, value, "%", "")


def _lab_values(rows: list[Content | None] | None, canonical: Kind) -> tuple[LabValue, ...]:
    """As given, including zeros."""
    unit = "%" if canonical.category in WEIGHED else ""
    return tuple(
        LabValue(label(row.code).upper(), bounded(row.value) if row.value is not None else None, unit)
        for row in rows or ()
        if row is not None and row.code and label(row.code)
    )


def _image(item: LiveItem) -> tuple[str | None, str | None]:
    """(image, the placeholder in place of one). Both URLs are one picture in two sizes."""
    pictures = item.avatar_image
    url = ((pictures.original_url or pictures.large_url or "") if pictures is not None else "").strip()
    if "/placeholder" in url or url.endswith("image_missing.jpg"):
        return None, url
    return url or None, None


def _extra(item: LiveItem, placeholder: str | None) -> dict[str, Any]:
    """Values without a column, only those present."""
    endorsed = item.brand_endorsement
    rated = bool(item.reviews_count)
    extra: dict[str, Any] = {
        "menu_id": id_text(item.menu_id),
        "slug": item.slug,
        "license_type": item.license_type,
        "brand_id": id_text(endorsed.brand_id) if endorsed is not None else None,
        "library_product_id": id_text(endorsed.product_id) if endorsed is not None else None,
        "tags": [tag.group_name_and_name for tag in item.tags or () if tag is not None and tag.group_name_and_name],
        "rating": item.rating if rated else None,
        "reviews_count": item.reviews_count if rated else None,
        "deal_ids": [name for one in item.deal_ids or () if (name := id_text(one)) is not None],
        "online_orderable": item.is_online_orderable,
        "lab_name": item.lab_name,
        "lab_website": item.lab_website,
        "placeholder_image": placeholder,
    }
    return {name: value for name, value in extra.items() if value is not None and value != "" and value != []}
