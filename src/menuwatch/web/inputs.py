"""Types of inputs that interfaces share: texts, states, times, ids."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from menuwatch.core.errors import Refused
from menuwatch.geo.circle import DEFAULT_MILES, PLACE_FORMS, parse_area
from menuwatch.geo.postcodes import LONGEST_TEXT
from menuwatch.geo.states import parse_state

INTEGER_MAX = 2**31 - 1
BIGINT_MAX = 2**63 - 1

_BLANK_OFFSET = re.compile(r" (\d\d:?\d\d)$")


def clean_text(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text must not contain a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text must not contain an unpaired surrogate") from None
    return text


def _plus(value: Any) -> Any:
    # A plus sign that was not percent-encoded arrives as a blank: "2026-11-20T10:00:00 02:00".
    return _BLANK_OFFSET.sub(r"+\1", value) if isinstance(value, str) else value


def _number(value: Any) -> Any:
    # In Python true is 1, which is never intended.
    if isinstance(value, bool):
        raise ValueError(f"must be a whole number, not {str(value).lower()}")
    return value


Text = Annotated[str, AfterValidator(clean_text)]
"""Text that the database can hold."""


def state_code(text: str) -> str:
    """State in the form stores use; raises ValueError listing the valid states."""
    try:
        return parse_state(text)
    except Refused as error:
        raise ValueError(str(error)) from None


State = Annotated[Text, AfterValidator(state_code)]
"""A state or province by its two letters."""


def _place(text: str) -> str:
    try:
        parse_area(text, DEFAULT_MILES)
    except Refused as error:
        raise ValueError(str(error)) from None
    return text


Place = Annotated[Text, Field(min_length=1, max_length=LONGEST_TEXT), AfterValidator(_place)]
"""A place, checked; geo/circle.py reads it."""
PLACE_HELP = f"The place: {PLACE_FORMS}."

Search = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(clean_text)]
"""Text to search for."""

_NONE, _LARGEST_OFFSET = timedelta(), timedelta(hours=16)


def _in_utc(moment: datetime) -> datetime:
    """The same moment in UTC. PostgreSQL accepts offsets below 16 hours only."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        if abs(moment.utcoffset() or _NONE) >= _LARGEST_OFFSET:
            raise ValueError("this time is out of range: years are 1 to 9999 in UTC") from None
        return moment  # the database knows years beyond these


Instant = Annotated[AwareDatetime, BeforeValidator(_plus), AfterValidator(_in_utc)]
"""A time with its offset from UTC."""

BigId = Annotated[int, Field(ge=1, le=BIGINT_MAX), BeforeValidator(_number)]
StoreId = Annotated[int, Field(ge=1, le=INTEGER_MAX), BeforeValidator(_number)]


class Input(BaseModel):
    """A request body or query. Unknown names are rejected, so that a misspelt filter does not select everything."""

    model_config = ConfigDict(extra="forbid")
