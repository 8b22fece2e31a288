"""Former rows as items of a menu, and what the catalogue makes of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from menuwatch.catalog.canon.kinds import DOSED, kind
from menuwatch.catalog.canon.package import mass
from menuwatch.catalog.canon.strains import strain
from menuwatch.catalog.canon.text import clean
from menuwatch.catalog.canon.unit_price import effective, unit_prices
from menuwatch.catalog.model import Potency, Product, ProductWarning, StockStatus, Variant
from menuwatch.operations.legacy import fields
from menuwatch.operations.legacy.fields import Record

NO_OPTION = "N/A"
"""What Dutchie calls the option of goods that have only one."""


class Item(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One product as the former system wrote it down. Without an id it is what a row says of a product that another row names."""

    id: str | None = None
    name: str | None = None
    brand: str | None = None
    category: str | None = None
    subcategory: str | None = None
    strain: str | None = None
    option: str | None = None
    rec: Decimal | None = None
    rec_special: Decimal | None = None
    med: Decimal | None = None
    med_special: Decimal | None = None
    stock: StockStatus = "unknown"
    quantity: int | None = None
    thc: Decimal | None = None
    cbd: Decimal | None = None
    image: str | None = None
    description: str | None = None


_decode = msgspec.json.Decoder(Item).decode
encode = msgspec.json.Encoder(decimal_format="number").encode
_WORDS = ("name", "brand", "category", "subcategory", "strain", "option", "image", "description")


def item(record: Record, stock: str) -> Item:
    """A row as an item. Raises Bad where a value of it cannot be."""
    text = fields.text
    return msgspec.convert(
        {
            "name": text(record, "name"),
            "brand": text(record, "brand"),
            "category": text(record, "category"),
            "subcategory": text(record, "subcategory"),
            "strain": text(record, "strain"),
            "option": text(record, "option", 200),
            "rec": fields.money(record, "price_rec"),
            "rec_special": fields.money(record, "price_rec_special"),
            "med": fields.money(record, "price_med"),
            "med_special": fields.money(record, "price_med_special"),
            "stock": stock,
            "quantity": fields.quantity(record),
            "thc": fields.percent(record, "thc"),
            "cbd": fields.percent(record, "cbd"),
            "image": text(record, "image_url"),
            "description": text(record, "description", 100_000),
        },
        Item,
    )


def whole(product_id: str, snapshot: str, product: str | None) -> msgspec.Raw:
    """A snapshot's item; the words that it does not have are those of its product's row."""
    seen = _decode(snapshot)
    known = _decode(product) if product is not None else None
    words = {name: getattr(seen, name) or (getattr(known, name) if known else None) for name in _WORDS}
    return msgspec.Raw(encode(msgspec.structs.replace(seen, id=product_id, **words)))


class _Made(NamedTuple):
    products: list[Product]
    warnings: list[ProductWarning]


class FormerItems:
    """Reads such items for the catalogue."""

    normalizer_version = 1

    def identity(self, raw: msgspec.Raw, /) -> str | None:
        """The platform's id of the product."""
        return _decode(raw).id

    def normalize(self, items: Iterable[msgspec.Raw], /) -> _Made:
        """A product of each."""
        return _Made([_product(_decode(raw)) for raw in items], [])


def _product(item: Item) -> Product:
    name = item.name or item.id or ""
    option = item.option or NO_OPTION
    kinds = kind(item.category, item.subcategory)
    dosed = kinds.category in DOSED
    grams = None if dosed else mass(option)
    paid = effective(item.rec, item.rec_special, item.med, item.med_special)
    variant = Variant(
        option,
        item.rec,
        item.med,
        item.rec_special,
        item.med_special,
        item.quantity,
        False,
        item.stock,
        grams,
        *unit_prices(paid, grams, option, dosed=dosed),
    )
    extra: dict[str, Any] = {"former": True}
    return Product(
        provider_product_id=item.id or "",
        name_raw=name,
        name=clean(name),
        brand_name_raw=item.brand,
        brand_name=clean(item.brand) if item.brand else None,
        category=item.category,
        subcategory=item.subcategory,
        strain_type=item.strain,
        status_raw=None,
        variants=(variant,),
        price_rec=item.rec,
        price_rec_special=item.rec_special,
        price_med=item.med,
        price_med_special=item.med_special,
        stock_status=item.stock,
        is_in_stock=None if item.stock == "unknown" else item.stock == "in_stock",
        quantity=item.quantity,
        quantity_capped=False,
        thc=_percent(item.thc),
        cbd=_percent(item.cbd),
        cannabinoids=(),
        specials=(),
        image_url=item.image,
        images=(),
        description=item.description,
        platform_created_at=None,
        platform_updated_at=None,
        extra=extra,
        category_canon=kinds.category,
        subcategory_canon=kinds.subcategory,
        strain_canon=strain(item.strain),
    )


def _percent(value: Decimal | None) -> Potency | None:
    return None if value is None else Potency(value, value, "%", "PERCENTAGE")
