"""Types of parameters and bodies that several endpoints share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from fastapi import Path
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Strict,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from menuwatch.core.errors import Refused
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, PLACE_FORMS, Circle, parse_area
from menuwatch.queue.model import PRIORITY_MAX, PRIORITY_MIN, ROLE_ALIASES, Role, parse_role
from menuwatch.web.inputs import (
    BIGINT_MAX,
    INTEGER_MAX,
    BigId,
    Input,
    Instant,
    Place,
    Search,
    State,
    StoreId,
    Text,
    clean_text,
)

__all__ = [
    "BIGINT_MAX",
    "BRAND_IDS",
    "CANONICAL_PRODUCTS",
    "INTEGER_MAX",
    "LOCATIONS",
    "Amount",
    "AnyRole",
    "BigId",
    "Cursor",
    "FieldsQuery",
    "Input",
    "Instant",
    "JsonObject",
    "LongPageQuery",
    "NearQuery",
    "NoQuery",
    "PageQuery",
    "PayloadPath",
    "Place",
    "Priority",
    "ProductPath",
    "Search",
    "SpanQuery",
    "StartTime",
    "State",
    "StoreId",
    "StorePath",
    "TaskPath",
    "Text",
    "between",
]

_DEEPEST = 50


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        raise ValueError(f"must not be nested deeper than {_DEEPEST} levels")
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, depth + 1)


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        for text in _texts(value):
            clean_text(text)
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"cannot be stored: {error}") from None
    return value


N = TypeVar("N", int, Decimal)


def between(lowest: N, highest: N) -> Callable[[N], N]:
    """Validator for an inclusive range of integers; the message names both bounds."""

    def check(value: N) -> N:
        if not lowest <= value <= highest:
            raise ValueError(f"must be between {lowest} and {highest}, not {value}")
        return value

    return check


Cursor = Annotated[str, Field(max_length=4000)]
"""Where a page starts, as paging.py writes it."""

JsonObject = Annotated[dict[str, Any], AfterValidator(_storable)]
"""A JSON object that the database can hold."""


Amount = Annotated[Decimal, WithJsonSchema({"type": "number"})]
"""An exact decimal number, written as a JSON number."""

CANONICAL_PRODUCTS = Field(
    None, description="Only these canonical products (repeatable); the id of a merged one leads to its successor."
)
BRAND_IDS = Field(
    None,
    description="Only canonical products of these brands, by id (repeatable); the id of a merged one leads to its successor.",
)
LOCATIONS = Field(
    None, description="Only stores at these locations (repeatable); the id of a merged one leads to its successor."
)

StorePath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the store.")]
ProductPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the product.")]
PayloadPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the payload.")]
TaskPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the task.")]

_EARLIEST_START, _LATEST_START = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def _start(moment: datetime) -> datetime:
    if not _EARLIEST_START <= moment < _LATEST_START:
        raise ValueError("must be between the years 2000 and 2100")
    return moment


StartTime = Annotated[Instant, AfterValidator(_start)]
"""A time that tasks can be scheduled for."""

Priority = Annotated[
    int,
    Strict(),
    AfterValidator(between(PRIORITY_MIN, PRIORITY_MAX)),
    WithJsonSchema({"type": "integer", "minimum": PRIORITY_MIN, "maximum": PRIORITY_MAX}),
]
"""Priority of a task: higher runs first."""


def _role(value: Any) -> Role:
    if value is None or value == "":
        raise ValueError(f"needs a role: one of {', '.join([*Role, *ROLE_ALIASES])}")
    try:
        return parse_role(str(value))
    except Refused as error:
        raise ValueError(str(error)) from None


AnyRole = Annotated[
    Role,
    BeforeValidator(_role),
    WithJsonSchema({"type": "string", "enum": [*Role, *ROLE_ALIASES]}, mode="validation"),
]
"""A role by its name or former name."""


class NoQuery(Input):
    """Nothing to choose."""


class FieldsQuery(Input):
    """Which members of each item a list returns."""

    fields: str | None = Field(
        None,
        # It selects no rows: what takes a query for a filter does not see it. The list itself reads it (responses.py).
        exclude=True,
        max_length=2000,
        description="Only these members of each item, separated by commas; all of them if omitted. Items lack the others, also "
        "those that their schema requires.",
        examples=["id,name"],
    )


class PageQuery(FieldsQuery):
    """How a list is walked."""

    limit: int = Field(50, ge=1, le=200, description="Maximum number of items per page.")
    cursor: Cursor | None = Field(
        None,
        description="`next` of the previous page, unchanged; omit it for the first page.",
    )


class LongPageQuery(PageQuery):
    """How a list is walked that programs read as a whole."""

    limit: int = Field(50, ge=1, le=1000, description="Maximum number of items per page.")


class NearQuery(Input):
    """Which stores, by their distance from a place."""

    near: Place | None = Field(
        None,
        description=f"Only stores within `miles` of this place: {PLACE_FORMS}. Stores without a position are left out.",
        examples=["Santa Fe, NM", "87501", "35.08,-106.65"],
    )
    # No default in the description: generated clients would send it, also without a position.
    miles: float | None = Field(
        None, gt=0, le=FARTHEST_MILES, description=f"Distance from `near`, in miles; {DEFAULT_MILES} if omitted."
    )

    @field_validator("miles")
    @classmethod
    def _miles_of_a_place(cls, miles: float | None, given: ValidationInfo) -> float | None:
        if miles is not None and "near" in given.data and given.data["near"] is None:
            raise ValueError("needs `near`: the place that the distance is from")
        return miles

    @property
    def circle(self) -> Circle | None:
        """The circle around the place; None if none is given."""
        return None if self.near is None else parse_area(self.near, self.miles or DEFAULT_MILES).circle


class SpanQuery(PageQuery):
    """A list over time."""

    since: Instant | None = Field(None, description="Only entries at or after this time (ISO 8601 with offset).")
    until: Instant | None = Field(None, description="Only entries before this time (ISO 8601 with offset).")
