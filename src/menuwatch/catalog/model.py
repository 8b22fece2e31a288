"""The canonical catalog model: every platform's menu is normalized into it. Independent of platforms, database and clock.

Raw values are kept beside the canonical ones.

The structs hold no reference cycles, so the garbage collector need not track the tens of thousands of one menu (`gc=False`).
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec

from menuwatch.core.shapes import doc

StockStatus = Literal["in_stock", "oos", "unknown"]
"""`unknown` means that the platform gave no stock information: neither in nor out of stock."""


class Variant(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One size or package of a product. Prices are per package, in the store's currency; omitted fields are unknown or false."""

    option: Annotated[str, doc("Size or package, as on the menu.")]
    price_rec: Annotated[Decimal | None, doc("Recreational price.")] = None
    price_med: Annotated[Decimal | None, doc("Medical price.")] = None
    special_rec: Annotated[Decimal | None, doc("Recreational price with the best special.")] = None
    special_med: Annotated[Decimal | None, doc("Medical price with the best special.")] = None
    quantity: Annotated[int | None, doc("Number of packages in stock.")] = None
    capped: Annotated[
        bool,
        doc(
            "True if `quantity` is the highest number that the platform shows: there may be more. Otherwise it is exact."
        ),
    ] = False
    stock_status: Annotated[StockStatus, doc("Stock of this option.")] = "unknown"
    weight_g: Annotated[Decimal | None, doc("Net weight in grams; null if the option is not a weight.")] = None
    price_per_g: Annotated[
        Decimal | None,
        doc("Price per gram, specials included, rounded to 4 places; the medical price only if there is no other."),
    ] = None
    pieces: Annotated[int | None, doc("Number of pieces in the package, if the option says so.")] = None
    content_mg: Annotated[Decimal | None, doc("Content in milligrams, for products sold by content.")] = None
    price_per_piece: Annotated[Decimal | None, doc("The same price per piece.")] = None
    price_per_mg: Annotated[Decimal | None, doc("The same price per milligram of content.")] = None


class Potency(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A range of content. `unit` is `%` (of mass) or `mg` (whole package); `raw_unit` is the platform's own word.

    Milligrams per gram are divided by ten into `%`; milligrams are never converted.
    """

    lo: Decimal
    hi: Decimal
    unit: str
    raw_unit: str


class LabValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One value of a lab result, as reported: of a cannabinoid or a terpene."""

    name: Annotated[str, doc("Name of the substance.")]
    value: Decimal | None
    unit: Annotated[str, doc("Unit as the platform names it.")]
    is_total: Annotated[bool, doc("Whether it is the sum of other values, and must not be added to them.")] = False


class Batch(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The production batch on sale. Omitted fields are null."""

    batch_id: Annotated[str | None, doc("Number of the batch, as the shop or the laboratory names it.")] = None
    package_tag: Annotated[str | None, doc("Tag of the package in the state's tracking system (METRC).")] = None
    tested_on: Annotated[date | None, doc("Date of the laboratory test.")] = None
    packaged_on: Annotated[date | None, doc("Date of packaging.")] = None
    expires_on: Annotated[date | None, doc("Date until which it may be sold.")] = None
    certificate_url: Annotated[str | None, doc("Certificate of analysis.")] = None


class Special(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A promotion for the product, for display: the effective price is in the variant. Omitted fields are null."""

    name: str
    kind: Annotated[str, doc("`percent`, `amount`, `target_price`, `bogo`, `bundle` or `other`.")]
    value: Annotated[Decimal | None, doc("Percentage, amount off or target price, depending on `kind`.")] = None
    required_quantity: Annotated[int | None, doc("Number of items to buy.")] = None
    reward_quantity: Annotated[int | None, doc("Number of discounted items.")] = None
    special_id: Annotated[str | None, doc("Id of the promotion on the platform.")] = None
    menu_type: Annotated[str | None, doc("Menu the promotion applies to.")] = None
    ends_at: datetime | None = None


class Product(msgspec.Struct, frozen=True, gc=False):
    """One item of one store's menu, normalized.

    Headline prices are the lowest over the variants. `is_in_stock` is None exactly when `stock_status` is `unknown`.
    `quantity` sums the known variants; None when none is known. `extra` holds ids, aliases and raw values that have no column.
    """

    provider_product_id: str
    name_raw: str
    name: str
    brand_name_raw: str | None
    brand_name: str | None
    category: str | None
    subcategory: str | None
    strain_type: str | None
    status_raw: str | None
    variants: tuple[Variant, ...]
    price_rec: Decimal | None
    price_rec_special: Decimal | None
    price_med: Decimal | None
    price_med_special: Decimal | None
    stock_status: StockStatus
    is_in_stock: bool | None
    quantity: int | None
    quantity_capped: bool
    thc: Potency | None
    cbd: Potency | None
    cannabinoids: tuple[LabValue, ...]
    specials: tuple[Special, ...]
    image_url: str | None
    images: tuple[str, ...]
    description: str | None
    platform_created_at: datetime | None
    platform_updated_at: datetime | None
    extra: dict[str, Any]
    category_canon: str | None = None
    subcategory_canon: str | None = None
    strain_canon: str | None = None
    """Canonical values of the platform's category, subcategory and strain type (`catalog.taxonomy`);
    None if unknown."""
    terpenes: tuple[LabValue, ...] = ()
    batch: Batch | None = None
    """The batch on sale; None if the menu names none, or several."""
    quantity_sold: int | None = None
    """Packages sold since the product was made, where the platform counts them: it only grows."""


class ProductWarning(msgspec.Struct, frozen=True):
    """Something about one product that could not be taken as it came. The product is stored if `fatal` is false."""

    product_id: str | None
    field: str
    message: str
    fatal: bool = False
    position: int | None = None
    """Position of the item in the menu, from 1; set when the menu is applied, like the name."""
    name: str | None = None
