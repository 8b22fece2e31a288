"""Shapes of locations and licences for all interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Raw, Struct

from menuwatch.core.errors import InvalidField
from menuwatch.core.shapes import Instant, doc, json_of
from menuwatch.db.query import like_pattern
from menuwatch.geo.circle import Circle, circle_values
from menuwatch.matching.locations.compare import Reason
from menuwatch.matching.locations.registers import RejectedLine


class LocationStatus(StrEnum):
    """State of a shop as its menus and licences show it. `open`: a menu with products was read in the last 7 days. `licence_ended`: so
    it was, but all its known licences are gone, expired or inactive. `no_menu`: no current menu. `closed`: no current menu, and all
    known licences ended."""

    OPEN = "open"
    LICENCE_ENDED = "licence_ended"
    NO_MENU = "no_menu"
    CLOSED = "closed"


Reasons = Annotated[Raw, json_of(list[Reason])]


class Location(Struct, kw_only=True, frozen=True):
    """One shop at one place, across platforms and licences."""

    id: int
    name: str
    chain: Annotated[str | None, doc("Name that it shares with other shops; null if it is alone.")]
    address: Annotated[str | None, doc("Street and number; null if unknown.")]
    city: str | None
    state: str | None
    zipcode: str | None
    latitude: Annotated[float | None, doc("Latitude in degrees; null if unknown.")]
    longitude: Annotated[float | None, doc("Longitude in degrees; null if unknown.")]
    phone: str | None
    status: Annotated[LocationStatus, doc("State as menus and licences show it.")]
    menus: Annotated[int, doc("Number of stores (menus on platforms).")]
    licences: Annotated[int, doc("Number of licences.")]
    platforms: Annotated[list[str], doc("Platforms of its menus.")]
    preferred_store_id: Annotated[int | None, doc("Store with the freshest menu; null if there is none.")]
    created_at: Instant
    changed_at: Instant


class LocationMenu(Struct, kw_only=True, frozen=True):
    """A menu of a location: one store on one platform."""

    store_id: int
    name: str
    platform: str
    address: str | None
    city: str | None
    freshness: Annotated[str, doc("Age of the menu: `fresh`, `late`, `stale`, `never`, `off` or `unresolved`.")]
    last_crawled_at: Instant | None
    product_count: int | None
    crawl_enabled: bool
    preferred: Annotated[bool, doc("Whether it is the freshest menu of the location.")]
    confidence: Annotated[float, doc("Probability that it belongs here, 0 to 1.")]
    reasons: Annotated[Reasons, doc("Evidence; empty for the menu that the location was created for.")]
    decided_by: Annotated[str | None, doc("User who linked it; null: the matcher.")]


class Licence(Struct, kw_only=True, frozen=True):
    """A licence of a state's register."""

    id: int
    state: str
    number: str
    holder: Annotated[str, doc("Legal name.")]
    trade_name: str | None
    kind: Annotated[str | None, doc("The register's own word; null if it has none.")]
    status: Annotated[str | None, doc("The register's own word; null if it has none.")]
    operating: Annotated[bool | None, doc("Whether the shop is open; null if the register does not say.")]
    address: str | None
    city: str | None
    zipcode: str | None
    phone: str | None
    issued_on: date | None
    expires_on: date | None
    ended: Annotated[bool, doc("Whether it is gone from the register, expired or inactive.")]
    imported_at: Instant
    gone_at: Annotated[Instant | None, doc("Time since which the register no longer has it.")]
    location_id: Annotated[int | None, doc("Its location; null if no menu belongs to this licence.")]
    confidence: Annotated[float | None, doc("Probability of the link, 0 to 1.")]
    reasons: Annotated[Reasons | None, doc("Evidence of the link.")]
    decided_by: Annotated[str | None, doc("User who linked it; null: the matcher.")]


class LocationEvent(Struct, kw_only=True, frozen=True):
    """What became of a location."""

    at: Instant
    kind: Annotated[str, doc("`moved`, `renamed`, `merged`, `split`, `ended` or `returned`.")]
    before: Annotated[str | None, doc("Former name or address.")]
    after: Annotated[str | None, doc("New name or address.")]
    other_id: Annotated[int | None, doc("The location that was merged into this one, or split off it.")]
    made_by: Annotated[str | None, doc("User; null: the matcher.")]


class NearbyLocation(Struct, kw_only=True, frozen=True):
    """Another location that may be the same shop."""

    id: int
    name: str
    address: str | None
    city: str | None
    metres: Annotated[int | None, doc("Distance in metres; null if a position is unknown.")]
    same_phone: bool


class LocationDetail(Location, kw_only=True, frozen=True):
    """A location with its menus, licences and history."""

    stores: Annotated[list[LocationMenu], doc("Its menus, the preferred one first.")]
    registered: Annotated[list[Licence], doc("Its licences.")]
    events: Annotated[list[LocationEvent], doc("History, newest first.")]
    nearby: Annotated[list[NearbyLocation], doc("Other locations within 250 m, or with the same phone.")]


class LicenceImport(Struct, kw_only=True):
    """Result of the import of a register."""

    state: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: Annotated[int, doc("Licences that the register no longer has.")] = 0
    repeated: Annotated[list[int], doc("Lines whose licence occurs again later: the later line counts.")] = []
    rejected: Annotated[list[RejectedLine], doc("Lines that are not licences.")] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A store (its menu) or a licence."""

    store_id: int | None = None
    licence_id: int | None = None

    def __post_init__(self) -> None:
        if (self.store_id is None) == (self.licence_id is None):
            raise InvalidField("store_id", "give either a store or a licence")

    def values(self) -> dict[str, Any]:
        return {"store_id": self.store_id, "licence_id": self.licence_id}

    def __str__(self) -> str:
        return f"store {self.store_id}" if self.store_id is not None else f"licence {self.licence_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationFilter:
    """Which locations; None takes all. `q` is text in name, chain, address or city; `several`: with more than one menu;
    `circle` leaves out those without a position."""

    states: list[str] | None = None
    status: LocationStatus | None = None
    several: bool | None = None
    q: str | None = None
    circle: Circle | None = None
    updated_since: datetime | None = None
    """`changed_at` at or after this time."""

    def values(self) -> dict[str, Any]:
        status = None if self.status is None else str(self.status)
        return {
            "states": self.states,
            "status": status,
            "several": self.several,
            "q": self.q and like_pattern(self.q),
            "updated_since": self.updated_since,
            **circle_values(self.circle),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LicenceFilter:
    """Which licences; None takes all. `q` is text in number, holder, trade name or city; `linked`: with a location."""

    states: list[str] | None = None
    linked: bool | None = None
    ended: bool | None = None
    q: str | None = None

    def values(self) -> dict[str, Any]:
        return {
            "states": self.states,
            "linked": self.linked,
            "ended_only": self.ended,
            "q": self.q and like_pattern(self.q),
        }
