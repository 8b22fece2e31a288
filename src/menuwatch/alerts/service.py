"""Alert rules: list, create, change, preview, mute, test, delete. Their events and deliveries: events.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation

from menuwatch.accounts import audit
from menuwatch.alerts import evaluate_menu as evaluate
from menuwatch.alerts import message, operations
from menuwatch.alerts import store as alerts
from menuwatch.alerts.model import SCOPE, Condition, Digest, Price, Rule
from menuwatch.alerts.operations import ReadOperations
from menuwatch.alerts.validate import AlertSettings, check_rule, suggest
from menuwatch.alerts.webhook import new_secret
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.core.shapes import Instant, doc, json_of
from menuwatch.db import sql
from menuwatch.db.query import fetch_struct, fetch_structs

_q = sql.load(__package__, "service.sql")

_TERMS = (*SCOPE, "condition", "amount", "percent", "option", "price", "hysteresis_percent", "on_existing")
"""A change of one of these resets the states of products under the rule."""
MAX_MUTE = timedelta(days=90)
_STORED = frozenset(spec.name for spec in fields(Rule)) - {
    "id",
    "holds",
    "unlike_since",
    "read_at",
    "created_at",
    "updated_at",
}
_DEFAULTS: dict[str, Any] = {spec.name: spec.default for spec in fields(Rule) if spec.name in _STORED}
_DEFAULTS |= dict.fromkeys(("name", "condition", "reach", "armed_at"))


class AlertChannel(Struct, kw_only=True, frozen=True):
    """A notification channel without its secrets."""

    kind: Literal["webhook", "apprise"]
    shown: Annotated[str, doc("Scheme and host of the channel.")]


class AlertRule(Struct, kw_only=True, frozen=True):
    """An alert rule. Its scope is the combination of product, store, brand, category, search, state and platform."""

    id: int
    name: str
    enabled: Annotated[bool, doc("Whether the rule is evaluated.")]
    condition: Annotated[Condition, doc("Condition that triggers the rule.")]
    product_id: Annotated[int | None, doc("Only this product; null for all.")]
    canonical_product_id: Annotated[int | None, doc("Only listings of this canonical product; null for all.")]
    canonical_product: Annotated[str | None, doc("Name of that product; null if the rule is not limited to one.")]
    store_id: Annotated[int | None, doc("Only this store; null for all.")]
    store: Annotated[str | None, doc("Name of that store; null if the rule is not limited to one.")]
    brand: Annotated[str | None, doc("Only this brand; null for all.")]
    category: Annotated[str | None, doc("Only this category; null for all.")]
    search: Annotated[str | None, doc("Only products whose name contains this text; null for all.")]
    state: Annotated[str | None, doc("Only stores in this state (two letters); null for all.")]
    platform: Annotated[str | None, doc("Only stores on this platform; null for all.")]
    latitude: Annotated[float | None, doc("Only stores within `miles` of this position; null for all.")]
    longitude: Annotated[float | None, doc("Only stores within `miles` of this position; null for all.")]
    miles: Annotated[float | None, doc("Only stores this near to the position; null for all.")]
    amount: Annotated[
        Decimal | None,
        doc("Price threshold, or size of the price drop, in the store's currency; null if the condition has none."),
    ]
    percent: Annotated[Decimal | None, doc("Size of the price drop in percent; null if the condition has none.")]
    option: Annotated[str | None, doc("Size or package to compare; null for the cheapest one.")]
    price: Annotated[Price, doc("Price to compare; `effective` is what a customer pays.")]
    hysteresis_percent: Annotated[
        Decimal, doc("How far above the threshold a price must rise before the rule can fire again, in percent.")
    ]
    debounce_crawls: Annotated[int, doc("Consecutive crawls that must confirm the condition.")]
    debounce_minutes: Annotated[int, doc("How long the condition must hold, in minutes of crawl time.")]
    cooldown_minutes: Annotated[int, doc("Minimum time between two alerts about one product, in minutes.")]
    digest: Annotated[Digest, doc("When notifications are sent.")]
    digest_at: Annotated[str | None, doc("Time of day of a daily digest, as 08:00; null for other rules.")]
    timezone: Annotated[str, doc("IANA time zone of a daily digest.")]
    on_existing: Annotated[Literal["skip", "fire"], doc("Whether the rule fires for products that already match.")]
    armed_at: Annotated[Instant, doc("When the state of the rule was last reset.")]
    muted_until: Annotated[
        Instant | None, doc("Events until then are recorded, and no notification is sent; null if never muted.")
    ]
    firing: Annotated[
        bool, doc("Whether a rule about operations is firing and has not recovered; circuits are reported by host.")
    ]
    channels: Annotated[msgspec.Raw, json_of(list[AlertChannel])]
    last_fired_at: Annotated[Instant | None, doc("Null if it never fired.")]
    pending: Annotated[int, doc("Number of products that match but have not matched long enough yet.")]
    created_at: Instant
    updated_at: Instant

    def decode_channels(self) -> list[AlertChannel]:
        return msgspec.json.decode(self.channels, type=list[AlertChannel])


class GeneratedSecret(Struct, kw_only=True, frozen=True):
    """A webhook secret that was generated."""

    channel: Annotated[str, doc("Scheme and host of the channel.")]
    secret: Annotated[str, doc("Key that signs the messages. Returned only once.")]


class CreatedRule(Struct, kw_only=True, frozen=True):
    """A rule that was created or changed."""

    rule: AlertRule
    warnings: Annotated[tuple[str, ...], doc("Warnings about the rule; empty if there are none.")]
    fired: Annotated[int, doc("Number of products for which the rule fired immediately because they already matched.")]
    secrets: Annotated[tuple[GeneratedSecret, ...], doc("Secrets of webhooks that were given none.")]


class RulePreview(Struct, kw_only=True, frozen=True):
    """What a rule would do now."""

    would_fire: Annotated[int, doc("Number of alerts that creating or resetting the rule would cause now.")]
    matching: Annotated[
        int | None,
        doc("Number of products that match now; null for rules about operations, and for conditions that are changes."),
    ]
    in_scope: Annotated[int | None, doc("Number of products in the scope; null for rules about operations.")]
    complete: Annotated[bool, doc("False if there are too many candidates to check: the numbers are then minimums.")]
    detail: Annotated[str, doc("The result as a sentence.")]
    warnings: Annotated[tuple[str, ...], doc("Warnings about the rule; empty if there are none.")]


class QueuedDeliveries(Struct, kw_only=True, frozen=True):
    """Queued test deliveries."""

    deliveries: Annotated[list[int], doc("Ids of the deliveries.")]


async def list_rules(conn: AsyncConnection[Any], *, after: int | None = None, limit: int = 50) -> list[AlertRule]:
    """Rules by id, those after the id `after`."""
    return await fetch_structs(conn, AlertRule, _q.rules, {"id": None, "after": after, "limit": limit})


async def get_rule(conn: AsyncConnection[Any], rule_id: int) -> AlertRule:
    """One rule; raises NotFound."""
    rule = await fetch_struct(conn, AlertRule, _q.rules, {"id": rule_id, "after": None, "limit": 1})
    if rule is None:
        raise NotFound(f"alert rule {rule_id} does not exist")
    return rule


async def lock_rule(conn: AsyncConnection[Any], rule_id: int) -> Rule:
    """Locks a rule until the transaction ends; raises NotFound."""
    rule = await alerts.lock(conn, rule_id)
    if rule is None:
        raise NotFound(f"alert rule {rule_id} does not exist")
    return rule


async def find_rule(conn: AsyncConnection[Any], text: str) -> Rule:
    """The rule with that name or id; raises NotFound with similar names."""
    rule = await alerts.find(conn, text)
    if rule is None:
        names = [rule.name for rule in await alerts.list_rules(conn)]
        raise NotFound(f"alert rule {text!r} does not exist{suggest(text, names)}")
    return rule


async def add_rule(
    conn: AsyncConnection[Any], wish: Mapping[str, Any], *, settings: AlertSettings, now: datetime
) -> CreatedRule:
    """Creates a rule from `wish` (columns of a rule, `store`, and `channels` of kind, url and secret). Raises InvalidField."""
    given, secrets = _with_secrets(wish.get("channels") or ())
    checked = await check_rule(conn, {**_DEFAULTS, **_columns(wish)}, wish.get("store"), given, settings)
    values, channels, warnings = checked
    rule = await alerts.insert(conn, values, now)
    if rule is None:
        raise _name_taken(values["name"])
    await alerts.set_channels(conn, rule.id, channels)
    if not channels:
        warnings.append("it has no channel: events are recorded, but no notification is sent")
    fired = await _fire_existing(conn, rule, now)
    await audit.record(
        conn, "alert_rule_created", ("alert_rule", rule.id), name=rule.name, condition=rule.condition, reach=rule.reach
    )
    return _created(await get_rule(conn, rule.id), warnings, fired, channels, secrets)


async def change_rule(
    conn: AsyncConnection[Any], rule_id: int, wish: Mapping[str, Any], *, settings: AlertSettings, now: datetime
) -> CreatedRule:
    """Changes the fields in `wish`; `channels` are replaced as a whole. A rule is reset when it is enabled, or its scope or condition
    changes. Raises NotFound and InvalidField."""
    rule = await lock_rule(conn, rule_id)
    before = {name: getattr(rule, name) for name in _STORED}
    given, secrets = _with_secrets(wish.get("channels") or ())
    checked = await check_rule(conn, {**before, **_columns(wish)}, wish.get("store"), given, settings)
    values, channels, warnings = checked
    reset = values["enabled"] and (not rule.enabled or any(values[name] != before[name] for name in _TERMS))
    values["armed_at"] = now if reset else rule.armed_at
    try:
        async with conn.transaction():
            changed = await alerts.update(conn, rule_id, values, now)
    except UniqueViolation:
        raise _name_taken(values["name"]) from None
    if wish.get("channels") is not None:
        await alerts.set_channels(conn, rule_id, channels)
    fired = 0
    if reset:
        await alerts.forget_states(conn, rule_id)
        fired = await _fire_existing(conn, changed, now)
    # Names alone: the values hold addresses and secrets of channels.
    await audit.record(conn, "alert_rule_changed", ("alert_rule", rule_id), name=changed.name, fields=sorted(wish))
    return _created(await get_rule(conn, rule_id), warnings, fired, channels, secrets)


def _with_secrets(channels: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The channels, webhooks without a secret with a generated one; these by place."""
    given = [dict(channel) for channel in channels]
    secrets = {
        place: new_secret() for place, one in enumerate(given) if one["kind"] == "webhook" and one.get("secret") is None
    }
    for place, secret in secrets.items():
        given[place]["secret"] = secret
    return given, secrets


