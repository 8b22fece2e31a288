"""The archive."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from menuwatch.api.schemas.common import BIGINT_MAX, Amount, Input, Page, PageQuery, StoreId

PayloadStatus = Literal["ok", "partial", "quarantined", "rejected"]


class StorePayloadQuery(PageQuery):
    """Which payloads of a store."""

    status: PayloadStatus | None = Field(None, description="Only payloads with this status.")


class PayloadQuery(StorePayloadQuery):
    """Which payloads."""

    dispensary_id: StoreId | None = Field(None, description="Only payloads of this store.")


class LatestQuery(Input):
    """Which payload counts as the latest."""

    status: PayloadStatus | None = Field(
        None, description="The newest with this status; the newest of all when left out."
    )


class DiffQuery(Input):
    """Which payloads are compared."""

    from_: int | None = Field(
        None, alias="from", ge=1, le=BIGINT_MAX, description="The older payload; the ok one before `to` when left out."
    )
    to: int | None = Field(None, ge=1, le=BIGINT_MAX, description="The newer payload; the newest ok one when left out.")


class Payload(BaseModel):
    """One archived answer of a platform for one store."""

    id: int = Field(description="Number of the payload.")
    task_id: int | None = Field(description="The task that fetched it; null for one that was replayed from a file.")
    dispensary_id: int = Field(description="The store.")
    platform: str = Field(description="The platform that answered.")
    status: PayloadStatus = Field(
        description="`ok`; `partial`: pages are missing; `quarantined`: looks wrong, waits for a person; `rejected`: no menu at all."
    )
    reason: str | None = Field(description="Why it is not `ok`.")
    product_count: int = Field(description="Distinct products in it.")
    total_count: int | None = Field(description="How many products the platform said there are.")
    page_count: int = Field(description="Pages that were fetched.")
    is_first: bool = Field(description="It is the store's first crawl.")
    fetched_at: datetime = Field(description="When it was fetched.")
    path: str = Field(description="The file, relative to the storage root.")
    bytes: int = Field(description="Size of the compressed file, in bytes.")
    raw_bytes: int = Field(description="Size before compression, in bytes.")
    sha256: str = Field(description="SHA-256 of the document before compression; also the ETag of its data.")
    content_sha256: str = Field(description="SHA-256 of the answers alone: equal menus have equal ones.")
    notes: list[str] = Field(description="What was odd about the crawl.")
    applied_at: datetime | None = Field(description="When the catalogue took it over.")
    released_at: datetime | None = Field(description="When a person released it from quarantine.")
    created_at: datetime = Field(description="When the row was written.")


class Released(BaseModel):
    """A payload that was taken out of quarantine."""

    payload: Payload = Field(description="The payload as it is now.")
    task_id: int = Field(description="The `product_refresh` task that applies it.")


class _Camel(BaseModel):
    """This answer alone has names in camelCase: other people's scripts read them."""

    model_config = ConfigDict(alias_generator=to_camel)


class DiffPayload(_Camel):
    """One side of a comparison."""

    id: int = Field(description="Number of the payload.")
    fetched_at: datetime = Field(description="When it was fetched.")
    product_count: int = Field(description="Distinct products in it.")


class DiffCounts(_Camel):
    """Numbers of products that differ."""

    added: int = Field(description="Products that only the newer menu has.")
    removed: int = Field(description="Products that only the older menu has.")
    price_changes: int = Field(description="Products whose prices differ.")
    stock_changes: int = Field(description="Products whose stock differs.")
    unreadable: int = Field(
        description="Products that stand in one of the menus but cannot be read there: these are neither added nor removed."
    )


class DiffItem(_Camel):
    """A product that one of the menus has and the other has not."""

    provider_product_id: str = Field(description="The platform's id of the product.")
    name: str = Field(description="Its name.")
    brand_name: str | None = Field(description="Its brand.")
    price_rec: Amount | None = Field(description="Lowest recreational price over its options.")
    stock_status: str = Field(description="`in_stock`, `oos` or `unknown`.")


class DiffPrices(_Camel):
    """What one option costs."""

    option: str = Field(description="Size or package.")
    price_rec: Amount | None = Field(description="Recreational price.")
    price_rec_special: Amount | None = Field(description="Recreational price with the best special.")
    price_med: Amount | None = Field(description="Medical price.")
    price_med_special: Amount | None = Field(description="Medical price with the best special.")


class DiffStock(_Camel):
    """How much there is of one option."""

    option: str = Field(description="Size or package.")
    stock_status: str = Field(description="`in_stock`, `oos` or `unknown`.")
    quantity: int | None = Field(description="Packages; null where the menu does not say.")
    capped: bool = Field(description="There may be more.")


class DiffStockSide(_Camel):
    """Stock of one product in one of the menus."""

    stock_status: str = Field(description="Of the product as a whole.")
    options: list[DiffStock] = Field(description="Of each option.")


class DiffPriceChange(_Camel):
    """A product whose prices differ."""

    provider_product_id: str = Field(description="The platform's id of the product.")
    name: str = Field(description="Its name in the newer menu.")
    before: list[DiffPrices] = Field(description="Options in the older menu.")
    after: list[DiffPrices] = Field(description="Options in the newer menu.")


class DiffStockChange(_Camel):
    """A product whose stock differs."""

    provider_product_id: str = Field(description="The platform's id of the product.")
    name: str = Field(description="Its name in the newer menu.")
    before: DiffStockSide = Field(description="In the older menu.")
    after: DiffStockSide = Field(description="In the newer menu.")


class DiffUnreadable(_Camel):
    """A product that stands in a menu but cannot be read there."""

    provider_product_id: str | None = Field(description="The platform's id of the product; null where it has none.")
    name: str | None = Field(description="Its name, where one of the menus has it in a form that can be read.")
    before: str | None = Field(
        description="Why it cannot be read in the older menu; null where it can, or is not there."
    )
    after: str | None = Field(
        description="Why it cannot be read in the newer menu; null where it can, or is not there."
    )


class DiffDetails(_Camel):
    """Every product that differs, by product id."""

    added: list[DiffItem] = Field(description="Products that only the newer menu has.")
    removed: list[DiffItem] = Field(description="Products that only the older menu has.")
    price_changes: list[DiffPriceChange] = Field(description="Products whose prices differ.")
    stock_changes: list[DiffStockChange] = Field(description="Products whose stock differs.")
    unreadable: list[DiffUnreadable] = Field(description="Products that cannot be read in one of the menus.")


class PayloadDiff(_Camel):
    """What differs between two menus of one store."""

    success: Literal[True] = Field(description="Always true; a comparison that cannot be made is a problem.")
    from_: DiffPayload = Field(alias="from", description="The older menu.")
    to: DiffPayload = Field(description="The newer menu.")
    diff: DiffCounts = Field(description="How much differs.")
    details: DiffDetails = Field(description="What differs.")


class PayloadPage(Page[Payload]):
    """One page of payloads."""
