"""The rows of `alert_rules`, `alert_channels`, `alert_events` and `alert_deliveries`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.alerts.model import Rule
from menuwatch.db import sql

_q = sql.load(__package__)
_encode = msgspec.json.Encoder(decimal_format="number").encode

MOST_TOLD = 100
"""Events in one message at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where messages go, as it is stored: address and secret may be sealed, `shown` may be shown to anybody."""

    id: int
    rule_id: int
    kind: Literal["webhook", "apprise"]
    address: str = field(repr=False)
    secret: str | None = field(repr=False)
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message that was taken to be sent."""

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
    """An event that is to be told."""

    id: int
    rule_id: int
    fired_at: datetime
    facts: str
    """JSON, its numbers as they were."""


async def listed(conn: AsyncConnection[Any]) -> list[Rule]:
    """All rules, by number."""
    return await _rules(conn, _q.every_rule, {})


async def find(conn: AsyncConnection[Any], text: str) -> Rule | None:
    """The rule of that name, else of that number."""
    number = int(text) if text.isdecimal() and len(text) < 10 else None
    found = await _rules(conn, _q.find_rule, {"text": text, "id": number})
    return found[0] if found else None


async def lock(conn: AsyncConnection[Any], rule_id: int) -> Rule | None:
    """The rule, locked until the transaction ends: no crawl judges by it meanwhile."""
    found = await _rules(conn, _q.lock_rule, {"id": rule_id})
    return found[0] if found else None


async def insert(conn: AsyncConnection[Any], values: Mapping[str, Any], now: datetime) -> Rule | None:
    """A new rule, armed from `now` on; None where the name is taken."""
    found = await _rules(conn, _q.insert_rule, {**values, "now": now})
    return found[0] if found else None


async def update(conn: AsyncConnection[Any], rule_id: int, values: Mapping[str, Any], now: datetime) -> Rule:
    """The rule as `values` have it. Raises UniqueViolation where the name is another's."""
    (found,) = await _rules(conn, _q.update_rule, {**values, "id": rule_id, "now": now})
    return found


async def forget(conn: AsyncConnection[Any], rule_id: int) -> None:
    """Forgets where products stand under the rule: it begins anew."""
    await conn.execute(_q.forget_standings, {"rule_id": rule_id})


async def remove(conn: AsyncConnection[Any], rule_id: int) -> None:
    """Removes a rule with all that it found and sent."""
    await conn.execute(_q.remove_rule, {"id": rule_id})


async def set_channels(conn: AsyncConnection[Any], rule_id: int, channels: Sequence[Mapping[str, Any]]) -> None:
    """Gives the rule these channels (kind, address, secret, shown) and no others."""
    await conn.execute(_q.remove_channels, {"rule_id": rule_id})
    for channel in channels:
        await conn.execute(_q.insert_channel, {"rule_id": rule_id, **channel})


async def channels(conn: AsyncConnection[Any], rules: Sequence[int]) -> list[Channel]:
    """The channels of those rules."""
    async with conn.cursor(row_factory=class_row(Channel)) as cur:
        await cur.execute(_q.channels, {"rules": list(rules)})
        return await cur.fetchall()


async def every_channel(conn: AsyncConnection[Any]) -> list[Channel]:
    """All channels by number, locked until the caller's transaction ends."""
    async with conn.cursor(row_factory=class_row(Channel)) as cur:
        await cur.execute(_q.every_channel)
        return await cur.fetchall()


async def save_channels(conn: AsyncConnection[Any], channels: Sequence[Channel]) -> None:
    """Stores addresses and secrets of these channels as they are given."""
    columns = {
        "ids": [one.id for one in channels],
        "addresses": [one.address for one in channels],
        "secrets": [one.secret for one in channels],
    }
    await conn.execute(_q.save_channels, columns)


async def channel(conn: AsyncConnection[Any], channel_id: int) -> Channel | None:
    """That channel."""
    async with conn.cursor(row_factory=class_row(Channel)) as cur:
        await cur.execute(_q.channel, {"id": channel_id})
        return await cur.fetchone()


