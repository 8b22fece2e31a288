"""The canonical catalogue: what every platform's menu is normalized into.

Raw values are kept beside what was made of them. Nothing here knows a platform, a database or a clock.

The structs hold no reference cycles, so the garbage collector need not walk the tens of thousands that one menu gives (`gc=False`).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec

StockStatus = Literal["in_stock", "oos", "unknown"]
"""`unknown` means that the platform said nothing about stock: it is neither zero nor some."""


class Variant(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One size or package of a product as the menu offers it.

    Prices are in the store's currency per package. `quantity` is in packages; when `capped` the platform shows no more
    than that number, so it means "at least". `weight_g` is grams of product, None where the option is not a weight.
    """

    option: str
    price_rec: Decimal | None = None
    price_med: Decimal | None = None
    special_rec: Decimal | None = None
    special_med: Decimal | None = None
    quantity: int | None = None
    capped: bool = False
    stock_status: StockStatus = "unknown"
    weight_g: Decimal | None = None
    price_per_g: Decimal | None = None
    """Effective recreational price (the special where there is one; medical where that is all) per gram, rounded to 4 places."""
    pieces: int | None = None
    """Pieces in the package, where the option says how many."""
    content_mg: Decimal | None = None
    """Milligrams of content in the package, where the option says them and the goods are sold by content."""
    price_per_piece: Decimal | None = None
    price_per_mg: Decimal | None = None
    """The same price per piece and per milligram of content, rounded to 4 places."""


class Potency(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A range of content. `unit` is `%` (of mass) or `mg` (whole package); `raw_unit` is the platform's own word.

    Milligrams per gram are divided by ten into `%`; milligrams are never converted.
    """

    lo: Decimal
    hi: Decimal
    unit: str
    raw_unit: str


class Cannabinoid(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One row of a lab result, as given. `is_total` marks sums (TAC), which must never be added to the others."""

    name: str
    value: Decimal | None
    unit: str
    is_total: bool = False


class Special(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One promotion that names this product. For showing, never for computing: the effective price is in the variant.

    `kind` is `percent`, `amount`, `target_price`, `bogo`, `bundle` or `other`; `value` is percent, money off or the price
    reached, by kind. `required_quantity` must be bought, `reward_quantity` is what comes cheaper.
    """

    name: str
    kind: str
    value: Decimal | None = None
    required_quantity: int | None = None
    reward_quantity: int | None = None
    special_id: str | None = None
    menu_type: str | None = None
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
    cannabinoids: tuple[Cannabinoid, ...]
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
    """What the platform's words for category, subcategory and strain type mean in the vocabulary of all platforms (`catalog.canon`);
    None where they mean nothing that is known."""


class ProductWarning(msgspec.Struct, frozen=True):
    """Something about one product that could not be taken as it came. The product is stored if `fatal` is false."""

    product_id: str | None
    field: str
    message: str
    fatal: bool = False
