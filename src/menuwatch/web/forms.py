"""Values typed into a form, with the errors that a page shows beside its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from fastapi import Depends, Request

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_THOUSANDS = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_PLAIN = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
"""A number as people write it: `1e3`, `1_000` and other digits, which Python reads, are mistakes in a form."""


@dataclass(slots=True)
class FormInput:
    """`values` as typed; `errors` by field name, `""` for errors of the form as a whole. The first error of a field is kept."""

    values: Mapping[str, str]
    errors: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def error(self, name: str) -> str:
        return self.errors.get(name, "")

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    def add_error(self, name: str, message: str) -> None:
        self.errors.setdefault(name, message)

    def text(self, name: str) -> str | None:
        """The value without surrounding spaces, None if empty."""
        return self.value(name).strip() or None

    # Each parser gives None for an empty field, and None with an error for an invalid value.

    def parse_int(self, name: str, *, low: int, high: int) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            digits = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
            number = int(digits if _PLAIN.fullmatch(digits) else "")
        except ValueError:
            self.add_error(name, f"must be a whole number from {low:,} to {high:,}, not {text[:40]!r}")
            return None
        if not low <= number <= high:
            self.add_error(name, f"{number:,} is too {'small' if number < low else 'large'}: from {low:,} to {high:,}")
            return None
        return number

    def parse_decimal(
        self, name: str, wanted: str, low: Decimal | float = -(10**18), high: Decimal | float = 10**18
    ) -> Decimal | None:
        """A number, also written as `$1,024.50` or `5 %`; `wanted` completes "enter …" in the error. A comma separates thousands only:
        `0,5` is refused, since it may mean 0.5."""
        text = self.text(name)
        if text is None:
            return None
        try:
            digits = text.removeprefix("$").removesuffix("%").strip()
            digits = digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits
            number = Decimal(digits if _PLAIN.fullmatch(digits) else "NaN")
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite() or len(number.as_tuple().digits) > 20 or not low <= number <= high:
            self.add_error(name, f"enter {wanted}, not {text[:40]!r}")
            return None
        return number

    def parse_date(self, name: str) -> date | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            # Only this form: a compact date would be taken for the number of a row in links.
            if _DAY.fullmatch(text) is None:
                raise ValueError(text)
            day = date.fromisoformat(text)
        except ValueError:
            self.add_error(name, f"{text[:20]!r} is not a date: use the form 2026-11-21")
            return None
        if not 1000 <= day.year < 9999:  # the next day must be a date, too
            self.add_error(name, f"{text[:20]} is out of range: use a date such as 2026-11-21")
            return None
        return day

    def parse_time(self, name: str) -> datetime | None:
        """A date and time of day as browsers write it; UTC without a zone."""
        text = self.text(name)
        if text is None:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.add_error(name, f"enter a time such as 2026-11-21T18:00, not {text[:40]!r}")
            return None
        if not 2000 <= moment.year < 2100:
            self.add_error(name, "the year must be from 2000 to 2100")
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)

    def parse_choice(self, name: str, allowed: Mapping[str, object] | Sequence[str]) -> str | None:
        text = self.text(name)
        if text is not None and text not in allowed:
            self.add_error(name, f"{text[:40]!r} is not one of {', '.join(allowed)}")
            return None
        return text


class FormFields:
    """Dependency that reads the named fields of a form: of its body, for GET of the query. Place it before the route's connection:
    a slow upload then holds none."""

    def __init__(self, *names: str, longest: int = 4000) -> None:
        """`longest`: characters of a value; a longer one is an error of its field."""
        self.names, self.longest = names, longest

    async def __call__(self, request: Request) -> FormInput:
        sent = request.query_params if request.method == "GET" else await request.form(max_fields=100)
        texts = {name: value if isinstance(value := sent.get(name), str) else "" for name in self.names}
        form = FormInput({name: text.replace("\x00", "")[: self.longest] for name, text in texts.items()})
        for name, text in texts.items():
            if len(text) > self.longest:
                form.add_error(name, f"longer than {self.longest:,} characters")
        return form


def fields(*names: str, longest: int = 4000) -> Any:
    """For `Annotated[FormInput, fields("name", …)]`."""
    return Depends(FormFields(*names, longest=longest))
