"""Normalizes a row of a Jane menu to a canonical product. Pure: bytes in, values out.

Rules for ambiguous payloads:

| matter     | rule |
|------------|------|
| identity   | `product_id`, the catalogue's product: one row of a store has all of its weights. `objectID`, the store's offer, is a number in one answer and "prod_2698533_store_5876" in the other, so it is kept as `extra.offer_id` |
| licence    | `store_types`: medical, recreational or both; the price is that of each. Rows that do not say are recreational |
| options    | every weight with a price and every available one, named as on other platforms ("1/8 oz"); an ounce is 28 g |
| prices     | `price_X`, in dollars; 0 is no price and gets a warning |
| specials   | the lower of `special_price_X.discount_price` and `discounted_price_X`, if it is below the price. Refunds ("15% back") are listed as specials and change no price |
| stock      | never counted: `quantity` is null. An available weight is in stock, a priced one that is not available is out of stock; `max_cart_quantity_X` limits the cart |
| for sale   | a row that is not `visible`, or has no available weight, is out of stock |
| weights    | by the name of the weight; of `each` from `net_weight_grams`, `quantity_value` or `amount`. Edibles and others sold by content have none |
| strain     | `category`, if that is a strain type, else `type` |
| category   | `kind`; of the words for its subtype the first is stored, and the first that is known gives the canonical one |
| potency    | percent of each weight sold (`inventory_potencies`), else `percent_thc`; 0 is not measured. Of what is sold by content only laboratory values, which have a unit |
| laboratory | of the smallest weight sold that has results; where weights differ, all are in `extra.lab_results_by_option` |

An item that cannot be a product (no object, no id, or an unreadable name or price) gives a fatal warning and does not affect others; any
other bad value is left out of its product with a warning that names the field.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any

from menuwatch.catalog.model import Batch, Product, ProductWarning, Special, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, kind
from menuwatch.catalog.taxonomy.limits import bounded
from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, package
from menuwatch.catalog.taxonomy.strains import strain
from menuwatch.catalog.taxonomy.text import label
from menuwatch.platforms.items import ItemReader
from menuwatch.platforms.jane.lab_results import by_option, content, is_cannabinoid, percentage, read_labs, shown
from menuwatch.platforms.jane.payload import WEIGHTS, BundleIds, Ids, Owner, Photo, Row, SpecialPrice
from menuwatch.platforms.numbers import id_text
from menuwatch.platforms.products import check_price, grams, instant_field, make_product, make_variant, required

VERSION = 1
"""Raise it when the same item would give a different product."""

EACH = "each"
_IN_GRAMS = {"g": Decimal(1), "gram": Decimal(1), "grams": Decimal(1), "oz": GRAMS_PER_OUNCE, "mg": Decimal("0.001")}
_KINDS = {"percent": "percent", "dollar_amount": "amount", "target_price": "target_price"}
_PERCENT = re.compile(r"(\d{1,2}(?:\.\d{1,2})?)\s*% off", re.IGNORECASE)
_DOLLARS = re.compile(r"\$\s?(\d{1,4}(?:\.\d{1,2})?) off", re.IGNORECASE)
_SECONDS = 100_000_000_000
"""A time below this number is in seconds, not milliseconds."""


_regular_prices = attrgetter(*(f"price_{weight}" for weight in WEIGHTS))
_special_prices = attrgetter(*(f"special_price_{weight}" for weight in WEIGHTS))


def _product(row: Row, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(row.product_id(), row.name, "name")
    words = _texts((row.kind_subtype, row.root_subtype, row.custom_product_subtype, row.brand_subtype))
    canonical = next(
        (found for word in words if (found := kind(row.kind, word)).subcategory), kind(row.kind, *words[:1])
    )
    dosed = canonical.category in DOSED
    available = _available(row, product_id, warnings)
    variants = _variants(row, available, product_id, warnings, dosed=dosed)
    # What a menu says of a weight that is not sold is of an earlier batch.
    sold = [weight for weight in WEIGHTS if weight in available] if available else list(WEIGHTS)
    labs = read_labs(row.lab_results, product_id, warnings)
    values = shown(labs, sold)
    images = _images(row)
    certificates = _texts(row.lab_result_urls)
    thc, cbd = (
        content(labs, sold, name) if dosed else percentage(_percentages(row, name, sold), product_id, warnings)
        for name in ("THC", "CBD")
    )
    indexed = row.indexed_at
    return make_product(
        product_id,
        name,
        brand=row.brand,
        category=row.kind,
        subcategory=words[0] if words else None,
        kind=canonical,
        strain_type=_strain(row),
        status_raw=None if row.visible is None else "visible" if row.visible else "hidden",
        variants=variants,
        active=row.visible is not False and available != frozenset(),
        quantity=None,
        thc=thc,
        cbd=cbd,
        cannabinoids=tuple(value for value in values if is_cannabinoid(value.name)),
        terpenes=tuple(value for value in values if not is_cannabinoid(value.name)),
        specials=(specials := _specials(row)),
        images=images,
        description=row.description,
        updated_at=instant_field(
            indexed * 1000 if isinstance(indexed, int) and indexed < _SECONDS else indexed,
            product_id, "indexed_at", warnings,
        ),
        batch=Batch(certificate_url=certificates[0]) if len(certificates) == 1 else None,
        extra=_extra(row, sold, specials, certificates, by_option(labs, sold), dosed=dosed),
    )  # fmt: skip


def _texts(values: Iterable[str | None] | None) -> list[str]:
    """The distinct texts that say something."""
    if not values:
        return []
    return list(dict.fromkeys(text for value in values or () if value and (text := label(value))))


def _available(row: Row, product_id: str, warnings: list[ProductWarning]) -> frozenset[str] | None:
    """The weights that can be bought; None if the row does not say."""
    if row.available_weights is None:
        return None
    weights = ["_".join(text.lower().split()) for text in _texts(row.available_weights)]
    warnings.extend(
        ProductWarning(product_id, "available_weights", f"unknown weight {weight[:40]!r}; left out")
        for weight in weights
        if weight not in WEIGHTS
    )
    return frozenset(weight for weight in weights if weight in WEIGHTS)


def _variants(
    row: Row, available: frozenset[str] | None, product_id: str, warnings: list[ProductWarning], *, dosed: bool
) -> tuple[Variant, ...]:
    medical, recreational = _licences(row)
    variants = []
    for (weight, option), given in zip(WEIGHTS.items(), _regular_prices(row), strict=True):
        if given is None and weight not in (available or ()):
            continue
        price = _price(given, f"price_{weight}", product_id, warnings)
        if price is None and weight not in (available or ()):
            continue
        special = _special_price(row, weight, price, product_id, warnings)
        sold = None if available is None else weight in available
        variants.append(
            make_variant(
                option,
                price if recreational else None,
                price if medical else None,
                special if recreational else None,
                special if medical else None,
                quantity=None,
                capped=False,
                status="oos" if row.visible is False or sold is False else "in_stock" if sold else "unknown",
                weight=None if dosed else _each_grams(row) if weight == EACH else package(option).grams,
                dosed=dosed,
            )
        )
    return tuple(variants)


def _licences(row: Row) -> tuple[bool, bool]:
    """Whether the price is one for patients, and one for adults."""
    types = {text.lower() for text in _texts(row.store_types)}
    medical = "medical" in types
    return medical, "recreational" in types or not medical


def _price(value: Decimal | None, field: str, product_id: str, warnings: list[ProductWarning]) -> Decimal | None:
    """A price above 0. Raises UnusableItem for an invalid one."""
    check_price(value, field)
    if value == 0:
        warnings.append(ProductWarning(product_id, field, "is 0, which is not a price; left out"))
    return value or None


def _special_price(
    row: Row, weight: str, price: Decimal | None, product_id: str, warnings: list[ProductWarning]
) -> Decimal | None:
    """The lowest reduced price below the regular one."""
    given = getattr(row, f"special_price_{weight}")
    special = given.discount_price if isinstance(given, SpecialPrice) else given
    reduced = {
        f"special_price_{weight}": special,
        f"discounted_price_{weight}": getattr(row, f"discounted_price_{weight}"),
    }
    lower: list[Decimal] = []
    for field, value in reduced.items():
        check_price(value, field)
        if value is None or price is None or value == price:
            continue
        if 0 < value < price:
            lower.append(value)
        else:
            message = f"special price {value} of a regular price of {price}; left out"
            warnings.append(ProductWarning(product_id, field, message))
    return min(lower, default=None)


def _each_grams(row: Row) -> Decimal | None:
    if row.net_weight_grams is not None and bounded(row.net_weight_grams) > 0:
        return grams(row.net_weight_grams, "g", _IN_GRAMS)
    units = (row.quantity_units or "").strip().lower()
    stated = grams(row.quantity_value, units, _IN_GRAMS)
    return stated if stated is not None or not row.amount else package(str(row.amount)).grams


def _strain(row: Row) -> str | None:
    """The first that is a strain type; else `category`, unless it repeats the kind."""
    known = next((word for word in (row.category, row.type) if strain(word) is not None), None)
    return known or (row.category if row.category != row.kind else None)


def _percentages(row: Row, name: str, sold: Sequence[str]) -> dict[str, Decimal | None]:
    """THC or CBD of the weights sold by field; the product's, where no weight has one."""
    values: dict[str, Decimal | None] = {}
    for i, entry in enumerate(row.inventory_potencies or ()):
        if entry is not None and entry.price_id in sold:
            field = f"{name.lower()}_potency"
            values[f"inventory_potencies[{i}].{field}"] = getattr(entry, field)
    field = f"percent_{name.lower()}"
    return values if any(values.values()) else {**values, field: getattr(row, field)}


