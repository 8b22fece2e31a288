"""Figures for analysts."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field

from menuwatch.api.schemas.changes import state_code
from menuwatch.api.schemas.common import Amount, BigId, Input, Page, PageQuery, StoreId, Text
from menuwatch.catalog.canon.kinds import Category

T = TypeVar("T")


def _scope(text: str) -> str:
    word = text.strip().lower()
    if word in ("all", "unknown"):
        return word
    try:
        return state_code(text)
    except ValueError as error:
        raise ValueError(f"{error}; or `all` (all states together), or `unknown`") from None


Scope = Annotated[Text, AfterValidator(_scope)]
"""A state by its two letters, `all` or `unknown`."""

_SCOPE = "A state by its two letters, `all` for all states together, `unknown` for stores of which it is not known; left out: all."
_CATEGORY = "A category of all platforms, or `unknown` where a product's is not; all of them when left out."


class PricesQuery(PageQuery):
    """Which prices per gram."""

    state: Scope | None = Field(None, description=_SCOPE)
    category: Literal[Category, "unknown"] | None = Field(None, description=_CATEGORY)


class BrandsQuery(PageQuery):
    """Which brands."""

    state: Scope | None = Field(None, description=_SCOPE)
    brand: Text | None = Field(None, description="Only this brand, in any case.")


class DiscountsQuery(PageQuery):
    """Which discounts."""

    state: Scope | None = Field(None, description=_SCOPE)
    category: Literal[Category, "all", "unknown"] | None = Field(
        None,
        description="A category of all platforms, `all` for all of them together, or `unknown`; everything when left out.",
    )


State = Annotated[Text, AfterValidator(lambda text: text if text == "unknown" else state_code(text))]


class StockQuery(PageQuery):
    """Which times out of stock."""

    by: Literal["all", "category", "state", "state_category", "store", "store_category"] = Field(
        "state_category", description="What they are added up over."
    )
    state: State | None = Field(None, description="Only this state, by its two letters, or `unknown`.")
    category: Literal[Category, "unknown"] | None = Field(None, description=_CATEGORY)
    store: list[StoreId] | None = Field(None, description="Only these stores (repeat for several).")


class OutProductsQuery(PageQuery):
    """Which products that were out of stock."""

    state: State | None = Field(None, description="Only stores of this state, by its two letters, or `unknown`.")
    category: Literal[Category, "unknown"] | None = Field(None, description=_CATEGORY)
    store: list[StoreId] | None = Field(None, description="Only these stores (repeat for several).")
    brand: Text | None = Field(None, description="Only this brand, in any case.")
    product: BigId | None = Field(None, description="Only this product.")


class DaysQuery(PageQuery):
    """Which days."""

    by: Literal["all", "state", "store"] = Field("state", description="What a day is added up over.")
    since: date | None = Field(None, description="From this day on (UTC), as 2026-11-20.")
    until: date | None = Field(None, description="Before this day (UTC).")
    state: State | None = Field(None, description="Only stores of this state, by its two letters, or `unknown`.")
    store: list[StoreId] | None = Field(None, description="Only these stores (repeat for several).")


class StoresQuery(PageQuery):
    """Which stores."""

    state: State | None = Field(None, description="Only stores of this state, by its two letters, or `unknown`.")
    platform: Text | None = Field(None, description="Only stores of this platform.")
    stale: bool | None = Field(None, description="Only stores that are, or are not, stale.")
    store: list[StoreId] | None = Field(None, description="Only these stores (repeat for several).")


class CoverageQuery(Input):
    """Coverage of which states."""

    state: Scope | None = Field(None, description=_SCOPE)


class Window(BaseModel):
    """A stretch of time."""

    from_: datetime = Field(alias="from", description="Its beginning.")
    to: datetime = Field(description="Its end.")


class Failure(BaseModel):
    """Making the figures anew failed: these are the ones from before."""

    at: datetime = Field(description="When.")
    error: str = Field(description="Why.")


class Made(BaseModel):
    """When figures were made, and of which time they are."""

    run_id: int | None = Field(description="The refresh that made them; null before the first.")
    refreshed_at: datetime | None = Field(description="When they were made; null before the first refresh.")
    window: Window | None = Field(description="What has a length (coverage, time out of stock) is of this time.")
    failed: Failure | None = Field(
        description="Where the last refresh failed: then these figures are older than planned."
    )


class FigureRows(BaseModel):
    """A figure, and how much there is of it."""

    figure: str = Field(description="Its address below `/api/analytics/`.")
    rows: int = Field(description="Rows.")


class Overview(Made):
    """What figures there are."""

    seconds: float | None = Field(description="How long making them took.")
    figures: list[FigureRows] = Field(description="The figures.")


class Coverage(BaseModel):
    """What a figure rests on."""

    stores: int = Field(description="Stores that it rests on.")
    known_stores: int = Field(description="Stores that are known there (of a state, or everywhere), seen or not.")
    stale_stores: int = Field(description="Of `stores`, those that were not seen for twice their interval.")
    scheduled: int = Field(
        description="Crawls of these stores that were scheduled in the window (on a day: on that day)."
    )
    succeeded: int = Field(
        description="Of these, the ones whose menu was taken in; a quarantined or partial menu was not."
    )
    share: Amount | None = Field(description="`succeeded` of `scheduled`; null where none was scheduled.")
    oldest_crawl_at: datetime | None = Field(description="Of the last crawls of these stores, the oldest.")


class _Covered(BaseModel):
    coverage: Coverage = Field(description="What it rests on.")


class _OfState(_Covered):
    all_states: bool = Field(description="All states together.")
    state: str | None = Field(description="The state; null for all of them, and where it is not known.")


class Spread(BaseModel):
    """How values are spread, to 4 places; all null where there is none."""

    n: int = Field(description="How many.")
    p10: Amount | None = Field(description="A tenth lies below.")
    median: Amount | None = Field(description="Half lie below.")
    p90: Amount | None = Field(description="Nine tenths lie below.")
    mean: Amount | None = Field(description="Their mean.")


class PricePerGram(_OfState):
    """Price per gram of what is on offer in one category."""

    category: str | None = Field(description="The category; null where it is not known.")
    products: int = Field(description="Products that have such options.")
    options: int = Field(description="Options with a price and a known weight.")
    without_weight: int = Field(description="Options on offer that are left out: their weight is not known.")
    without_price: int = Field(description="Options with a weight that are left out: they have no price.")
    regular: Spread = Field(description="Before specials.")
    effective: Spread = Field(description="What one pays, specials included.")


class BrandShare(_OfState):
    """How much of what is on the menus is of one brand."""

    brand: str | None = Field(description="The brand; null: products without one.")
    products: int = Field(description="Products on the menus.")
    in_stock: int = Field(description="Of these, the ones in stock.")
    share: Amount | None = Field(description="Of all products on the menus there.")
    of_products: int = Field(description="All products on the menus there.")
    store_share: Amount | None = Field(description="Share of the stores with a menu that have it.")
    of_stores: int = Field(description="All stores with a menu there.")


class Discounts(_OfState):
    """How many products on offer are reduced, and how deeply."""

    all_categories: bool = Field(description="All categories together.")
    category: str | None = Field(description="The category; null for all of them, and where it is not known.")
    products: int = Field(description="Products on offer with a price.")
    on_special: int = Field(description="Of these, the ones with an option below its regular price.")
    special_share: Amount | None = Field(description="`on_special` of `products`.")
    named_only: int = Field(
        description="Products that a special names (two for one, bundles) and that cost what they always do."
    )
    depth_median: Amount | None = Field(
        description="Half of the reduced ones are reduced by less: 0.25 is a quarter off."
    )
    depth_p90: Amount | None = Field(description="Nine tenths are reduced by less.")
    depth_mean: Amount | None = Field(description="Mean reduction.")


class _Times(_Covered):
    in_hours: Amount = Field(description="Hours of the window in stock.")
    out_hours: Amount = Field(description="Hours listed as out of stock.")
    absent_hours: Amount = Field(description="Hours that the store was seen, and the product was not on its menu.")
    unknown_hours: Amount = Field(description="Hours on a menu that says nothing about stock.")
    out_share: Amount | None = Field(description="`out_hours` of `in_hours` and `out_hours`.")


class StockTimes(_Times):
    """How long products of a group were out of stock, in hours times products."""

    state: str | None = Field(description="The state, where there is one and it is known.")
    category: str | None = Field(description="The category, where there is one and it is known.")
    dispensary_id: int | None = Field(description="The store, where there is one.")
    store: str | None = Field(description="Its name.")
    products: int = Field(description="Products that were seen in the window.")
    out_products: int = Field(description="Of these, the ones that were out of stock at some time.")


class OutProduct(_Times):
    """How long a product was out of stock."""

    product_id: int = Field(description="Number of the product.")
    dispensary_id: int = Field(description="Its store.")
    store: str = Field(description="Name of its store.")
    state: str | None = Field(description="State of its store.")
    name: str | None = Field(description="Its name; null where it was removed meanwhile.")
    brand_name: str | None = Field(description="Its brand.")
    category: str | None = Field(description="Its category.")
    times_out: int = Field(description="How often it went out of stock in the window.")


class Day(_Covered):
    """What came and went on one day (UTC)."""

    day: date = Field(description="The day.")
    state: str | None = Field(description="The state, where there is one and it is known.")
    all_states: bool = Field(False, description="All states together.")
    dispensary_id: int | None = Field(None, description="The store, where it is of one.")
    store: str | None = Field(None, description="Its name.")
    new_products: int = Field(description="Products first seen, at stores that were known before.")
    gone_products: int = Field(description="Products seen for the last time, and missing in three crawls since.")
    returned: int = Field(description="Products seen again after they had been missing.")
    price_changes: int = Field(description="Changes of price.")
    stock_changes: int = Field(description="Changes of stock.")
    crawls: int = Field(description="Menus taken in, also ones that no schedule asked for.")


class StoreFreshness(_Covered):
    """When a store was seen last, and what became of its crawls."""

    dispensary_id: int = Field(description="Number of the store.")
    store: str = Field(description="Its name.")
    platform: str = Field(description="Where its menu is served.")
    state: str | None = Field(description="Its state.")
    crawl_enabled: bool = Field(description="It may be crawled.")
    is_scheduled: bool = Field(description="An enabled schedule crawls it.")
    interval_hours: Amount = Field(description="How often it is to be crawled.")
    last_crawled_at: datetime | None = Field(description="The crawl that the catalogue shows; null: none yet.")
    age_hours: Amount | None = Field(description="How old that was when the figures were made.")
    is_stale: bool = Field(description="That is more than twice its interval, or it was never seen.")
    products: int | None = Field(description="Products of that crawl.")
    failed: int = Field(description="Crawls of the window that failed.")
    quarantined: int = Field(description="Crawls whose menu looked wrong, and was not taken in.")
    never_begun: int = Field(description="Crawls that its interval asks for, and nobody began.")
    undecided: int = Field(description="Crawls that are not taken in yet; they count nowhere.")
    observed_share: Amount = Field(description="Share of the window in which it was known what the store offered.")


class StateCoverage(_OfState):
    """How well a state is seen."""

    known_stores: int = Field(description="Stores that are known there.")
    crawled_stores: int = Field(description="Stores that were seen at least once.")
    never_crawled: int = Field(description="Stores that were never seen.")
    stale_stores: int = Field(description="Stores that were not seen for twice their interval.")
    not_scheduled: int = Field(description="Stores that no schedule crawls.")
    failed: int = Field(description="Crawls of the window that failed.")
    quarantined: int = Field(description="Crawls whose menu looked wrong, and was not taken in.")
    never_begun: int = Field(description="Crawls that the stores' intervals ask for, and nobody began.")
    undecided: int = Field(description="Crawls that are not taken in yet; they count nowhere.")
    observed_share: Amount | None = Field(
        description="Share of the window in which it was known what these stores offered."
    )
    median_age_hours: Amount | None = Field(description="Half of the stores were seen later than that many hours ago.")


class PricesPage(Made, Page[PricePerGram]):
    """One page of prices per gram."""


class BrandsPage(Made, Page[BrandShare]):
    """One page of brands."""


class DiscountsPage(Made, Page[Discounts]):
    """One page of discounts."""


class StockPage(Made, Page[StockTimes]):
    """One page of times out of stock."""


class OutProductsPage(Made, Page[OutProduct]):
    """One page of products that were out of stock, longest first."""


class DaysPage(Made, Page[Day]):
    """One page of days, newest first."""


class StoresPage(Made, Page[StoreFreshness]):
    """One page of stores."""


class CoveragePage(Made, Page[StateCoverage]):
    """All states."""
