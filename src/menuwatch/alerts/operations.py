"""Rules about operations: whether they fire, and when they have recovered.

A rule compares one reading of the installation with its limit. It fires once the reading has been at fault for `debounce_minutes`, and
recovers once it has been fine for as long, and for RECOVERY at least: a reading that hovers around the limit neither fires nor
recovers again and again. Both are events, so both are sent.

The readings are those of the overview and the doctor (`ops.alert_readings`); the composition root passes the function that takes them.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec

from menuwatch.alerts.model import CONDITIONS, Condition, Rule
from menuwatch.alerts.store import record_rule_failure
from menuwatch.core.format import pluralize
from menuwatch.db import sql
from menuwatch.db.items import run_item
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_structs

_q = sql.load(__package__)
_encode = msgspec.json.Encoder(decimal_format="number").encode

EVERY = timedelta(seconds=30)
"""Time between two readings of a rule, by any process."""
RECOVERY = timedelta(minutes=5)


class Reading(NamedTuple):
    """One value of the installation now, and what it is in words. `inf`: there is none of what should be recent, as a backup."""

    value: float
    detail: str


Readings = Mapping[Condition, Reading]
ReadOperations = Callable[[Connection, Collection[Condition]], Awaitable[Readings]]
"""Takes the readings for these conditions. One that cannot be taken is left out."""


def limit(rule: Rule) -> float:
    """The value from which on, or below which, a reading is at fault."""
    value = rule.percent if "percent" in CONDITIONS[rule.condition].fields else rule.amount
    return 1 if value is None else float(value)


def at_fault(rule: Rule, reading: Reading) -> bool:
    """Whether the reading is what the rule is about."""
    return reading.value < limit(rule) if CONDITIONS[rule.condition].below else reading.value >= limit(rule)


def transition(rule: Rule, fault: bool, now: datetime) -> tuple[bool, datetime | None]:
    """Whether the rule is firing after this reading, and since when readings contradict that."""
    if fault == rule.holds:
        return rule.holds, None
    since = rule.unlike_since or now
    debounce = timedelta(minutes=rule.debounce_minutes)
    if now - since >= (debounce if fault else max(debounce, RECOVERY)):
        return fault, None
    return rule.holds, since


async def evaluate(conn: Connection, now: datetime, read: ReadOperations) -> int:
    """Evaluates the rules whose reading is due; returns how many events it created."""
    async with conn.transaction():
        rules = await fetch_structs(conn, Rule, _q.due_operations, {"now": now, "before": now - EVERY})
        if not rules:
            return 0
        circuits = [rule for rule in rules if rule.condition == "circuit_opened"]
        events = await _circuits(conn, circuits, now) if circuits else []
        watched = [rule for rule in rules if rule.condition != "circuit_opened"]
        readings = await read(conn, {rule.condition for rule in watched}) if watched else {}
        for rule in watched:
            if (reading := readings.get(rule.condition)) is not None:
                work = _evaluate(conn, rule, reading, now, events)
                await run_item("alerts", "alert_rule", rule.id, work, partial(_charge, conn, rule, now))
        await conn.execute(_q.insert_events, {"rows": _encode(events).decode()})
    return len(events)


async def preview(conn: Connection, rule: Rule, read: ReadOperations) -> tuple[int, str]:
    """How many alerts a new rule would cause at its first readings, and the present reading as a sentence."""
    if rule.condition == "circuit_opened":
        return 0, "Would not fire now: only circuits that open later are reported."
    reading = (await read(conn, {rule.condition})).get(rule.condition)
    if reading is None:
        return 0, "The present reading is not available."
    if not at_fault(rule, reading):
        return 0, f"Would not fire now: {reading.detail}."
    after = f" after {pluralize(rule.debounce_minutes, 'minute')}, if that lasts" if rule.debounce_minutes else " now"
    return 1, f"Would fire{after}: {reading.detail}."


async def _charge(conn: Connection, rule: Rule, now: datetime, reason: str) -> None:
    await record_rule_failure(conn, [rule.id], f"the rule could not be evaluated: {reason}", now)


async def _evaluate(
    conn: Connection, rule: Rule, reading: Reading, now: datetime, events: list[dict[str, Any]]
) -> None:
    """Adds to `events` where the rule fires or has recovered."""
    holds, since = transition(rule, at_fault(rule, reading), now)
    if holds != rule.holds:
        value = None if math.isinf(reading.value) else reading.value
        facts = {"firing": holds, "detail": reading.detail, "value": value, "limit": limit(rule)}
        events.append(_event(rule, f"{rule.condition}/{now.isoformat()}", now, facts))
    if (holds, since) != (rule.holds, rule.unlike_since):
        await conn.execute(_q.save_holds, {"id": rule.id, "holds": holds, "unlike_since": since})


async def _circuits(conn: Connection, rules: Sequence[Rule], now: datetime) -> list[dict[str, Any]]:
    """Circuits that opened since a rule was armed, and those that are closed again."""
    by_id = {rule.id: rule for rule in rules}
    values = {"rules": list(by_id), "now": now, "before": now - RECOVERY}
    opened = [
        _event(
            by_id[row["rule_id"]],
            row["source"],
            row["happened_at"],
            {"firing": True, "host": row["host"], "reason": row["reason"], "until": row["until"]},
            due=now,
        )
        for row in await fetch_all(conn, _q.opened_circuits, values)
    ]
    closed = [
        _event(by_id[row["rule_id"]], row["source"], now, {"firing": False, "host": row["host"]})
        for row in await fetch_all(conn, _q.closed_circuits, values)
    ]
    return opened + closed


def _event(
    rule: Rule, source: str, fired_at: datetime, facts: Mapping[str, Any], *, due: datetime | None = None
) -> dict[str, Any]:
    return {
        "rule_id": rule.id,
        "source": source,
        "product_id": None,
        "dispensary_id": None,
        "fired_at": fired_at,
        "due_at": rule.due_at(due or fired_at),
        "facts": facts,
    }
