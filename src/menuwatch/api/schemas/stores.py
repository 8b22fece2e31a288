"""Stores."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from menuwatch.api.schemas.common import Amount, Input, Instant, Page, PageQuery, Search, Text
from menuwatch.api.schemas.products import Stock


class StoreQuery(PageQuery):
    """Which stores."""

    platform: Text | None = Field(None, description="Only stores of this platform.")
    state: list[Text] | None = Field(None, description="Only stores of these states or provinces (repeat for several).")
    crawl_enabled: bool | None = Field(None, description="Only stores that may, or may not, be crawled.")
    q: Search | None = Field(None, description="Text in the name, city or slug, in any case.")


class Store(BaseModel):
    """One shop with a menu."""

    id: int = Field(description="Number of the store.")
    platform: str = Field(description="Where its menu is served.")
    platform_dispensary_id: str | None = Field(description="The platform's id of it; null until it is resolved.")
    slug: str | None = Field(description="Its name in addresses.")
    name: str = Field(description="Its name.")
    menu_url: str | None = Field(description="Address of its menu.")
    address: str | None = Field(description="Street and number.")
    city: str | None = Field(description="City.")
    state: str | None = Field(description="State or province.")
    country: str | None = Field(description="Country.")
    zipcode: str | None = Field(description="Postal code.")
    latitude: float | None = Field(description="Degrees north.")
    longitude: float | None = Field(description="Degrees east.")
    timezone: str | None = Field(description="IANA time zone.")
    phone: str | None = Field(description="Telephone number.")
    is_recreational: bool | None = Field(description="Sells to adults; null where unknown.")
    is_medical: bool | None = Field(description="Sells to patients; null where unknown.")
    crawl_enabled: bool = Field(description="Whether it may be contacted.")
    crawl_interval_hours: Amount = Field(description="Time between two crawls, in hours.")
    first_crawled_at: datetime | None = Field(description="Its first crawl that the catalogue took over.")
    last_crawled_at: datetime | None = Field(description="Its newest crawl that the catalogue took over.")
    last_payload_id: int | None = Field(description="The payload of that crawl.")
    last_attempt_at: datetime | None = Field(description="The last time that it was tried.")
    last_error: str | None = Field(description="Why the last attempt failed; null where it did not.")
    product_count: int | None = Field(description="Products in its last crawl.")
    created_at: datetime = Field(description="When it was added.")
    updated_at: datetime = Field(description="When it was last changed.")


class CrawlWarning(BaseModel):
    """Something about one product of a crawl that could not be taken as it came."""

    product_id: str | None = Field(None, description="The platform's id of the product, where it is known.")
    field: str = Field(description="The field that is wrong.")
    message: str = Field(description="What is wrong with it.")
    fatal: bool = Field(False, description="The product was left out.")


class LastCrawl(BaseModel):
    """What the store's newest crawl changed."""

    crawled_at: datetime = Field(description="When it was made.")
    payload_id: int = Field(description="Its payload.")
    products: int = Field(description="Products in it.")
    new_products: int = Field(description="Products that were not known before.")
    changed: int = Field(description="Known products that differ from the crawl before.")
    unchanged: int = Field(description="Known products that do not.")
    returned: int = Field(description="Products that had been absent.")
    missing: int = Field(description="Absent products whose misses were counted.")
    out_of_stock: int = Field(description="Products that are newly out of stock.")
    price_changes: int = Field(description="Products whose prices changed.")
    stock_changes: int = Field(description="Products whose stock changed.")
    warnings: list[CrawlWarning] = Field(description="What could not be taken as it came.")


class StoreDetail(Store):
    """One shop with its last crawl."""

    last_crawl: LastCrawl | None = Field(description="Null before the first one.")


class NewStore(Input):
    """A store to add."""

    menu_url: Text = Field(
        min_length=1,
        max_length=2000,
        description="Address of its menu.",
        examples=["https://dutchie.com/dispensary/green-leaf"],
    )


class AddedStore(BaseModel):
    """A store that was added."""

    store: StoreDetail = Field(description="The store; details follow when the platform was asked.")
    task_id: int = Field(description="The `entry_point_discovery` task that asks the platform.")


class StoreChange(Input):
    """What to change about a store."""

    crawl_enabled: bool = Field(strict=True, description="Whether it may be contacted.")


class StorePage(Page[Store]):
    """One page of stores."""


class MenuQuery(Input):
    """Which moment."""

    at: Instant | None = Field(None, description="The moment (ISO 8601 with offset); left out, now.")


class MenuItem(BaseModel):
    """One product as it was on a menu. Its name, brand and category are those of today."""

    product_id: int = Field(description="Number of the product.")
    provider_product_id: str = Field(description="The platform's id of it.")
    name: str = Field(description="Its name.")
    brand_name: str | None = Field(description="Its brand.")
    category: str | None = Field(description="Its category, in the platform's word.")
    category_canon: str | None = Field(description="What that category is called for all platforms.")
    from_: datetime = Field(alias="from", description="The crawl since which it was so.")
    to: datetime | None = Field(description="The last crawl that saw it so; null while it lasts.")
    price: Amount | None = Field(description="What the cheapest option cost, specials included.")
    price_rec: Amount | None = Field(description="Lowest recreational price over the options.")
    price_rec_special: Amount | None = Field(description="Lowest recreational special price over the options.")
    price_med: Amount | None = Field(description="Lowest medical price over the options.")
    price_med_special: Amount | None = Field(description="Lowest medical special price over the options.")
    stock_status: Stock = Field(description="Stock of the product as a whole.")
    quantity: int | None = Field(description="Packages over all options; null where unknown.")
    quantity_capped: bool = Field(description="There may have been more than `quantity`.")


class Menu(BaseModel):
    """What a store offered at a moment, as the newest crawl before it saw it."""

    store_id: int = Field(description="Number of the store.")
    at: datetime = Field(description="The moment that was asked for.")
    crawled_at: datetime | None = Field(
        description="The crawl that saw this menu; how far it lies before `at` says how old the answer is. Null before the first."
    )
    payload_id: int | None = Field(description="Its payload, where the archive still knows it.")
    items: list[MenuItem] = Field(description="The products, by name.")
