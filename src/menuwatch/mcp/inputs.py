"""Types of arguments that several tools share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from menuwatch.analytics.service import ALL, UNKNOWN
from menuwatch.catalog.taxonomy.categories import Category
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.moments import parse_past, parse_since
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, Circle, parse_area
from menuwatch.geo.states import parse_state
from menuwatch.web.inputs import PLACE_HELP, BigId, Input, Place, Search, State, StoreId, Text


def _any_time(text: str) -> str:
    _moment(text)
    return text


def _past(text: str) -> str:
    _moment(text, parse_past)
    return text


def _moment(text: str, parse: Callable[[str, datetime, str], datetime] = parse_since) -> datetime:
    try:
        return parse(text, datetime.now(UTC), "the time").astimezone(UTC)
    except Refused as error:
        raise ValueError(str(error)) from None
    except OverflowError:
        raise ValueError(f"the time {text[:40]!r} is out of range: years are 1 to 9999 in UTC") from None


Moment = Annotated[Text, Field(max_length=60), AfterValidator(_any_time)]
"""A time as text, checked; `at` reads it."""
PastMoment = Annotated[Text, Field(max_length=60), AfterValidator(_past)]
"""The same of the start of a period: not in the future."""
WHEN = "a date (2026-11-20) or time (2026-11-20T14:30, UTC if it has no offset), or an age: 90m, 24h, 7d, 2w"


def at(text: str | None) -> datetime | None:
    """The time that a Moment means."""
    return None if text is None else _moment(text)


def _scope(text: str) -> str:
    word = text.strip().lower()
    if word in (ALL, UNKNOWN):
        return word
    try:
        return parse_state(text)
    except Refused as error:
        raise ValueError(f"{error}; or `all` for all states together, or `unknown`") from None


Scope = Annotated[Text, AfterValidator(_scope)]
"""A state, ALL or UNKNOWN."""

STATE: State | None = Field(None, description="Only stores in this state, two letters.")
ANY_SCOPE: Scope | None = Field(
    None, description="State (two letters), `all` for all states together, or `unknown`; all of these if omitted."
)
ONE_SCOPE: Scope = Field(ALL, description="State (two letters), `all` for all states together, or `unknown`.")
ReportCategory = Literal[Category, "unknown"]
AnyCategory = Literal[Category, "all", "unknown"]
CATEGORY: Category | None = Field(None, description="Only this category.")
REPORT_CATEGORY: ReportCategory | None = Field(None, description="Only this category; `unknown`: products without one.")
BRAND: Text | None = Field(None, max_length=200, description="Only this brand, in any case.")
CANONICAL: BigId | None = Field(
    None, description="Only this canonical product (id, as from search_canonical_products)."
)
STORE: StoreId | None = Field(None, description="Only this store (id, as from search_stores).")
TEXT: Search | None = Field(None, description="Only those whose name contains this text, in any case.")


def day_of(name: str, text: str | None) -> datetime | None:
    """As `at`; errors name the argument."""
    try:
        return at(text)
    except ValueError as error:
        raise InvalidField(name, str(error)) from None


class NearInput(Input):
    """An area around a place."""

    near: Place = Field(description=PLACE_HELP)
    miles: Annotated[float, Field(allow_inf_nan=False)] = Field(
        DEFAULT_MILES, gt=0, le=FARTHEST_MILES, description="Distance from the place, in miles."
    )

    @property
    def area(self) -> tuple[Circle, str]:
        """The circle, and how it is called."""
        return area(self.near, self.miles)


def area(near: str, miles: float) -> tuple[Circle, str]:
    """The circle around a place, and how it is called; raises Refused."""
    circle, place = parse_area(near, miles)
    return circle, f"within {miles:g} miles of {place}"
