"""Alert rules, their events and deliveries."""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.alerts import events as alert_events
from menuwatch.alerts import service as alerts
from menuwatch.alerts.events import AlertDelivery, AlertEvent, DeliveryStatus
from menuwatch.alerts.model import Condition, Digest, Price
from menuwatch.alerts.service import AlertRule, CreatedRule, QueuedDeliveries, RulePreview
from menuwatch.alerts.validate import AlertSettings, near_values
from menuwatch.api.inputs import BIGINT_MAX, INTEGER_MAX, BigId, Input, Instant, PageQuery, Place, StoreId, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import IfMatch, answer, check_if_match, returns, returns_page, tag_of
from menuwatch.db.clock import database_now
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, PLACE_FORMS
from menuwatch.ops import alert_readings
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn

Number = Annotated[Decimal, Field(allow_inf_nan=False, max_digits=20), WithJsonSchema({"type": "number"})]
Position = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=-INTEGER_MAX, le=INTEGER_MAX)]
Short = Annotated[Text, Field(min_length=1, max_length=200)]


def _on_the_minute(value: time) -> time:
    if value.second or value.microsecond or value.tzinfo is not None:
        raise ValueError("must be hours and minutes, for example 08:00")
    return value


class ChannelInput(Input):
    """A notification channel. Its secrets are stored encrypted and never returned."""

    kind: Literal["webhook", "apprise"] = Field(
        description="`webhook` for your own endpoint, `apprise` for a service that Apprise supports."
    )
    url: Annotated[Text, Field(min_length=1, max_length=2000)] = Field(
        description="An http(s) address, or a notification URL such as `ntfy://topic`."
    )
    secret: Annotated[Text, Field(max_length=1000)] | None = Field(
        None,
        description="Webhooks only: key that signs the messages, at least 16 characters; generated and returned once if omitted.",
    )


