"""Options of `menuwatch analytics`, and the parsing of their values."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

from menuwatch.analytics.service import ALL, UNKNOWN
from menuwatch.catalog.taxonomy.categories import CATEGORIES
from menuwatch.core.errors import Refused, unknown_value
from menuwatch.geo.states import parse_state

StateOption = Annotated[
    str | None, typer.Option("--state", help="Only this state (two letters); `all`: all states together; `unknown`.")
]
CategoryOption = Annotated[str | None, typer.Option("--category", help="Only this canonical category, or `unknown`.")]
BrandOption = Annotated[str | None, typer.Option("--brand", help="Only this brand, case-insensitive.")]
CanonicalOption = Annotated[
    int | None,
    typer.Option("--canonical-product", min=1, max=2**63 - 1, help="Only this canonical product, by id."),
]


def parse_scope(text: str | None) -> str | None:
    """A two-letter state, ALL or UNKNOWN; None for none."""
    if text is None or text.strip().lower() in (ALL, UNKNOWN):
        return text and text.strip().lower()
    return parse_state(text)


def parse_category(text: str | None, *more: str) -> str | None:
    """A canonical category, UNKNOWN, or one of `more`; None for none."""
    words = (*sorted(CATEGORIES), *more, UNKNOWN)
    if text is None:
        return None
    if (name := text.strip().lower()) in words:
        return name
    raise Refused(unknown_value("--category", text, words))


def parse_day(text: str | None, option: str) -> date | None:
    """The day of an option; None for none."""
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise Refused(f"{option} {text!r} is not a date: write it as 2026-11-20") from None
