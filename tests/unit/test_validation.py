"""What is said of invalid values in requests, for every kind of error that parameters and bodies can have."""

from __future__ import annotations

import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, Field, Strict, ValidationError

from menuwatch.web.inputs import BigId, Input, State
from menuwatch.web.validation import describe


class _Order(StrEnum):
    ASC = "asc"
    DESC = "desc"


class _Query(Input):
    limit: int = Field(50, ge=1, le=200)
    strict: Annotated[int, Strict()] = 1
    id: BigId = 1
    miles: float = Field(25, gt=0, lt=500)
    price: Decimal = Field(Decimal(1), ge=0, max_digits=6, decimal_places=2)
    order: _Order = _Order.ASC
    kind: Literal["price", "stock"] = "price"
    only: Literal["all"] = "all"
    medical: bool = False
    flag: Annotated[bool, Strict()] = False
    day: datetime.date = datetime.date(2026, 11, 20)
    since: AwareDatetime | None = None
    opens: datetime.time | None = None
    name: str = Field("x", min_length=2, max_length=5)
    cause: str = Field("a", pattern="^[a-f]+$")
    item: list[str] = Field(["x"], min_length=1, max_length=2)
    payload: dict[str, Any] = Field(default_factory=dict)
    state: State = "NM"
    password: str = Field("xxxxxxxx", min_length=8)
    secret_days: int = 1
    required: int


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", "abc", "must be a whole number, not 'abc'"),
        ("limit", "", "must be a whole number, not ''"),
        ("limit", "1.5", "must be a whole number, not '1.5'"),
        ("limit", 1.5, "must be a whole number, not 1.5"),
        ("limit", None, "must be a whole number, not null"),
        ("limit", [1], "must be a whole number, not a list"),
        ("limit", {"a": 1}, "must be a whole number, not an object"),
        ("limit", "0", "must be at least 1, not 0"),
        ("limit", 201, "must be at most 200, not 201"),
        ("limit", "9" * 5000, "has too many digits"),
        ("strict", "7", "must be a whole number, not '7'"),
        ("id", True, "must be a whole number, not true"),
        ("id", "0", "must be at least 1, not 0"),
        ("miles", "far", "must be a number, not 'far'"),
        ("miles", "0", "must be greater than 0, not 0"),
        ("miles", 500, "must be less than 500, not 500"),
        ("miles", "inf", "must be less than 500, not inf"),
        ("price", "cheap", "must be a number, not 'cheap'"),
        ("price", "NaN", "must be a finite number, not 'NaN'"),
        ("price", "-0.5", "must be at least 0, not -0.5"),
        ("price", "1234567.1", "must have at most 6 digits, not 1234567.1"),
        ("price", "1.234", "must have at most 2 decimal places, not 1.234"),
        ("price", "123456", "must have at most 4 digits before the decimal point, not 123456"),
        ("order", "up", "unknown value 'up'; use one of: asc, desc"),
        ("order", 3, "must be one of: asc, desc"),
        ("kind", "<b>", "unknown value '<b>'; use one of: price, stock"),
        ("kind", None, "must be one of: price, stock"),
        ("only", "some", "unknown value 'some'; use one of: all"),
        ("medical", "maybe", "must be true or false, not 'maybe'"),
        ("flag", 1, "must be true or false, not 1"),
        ("day", "yesterday", "'yesterday' is not a valid date: write it as 2026-11-20"),
        ("day", "2026-02-30", "'2026-02-30' is not a valid date: write it as 2026-11-20"),
        (
            "since", "soon",
            "'soon' is not a valid date and time: write it as 2026-11-20T14:30:00Z, or with a UTC offset such as +01:00",
        ),
        ("since", "2026-11-20T10:00", "has no UTC offset: write it as 2026-11-20T10:00Z or 2026-11-20T10:00+01:00"),
        ("since", "2026-11-20", "is a date without a time and UTC offset: write it as 2026-11-20T00:00:00Z"),
        ("opens", "noon", "'noon' is not a valid time of day: write it as 14:30"),
        ("name", "x", "must have at least 2 characters"),
        ("name", "x" * 6, "must have at most 5 characters"),
        ("name", 7, "must be text, not 7"),
        ("name", None, "must be text, not null"),
        ("cause", "xyz", "must match the pattern ^[a-f]+$"),
        ("item", [], "must have at least 1 item, not 0"),
        ("item", ["a", "b", "c"], "must have at most 2 items, not 3"),
        ("item", "a", "must be a list, not text"),
        ("item", "http://user:hunter2@203.0.113.7:8080", "must be a list, not text"),
        ("payload", "SECRET", "must be an object, not text"),
        ("limit", "http://user:hunter2@203.0.113.7:8080", "must be a whole number"),
        ("payload", [1], "must be an object, not a list"),
        ("password", "hunter2", "must have at least 8 characters"),
        ("password", 12345678, "must be text"),
        ("secret_days", "hunter2", "must be a whole number"),
        ("limit", "x" * 100, f"must be a whole number, not '{'x' * 60}…'"),
        ("limit", "a\nb\udc80", "must be valid Unicode text"),
        ("limit", "a\nb", "must be a whole number, not 'a\\nb'"),
        ("colour", "red", "unknown"),
        ("required", ..., "is required"),
    ],
)  # fmt: skip
def test_what_is_said_of_an_invalid_value(name: str, value: Any, said: str) -> None:
    values = {"required": 1, name: value}
    with pytest.raises(ValidationError) as caught:
        _Query.model_validate({one: text for one, text in values.items() if text is not ...})
    (fault,) = caught.value.errors()
    assert (fault["loc"], describe(fault)) == ((name,), said)


def test_errors_of_our_own_checks_are_kept() -> None:
    with pytest.raises(ValidationError) as caught:
        _Query.model_validate({"required": 1, "state": "Texas"})
    (fault,) = caught.value.errors()
    assert describe(fault).startswith("unknown state 'Texas'")
    assert "did you mean TX?" in describe(fault)
