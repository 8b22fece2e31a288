"""Watches of shoppers: what can be watched, on which condition, and how shoppers are notified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple

Subject = Literal["item", "brand", "search", "store"]
Condition = Literal["any_drop", "price_below", "back_in_stock", "new_deal", "new_product"]
Channel = Literal["mail", "push", "ntfy", "feed"]
Phase = Literal["armed", "pending", "fired"]

UNCONFIRMED = timedelta(hours=48)
"""How long a watch waits to be confirmed."""
KEPT = timedelta(days=60)
"""How long events are kept."""
NEVER_READ = timedelta(days=7)
"""After so long a feed ends that was never read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionKind:
    """A condition: its label in forms, and its wording for a product that meets it."""

    label: str
    verb: str
    of_item: bool = True
    """Whether a single product can be watched for it; brands, searches and stores can for every condition."""


CONDITIONS: Mapping[Condition, ConditionKind] = {
    "any_drop": ConditionKind(label="any price drop", verb="gets cheaper"),
    "price_below": ConditionKind(label="price below", verb="costs less than {amount}"),
    "back_in_stock": ConditionKind(label="back in stock", verb="is back in stock"),
    "new_deal": ConditionKind(label="new deal", verb="is on special"),
    "new_product": ConditionKind(label="new product", verb="is new", of_item=False),
}
"""In the order of forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKind:
    """A way to notify: what forms call it, seconds between two messages of one watch (later events wait for the next one), and after
    how long it ends unless it is used (None: never)."""

    label: str
    pace: float
    unused: timedelta | None


CHANNELS: Mapping[Channel, ChannelKind] = {
    "mail": ChannelKind(label="E-mail", pace=6 * 3600.0, unused=None),
    "push": ChannelKind(label="Notification in this browser", pace=3600.0, unused=timedelta(days=180)),
    "ntfy": ChannelKind(label="ntfy app (no e-mail needed)", pace=3600.0, unused=timedelta(days=180)),
    "feed": ChannelKind(label="RSS feed (no e-mail needed)", pace=0.0, unused=timedelta(days=60)),
}
"""In the order of forms. A feed is read, and the others are sent to an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One store, the surroundings of a place, or (neither) all stores."""

    store_id: int | None = None
    place: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    miles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSearch:
    """A search as it is compared with what changed. `words` is a tsquery; units are those of storefront.search.SearchRequest."""

    query: str
    words: str | None = None
    category: str | None = None
    brands: tuple[int, ...] = ()
    strains: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    in_stock: bool = False
    special: bool = False
    price_min: int | None = None
    price_max: int | None = None
    per_gram_max: int | None = None
    thc_min: int | None = None
    thc_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWatch:
    """A watch to create, of an item, a brand, a search, or (none of them) of the store of its scope. The `address` is an e-mail
    address, a topic, or a subscription in JSON; a feed has none."""

    item_id: int | None = None
    brand_id: int | None = None
    search: WatchedSearch | None = None
    size: str | None = None
    """Only this size of the item."""
    condition: Condition
    amount: Decimal | None = None
    scope: Scope = Scope()
    currency: str | None = None
    """As the shopper saw it; a place or store has its own."""
    channel: Channel = "feed"
    address: str | None = None

    @property
    def subject(self) -> Subject:
        if self.item_id is not None:
            return "item"
        if self.brand_id is not None:
            return "brand"
        return "store" if self.search is None else "search"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch as it is stored; `address` and `token` are encrypted."""

    id: int
    channel: Channel
    address: str | None
    token: str | None
    subject: Subject
    item_id: int | None
    brand_id: int | None
    query: str | None
    size: str | None
    store_id: int | None
    place: str | None
    latitude: float | None
    longitude: float | None
    miles: int | None
    condition: Condition
    currency: str
    amount: Decimal | None
    phase: Phase
    reference: Decimal | None
    fired_at: datetime | None
    created_at: datetime
    confirmed_at: datetime | None
    sent_at: datetime | None
    attempts: int
    ends_at: datetime | None


class ItemScope(NamedTuple):
    """An item in one size or (None) any, at one store, within this many miles of a point, or (all None) anywhere; at stores with
    prices in the `currency`, or (`any_currency`) also at others."""

    item_id: int
    size: str | None
    store_id: int | None
    miles: int | None
    latitude: float | None
    longitude: float | None
    currency: str
    any_currency: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTerms:
    """The fields of an item's watch that its evaluation needs: scope, condition and state."""

    id: int
    item_id: int
    size: str | None
    store_id: int | None
    miles: int | None
    latitude: float | None
    longitude: float | None
    condition: Condition
    currency: str
    amount: Decimal | None
    phase: Phase
    reference: Decimal | None
    fired_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a watch. `facts` is JSON as it was written: of an item's state `price`, `before`, `stock` and `store`; of changed
    offers `products`, a list of such with `name`, `item_id` and `size`, and their `count`."""

    id: int
    watch_id: int
    happened_at: datetime
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The names of what a watch is about, and the state of its store, or else of the cheapest offer of its item."""

    item: str | None = None
    brand: str | None = None
    store: str | None = None
    state: str | None = None