def _specials(row: Row) -> tuple[Special, ...]:
    """The promotion of each weight, the row's own, and refunds; each once."""
    title = label(row.special_title or "")
    own = id_text(row.special_id)
    specials: dict[str, Special] = {}
    for given in _special_prices(row):
        if not isinstance(given, SpecialPrice) or (given.special_id is None and given.discount_price is None):
            continue
        special_id = id_text(given.special_id)
        sort = _KINDS.get(given.discount_type or "", "other")
        value = {
            "percent": given.discount_percent,
            "amount": given.discount_amount,
            "target_price": given.discount_price,
        }.get(sort)
        # The title is that of the row's own promotion.
        name = title if own is None or special_id in (own, None) else ""
        value = value if value is not None and bounded(value) > 0 else None
        special = Special(name=name, kind=sort, value=value, special_id=special_id)
        specials.setdefault(special_id or f"{name}:{sort}:{value}", special)
    if (
        (title or own)
        and (own or title) not in specials
        and not any(one.name == title for one in specials.values() if title)
    ):
        sort, value = _amount(row.special_amount)
        specials[own or title] = Special(name=title, kind=sort, value=value, special_id=own)
    for offer in (row.brand_special_prices or {}).values():
        if offer is None or not (offer.title or offer.discount_label):
            continue
        name, offer_id = label(offer.title or offer.discount_label or ""), id_text(offer.brand_special_id)
        specials.setdefault(f"brand:{offer_id or name}", Special(name=name, kind="other", special_id=offer_id))
    return tuple(specials.values())


