"""What changed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from menuwatch.api.schemas.common import Page, SpanQuery, StoreId, Text
from menuwatch.api.schemas.products import ChangeSide
from menuwatch.catalog.canon.kinds import Category
from menuwatch.core.errors import Refused
from menuwatch.schedules.model import parse_state

Kind = Literal["price", "price_drop", "price_rise", "stock", "out_of_stock", "back_in_stock"]


def state_code(text: str) -> str:
    """A state as stores have it; raises ValueError with those that exist."""
    try:
        return parse_state(text)
    except Refused as error:
        raise ValueError(str(error)) from None


State = Annotated[Text, AfterValidator(state_code)]
"""A state or province by its two letters."""


class ChangesQuery(SpanQuery):
    """Which changes."""

    kind: Kind | None = Field(
        None,
        description="Only changes of price, or of stock; or drops and rises of what the cheapest option costs, or what went out of "
        "stock or came back.",
    )
    store: list[StoreId] | None = Field(None, description="Only these stores (repeat for several).")
    state: list[State] | None = Field(None, description="Only stores of these states, as NM (repeat for several).")
    category_canon: list[Category] | None = Field(
        None, description="Only these categories of all platforms (repeat for several)."
    )
    brand: list[Text] | None = Field(None, description="Only these brands, in any case (repeat for several).")


class Change(BaseModel):
    """One change of one product's price or stock."""

    product_id: int = Field(description="Number of the product.")
    dispensary_id: int = Field(description="Its store.")
    store: str = Field(description="Name of its store.")
    state: str | None = Field(description="State of its store.")
    provider_product_id: str = Field(description="The platform's id of it.")
    name: str = Field(description="Its name.")
    brand_name: str | None = Field(description="Its brand.")
    category: str | None = Field(description="Its category, in the platform's words.")
    category_canon: str | None = Field(description="What that category is called for all platforms.")
    changed_at: datetime = Field(description="The crawl that saw the change.")
    price_changed: bool = Field(description="Its prices differ.")
    stock_changed: bool = Field(description="Its stock differs.")
    present: bool = Field(description="False where it is out of stock for having been absent three times.")
    before: ChangeSide = Field(description="What it was.")
    after: ChangeSide = Field(description="What it is.")


class ChangePage(Page[Change]):
    """One page of changes."""


class ChangeFeed(BaseModel):
    """The next changes of the feed."""

    items: list[Change] = Field(description="Changes, in the order in which crawls were taken in.")
    next: str = Field(description="`cursor` of what comes behind these. It is always given: ask with it again later.")
    more: bool = Field(
        description="There is more by now: ask again at once. A page may be short or empty and have more behind it."
    )
