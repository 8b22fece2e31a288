"""Rows of the reports: the response shapes of `/api/analytics`, and what the command line prints."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from json import loads
from typing import Annotated, Any

from msgspec import UNSET, Raw, Struct, UnsetType, field, structs

from menuwatch.analytics.special_checks import SpecialVerdict
from menuwatch.core.shapes import Instant, doc, json_of

_State = Annotated[str | None, doc("Two-letter state; null if unknown or not grouped by state.")]
_Category = Annotated[str | None, doc("Canonical category; null if unknown or not grouped by category.")]
_BrandName = Annotated[str | None, doc("Null for products without a brand.")]

_Currency = Annotated[
    str, doc("USD, or CAD at stores in Canada. Nothing is converted: all states together have a row for each currency.")
]
_BrandId = Annotated[int | None, doc("Id of the canonical brand; null if menus name none, or not grouped by brand.")]


class Window(Struct, kw_only=True, frozen=True):
    """A time window."""

    from_: Instant = field(name="from")
    to: Instant


class Failure(Struct, kw_only=True, frozen=True):
    """The last refresh failed; the reports are older."""

    at: Instant
    error: str


NOT_MATCHED = (
    "No listing is matched yet, and this report compares matched listings. A server matches new menus within seconds. "
    "To do it now, run `menuwatch match apply`, then `menuwatch analytics refresh`."
)
NOT_REFRESHED = (
    "No reports yet. A worker computes them on the `analytics_refresh` schedule. "
    "To compute them now, run `menuwatch analytics refresh`."
)


class RunInfo(Struct, kw_only=True, frozen=True):
    """When the reports were computed, and the time window they cover. All null before the first refresh."""

    run_id: Annotated[int | None, doc("Id of the refresh.")]
    refreshed_at: Instant | None
    window: Annotated[Window | None, doc("Time window of coverage and out-of-stock times.")]
    failed: Annotated[Failure | None, doc("The failure of the last refresh; null if it succeeded.")]
    notice: Annotated[str | None, doc("How to compute the first reports; null if there are reports.")]


class DaysInfo(RunInfo, kw_only=True, frozen=True):
    """The same for a report by day, whose days are kept: since when."""

    kept_since: Annotated[date | None, doc("First day kept (UTC), for any state; null if none is kept.")]
    notice: Annotated[
        str | None, doc("How to compute the first reports, or why there are no days; null if there is nothing to say.")
    ]


class ReportSize(Struct, kw_only=True, frozen=True):
    """A report and its size."""

    figure: Annotated[str, doc("Path below `/api/analytics/`.")]
    rows: int


class Overview(RunInfo, kw_only=True, frozen=True):
    """Available reports."""

    seconds: Annotated[float | None, doc("Duration of the last refresh in seconds; null before the first one.")]
    figures: list[ReportSize]


class Coverage(Struct, kw_only=True, frozen=True):
    """The data that a row is based on."""

    stores: Annotated[int, doc("Stores that the row is based on.")]
    known_stores: Annotated[int, doc("Known stores in the same scope, crawled or not.")]
    stale_stores: Annotated[int, doc("Of `stores`, those not crawled for more than twice their interval.")]
    partial: Annotated[
        int,
        doc(
            "Of `stores`, those whose last menu (or one of that day) is only part of the whole one. Products that it "
            "lacks are not on the menus that are counted, though the store may offer them."
        ),
    ]
    scheduled: Annotated[int, doc("Crawls scheduled for these stores in the window (or on that day).")]
    succeeded: Annotated[
        int,
        doc(
            "Of `scheduled`, those whose menu was accepted. Quarantined menus, and menus with missing pages, do not count."
        ),
    ]
    share: Annotated[Decimal | None, doc("`succeeded` divided by `scheduled`, 0 to 1; null if none was scheduled.")]
    oldest_crawl_at: Annotated[
        Instant | None, doc("The oldest of the last crawls of these stores; null if there is none.")
    ]


class Distribution(Struct, kw_only=True, frozen=True):
    """Distribution of values, to 4 decimal places; all null if there are no values."""

    n: Annotated[int, doc("Number of values.")]
    p10: Annotated[Decimal | None, doc("10th percentile.")]
    median: Decimal | None
    p90: Annotated[Decimal | None, doc("90th percentile.")]
    mean: Decimal | None


_Coverage = Annotated[Raw, json_of(Coverage)]
_Distribution = Annotated[Raw, json_of(Distribution)]


class PricePerGram(Struct, kw_only=True, frozen=True):
    """Price per gram of products on offer in one category."""

    all_states: bool
    state: _State
    currency: _Currency
    category: _Category
    products: Annotated[int, doc("Products with such options.")]
    options: Annotated[
        int, doc("Options that the row is based on: with a price, a known weight and a plausible price per gram.")
    ]
    without_weight: Annotated[int, doc("Options left out because their weight is unknown.")]
    without_price: Annotated[int, doc("Options left out because they have no price.")]
    implausible: Annotated[
        int,
        doc(
            "Options left out because their price per gram is more than eight times the median of the category (of that "
            "currency, in all states), or less than an eighth of it: usually a wrong weight on the menu."
        ),
    ]
    regular: Annotated[_Distribution, doc("Regular price per gram, before specials.")]
    effective: Annotated[_Distribution, doc("Price per gram that a customer pays, specials included.")]
    coverage: _Coverage


class _MenuShare(Struct, kw_only=True, frozen=True):
    all_states: bool
    state: _State
    products: Annotated[int, doc("Products on the menus.")]
    in_stock: Annotated[int, doc("Of `products`, those in stock.")]
    share: Annotated[Decimal | None, doc("`products` divided by `of_products`, 0 to 1.")]
    of_products: Annotated[int, doc("All products on the menus in that scope.")]
    store_share: Annotated[Decimal | None, doc("Share of the stores with a menu that carry it, 0 to 1.")]
    of_stores: Annotated[int, doc("Stores with a menu in that scope.")]
    coverage: _Coverage


class BrandShare(_MenuShare, kw_only=True, frozen=True):
    """Share of one brand on the menus."""

    brand: _BrandName
    brand_id: Annotated[int | None, doc("Id of the canonical brand; null if none of its products is matched yet.")]


class CategoryShare(_MenuShare, kw_only=True, frozen=True):
    """Share of one category on the menus."""

    category: _Category


class Discounts(Struct, kw_only=True, frozen=True):
    """Number of discounted products on offer and the depth of their discounts."""

    all_states: bool
    state: _State
    all_categories: bool
    category: _Category
    products: Annotated[int, doc("Products on offer with a price.")]
    on_special: Annotated[int, doc("Of `products`, those with an option below its regular price.")]
    special_share: Annotated[Decimal | None, doc("`on_special` divided by `products`, 0 to 1.")]
    named_only: Annotated[int, doc("Products named by a special (two for one, bundles) whose price is not reduced.")]
    depth_median: Annotated[Decimal | None, doc("Median discount, 0 to 1: 0.25 is a quarter off.")]
    depth_p90: Annotated[Decimal | None, doc("90th percentile of the discount, 0 to 1.")]
    depth_mean: Annotated[Decimal | None, doc("Mean discount, 0 to 1.")]
    coverage: _Coverage


class _StockHours(Struct, kw_only=True, frozen=True):
    in_hours: Annotated[Decimal, doc("Hours in stock within the window.")]
    out_hours: Annotated[Decimal, doc("Hours out of stock within the window.")]
    absent_hours: Annotated[Decimal, doc("Hours in which the store was observed and the product was not on its menu.")]
    unknown_hours: Annotated[Decimal, doc("Hours on a menu without stock information.")]
    out_share: Annotated[Decimal | None, doc("`out_hours` divided by the sum of `in_hours` and `out_hours`, 0 to 1.")]
    coverage: _Coverage


class StockTimes(_StockHours, kw_only=True, frozen=True):
    """Time out of stock of a group of products, in product hours."""

    state: _State
    category: _Category
    dispensary_id: Annotated[int | None, doc("Id of the store; null if not grouped by store.")]
    store: Annotated[str | None, doc("Name of the store; null if not grouped by store.")]
    products: Annotated[int, doc("Products observed in the window.")]
    out_products: Annotated[int, doc("Of `products`, those that were out of stock at some time.")]


class OutProduct(_StockHours, kw_only=True, frozen=True):
    """Time out of stock of one product."""

    product_id: int
    dispensary_id: int
    store: str
    state: _State
    name: Annotated[str | None, doc("Null if the product was removed since.")]
    brand_name: _BrandName
    category: _Category
    times_out: Annotated[int, doc("How often the product went out of stock in the window.")]


class NewAndGone(Struct, kw_only=True, frozen=True):
    """New and removed products of one day (UTC)."""

    day: date
    all_states: bool | UnsetType = UNSET
    dispensary_id: Annotated[int | UnsetType, doc("Id of the store; only if grouped by store.")] = UNSET
    store: Annotated[str | UnsetType, doc("Name of the store; only if grouped by store.")] = UNSET
    state: _State
    new_products: Annotated[int, doc("Products seen for the first time, at stores with earlier crawls.")]
    gone_products: Annotated[int, doc("Products seen for the last time and missed by three crawls since.")]
    returned: Annotated[int, doc("Products that returned after they had been missing.")]
    price_changes: int
    stock_changes: int
    crawls: Annotated[int, doc("Menus accepted, including unscheduled crawls.")]
    coverage: _Coverage


class _CrawlOutcomes(Struct, kw_only=True, frozen=True):
    failed: Annotated[int, doc("Crawls in the window that failed.")]
    quarantined: Annotated[int, doc("Crawls in the window whose menu was quarantined.")]
    never_begun: Annotated[int, doc("Crawls that were due in the window and never started.")]
    undecided: Annotated[int, doc("Crawls that are not yet accepted; not included in the other numbers.")]
    observed_share: Annotated[
        Decimal | None, doc("Share of the window in which the offer was known, 0 to 1; null if never crawled.")
    ]
    coverage: _Coverage


class StoreFreshness(_CrawlOutcomes, kw_only=True, frozen=True):
    """Freshness of a store and outcome of its crawls."""

    dispensary_id: int
    store: str
    platform: str
    state: _State
    crawl_enabled: bool
    is_scheduled: Annotated[bool, doc("Whether an enabled schedule crawls the store.")]
    interval_hours: Annotated[Decimal, doc("Crawl interval in hours.")]
    last_crawled_at: Annotated[Instant | None, doc("Crawl that the catalog shows; null before the first one.")]
    age_hours: Annotated[
        Decimal | None,
        doc("Age of that crawl in hours when the report was computed; null before the first one."),
    ]
    is_stale: Annotated[bool, doc("True if that age exceeds twice the interval, or there was no crawl.")]
    products: Annotated[int | None, doc("Products in that crawl.")]


class StateCoverage(_CrawlOutcomes, kw_only=True, frozen=True):
    """Crawl coverage of a state."""

    all_states: bool
    state: _State
    known_stores: int
    crawled_stores: Annotated[int, doc("Stores crawled at least once.")]
    never_crawled: Annotated[int, doc("Stores never crawled.")]
    stale_stores: Annotated[int, doc("Stores not crawled for more than twice their interval.")]
    not_scheduled: Annotated[int, doc("Stores that no schedule crawls.")]
    median_age_hours: Annotated[Decimal | None, doc("Median age of the last crawls in hours; null if there are none.")]


class _Carried(Struct, kw_only=True, frozen=True):
    all_states: bool
    state: _State
    locations: Annotated[int, doc("Locations with it on a menu; a shop on two platforms is one location.")]
    in_stock: Annotated[
        int, doc("Of `locations`, those where it is not out of stock; menus without stock count as such.")
    ]
    of_locations: Annotated[int, doc("Locations with a menu in that scope.")]
    share: Annotated[Decimal | None, doc("`in_stock` divided by `of_locations`, 0 to 1.")]
    of_category: Annotated[int | None, doc("Locations with anything of the category; null if that is unknown.")]
    category_share: Annotated[Decimal | None, doc("`in_stock` divided by `of_category`, 0 to 1.")]


class ProductDistribution(_Carried, kw_only=True, frozen=True):
    """Locations that offer a canonical product."""

    canonical_product_id: int
    name: str
    brand_id: _BrandId
    brand: _BrandName
    category: _Category


class BrandDistribution(_Carried, kw_only=True, frozen=True):
    """Locations that offer any product of a brand."""

    brand_id: int
    brand: str
    all_categories: bool
    category: _Category
    products_per_location: Annotated[Decimal, doc("Mean number of its canonical products on the menus of `locations`.")]


class PriceDispersion(Struct, kw_only=True, frozen=True):
    """What locations ask for one size of a canonical product, specials included. Only
    prices without a fault are compared."""

    all_states: bool
    state: _State
    canonical_product_id: int
    name: str
    brand_id: _BrandId
    brand: _BrandName
    category: _Category
    size: Annotated[str, doc("Size as it is written everywhere, for example `3.5 g`.")]
    currency: _Currency
    locations: Annotated[int, doc("Locations that offer it and are compared, at least three.")]
    stale_locations: Annotated[
        int,
        doc(
            "Further locations left out: not crawled for more than twice their interval, or a newer menu is in quarantine."
        ),
    ]
    implausible_locations: Annotated[
        int,
        doc("Further locations left out: their price is more than five times the median, or less than a fifth of it."),
    ]
    min: Decimal
    p25: Annotated[Decimal, doc("First quartile.")]
    median: Decimal
    p75: Annotated[Decimal, doc("Third quartile.")]
    max: Decimal
    mean: Decimal
    cv: Annotated[Decimal, doc("Coefficient of variation: sample standard deviation divided by the mean.")]
    gap: Annotated[Decimal, doc("`max` minus `min`.")]
    gap_share: Annotated[Decimal, doc("`gap` divided by `min`: 1 means that the highest price is twice the lowest.")]
    ratio: Annotated[Decimal, doc("`max` divided by `min`.")]
    cheapest_dispensary_id: Annotated[int, doc("Store with the lowest price.")]
    cheapest_store: str
    dearest_dispensary_id: Annotated[int, doc("Store with the highest price.")]
    dearest_store: str


class CheapestQuarter(Struct, kw_only=True, frozen=True):
    """How often a location is in the cheapest quarter of its state."""

    state: str
    location_id: Annotated[int | None, doc("Null for a store that is linked to no location.")]
    dispensary_id: Annotated[int, doc("Id of the store; of several menus at the location, that of the fresher one.")]
    store: Annotated[str, doc("Name of the location, or of the store.")]
    category: _Category
    brand_id: _BrandId
    brand: _BrandName
    compared: Annotated[
        int, doc("Canonical products and sizes that at least two other locations of the state offer; at least five.")
    ]
    cheapest: Annotated[
        int, doc("Of `compared`, those whose price is at or below the first quartile and below the median.")
    ]
    share: Annotated[Decimal, doc("`cheapest` divided by `compared`, 0 to 1.")]


class CheckedSpecial(Struct, kw_only=True, frozen=True):
    """A special, and what the store really asked within 90 days."""

    product_id: int
    name: Annotated[str | None, doc("Null if the product was removed since.")]
    size: Annotated[str | None, doc("Size; null for options without one.")]
    dispensary_id: int
    store: str
    state: _State
    category: _Category
    brand_id: _BrandId
    brand: _BrandName
    currency: Annotated[str, doc("Currency of the prices: USD, or CAD at stores in Canada.")]
    price: Annotated[Decimal, doc("Price of the special.")]
    regular: Annotated[Decimal, doc("Regular price according to the menu.")]
    stated_saving: Annotated[Decimal, doc("Saving according to the menu, 0 to 1.")]
    usual: Annotated[
        Decimal | None,
        doc("Median price over the observed time; null below 30 observed days."),
    ]
    saving: Annotated[
        Decimal | None,
        doc("Saving against the usual price, 0 to 1; negative if it usually costs less. Null without one."),
    ]
    verdict: Annotated[
        SpecialVerdict,
        doc("`genuine`: the regular price, or more, was charged within 90 days. `doubtful`: the same, with a score below 50. "
            "`never_asked`: it was not. `unknown`: it was not, within less than 30 observed days."),
    ]  # fmt: skip
    score: Annotated[
        int | None,
        doc(
            "How much of the stated saving is real, measured against the usual price, 0 to 100; null if observed for under 30 days."
        ),
    ]
    observed_days: Annotated[
        Decimal, doc("Days of the last 90 in which it could be bought and the store was observed.")
    ]
    observed_from: Annotated[Instant | None, doc("Start of the observed time; null if there is none.")]
    began_at: Annotated[Instant, doc("Start of the special.")]
    regular_until: Annotated[
        Instant | None, doc("When the store last charged the regular price or more; null if not within 90 days.")
    ]
    checked_at: Annotated[Instant, doc("When the special was checked: at this refresh, or an earlier one.")]


class SpecialShare(Struct, kw_only=True, frozen=True):
    """Checked specials of a state, store, brand or category."""

    all_states: bool
    state: _State
    dispensary_id: Annotated[int | None, doc("Id of the store; null if not grouped by store.")]
    store: Annotated[str | None, doc("Name of the store; null if not grouped by store.")]
    brand_id: _BrandId
    brand: Annotated[str | None, doc("Null for products without a brand, or if not grouped by brand.")]
    category: _Category
    specials: Annotated[int, doc("Specials on offer.")]
    genuine: Annotated[int, doc("Of `specials`, those whose regular price was really charged.")]
    doubtful: Annotated[
        int, doc("Of `specials`, those whose regular price was charged for less than half of the time.")
    ]
    never_asked: Annotated[int, doc("Of `specials`, those whose regular price was never charged.")]
    unknown: Annotated[int, doc("Of `specials`, those that were observed for too short a time.")]
    never_asked_share: Annotated[
        Decimal | None, doc("`never_asked` divided by `specials` less `unknown`, 0 to 1; null if all are unknown.")
    ]
    score_median: Annotated[Decimal | None, doc("Median of the scores, 0 to 100; null if none has one.")]
    oldest_check_at: Annotated[Instant, doc("When the oldest of them was checked.")]


class Shrinkflation(Struct, kw_only=True, frozen=True):
    """A smaller size of a canonical product in place of a larger one, at a higher price per unit."""

    canonical_product_id: int
    name: str
    brand_id: _BrandId
    brand: _BrandName
    category: _Category
    dispensary_id: Annotated[
        int | None,
        doc(
            "Id of the store; null if no store had both: then the larger size went, and the smaller one came, elsewhere."
        ),
    ]
    store: Annotated[str | None, doc("Name of the store; null for evidence across stores.")]
    state: _State
    currency: Annotated[
        str,
        doc(
            "Currency of the prices: USD, or CAD at stores in Canada; evidence across stores is from those with one currency."
        ),
    ]
    stores: Annotated[int, doc("Stores at which this size replaced the larger one; 0 for evidence across stores.")]
    larger: Annotated[str, doc("The size that is no longer on any menu.")]
    smaller: Annotated[str, doc("The size that replaced it.")]
    larger_price: Annotated[Decimal, doc("Its last regular price; across stores the median.")]
    smaller_price: Annotated[Decimal, doc("Its regular price now; across stores the median.")]
    larger_until: Annotated[Instant, doc("Last crawl that saw the larger size.")]
    smaller_from: Annotated[Instant, doc("First crawl that saw the smaller size.")]
    larger_product_id: Annotated[int | None, doc("Listing of the larger size; null for evidence across stores.")]
    smaller_product_id: Annotated[int | None, doc("Listing of the smaller size; null for evidence across stores.")]
    size_change: Annotated[Decimal, doc("Change of the size: -0.2 is a fifth less.")]
    unit_price_change: Annotated[Decimal, doc("Change of the regular price per unit: 0.25 is a quarter more.")]


_DayState = Annotated[str, doc("Two-letter state, `all` or `unknown`.")]


class MarketDay(Struct, kw_only=True, frozen=True):
    """Stock and discounts of one day (UTC), state and category, of menus that were not stale."""

    day: date
    state: _DayState
    category: Annotated[str, doc("Canonical category, `all` or `unknown`.")]
    products: Annotated[int, doc("Products on the menus.")]
    in_stock: Annotated[int, doc("Of `products`, those in stock.")]
    out_of_stock: Annotated[int, doc("Of `products`, those listed as out of stock.")]
    unknown_stock: Annotated[int, doc("Of `products`, those on menus without stock information.")]
    out_share: Annotated[
        Decimal | None,
        doc("`out_of_stock` divided by `in_stock` + `out_of_stock`, 0 to 1; null if no menu has stock information."),
    ]
    priced: Annotated[int, doc("Products on offer with a regular price.")]
    on_special: Annotated[int, doc("Of `priced`, those with an option below it.")]
    special_share: Annotated[Decimal | None, doc("`on_special` divided by `priced`, 0 to 1; null without any.")]
    depth_median: Annotated[Decimal | None, doc("Median discount of these, 0 to 1: 0.25 is a quarter off.")]
    depth_mean: Annotated[Decimal | None, doc("Mean discount of these, 0 to 1.")]
    stores: Annotated[int, doc("Stores with such products on a menu that was not stale.")]
    known_stores: Annotated[int, doc("Known stores of the state, crawled or not.")]


class BrandDay(Struct, kw_only=True, frozen=True):
    """Share of a canonical brand on the menus of one day (UTC) and state, of menus that were not stale."""

    day: date
    state: _DayState
    brand_id: Annotated[int, doc("Id of the canonical brand on that day; it may have been merged since.")]
    brand: str
    products: Annotated[int, doc("Its products on the menus.")]
    in_stock: Annotated[int, doc("Of `products`, those in stock.")]
    of_products: Annotated[int, doc("All products on the menus.")]
    share: Annotated[Decimal, doc("`products` divided by `of_products`, 0 to 1.")]
    stores: Annotated[int, doc("Stores that carry it.")]
    of_stores: Annotated[int, doc("Stores with a menu that was not stale.")]
    store_share: Annotated[Decimal, doc("`stores` divided by `of_stores`, 0 to 1.")]


def flat_row(row: Struct) -> dict[str, Any]:
    """Objects in a row as columns of their own: `coverage_share`, `regular_median`."""
    flat: dict[str, Any] = {}
    for key, value in structs.asdict(row).items():
        if isinstance(value, Raw):
            members = loads(bytes(value), parse_float=Decimal)
            flat |= {f"{key}_{name}": member for name, member in members.items()}
        elif value is not UNSET:
            flat[key] = value
    return flat
