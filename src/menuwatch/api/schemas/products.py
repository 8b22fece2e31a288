"""The catalogue."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, Field

from menuwatch.api.schemas.common import (
    Amount,
    OptionPrices,
    OptionStock,
    Page,
    PageQuery,
    Potency,
    Search,
    StoreId,
    Text,
)
from menuwatch.catalog.canon.kinds import Category, Subcategory
from menuwatch.catalog.canon.strains import Strain

Stock = Literal["in_stock", "oos", "unknown"]


class StoreProductQuery(PageQuery):
    """Which products, and in which order. Filters that may be repeated take any of the values."""

    brand: list[Text] | None = Field(
        None, description="Only these brands, as /api/brands names them (repeat for several)."
    )
    category: list[Text] | None = Field(
        None, description="Only these categories, in the platform's words (repeat for several)."
    )
    strain_type: list[Text] | None = Field(
        None, description="Only these strain types, in the platform's words (repeat for several)."
    )
    category_canon: list[Category] | None = Field(
        None, description="Only these categories, in the words of all platforms (repeat for several)."
    )
    subcategory_canon: list[Subcategory] | None = Field(
        None, description="Only these subcategories, in the words of all platforms (repeat for several)."
    )
    strain_canon: list[Strain] | None = Field(
        None, description="Only these strain types, in the words of all platforms (repeat for several)."
    )
    stock: list[Stock] | None = Field(None, description="Only this stock (repeat for several).")
    present: bool | None = Field(None, description="Only products that were, or were not, in their store's last crawl.")
    q: Search | None = Field(None, description="Text in the name, in any case.")
    price_min: Decimal | None = Field(None, ge=0, le=10_000_000, description="Lowest price of the cheapest option.")
    price_max: Decimal | None = Field(None, ge=0, le=10_000_000, description="Highest price of the cheapest option.")
    order: Literal["name", "price", "-price", "updated"] = Field(
        "name", description="`updated` is newest change first; products without a price come last."
    )


class ProductQuery(StoreProductQuery):
    """Which products of which stores."""

    store: list[StoreId] | None = Field(None, description="Only these stores (repeat for several).")


class NamesQuery(PageQuery):
    """Which names."""

    store: list[StoreId] | None = Field(None, description="Only what these stores have (repeat for several).")
    q: Search | None = Field(None, description="Text in the name, in any case.")


class Variant(BaseModel):
    """One size or package. What is left out is null, false or unknown."""

    option: str = Field(description="Size or package, as on the menu.")
    price_rec: Amount | None = Field(None, description="Recreational price.")
    price_med: Amount | None = Field(None, description="Medical price.")
    special_rec: Amount | None = Field(None, description="Recreational price with the best special.")
    special_med: Amount | None = Field(None, description="Medical price with the best special.")
    quantity: int | None = Field(None, description="Packages in stock.")
    capped: bool = Field(False, description="There may be more than `quantity`.")
    stock_status: Stock = Field("unknown", description="Stock of this option.")
    weight_g: Amount | None = Field(None, description="Grams of product.")
    price_per_g: Amount | None = Field(
        None, description="Price per gram, specials included; medical only where that is all."
    )
    pieces: int | None = Field(None, description="Pieces in the package, where the option says how many.")
    content_mg: Amount | None = Field(None, description="Milligrams of content, of what is sold by content.")
    price_per_piece: Amount | None = Field(None, description="The same price per piece.")
    price_per_mg: Amount | None = Field(None, description="The same price per milligram of content.")


class Product(BaseModel):
    """One item at one store, as its last crawl saw it."""

    id: int = Field(description="Number of the product.")
    dispensary_id: int = Field(description="Its store.")
    store: str = Field(description="Name of its store.")
    provider: str = Field(description="The platform.")
    provider_product_id: str = Field(description="The platform's id of it.")
    name: str = Field(description="Its name.")
    brand_name: str | None = Field(description="Its brand.")
    category: str | None = Field(description="Its category, in the platform's word.")
    subcategory: str | None = Field(description="Its subcategory, in the platform's word.")
    strain_type: str | None = Field(description="Its strain type, in the platform's word.")
    category_canon: str | None = Field(
        description="What that category is called for all platforms; null where unknown."
    )
    subcategory_canon: str | None = Field(description="What that subcategory is called for all platforms.")
    strain_canon: str | None = Field(description="What that strain type is called for all platforms.")
    price: Amount | None = Field(
        description="What its cheapest option costs, specials included; medical only where that is all."
    )
    price_rec: Amount | None = Field(description="Lowest recreational price over the options.")
    price_rec_special: Amount | None = Field(description="Lowest recreational special price over the options.")
    price_med: Amount | None = Field(description="Lowest medical price over the options.")
    price_med_special: Amount | None = Field(description="Lowest medical special price over the options.")
    stock_status: Stock = Field(description="`unknown` where the menu says nothing about stock.")
    is_in_stock: bool | None = Field(description="Null where unknown.")
    quantity: int | None = Field(description="Packages over all options; null where unknown.")
    quantity_capped: bool = Field(description="There may be more than `quantity`.")
    variants: list[Variant] = Field(description="Its options.")
    thc: Potency | None = Field(description="THC content.")
    cbd: Potency | None = Field(description="CBD content.")
    image_url: str | None = Field(description="Address of its picture at the platform.")
    local_image_path: str | None = Field(description="Its picture in our storage, for `/img/`.")
    consecutive_misses: int = Field(
        description="Crawls in a row that did not see it, at most 3; the third makes it out of stock."
    )
    first_seen_at: datetime = Field(description="The first crawl that saw it.")
    last_seen_at: datetime | None = Field(description="The last crawl that saw it.")
    updated_at: datetime = Field(description="The last crawl that changed it.")


class Cannabinoid(BaseModel):
    """One row of a lab result, as given."""

    name: str = Field(description="The substance.")
    value: Amount | None = Field(description="How much.")
    unit: str = Field(description="The platform's unit.")
    is_total: bool = Field(False, description="It is a sum of others.")


class Special(BaseModel):
    """A promotion that names the product. What is left out is null."""

    name: str = Field(description="Its name.")
    kind: str = Field(description="`percent`, `amount`, `target_price`, `bogo`, `bundle` or `other`.")
    value: Amount | None = Field(None, description="Percent, money off or the price reached, by kind.")
    required_quantity: int | None = Field(None, description="How many must be bought.")
    reward_quantity: int | None = Field(None, description="How many come cheaper.")
    special_id: str | None = Field(None, description="The platform's id of it.")
    menu_type: str | None = Field(None, description="The menu it is for.")
    ends_at: datetime | None = Field(None, description="When it ends.")


class ProductDetail(Product):
    """Everything that is known of one item."""

    name_raw: str = Field(description="The name as the platform gave it.")
    brand_name_raw: str | None = Field(description="The brand as the platform gave it.")
    status_raw: str | None = Field(description="The status as the platform gave it.")
    description: str | None = Field(description="The shop's description.")
    cannabinoids: list[Cannabinoid] = Field(description="Lab results.")
    specials: list[Special] = Field(description="Promotions that name it.")
    images: list[str] = Field(description="Addresses of all its pictures.")
    platform_created_at: datetime | None = Field(description="When the platform says it was created.")
    platform_updated_at: datetime | None = Field(description="When the platform says it was changed.")
    extra: dict[str, Any] = Field(description="Values of the platform that have no field of their own.")


class _Observed(BaseModel):
    price: Amount | None = Field(description="What the cheapest option cost, specials included.")
    price_rec: Amount | None = Field(description="Lowest recreational price over the options.")
    price_rec_special: Amount | None = Field(description="Lowest recreational special price over the options.")
    price_med: Amount | None = Field(description="Lowest medical price over the options.")
    price_med_special: Amount | None = Field(description="Lowest medical special price over the options.")
    prices: list[OptionPrices] = Field(description="Prices of each option.")
    stock_status: Stock = Field(description="Stock of the product as a whole.")
    quantity: int | None = Field(description="Packages over all options; null where unknown.")
    stock: list[OptionStock] = Field(description="Stock of each option.")


class ProductState(_Observed):
    """How a product was for a time: one row a change, however often it was looked at."""

    from_: datetime = Field(alias="from", description="The crawl that first saw it so.")
    to: datetime | None = Field(description="The last crawl that saw it so; null while it lasts.")
    present: bool = Field(description="False from the third crawl in a row that did not see it, until it is back.")
    quantity_capped: bool = Field(description="There may have been more than `quantity`.")
    thc: Potency | None = Field(description="THC content.")
    cbd: Potency | None = Field(description="CBD content.")


class Gap(BaseModel):
    """A time of which nothing is known."""

    from_: datetime = Field(alias="from", description="The last crawl before it.")
    to: datetime | None = Field(description="The first crawl after it; null while it lasts.")
    reason: Literal["absent", "unobserved"] = Field(
        description="`absent`: crawls were made and did not see it; `unobserved`: the store was not crawled for twice its interval."
    )


class ProductHistory(Page[ProductState]):
    """States of one product, newest first, with the gaps of the time they cover."""

    gaps: list[Gap] = Field(description="Gaps in the time that this page covers, newest first.")


class Snapshot(_Observed):
    """One product as one crawl saw it."""

    crawled_at: datetime = Field(description="The crawl.")
    payload_id: int = Field(description="Its payload.")
    state_since: datetime = Field(description="The crawl since which it was so.")
    is_in_stock: bool | None = Field(description="Null where unknown.")
    quantity_capped: bool = Field(description="There may have been more than `quantity`.")
    thc: Potency | None = Field(description="THC content.")
    cbd: Potency | None = Field(description="CBD content.")


class ChangeSide(_Observed):
    """The product before or after a change."""


class NameCount(BaseModel):
    """A brand or category, and how much there is of it."""

    name: str = Field(description="Its name.")
    products: int = Field(description="Products that have it, in or out of stock.")
    in_stock: int = Field(description="Of these, the ones in stock.")
    stores: int = Field(description="Stores that have such products.")


class ProductPage(Page[Product]):
    """One page of products."""


class SnapshotPage(Page[Snapshot]):
    """One page of snapshots."""


class NameCountPage(Page[NameCount]):
    """One page of names."""
