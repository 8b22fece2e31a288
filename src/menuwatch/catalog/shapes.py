"""Parts of products as interfaces show them: JSON columns that are passed through undecoded."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from msgspec import Raw, Struct

from menuwatch.catalog.model import Batch, LabValue
from menuwatch.core.shapes import doc, json_of


class Potency(Struct, kw_only=True, frozen=True):
    """A content range, for example of THC."""

    lo: Decimal
    hi: Annotated[Decimal, doc("Equal to `lo` for a single value.")]
    unit: Annotated[str, doc("`%` by mass, or `mg` per package.")]


class OptionPrices(Struct, kw_only=True, frozen=True):
    """Prices of one option of a product, in the store's currency; null if there is none."""

    option: Annotated[str, doc("Size or package, as on the menu.")]
    price_rec: Annotated[Decimal | None, doc("Recreational price.")]
    price_rec_special: Annotated[Decimal | None, doc("Recreational price with the best special.")]
    price_med: Annotated[Decimal | None, doc("Medical price.")]
    price_med_special: Annotated[Decimal | None, doc("Medical price with the best special.")]


class OptionStock(Struct, kw_only=True, frozen=True):
    """Stock of one option of a product."""

    option: Annotated[str, doc("Size or package, as on the menu.")]
    stock_status: Annotated[str, doc("`in_stock`, `oos` or `unknown`.")]
    quantity: Annotated[int | None, doc("Number of packages; null if the menu does not say.")]
    capped: Annotated[bool, doc("True if `quantity` is the highest number the platform shows: there may be more.")]


class ProductBatch(Batch, frozen=True, gc=False):
    """The production batch on sale; the API has another `Batch`. Omitted fields are null."""


Price = Annotated[
    Decimal | None,
    doc(
        "Price of the cheapest option in the store's currency, specials included; the medical price only if there is no other. "
        "Null if it has no price."
    ),
]
PriceRec = Annotated[
    Decimal | None, doc("Lowest recreational price of its options, in the store's currency; null if there is none.")
]
PriceRecSpecial = Annotated[
    Decimal | None,
    doc("Lowest recreational special price of its options, in the store's currency; null if there is none."),
]
PriceMed = Annotated[
    Decimal | None, doc("Lowest medical price of its options, in the store's currency; null if there is none.")
]
PriceMedSpecial = Annotated[
    Decimal | None, doc("Lowest medical special price of its options, in the store's currency; null if there is none.")
]
PotencyJson = Annotated[Raw, json_of(Potency)]
Thc = Annotated[PotencyJson | None, doc("THC content; null if unknown.")]
Cbd = Annotated[PotencyJson | None, doc("CBD content; null if unknown.")]
PricesByOption = Annotated[Raw, json_of(list[OptionPrices]), doc("Prices of each option.")]
StockByOption = Annotated[Raw, json_of(list[OptionStock]), doc("Stock of each option.")]
Quantity = Annotated[int | None, doc("Number of packages of all options; null if unknown.")]
Capped = Annotated[bool, doc("True if there may have been more than `quantity`.")]
Cannabinoids = Annotated[
    Raw, json_of(list[LabValue]), doc("Cannabinoids of the lab result; empty if the menu has none.")
]
Terpenes = Annotated[Raw, json_of(list[LabValue]), doc("Terpenes of the lab result; empty if the menu has none.")]
BatchJson = Annotated[Raw, json_of(ProductBatch)]
BatchOnSale = Annotated[BatchJson | None, doc("Batch on sale; null if the menu names none, or several.")]
QuantitySold = Annotated[
    int | None,
    doc("Number of packages sold since the platform's record was created; null if the menu does not count them."),
]
CanonicalProductId = Annotated[
    int | None, doc("Id of the canonical product: the same item in all stores and sizes. Null until it is matched.")
]
BrandId = Annotated[
    int | None, doc("Id of the brand of its canonical product; null until it is matched, and if menus name no brand.")
]
LocationId = Annotated[int | None, doc("Id of the store's location; null until the store is linked to one.")]