class _RuleInput(Input):
    product_id: BigId | None = Field(None, description="Only this product.")
    canonical_product_id: BigId | None = Field(
        None,
        description="Only listings of this canonical product, in all stores. A new listing is evaluated with its store's next menu "
        "after it was matched.",
    )
    store_id: StoreId | None = Field(None, description="Only this store.")
    brand: Short | None = Field(None, description="Only this brand, case-insensitive.")
    category: Short | None = Field(None, description="Only this category, canonical or as the platform names it.")
    search: Short | None = Field(None, description="Only products whose name contains this text, case-insensitive.")
    state: Text | None = Field(None, description="Only stores in this state (two letters).")
    platform: Text | None = Field(None, description="Only stores on this platform.")
    near: Place | None = Field(
        None,
        description=f"Only stores within `miles` of this place: {PLACE_FORMS}. It is stored as `latitude` and `longitude`, and given "
        "instead of them; null removes the place.",
        examples=["Santa Fe, NM", "87501", "35.08,-106.65"],
    )
    latitude: Position | None = Field(None, description="Only stores within `miles` of this position.")
    longitude: Position | None = Field(None, description="Only stores within `miles` of this position.")
    miles: Position | None = Field(
        None, description=f"Distance from the place, at most {FARTHEST_MILES}; with `near` {DEFAULT_MILES} if omitted."
    )
    amount: Number | None = Field(
        None,
        description="Price threshold or size of the price drop in the store's currency, or limit of a rule about operations: stores "
        "(`stores_stale`, `schema_drift`), minutes (`backlog_age`), payloads (`quarantined`), proxies (`proxies_below`), GB "
        "(`disk_low`), hours (`backup_age`), findings (`quality_findings`), category words (`new_category_words`).",
    )
    percent: Number | None = Field(
        None,
        description="Size of the price drop in percent of the previous price, or limit of `failure_rate` or `coverage_below` in "
        "percent.",
    )
    option: Short | None = Field(None, description="Size or package to compare; the cheapest one if omitted.")
    digest_at: (
        Annotated[time, AfterValidator(_on_the_minute), WithJsonSchema({"type": "string", "format": "time"})] | None
    ) = Field(None, description="Time of day of a daily digest, for example 08:00.")

    price: Price = Field("effective", description="Price to compare; `effective` is what a customer pays.")
    hysteresis_percent: Number = Field(
        Decimal(2),
        description="How far above the threshold a price must rise before the rule can fire again, in percent.",
    )
    debounce_crawls: Count = Field(1, description="Consecutive crawls that must confirm the condition.")
    debounce_minutes: Count = Field(0, description="How long the condition must hold, in minutes of crawl time.")
    cooldown_minutes: Count = Field(0, description="Minimum time between two alerts about one product, in minutes.")
    digest: Digest = Field("immediately", description="When notifications are sent.")
    timezone: Text = Field("UTC", description="IANA time zone of a daily digest.")
    on_existing: Literal["skip", "fire"] = Field(
        "skip", description="Whether the rule fires for products that already match when it is created or reset."
    )
    enabled: bool = Field(True, strict=True, description="Whether the rule is evaluated.")
    channels: Annotated[list[ChannelInput], Field(max_length=10)] = Field(
        default_factory=list, description="Channels that receive the notifications."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.near is not None and (self.latitude is not None or self.longitude is not None):
            raise ValueError("a place is `near`, or `latitude` and `longitude`: give one of them")
        return self

    def changes(self) -> dict[str, Any]:
        """The fields that the request sets."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        if "near" in values:
            near = values.pop("near")
            place = dict.fromkeys(("latitude", "longitude", "miles")) if near is None else near_values(near, self.miles)
            values |= place
        if "store_id" in values:
            values["dispensary_id"] = values.pop("store_id")
        if "channels" in values:
            values["channels"] = [channel.model_dump() for channel in self.channels]
        return values


class NewRule(_RuleInput):
    """A rule to create. Its scope is the combination of product or canonical product, place, store, brand, category, search, state and
    platform."""

    name: Short = Field(description="Unique name of the rule.")
    condition: Condition = Field(description="Condition that triggers the rule.")


class RuleChange(_RuleInput):
    """Changes to a rule; omitted fields keep their value. Channels are replaced as a whole."""

    name: Short = Field("", description="Unique name of the rule.")
    condition: Condition = Field("price_below", description="Condition that triggers the rule.")

    @model_validator(mode="after")
    def _changes_something(self) -> RuleChange:
        if not self.model_fields_set:
            raise ValueError(f"nothing to change: give at least one of {', '.join(RuleChange.model_fields)}")
        return self


class Mute(Input):
    """How long to mute a rule."""

    until: Instant | None = Field(
        description="Until when no notification is sent, at most 90 days from now; null unmutes the rule."
    )


class EventQuery(PageQuery):
    """Which events."""

    rule_id: StoreId | None = Field(None, description="Only this rule.")


class DeliveryQuery(EventQuery):
    """Which messages."""

    status: DeliveryStatus | None = Field(None, description="Only this status.")


router = APIRouter(prefix="/api/alerts", tags=["alerts"], dependencies=[require_by_method(Permission.ALERTS)])

RulePath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the rule.")]
DeliveryPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the delivery.")]


def _alert_settings(system: AppContext) -> AlertSettings:
    return AlertSettings.of(system.settings, tuple(system.platforms))


@router.get("", **returns_page(AlertRule), summary="List alert rules")
async def list_alert_rules(request: Request, conn: ReadConn, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists all alert rules by id."""
    keys = Keyset(query, int, "alert rules")
    rules = await alerts.list_rules(conn, after=keys.after, limit=keys.limit)
    return keys.page(request, rules, lambda rule: rule.id)


@router.post("", **returns(CreatedRule, 201), summary="Create an alert rule")
async def make_alert_rule(request: Request, system: AppDep, conn: WriteConn, rule: NewRule) -> Response:
    """Creates a rule. One that could never fire is refused with the reason."""
    settings, now = _alert_settings(system), await database_now(conn)
    return _created(request, await alerts.add_rule(conn, rule.changes(), settings=settings, now=now), status=201)


def _created(request: Request, rule: CreatedRule, status: int = 200, **headers: str) -> Response:
    if rule.secrets:
        headers["Cache-Control"] = "no-store"
    return answer(request, rule, status=status, headers=headers)


@router.post("/preview", **returns(RulePreview), summary="Preview an alert rule")
async def preview_alert_rule(request: Request, system: AppDep, conn: WriteConn, rule: NewRule) -> Response:
    """Checks a rule as if it were created, and says how often it would fire now. Nothing is changed."""
    settings, now = _alert_settings(system), await database_now(conn)
    read = alert_readings.reader(system.settings)
    return answer(request, await alerts.preview(conn, rule.changes(), settings=settings, now=now, read=read))


@router.get("/events", **returns_page(AlertEvent), summary="List alert events, newest first")
async def list_alert_events(request: Request, conn: ReadConn, query: Annotated[EventQuery, Query()]) -> Response:
    """Lists each event once, with the product before and after it, and the result of its notifications."""
    keys = Keyset(query, int, "alert events", query.rule_id)
    events = await alert_events.list_events(conn, rule_id=query.rule_id, after=keys.after, limit=keys.limit)
    return keys.page(request, events, lambda event: event.id)


@router.get("/deliveries", **returns_page(AlertDelivery), summary="List alert deliveries, newest first")
async def list_alert_deliveries(request: Request, conn: ReadConn, query: Annotated[DeliveryQuery, Query()]) -> Response:
    """Lists deliveries with all attempts."""
    keys = Keyset(query, int, "alert deliveries", query.rule_id, query.status)
    deliveries = await alert_events.list_deliveries(
        conn, rule_id=query.rule_id, status=query.status, after=keys.after, limit=keys.limit
    )
    return keys.page(request, deliveries, lambda delivery: delivery.id)


@router.post("/deliveries/{delivery_id}/replay", **returns(AlertDelivery), summary="Replay an alert delivery")
async def replay_alert_delivery(request: Request, conn: WriteConn, delivery_id: DeliveryPath) -> Response:
    """Sends the same message again under the same key; its `replay` field counts the replays."""
    return answer(request, await alert_events.replay(conn, delivery_id, now=await database_now(conn)))


@router.get("/{rule_id}", **returns(AlertRule), summary="Get an alert rule")
async def show_alert_rule(request: Request, conn: ReadConn, rule_id: RulePath) -> Response:
    """Returns one rule."""
    return answer(request, await alerts.get_rule(conn, rule_id))


@router.patch("/{rule_id}", **returns(CreatedRule), summary="Change an alert rule")
async def change_alert_rule(
    request: Request, system: AppDep, conn: WriteConn, rule_id: RulePath, change: RuleChange, if_match: IfMatch = None
) -> Response:
    """Changes the given fields. A new scope or condition, or enabling the rule, resets its state."""
    await alerts.lock_rule(conn, rule_id)
    check_if_match(if_match, await alerts.get_rule(conn, rule_id), f"alert rule {rule_id}")
    settings, now = _alert_settings(system), await database_now(conn)
    changed = await alerts.change_rule(conn, rule_id, change.changes(), settings=settings, now=now)
    return _created(request, changed, ETag=tag_of(changed.rule))


@router.post("/{rule_id}/mute", **returns(AlertRule), summary="Mute or unmute an alert rule")
async def mute_alert_rule(request: Request, conn: WriteConn, rule_id: RulePath, mute: Mute) -> Response:
    """Events of a muted rule are recorded, and no notification of them is sent."""
    return answer(request, await alerts.mute_rule(conn, rule_id, mute.until, now=await database_now(conn)))


@router.delete("/{rule_id}", **returns(AlertRule), summary="Delete an alert rule")
async def remove_alert_rule(request: Request, conn: WriteConn, rule_id: RulePath) -> Response:
    """Deletes the rule with its events and deliveries; returns the deleted rule."""
    return answer(request, await alerts.remove_rule(conn, rule_id))


@router.post("/{rule_id}/test", **returns(QueuedDeliveries, 202), summary="Send a test notification")
async def test_alert_rule(request: Request, conn: WriteConn, rule_id: RulePath) -> Response:
    """Sends one to each channel within seconds; the result is in the list of deliveries."""
    ids = await alerts.send_test(conn, rule_id, now=await database_now(conn))
    return answer(request, QueuedDeliveries(deliveries=ids), status=202)
