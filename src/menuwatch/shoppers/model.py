"""What a watch is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple

Condition = Literal["price_below", "any_drop", "back_in_stock"]
Kind = Literal["mail", "feed"]
Phase = Literal["armed", "pending", "fired"]

CONDITIONS: tuple[Condition, ...] = ("price_below", "any_drop", "back_in_stock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where it is looked for: at one store, around a place, or (neither) anywhere."""

    store_id: int | None = None
    place: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    miles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One watch as it is stored; `address` and `token` are sealed."""

    id: int
    kind: Kind
    address: str | None
    token: str | None
    item_id: int
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


class Reach(NamedTuple):
    """What is looked at: an item, at one store, within so many miles of a point, or (all None) anywhere."""

    item_id: int
    store_id: int | None
    miles: int | None
    latitude: float | None
    longitude: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is needed of a watch to judge it: where it looks, what it waits for, and where it stands."""

    id: int
    item_id: int
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
    def reach(self) -> Reach:
        """What it looks at."""
        return Reach(self.item_id, self.store_id, self.miles, self.latitude, self.longitude)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that was found for a watch. `facts` is JSON as it was written."""

    id: int
    watch_id: int
    happened_at: datetime
    facts: dict[str, Any]