async def due_events(conn: AsyncConnection[Any], now: datetime, *, rules: int) -> dict[int, list[DueEvent]]:
    """What is to be told now, by rule; of at most that many rules and MOST_TOLD events each. Others leave them alone while the
    caller's transaction lasts."""
    cursor = await conn.execute(_q.due_events, {"now": now, "rules": rules, "most": MOST_TOLD})
    found: dict[int, list[DueEvent]] = {}
    for row in await cursor.fetchall():
        found.setdefault(row[1], []).append(DueEvent(*row))
    return found


async def told(conn: AsyncConnection[Any], events: Sequence[int]) -> None:
    """Marks events as put into messages, or as having nobody to be told to."""
    await conn.execute(_q.events_told, {"ids": list(events)})


async def put_delivery(
    conn: AsyncConnection[Any],
    channel: Channel,
    payload: Any,
    now: datetime,
    *,
    events: Sequence[int] = (),
    kind: Literal["alert", "test"] = "alert",
) -> int:
    """A message for a channel, to be sent now; returns its number."""
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
    number: int = row[0]
    return number


async def take_due(
    conn: AsyncConnection[Any], now: datetime, n: int, *, hold: float, only: Sequence[int] | None = None
) -> list[Delivery]:
    """Up to `n` messages that are due, each for one taker: it comes again after `hold` seconds unless the taker says how it went."""
    async with conn.cursor(row_factory=class_row(Delivery)) as cur:
        await cur.execute(_q.take_due, {"now": now, "n": n, "hold": hold, "only": None if only is None else list(only)})
        return await cur.fetchall()


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """How sending went. `code` is the status of a webhook's answer."""

    at: datetime
    ms: int
    code: int | None = None
    error: str | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver has it."""
        return self.error is None

    def _row(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "error": self.error,
            "try": _encode([{"at": self.at, "ms": self.ms, "code": self.code, "error": self.error}]).decode(),
        }


async def delivered(conn: AsyncConnection[Any], one: Delivery, how: Try) -> None:
    """The receiver has the message."""
    await conn.execute(_q.delivered, {"id": one.id, "attempts": one.attempts, "now": how.at, **how._row()})


async def not_delivered(conn: AsyncConnection[Any], one: Delivery, how: Try, again_at: datetime | None) -> None:
    """It has not, and is tried again at `again_at`, or never (None)."""
    await conn.execute(_q.not_delivered, {"id": one.id, "attempts": one.attempts, "again_at": again_at, **how._row()})


async def next_due(conn: AsyncConnection[Any], now: datetime) -> float | None:
    """Seconds until there is something to gather or to send, None where nothing waits; negative while something is late."""
    row = await (await conn.execute(_q.next_due, {"now": now})).fetchone()
    return None if row is None or row[0] is None else float(row[0])


async def replay(conn: AsyncConnection[Any], delivery_id: int, now: datetime) -> bool:
    """Sends a message once more, with the same key; False where it is on its way, or its channel is gone."""
    cursor = await conn.execute(_q.replay, {"id": delivery_id, "now": now})
    return await cursor.fetchone() is not None


async def find_trouble(conn: AsyncConnection[Any], now: datetime) -> int:
    """Events of rules about the work itself: circuits that opened, and proxies that are all down; returns how many."""
    made = (await conn.execute(_q.told_of_circuits, {"now": now})).rowcount
    return made + (await conn.execute(_q.told_of_proxies, {"now": now})).rowcount


async def prune(conn: AsyncConnection[Any], before: datetime) -> int:
    """Drops events and messages that are older and done with; returns how many."""
    row = await (await conn.execute(_q.prune, {"before": before})).fetchone()
    return 0 if row is None else int(row[0])


async def _rules(conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any]) -> list[Rule]:
    async with conn.cursor(row_factory=class_row(Rule)) as cur:
        await cur.execute(query, values)
        return await cur.fetchall()
