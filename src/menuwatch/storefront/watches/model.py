"""Price watches of shoppers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple

Condition = Literal["price_below", "any_drop", "back_in_stock"]
Kind = Literal["mail", "feed"]
Phase = Literal["armed", "pending", "fired"]

CONDITIONS: tuple[Condition, ...] = ("price_below", "any_drop", "back_in_stock")

UNCONFIRMED = timedelta(hours=48)
"""How long a watch by mail waits to be confirmed."""
KEPT = timedelta(days=60)
"""How long a feed keeps its events."""
NEVER_READ = timedelta(days=7)
"""After so long a feed ends that was never read."""
UNREAD = timedelta(days=60)
"""After so long a feed ends that is no longer read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One store, the surroundings of a place, or (neither) all stores."""

    store_id: int | None = None
    place: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    miles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch as it is stored; `address` and `token` are encrypted."""

    id: int
    kind: Kind
    address: str | None
    token: str | None
    item_id: int
    size: str | None
    store_id: int | None
    place: str | None
    latitude: float | None
    longitude: float | None
    miles: int | None
    condition: Condition
    amount: Decimal | None
    phase: Phase
    reference: Decimal | None
    fired_at: datetime | None
    created_at: datetime
    confirmed_at: datetime | None
    mailed_at: datetime | None
    attempts: int
    ends_at: datetime | None


class ItemScope(NamedTuple):
    """An item in one size or (None) any, at one store, within so many miles of a point, or (all None) anywhere."""

    item_id: int
    size: str | None
    store_id: int | None
    miles: int | None
    latitude: float | None
    longitude: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTerms:
    """The fields of a watch that its evaluation needs: scope, condition and state."""

    id: int
    item_id: int
    size: str | None
    store_id: int | None
    miles: int | None
    latitude: float | None
    longitude: float | None
    condition: Condition
    amount: Decimal | None
    phase: Phase
    reference: Decimal | None
    fired_at: datetime | None

    @property
    def item_scope(self) -> ItemScope:
        return ItemScope(self.item_id, self.size, self.store_id, self.miles, self.latitude, self.longitude)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a watch. `facts` is JSON as it was written."""

    id: int
    watch_id: int
    happened_at: datetime
    facts: dict[str, Any]
