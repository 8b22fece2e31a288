"""The rows of `alert_rules`, `alert_channels`, `alert_events` and `alert_deliveries`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.alerts.model import Rule
from menuwatch.db import sql
from menuwatch.db.query import fetch_struct, fetch_structs

_q = sql.load(__package__)
_encode = msgspec.json.Encoder(decimal_format="number").encode

MAX_EVENTS = 100
"""Events in one message at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel as it is stored: `address` and `secret` may be encrypted, `shown` holds no secret."""

    id: int
    rule_id: int
    kind: Literal["webhook", "apprise"]
    address: str = field(repr=False)
    secret: str | None = field(repr=False)
    shown: str


class Delivery(Struct, frozen=True, kw_only=True):
    """A message that was leased to be sent."""

    id: int
    rule_id: int
    channel_id: int | None
    channel: str
    kind: Literal["alert", "test"]
    key: str
    payload: str
    attempts: int
    replays: int


class DueEvent(NamedTuple):
    """An event whose notification is due."""

    id: int
    rule_id: int
    fired_at: datetime
    facts: str
    """JSON, its numbers as they were."""


async def list_rules(conn: AsyncConnection[Any]) -> list[Rule]:
    """All rules, by id."""
    return await _rules(conn, _q.all_rules, {})


async def find(conn: AsyncConnection[Any], text: str) -> Rule | None:
    """The rule with that name, else with that id."""
    number = int(text) if text.isdecimal() and len(text) < 10 else None
    rules = await _rules(conn, _q.find_rule, {"text": text, "id": number})
    return rules[0] if rules else None


async def lock(conn: AsyncConnection[Any], rule_id: int) -> Rule | None:
    """Locks the rule until the transaction ends: no crawl evaluates it meanwhile."""
    rules = await _rules(conn, _q.lock_rule, {"id": rule_id})
    return rules[0] if rules else None


async def insert(conn: AsyncConnection[Any], values: Mapping[str, Any], now: datetime) -> Rule | None:
    """Inserts a rule, active from `now` on; None if the name is taken."""
    rules = await _rules(conn, _q.insert_rule, {**values, "now": now})
    return rules[0] if rules else None


async def update(conn: AsyncConnection[Any], rule_id: int, values: Mapping[str, Any], now: datetime) -> Rule:
    """Updates a rule. Raises UniqueViolation if the name is taken."""
    (rule,) = await _rules(conn, _q.update_rule, {**values, "id": rule_id, "now": now})
    return rule


async def forget_states(conn: AsyncConnection[Any], rule_id: int) -> None:
    """Resets a rule: deletes the states of products under it."""
    await conn.execute(_q.forget_states, {"rule_id": rule_id})


async def remove(conn: AsyncConnection[Any], rule_id: int) -> None:
    """Deletes a rule with its events and deliveries."""
    await conn.execute(_q.remove_rule, {"id": rule_id})


async def set_channels(conn: AsyncConnection[Any], rule_id: int, channels: Sequence[Mapping[str, Any]]) -> None:
    """Replaces the channels of a rule (kind, address, secret, shown)."""
    await conn.execute(_q.remove_channels, {"rule_id": rule_id})
    for channel in channels:
        await conn.execute(_q.insert_channel, {"rule_id": rule_id, **channel})


async def channels(conn: AsyncConnection[Any], rules: Sequence[int]) -> list[Channel]:
    return await fetch_structs(conn, Channel, _q.channels, {"rules": list(rules)})


async def lock_channels(conn: AsyncConnection[Any]) -> list[Channel]:
    """All channels by id, locked until the transaction ends."""
    return await fetch_structs(conn, Channel, _q.all_channels, {})


async def save_channels(conn: AsyncConnection[Any], channels: Sequence[Channel]) -> None:
    """Stores addresses and secrets of these channels."""
    columns = {
        "ids": [channel.id for channel in channels],
        "addresses": [channel.address for channel in channels],
        "secrets": [channel.secret for channel in channels],
    }
    await conn.execute(_q.save_channels, columns)


async def channel(conn: AsyncConnection[Any], channel_id: int) -> Channel | None:
    return await fetch_struct(conn, Channel, _q.channel, {"id": channel_id})


async def due_events(conn: AsyncConnection[Any], now: datetime, *, rules: int) -> dict[int, list[DueEvent]]:
    """Due events by rule, of at most that many rules and MAX_EVENTS events each, locked until the transaction ends."""
    cursor = await conn.execute(_q.due_events, {"now": now, "rules": rules, "most": MAX_EVENTS})
    events: dict[int, list[DueEvent]] = {}
    for row in await cursor.fetchall():
        events.setdefault(row[1], []).append(DueEvent(*row))
    return events


async def mark_notified(conn: AsyncConnection[Any], events: Sequence[int], *, muted: Sequence[int] = ()) -> None:
    """Marks events as done: put into messages, without a channel, or of one of the `muted` rules."""
    await conn.execute(_q.mark_notified, {"ids": list(events), "muted": list(muted)})


async def add_delivery(
    conn: AsyncConnection[Any],
    channel: Channel,
    payload: Any,
    now: datetime,
    *,
    events: Sequence[int] = (),
    kind: Literal["alert", "test"] = "alert",
) -> int:
    """Queues a message for a channel; returns its id."""
    cursor = await conn.execute(
        _q.insert_delivery,
        {
            "rule_id": channel.rule_id,
            "channel_id": channel.id,
            "channel": channel.shown,
            "kind": kind,
            "event_ids": list(events),
            "payload": _encode(payload).decode(),
            "now": now,
        },
    )
    row = await cursor.fetchone()
    assert row is not None, "an insert gives its row"
    return int(row[0])


async def record_rule_failure(
    conn: AsyncConnection[Any], rules: Sequence[int], error: str, now: datetime, *, events: Sequence[int] = ()
) -> None:
    """Records a failed delivery without a channel for these rules; without events at most once a day."""
    values = {"rules": list(rules), "error": error, "now": now, "events": list(events)}
    await conn.execute(_q.record_rule_failure, values)


async def lease_due(
    conn: AsyncConnection[Any], now: datetime, n: int, *, lease_seconds: float, only: Sequence[int] | None = None
) -> list[Delivery]:
    """Leases up to `n` due messages: each is due again after `lease_seconds`, unless its attempt was recorded."""
    values = {"now": now, "n": n, "lease_seconds": lease_seconds, "only": None if only is None else list(only)}
    return await fetch_structs(conn, Delivery, _q.lease_due, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The result of sending. `code` is the HTTP status of a webhook."""

    at: datetime
    ms: int
    code: int | None = None
    error: str | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver accepted it."""
        return self.error is None

    def _row(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "error": self.error,
            "try": _encode([{"at": self.at, "ms": self.ms, "code": self.code, "error": self.error}]).decode(),
        }


async def delivered(conn: AsyncConnection[Any], delivery: Delivery, attempt: Attempt) -> None:
    """Records an accepted message."""
    await conn.execute(
        _q.delivered, {"id": delivery.id, "attempts": delivery.attempts, "now": attempt.at, **attempt._row()}
    )


async def not_delivered(
    conn: AsyncConnection[Any], delivery: Delivery, attempt: Attempt, again_at: datetime | None
) -> None:
    """Records a failed attempt; the next is at `again_at`, None for none."""
    await conn.execute(
        _q.not_delivered, {"id": delivery.id, "attempts": delivery.attempts, "again_at": again_at, **attempt._row()}
    )


async def next_due(conn: AsyncConnection[Any], now: datetime) -> float | None:
    """Seconds until an event or message is due: negative if it is late, None if there is none."""
    row = await (await conn.execute(_q.next_due, {"now": now})).fetchone()
    return None if row is None or row[0] is None else float(row[0])


async def replay(conn: AsyncConnection[Any], delivery_id: int, now: datetime) -> bool:
    """Queues a message again with the same key; False if it is still queued or its channel is gone."""
    cursor = await conn.execute(_q.replay, {"id": delivery_id, "now": now})
    return await cursor.fetchone() is not None


async def prune(conn: AsyncConnection[Any], before: datetime) -> int:
    """Deletes finished events and messages older than `before`; returns how many."""
    row = await (await conn.execute(_q.prune, {"before": before})).fetchone()
    return 0 if row is None else int(row[0])


async def _rules(conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any]) -> list[Rule]:
    return await fetch_structs(conn, Rule, query, values)
