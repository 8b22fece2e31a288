"""Alert rules and the product values that they are evaluated on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

Condition = Literal[
    "price_below", "price_drops_by", "back_in_stock", "out_of_stock", "new_product", "stores_stale", "failure_rate", "backlog_age",
    "no_worker", "quarantined", "schema_drift", "circuit_opened", "proxies_down", "proxies_below", "disk_low", "backup_age",
    "coverage_below", "quality_findings", "new_category_words",
]  # fmt: skip
Price = Literal["effective", "rec", "special", "med", "med_special"]
Digest = Literal["immediately", "hourly", "daily"]
Phase = Literal["armed", "pending", "fired"]
Reach = Literal["product", "canonical_product", "brand", "category", "search", "store", "operations"]


class ConditionKind(NamedTuple):
    """What differs between conditions. `label` in forms, `title` of messages, `sentence` completes "Fires when".

    `fields`: which values of a rule it uses beyond name, channels and digest; the others must have their defaults. `unit` of
    `amount`; `below`: an operations condition holds below the amount, not from it on; `usual` is the limit that a form suggests.
    """

    label: str
    title: str
    sentence: str
    fields: tuple[str, ...] = ()
    unit: str = "$"
    below: bool = False
    usual: int | None = None

    @property
    def about_products(self) -> bool:
        """Whether it concerns products, not the operation of the crawler."""
        return "brand" in self.fields

    @property
    def can_hold(self) -> bool:
        """Whether products may match before the rule exists."""
        return "on_existing" in self.fields


_NEAR = ("latitude", "longitude", "miles")
_PLACE = ("brand", "category", "search", "dispensary_id", "state", "platform", *_NEAR)
SCOPE = ("product_id", "canonical_product_id", *_PLACE)
_TIMING = ("debounce_crawls", "debounce_minutes", "cooldown_minutes")
_PRICE = ("price", "option", "hysteresis_percent")

CONDITIONS: Mapping[Condition, ConditionKind] = {
    "price_below": ConditionKind(
        "Price falls below an amount",
        "price below",
        "the {price} of {products} falls below {size}",
        ("amount", *_PRICE, "on_existing", *SCOPE, *_TIMING),
    ),
    "price_drops_by": ConditionKind(
        "Price drops by an amount or a percentage",
        "price dropped",
        "the {price} of {products} drops by {size}",
        ("amount", "percent", *_PRICE, *SCOPE, *_TIMING),
    ),
    "back_in_stock": ConditionKind(
        "Back in stock", "back in stock", "{products} is in stock again", ("option", *SCOPE, *_TIMING)
    ),
    "out_of_stock": ConditionKind(
        "Out of stock", "out of stock", "{products} is out of stock", ("option", "on_existing", *SCOPE, *_TIMING)
    ),
    "new_product": ConditionKind(
        "New product on a menu", "new product", "{products} is new on a menu", (*_PLACE, *_TIMING)
    ),
    "stores_stale": ConditionKind(
        "Stale stores",
        "stores are stale",
        "{size} or more are stale",
        ("amount", "debounce_minutes"),
        "stores",
        usual=1,
    ),
    "failure_rate": ConditionKind(
        "Failure rate",
        "tasks fail",
        "{size} or more of the tasks finished in the last hour failed and did not succeed since",
        ("percent", "debounce_minutes"),
        "%",
        usual=10,
    ),
    "backlog_age": ConditionKind(
        "Backlog age",
        "tasks wait too long",
        "a ready task has waited for {size} or longer",
        ("amount", "debounce_minutes"),
        "minutes",
        usual=60,
    ),
    "no_worker": ConditionKind(
        "No worker online", "no worker is online", "no worker is online", ("debounce_minutes",), below=True
    ),
    "quarantined": ConditionKind(
        "Payloads in quarantine",
        "payloads in quarantine",
        "{size} or more are in quarantine",
        ("amount", "debounce_minutes"),
        "payloads",
        usual=1,
    ),
    "schema_drift": ConditionKind(
        "Menus that cannot be read in full",
        "a platform's data changed",
        "the newest menu of {size} or more has items that cannot be read",
        ("amount", "debounce_minutes"),
        "stores",
        usual=1,
    ),
    "coverage_below": ConditionKind(
        "Too few current menus",
        "few menus are current",
        "less than {size} of the crawled stores have a menu that is not stale",
        ("percent", "debounce_minutes"),
        "%",
        below=True,
        usual=90,
    ),
    "quality_findings": ConditionKind(
        "Critical findings of data quality",
        "menus are unusual",
        "{size} or more are critical and open",
        ("amount", "debounce_minutes"),
        "findings",
        usual=1,
    ),
    "new_category_words": ConditionKind(
        "New category words",
        "platforms use new category words",
        "{size} or more were first seen in the last 24 hours",
        ("amount", "debounce_minutes"),
        "category words",
        usual=1,
    ),
    "circuit_opened": ConditionKind(
        "Host circuit opened", "host circuit opened", "the circuit of a host opens after too many refusals"
    ),
    "proxies_down": ConditionKind(
        "No active proxy", "all proxies are down", "no proxy is active", ("debounce_minutes",), below=True
    ),
    "proxies_below": ConditionKind(
        "Too few active proxies",
        "few proxies are active",
        "fewer than {size} are active",
        ("amount", "debounce_minutes"),
        "proxies",
        below=True,
        usual=5,
    ),
    "disk_low": ConditionKind(
        "Low disk space",
        "disk space is low",
        "less than {size} of disk space is free",
        ("amount", "debounce_minutes"),
        "GB",
        below=True,
        usual=5,
    ),
    "backup_age": ConditionKind(
        "No recent backup",
        "no recent backup",
        "the last backup is {size} old or older, or there is none",
        ("amount", "debounce_minutes"),
        "hours",
        usual=48,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The condition of a rule, without its scope."""

    condition: Condition
    amount: Decimal | None = None
    percent: Decimal | None = None
    option: str | None = None
    price: Price = "effective"
    hysteresis_percent: Decimal = Decimal(2)
    debounce_crawls: int = 1
    debounce_minutes: int = 0
    cooldown_minutes: int = 0
    on_existing: Literal["skip", "fire"] = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Terms):
    """A rule as it is stored."""

    id: int
    name: str
    reach: Reach
    product_id: int | None = None
    canonical_product_id: int | None = None
    dispensary_id: int | None = None
    brand: str | None = None
    category: str | None = None
    search: str | None = None
    state: str | None = None
    platform: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    miles: float | None = None
    digest: Digest = "immediately"
    digest_at: time | None = None
    timezone: str = "UTC"
    enabled: bool = True
    armed_at: datetime
    muted_until: datetime | None = None
    holds: bool = False
    unlike_since: datetime | None = None
    read_at: datetime | None = None
    created_at: datetime
    updated_at: datetime

    def due_at(self, fired_at: datetime) -> datetime:
        """When an event is notified, in UTC: at once, or with others at the full hour or once a day.

        A time of day that a change of the clocks skips is an hour later; of one that comes twice, the first counts.
        """
        if self.digest == "immediately":
            return fired_at
        if self.digest == "hourly":
            return fired_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        assert self.digest_at is not None, "a daily digest has a time"
        zone = ZoneInfo(self.timezone)
        day = fired_at.astimezone(zone).date()
        while True:
            at = datetime.combine(day, self.digest_at, tzinfo=zone).astimezone(UTC)
            if at > fired_at:
                return at
            day += timedelta(days=1)