def _created(
    rule: AlertRule,
    warnings: Sequence[str],
    fired: int,
    channels: Sequence[Mapping[str, Any]],
    secrets: Mapping[int, str],
) -> CreatedRule:
    shown = tuple(GeneratedSecret(channel=channels[place]["shown"], secret=text) for place, text in secrets.items())
    return CreatedRule(rule=rule, warnings=tuple(warnings), fired=fired, secrets=shown)


async def mute_rule(conn: AsyncConnection[Any], rule_id: int, until: datetime | None, *, now: datetime) -> AlertRule:
    """Sends no notification of the rule's events until then; None: unmutes it. Raises NotFound and InvalidField."""
    rule = await lock_rule(conn, rule_id)
    if until is not None and not now < until <= now + MAX_MUTE:
        raise InvalidField("until", f"mute a rule for up to {MAX_MUTE.days} days from now, or disable it")
    await alerts.update(conn, rule_id, {name: getattr(rule, name) for name in _STORED} | {"muted_until": until}, now)
    action = "alert_rule_muted" if until else "alert_rule_unmuted"
    await audit.record(conn, action, ("alert_rule", rule_id), name=rule.name, until=until and until.isoformat())
    return await get_rule(conn, rule_id)


async def preview(
    conn: AsyncConnection[Any],
    wish: Mapping[str, Any],
    *,
    rule_id: int | None = None,
    settings: AlertSettings,
    now: datetime,
    read: ReadOperations,
) -> RulePreview:
    """What `add_rule`, or `change_rule` of that rule, would do with `wish`; changes nothing. Raises what they raise."""
    before = _DEFAULTS if rule_id is None else {name: getattr(await lock_rule(conn, rule_id), name) for name in _STORED}
    given, _ = _with_secrets(wish.get("channels") or ())
    values, _, warnings = await check_rule(conn, {**before, **_columns(wish)}, wish.get("store"), given, settings)
    rule = Rule(**{**values, "id": 0, "armed_at": now, "created_at": now, "updated_at": now})
    if rule.reach == "operations":
        would, detail = await operations.preview(conn, rule, read)
        matching, scope, complete = None, None, True
    else:
        found = await evaluate.count_existing(conn, rule, now)
        would, matching, scope, complete, detail = (
            found.would_fire,
            found.matching,
            found.in_scope,
            found.complete,
            found.text(),
        )
    return RulePreview(
        would_fire=would, matching=matching, in_scope=scope, complete=complete, detail=detail, warnings=tuple(warnings)
    )