def _amount(text: str | float | None) -> tuple[str, Decimal | None]:
    """Kind and value of "30% OFF" and "$5 off"."""
    if isinstance(text, str):
        for pattern, sort in ((_PERCENT, "percent"), (_DOLLARS, "amount")):
            if match := pattern.search(text):
                return sort, Decimal(match[1])
    return "other", None


def _images(row: Row) -> tuple[str, ...]:
    """Distinct URLs in the menu's order."""
    photos = [photo for photo in (row.product_photos or row.photos or ()) if photo is not None]
    photos.sort(key=_position)
    urls = [photo.urls.original for photo in photos if photo.urls is not None]
    return tuple(_texts(urls) or _texts(row.image_urls))


def _position(photo: Photo) -> float:
    return photo.position if photo.position is not None else 1_000


def _ids(*lists: Iterable[int | str | None] | None) -> list[str]:
    return list(dict.fromkeys(text for ids in lists for one in ids or () if (text := id_text(one)) is not None))


def _bundle_ids(*bundles: BundleIds | list[int | str | None] | None) -> list[str]:
    lists: list[Iterable[int | str | None] | None] = []
    for bundle in bundles:
        lists.extend((bundle.qualify, bundle.discount) if isinstance(bundle, BundleIds) else (bundle,))
    return _ids(*lists)


