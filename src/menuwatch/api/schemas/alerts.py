"""Alert rules, what they found, and what was sent."""

from __future__ import annotations

from datetime import datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema, model_validator

from menuwatch.api.schemas.common import INTEGER_MAX, Amount, BigId, Input, Page, PageQuery, StoreId, Text

Condition = Literal[
    "price_below", "price_drops_by", "back_in_stock", "out_of_stock", "new_product", "circuit_opened", "proxies_down"
]
Number = Annotated[Decimal, Field(allow_inf_nan=False, max_digits=20), WithJsonSchema({"type": "number"})]
Count = Annotated[int, Field(strict=True, ge=-INTEGER_MAX, le=INTEGER_MAX)]
Short = Annotated[Text, Field(min_length=1, max_length=200)]


def _on_the_minute(value: time) -> time:
    if value.second or value.microsecond or value.tzinfo is not None:
        raise ValueError("must be hours and minutes, as 08:00")
    return value


class ChannelInput(Input):
    """Where messages go. What is secret of it is sealed and never shown."""

    kind: Literal["webhook", "apprise"] = Field(description="A webhook of your own, or a service that Apprise knows.")
    url: Annotated[Text, Field(min_length=1, max_length=2000)] = Field(
        description="An http(s) address, or a notification URL as `ntfy://topic`."
    )
    secret: Annotated[Text, Field(max_length=1000)] | None = Field(
        None, description="Of a webhook: signs its messages; at least 16 characters."
    )


class _Wish(Input):
    product_id: BigId | None = Field(None, description="Only this product of one store.")
    store_id: StoreId | None = Field(None, description="Only this store.")
    brand: Short | None = Field(None, description="Only this brand, in any case.")
    category: Short | None = Field(
        None, description="Only this category, in the platform's words or those of all platforms."
    )
    search: Short | None = Field(None, description="Only products whose name contains this, in any case.")
    state: Text | None = Field(None, description="Only stores of this state (two letters).")
    platform: Text | None = Field(None, description="Only stores of this platform.")
    amount: Number | None = Field(None, description="The price to be below, or by how much it is to drop.")
    percent: Number | None = Field(None, description="By what share of the price before it is to drop.")
    option: Short | None = Field(None, description="The size or package; the cheapest when left out.")
    digest_at: (
        Annotated[time, AfterValidator(_on_the_minute), WithJsonSchema({"type": "string", "format": "time"})] | None
    ) = Field(None, description="Time of day of a daily digest, as 08:00.")

    def _named(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.model_fields_set}
        if "store_id" in found:
            found["dispensary_id"] = found.pop("store_id")
        if found.get("channels") is not None:
            found["channels"] = [one.model_dump() for one in self.channels]  # type: ignore[attr-defined]
        return found


class NewRule(_Wish):
    """A rule to make. Its scope is all that is given of product, store, brand, category, search, state and platform."""

    name: Short = Field(description="Its name; no other rule has it.")
    condition: Condition = Field(description="What it waits for.")
    price: Literal["effective", "rec", "special", "med", "med_special"] = Field(
        "effective", description="Which price; `effective` is what a customer pays."
    )
    hysteresis_percent: Number = Field(
        Decimal(2), description="How far above the threshold a price must be until the rule is armed again."
    )
    debounce_crawls: Count = Field(1, description="Crawls in a row that must find it so.")
    debounce_minutes: Count = Field(0, description="For how long it must have been so, as crawls see it.")
    cooldown_minutes: Count = Field(0, description="Shortest time between two alerts about one product.")
    digest: Literal["immediately", "hourly", "daily"] = Field("immediately", description="When it is told.")
    timezone: Text = Field("UTC", description="IANA time zone of a daily digest.")
    on_existing: Literal["skip", "fire"] = Field(
        "skip", description="Whether products for which it holds already fire when the rule begins."
    )
    enabled: bool = Field(True, strict=True, description="Whether it looks at anything.")
    channels: Annotated[list[ChannelInput], Field(max_length=10)] = Field(
        default_factory=list, description="Where its messages go."
    )

    def wish(self) -> dict[str, Any]:
        """What was named."""
        return self._named()


class RuleChange(_Wish):
    """What to change about a rule; what is left out stays. Channels are replaced as a whole."""

    name: Short = Field("", description="Its name.")
    condition: Condition = Field("price_below", description="What it waits for.")
    price: Literal["effective", "rec", "special", "med", "med_special"] = Field("effective", description="Which price.")
    hysteresis_percent: Number = Field(Decimal(2), description="How far above the threshold it is armed again.")
    debounce_crawls: Count = Field(1, description="Crawls in a row that must find it so.")
    debounce_minutes: Count = Field(0, description="For how long it must have been so.")
    cooldown_minutes: Count = Field(0, description="Shortest time between two alerts about one product.")
    digest: Literal["immediately", "hourly", "daily"] = Field("immediately", description="When it is told.")
    timezone: Text = Field("UTC", description="IANA time zone of a daily digest.")
    on_existing: Literal["skip", "fire"] = Field("skip", description="Whether it fires for what holds already.")
    enabled: bool = Field(True, strict=True, description="Whether it looks at anything.")
    channels: Annotated[list[ChannelInput], Field(max_length=10)] = Field(
        default_factory=list, description="Where its messages go."
    )

    @model_validator(mode="after")
    def _changes_something(self) -> RuleChange:
        if not self.model_fields_set:
            raise ValueError(f"names nothing to change: it takes {', '.join(RuleChange.model_fields)}")
        return self

    def wish(self) -> dict[str, Any]:
        """What was named."""
        return self._named()


