"""Whole tables."""

from __future__ import annotations

from pydantic import Field

from menuwatch.api.schemas.changes import State
from menuwatch.api.schemas.common import Input, Instant, StoreId, Text
from menuwatch.exports.sheets import Format


class ExportQuery(Input):
    """What of a table, and in which format."""

    format: Format = Field(Format.CSV, description="How it is written.")
    since: Instant | None = Field(
        None, description="Only what was crawled, or changed, or lasted, from this time on (ISO 8601 with offset)."
    )
    until: Instant | None = Field(None, description="Only before this time (ISO 8601 with offset).")
    state: list[State] | None = Field(None, description="Only stores of these states, as NM (repeat for several).")
    store: list[StoreId] | None = Field(None, description="Only these stores (repeat for several).")
    platform: list[Text] | None = Field(None, description="Only of these platforms (repeat for several).")