def _number(value: Decimal | None) -> Decimal | None:
    return None if value is None else bounded(value)


def _extra(
    row: Row,
    sold: Sequence[str],
    specials: Sequence[Special],
    certificates: Sequence[str],
    labs: dict[str, Any],
    *,
    dosed: bool,
) -> dict[str, Any]:
    """Values without a column, only those present."""
    listed = {special.special_id for special in specials}
    special_ids = _ids(
        row.applicable_special_ids,
        row.applicable_brand_special_ids,
        row.applicable_bulk_special_ids,
        row.applicable_cart_total_special_ids,
    )
    notes = label(row.store_notes or "")
    carts = {WEIGHTS[weight]: getattr(row, f"max_cart_quantity_{weight}") for weight in sold}
    pos_ids = {label(key): id_text(value) for key, value in (row.pos_product_lookup or {}).items()}
    extra: dict[str, Any] = {
        "dispensary_id": row.store(),
        "offer_id": id_text(row.objectID),
        "brand_id": id_text(row.product_brand_id),
        "slug": row.url_slug,
        "store_types": _texts(row.store_types),
        "custom_product_type": row.custom_product_type if row.custom_product_type != row.kind else None,
        "strain": row.strain,
        "store_notes": notes if notes != label(row.description or "") else None,
        "max_cart_quantity": {option: most for option, most in carts.items() if most is not None},
        "special_badge": row.special_custom_badge,
        "special_ids": [one for one in special_ids if one not in listed],
        "bundle_special_ids": _bundle_ids(row.applicable_bundle_special_ids, row.applicable_bundle_brand_special_ids),
        "percent_thc": _number(row.percent_thc) if dosed else None,
        "percent_cbd": _number(row.percent_cbd) if dosed else None,
        "percent_thca": _number(row.percent_thca),
        "percent_cbda": _number(row.percent_cbda),
        "percent_tac": _number(row.percent_tac),
        "lab_results_by_option": labs,
        "lab_result_urls": certificates if len(certificates) > 1 else None,
        "compound_names": _texts(row.compound_names),
        "terpenes": _texts(row.terpenes),
        "effects": _texts(row.effects),
        "feelings": _texts(row.feelings),
        "activities": _texts(row.activities),
        "flavors": _texts(row.flavors),
        "allergens": _texts(row.allergens),
        "ingredients": _texts(row.ingredients),
        "dosage": row.dosage,
        "amount": row.amount,
        "net_weight_grams": _number(row.net_weight_grams) or None,
        "quantity_value": _number(row.quantity_value),
        "quantity_units": row.quantity_units,
        "pos_ids": {key: value for key, value in pos_ids.items() if value is not None},
        "store_specific": row.store_specific_product or None,
        "pickup": row.available_for_pickup,
        "delivery": row.available_for_delivery,
        "rating": row.aggregate_rating or None,
        "review_count": row.review_count or None,
        "root_types": _texts(row.root_types),
        "collections": _texts(row.collections),
    }
    return {name: value for name, value in extra.items() if value or value is False}


_PRICES = tuple(
    f"{prefix}{weight}" for prefix in ("price_", "discounted_price_", "special_price_") for weight in WEIGHTS
)

ITEMS = ItemReader(
    Row,
    Ids,
    _product,
    essential=("name", "visible", "available_weights", "store_types", *_PRICES),
    judged=_PRICES,
    store_id=Row.store,
    owner=Owner,
)