class OptionPrices(NamedTuple):
    """One row of a state's `prices`."""

    option: str
    rec: Decimal | None
    special: Decimal | None
    med: Decimal | None
    med_special: Decimal | None


class OptionStock(NamedTuple):
    """One row of a state's `stock`."""

    option: str
    status: str
    quantity: int | None
    capped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductState:
    """A product at one time."""

    stock_status: str
    rec: Decimal | None = None
    special: Decimal | None = None
    med: Decimal | None = None
    med_special: Decimal | None = None
    prices: tuple[OptionPrices, ...] = ()
    stock: tuple[OptionStock, ...] = ()


class Facts(NamedTuple):
    """The price that a rule compares, None if there is none, and the stock: `in_stock`, `oos` or `unknown`."""

    price: Decimal | None
    stock: str


def facts(terms: Terms, product: ProductState) -> Facts:
    """What a rule compares of a product; unknown for an option that the menu does not list."""
    if terms.option is None:
        headline = OptionPrices("", product.rec, product.special, product.med, product.med_special)
        return Facts(_price(terms.price, headline), product.stock_status)
    option = terms.option.casefold()
    row = next((prices for prices in product.prices if prices.option.casefold() == option), None)
    stock = next((stock.status for stock in product.stock if stock.option.casefold() == option), "unknown")
    if product.stock_status == "oos":
        stock = "oos"
    return Facts(None if row is None else _price(terms.price, row), stock)


def _price(which: Price, row: OptionPrices) -> Decimal | None:
    if which != "effective":
        price: Decimal | None = getattr(row, which)
        return price
    # What a customer pays: the lower of the two; the medical price if there is no other.
    for pair in ((row.rec, row.special), (row.med, row.med_special)):
        if prices := [price for price in pair if price is not None]:
            return min(prices)
    return None
