"""Types that several nouns share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

INTEGER_MAX = 2**31 - 1
BIGINT_MAX = 2**63 - 1

_BLANK_OFFSET = re.compile(r" (\d\d:?\d\d)$")


def _clean(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text may not hold a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text may not hold half a surrogate pair") from None
    return text


_DEEPEST = 50


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
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
            _clean(text)
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"cannot be stored: {error}") from None
    return value


def _plus(value: Any) -> Any:
    # A plus sign that was not percent-encoded arrives as a blank: "2026-11-20T10:00:00 02:00".
    return _BLANK_OFFSET.sub(r"+\1", value) if isinstance(value, str) else value


def _number(value: Any) -> Any:
    # In Python true is 1, and nobody means that.
    if isinstance(value, bool):
        raise ValueError("must be an integer")
    return value


N = TypeVar("N", int, Decimal)


def between(lowest: N, highest: N) -> Callable[[N], N]:
    """A check that a number is one of those, both among them, which names both bounds."""

    def check(value: N) -> N:
        if not lowest <= value <= highest:
            raise ValueError(f"must lie between {lowest} and {highest}")
        return value

    return check


Text = Annotated[str, AfterValidator(_clean)]
"""Text that the database can hold."""

Search = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_clean)]
"""Text that is looked for."""

Cursor = Annotated[str, Field(max_length=4000)]
"""Where a page starts, as paging.py writes it."""

JsonObject = Annotated[dict[str, Any], AfterValidator(_storable)]
"""A JSON object that the database can hold."""


_NONE, _LARGEST_OFFSET = timedelta(), timedelta(hours=16)


def _in_utc(moment: datetime) -> datetime:
    """The same moment in UTC: the database knows only offsets that some place on earth has (below 16 hours)."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        if abs(moment.utcoffset() or _NONE) >= _LARGEST_OFFSET:
            raise ValueError("this moment is out of range: years are 1 to 9999 in UTC") from None
        return moment  # the database knows years beyond these


Instant = Annotated[AwareDatetime, BeforeValidator(_plus), AfterValidator(_in_utc)]
"""A time with its offset from UTC."""

Amount = Annotated[Decimal, WithJsonSchema({"type": "number"})]
"""An exact decimal number, written as a JSON number."""

BigId = Annotated[int, Field(ge=1, le=BIGINT_MAX), BeforeValidator(_number)]
StoreId = Annotated[int, Field(ge=1, le=INTEGER_MAX), BeforeValidator(_number)]

StorePath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Number of the store.")]
ProductPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Number of the product.")]
PayloadPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Number of the payload.")]
TaskPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Number of the task.")]

T = TypeVar("T")


class Input(BaseModel):
    """What comes in: a name that is not known is refused, so that a misspelt filter does not silently select everything."""

    model_config = ConfigDict(extra="forbid")


class NoQuery(Input):
    """Nothing to choose."""


class PageQuery(Input):
    """How a list is walked."""

    limit: int = Field(50, ge=1, le=200, description="Most items on the page.")
    cursor: Cursor | None = Field(
        None,
        description="`next` of the page before, exactly as it came; leave it out for the first page.",
    )


class SpanQuery(PageQuery):
    """A list over time."""

    since: Instant | None = Field(None, description="Only from this time on (ISO 8601 with offset).")
    until: Instant | None = Field(None, description="Only before this time (ISO 8601 with offset).")


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T] = Field(description="The items of this page.")
    next: str | None = Field(description="`cursor` of the next page, null on the last one.")


class InvalidValue(BaseModel):
    """One value of a request that is not what it must be."""

    detail: str = Field(description="What is wrong with it, and what is allowed.")
    pointer: str | None = Field(None, description="Where it stands in the body: a JSON Pointer as a URI fragment.")
    parameter: str | None = Field(None, description="Its name, where it stands in the query or the path.")
    in_: str | None = Field(None, alias="in", description="`query`, `path` or `header`.")


class ProblemDetails(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="The kind of problem; leads to a page about it.")
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong in this case, and what would be right.")
    instance: str = Field(description="The path that was asked.")
    trace_id: str = Field(description="Id of the request, as in the log and in X-Request-Id.")
    errors: list[InvalidValue] | None = Field(None, description="Each value that cannot be used.")
    permission: str | None = Field(None, description="Of `forbidden`: the permission that it takes.")
    current: Any = Field(None, description="Of `changed`: what it is now, as a GET would give it.")


class Potency(BaseModel):
    """A range of content."""

    lo: Amount = Field(description="Lower end.")
    hi: Amount = Field(description="Upper end; the same as `lo` for a single value.")
    unit: str = Field(description="`%` of mass, or `mg` in the whole package.")


class OptionPrices(BaseModel):
    """What one option of a product costs."""

    option: str = Field(description="Size or package, as on the menu.")
    price_rec: Amount | None = Field(description="Recreational price.")
    price_rec_special: Amount | None = Field(description="Recreational price with the best special.")
    price_med: Amount | None = Field(description="Medical price.")
    price_med_special: Amount | None = Field(description="Medical price with the best special.")


class OptionStock(BaseModel):
    """How much there is of one option of a product."""

    option: str = Field(description="Size or package, as on the menu.")
    stock_status: str = Field(description="`in_stock`, `oos` or `unknown`.")
    quantity: int | None = Field(description="Packages; null where the menu does not say.")
    capped: bool = Field(description="The platform shows no more than this number: there may be more.")