async def remove_rule(conn: AsyncConnection[Any], rule_id: int) -> AlertRule:
    """Deletes a rule with its events and deliveries; returns it. Raises NotFound."""
    rule = await get_rule(conn, rule_id)
    await alerts.remove(conn, rule_id)
    await audit.record(conn, "alert_rule_removed", ("alert_rule", rule_id), name=rule.name)
    return rule


async def send_test(conn: AsyncConnection[Any], rule_id: int, *, now: datetime) -> list[int]:
    """Queues a test message for each channel of a rule; returns their ids. Raises NotFound, and Conflict without a channel."""
    rule = await lock_rule(conn, rule_id)
    channels = await alerts.channels(conn, [rule_id])
    if not channels:
        raise Conflict(f"alert rule {rule.name!r} has no channel: add one to send a test")
    body = message.sample(rule, now)
    await audit.record(conn, "alert_tested", ("alert_rule", rule_id), channels=len(channels))
    return [await alerts.add_delivery(conn, channel, body, now, kind="test") for channel in channels]


async def _fire_existing(conn: AsyncConnection[Any], rule: Rule, now: datetime) -> int:
    if not rule.enabled or rule.on_existing != "fire":
        return 0
    return await evaluate.evaluate_existing(conn, rule, now)


def _columns(wish: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wish.items() if name in _STORED}


def _name_taken(name: str) -> InvalidField:
    return InvalidField("name", f"alert rule {name!r} already exists: choose another name")