class Channel(BaseModel):
    """Where messages go, without what is secret of it."""

    kind: str = Field(description="`webhook` or `apprise`.")
    shown: str = Field(description="Its scheme and host.")


class Rule(BaseModel):
    """An alert rule."""

    id: int = Field(description="Number of the rule.")
    name: str = Field(description="Its name.")
    enabled: bool = Field(description="Whether it looks at anything.")
    condition: str = Field(description="What it waits for.")
    product_id: int | None = Field(description="Only this product.")
    store_id: int | None = Field(description="Only this store.")
    store: str | None = Field(description="The name of that store.")
    brand: str | None = Field(description="Only this brand.")
    category: str | None = Field(description="Only this category.")
    search: str | None = Field(description="Only names that contain this.")
    state: str | None = Field(description="Only this state.")
    platform: str | None = Field(description="Only this platform.")
    amount: Amount | None = Field(description="The price to be below, or the size of a drop.")
    percent: Amount | None = Field(description="The size of a drop as a share.")
    option: str | None = Field(description="The size or package.")
    price: str = Field(description="Which price.")
    hysteresis_percent: Amount = Field(description="How far above the threshold it is armed again.")
    debounce_crawls: int = Field(description="Crawls in a row that must find it so.")
    debounce_minutes: int = Field(description="For how long it must have been so.")
    cooldown_minutes: int = Field(description="Shortest time between two alerts about one product.")
    digest: str = Field(description="When it is told.")
    digest_at: str | None = Field(description="Time of day of a daily digest.")
    timezone: str = Field(description="Time zone of that.")
    on_existing: str = Field(description="Whether it fires for what holds already.")
    armed_at: datetime = Field(description="When it last began anew.")
    channels: list[Channel] = Field(description="Where its messages go.")
    last_fired_at: datetime | None = Field(description="When it last found something.")
    pending: int = Field(description="Products for which it holds, but not for long enough yet.")
    created_at: datetime = Field(description="When it was made.")
    updated_at: datetime = Field(description="When anything about it last changed.")


class MadeRule(BaseModel):
    """A rule that was made or changed."""

    rule: Rule = Field(description="The rule.")
    warnings: list[str] = Field(description="What is odd about it.")
    fired: int = Field(description="For how many products it fired at once, because it held already.")


class Delivery(BaseModel):
    """A message to one channel."""

    id: int = Field(description="Number of the message.")
    rule_id: int = Field(description="The rule.")
    rule: str = Field(description="Its name.")
    kind: str = Field(description="`alert` or `test`.")
    channel: str = Field(description="Where it goes: scheme and host.")
    status: str = Field(description="`waiting`, `sending`, `delivered` or `failed`.")
    events: int = Field(description="How many events it tells.")
    event_ids: list[int] = Field(description="Their numbers.")
    attempts: int = Field(description="Tries since it was made or replayed.")
    replays: int = Field(description="How often it was sent again on request.")
    next_attempt_at: datetime | None = Field(description="When it is tried next.")
    response_code: int | None = Field(description="Status of the last answer.")
    error: str | None = Field(description="Why the last try failed.")
    tries: list[dict[str, Any]] = Field(description="Every try: `at`, `ms`, `code`, `error`.")
    key: str = Field(description="The same at every repetition, for the receiver to tell.")
    payload: dict[str, Any] = Field(description="What is sent.")
    created_at: datetime = Field(description="When it was made.")
    delivered_at: datetime | None = Field(description="When its receiver took it.")


class Event(BaseModel):
    """Something that a rule was waiting for."""

    id: int = Field(description="Number of the event.")
    rule_id: int = Field(description="The rule.")
    rule: str = Field(description="Its name.")
    condition: str = Field(description="What it waits for.")
    product_id: int | None = Field(description="The product.")
    store_id: int | None = Field(description="The store.")
    fired_at: datetime = Field(description="When it happened: of a product, the crawl that saw it.")
    due_at: datetime = Field(description="When it is told.")
    told: bool = Field(description="Whether it was put into messages.")
    facts: dict[str, Any] = Field(description="Product and store by name, before and after.")


class Queued(BaseModel):
    """Test messages that are on their way."""

    deliveries: list[int] = Field(description="Their numbers.")


class RulePage(Page[Rule]):
    """Alert rules, by number."""


class DeliveryPage(Page[Delivery]):
    """Messages, newest first."""


class EventPage(Page[Event]):
    """Events, newest first."""


class EventQuery(PageQuery):
    """Which events."""

    rule_id: StoreId | None = Field(None, description="Only of this rule.")


class DeliveryQuery(EventQuery):
    """Which messages."""

    status: Literal["waiting", "sending", "delivered", "failed"] | None = Field(None, description="Only in this state.")
