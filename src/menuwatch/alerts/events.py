"""What alert rules found and whom it was sent to: events and deliveries, and replays of deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.alerts import store as alerts
from menuwatch.alerts.model import Condition
from menuwatch.core.errors import Conflict, NotFound
from menuwatch.core.shapes import Instant, JsonObject, doc, json_of
from menuwatch.db import sql
from menuwatch.db.query import fetch_structs

_q = sql.load(__package__, "events.sql")

DeliveryStatus = Literal["waiting", "sending", "delivered", "failed"]
EventDelivery = Literal["pending", "delivered", "failed", "muted", "no_channel"]


class DeliveryAttempt(Struct, kw_only=True, frozen=True):
    """An attempt to deliver a notification."""

    at: Instant
    code: Annotated[int | None, doc("HTTP status of the response; null if there was none.")]
    error: Annotated[str | None, doc("Null if it succeeded.")]
    ms: Annotated[int | None, doc("Duration in milliseconds.")] = None


class AlertDelivery(Struct, kw_only=True, frozen=True):
    """A notification to one channel."""

    id: int
    rule_id: int
    rule: Annotated[str, doc("Name of the rule.")]
    kind: Literal["alert", "test"]
    channel: Annotated[str, doc("Scheme and host of the channel.")]
    status: DeliveryStatus
    events: Annotated[int, doc("Number of events in the notification.")]
    event_ids: list[int]
    attempts: Annotated[int, doc("Number of attempts since the delivery was created or replayed.")]
    replays: Annotated[int, doc("How often the delivery was replayed on request.")]
    next_attempt_at: Annotated[Instant | None, doc("Null if no attempt is planned.")]
    response_code: Annotated[int | None, doc("HTTP status of the last response; null if there was none.")]
    error: Annotated[str | None, doc("Error of the last attempt; null if it succeeded.")]
    tries: Annotated[msgspec.Raw, json_of(list[DeliveryAttempt])]
    key: Annotated[str, doc("Deduplication key: the same for every attempt and replay; the `webhook-id` header.")]
    payload: Annotated[JsonObject, doc("Body of the message.")]
    created_at: Instant
    delivered_at: Annotated[Instant | None, doc("When the receiver accepted it; null if it has not.")]

    def decode_tries(self) -> list[DeliveryAttempt]:
        return msgspec.json.decode(self.tries, type=list[DeliveryAttempt])


class EventNotification(Struct, kw_only=True, frozen=True):
    """The notification of an event to one channel."""

    id: Annotated[int, doc("Id of the delivery.")]
    channel: Annotated[str, doc("Scheme and host of the channel.")]
    status: DeliveryStatus
    error: Annotated[str | None, doc("Error of the last attempt; null if it succeeded.")]


class AlertEvent(Struct, kw_only=True, frozen=True):
    """An event found by an alert rule."""

    id: int
    rule_id: int
    rule: Annotated[str, doc("Name of the rule.")]
    condition: Condition
    product_id: Annotated[int | None, doc("Null if the event is not about a product.")]
    store_id: Annotated[int | None, doc("Null if the event is not about a store.")]
    fired_at: Annotated[Instant, doc("Time of the event; for a product the crawl that found it.")]
    due_at: Annotated[Instant, doc("Earliest time of the notification.")]
    delivery: Annotated[
        EventDelivery,
        doc(
            "Result of all notifications of the event: `failed` if one failed, `pending` until all are delivered, `muted` if the rule "
            "was muted, `no_channel` if it had no channel."
        ),
    ]
    deliveries: Annotated[msgspec.Raw, json_of(list[EventNotification])]
    facts: Annotated[
        JsonObject, doc("Names of product and store, and the values before and after; of operations the reading.")
    ]

    def decode_deliveries(self) -> list[EventNotification]:
        return msgspec.json.decode(self.deliveries, type=list[EventNotification])


async def list_deliveries(
    conn: AsyncConnection[Any],
    *,
    rule_id: int | None = None,
    status: str | None = None,
    ids: Sequence[int] | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[AlertDelivery]:
    """Deliveries, newest first, those before the id `after`."""
    values = {"rule_id": rule_id, "status": status, "ids": ids, "after": after, "limit": limit}
    return await fetch_structs(conn, AlertDelivery, _q.deliveries, values)


async def list_events(
    conn: AsyncConnection[Any], *, rule_id: int | None = None, after: int | None = None, limit: int = 50
) -> list[AlertEvent]:
    """Events, newest first, those before the id `after`."""
    return await fetch_structs(conn, AlertEvent, _q.events, {"rule_id": rule_id, "after": after, "limit": limit})


async def replay(conn: AsyncConnection[Any], delivery_id: int, *, now: datetime) -> AlertDelivery:
    """Queues a message again, with the same key; returns it. Raises NotFound and Conflict."""
    deliveries = await list_deliveries(conn, ids=[delivery_id], limit=1)
    if not deliveries:
        raise NotFound(f"delivery {delivery_id} does not exist")
    if not await alerts.replay(conn, delivery_id, now):
        found = deliveries[0]
        why = (
            f"it is {found.status}"
            if found.status not in ("delivered", "failed")
            else "there is no message to send"
            if found.channel == "none"
            else "its channel was removed or changed"
        )
        raise Conflict(f"delivery {delivery_id} cannot be sent again: {why}")
    await audit.record(conn, "alert_replayed", ("delivery", delivery_id))
    return (await list_deliveries(conn, ids=[delivery_id], limit=1))[0]
