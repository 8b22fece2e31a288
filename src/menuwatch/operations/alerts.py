"""Alert rules as people make, change and try them. A rule that could never fire is refused, with the reason."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation

from menuwatch.alerts import evaluate, guard, message, notify
from menuwatch.alerts import store as alerts
from menuwatch.alerts.model import OPERATIONS, PRICE_CONDITIONS, Rule
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.proxies.vault import Vault
from menuwatch.schedules.model import parse_state
from menuwatch.stores import store as stores

_q = sql.load(__package__, "alerts.sql")

SCOPE = ("product_id", "dispensary_id", "brand", "category", "search", "state", "platform")
SHORTEST_SECRET = 16
_REACHES = (
    ("product_id", "product"), ("brand", "brand"), ("category", "category"), ("search", "search"), ("dispensary_id", "store"),
)  # fmt: skip
_TERMS = (*SCOPE, "condition", "amount", "percent", "option", "price", "hysteresis_percent", "on_existing")
"""Of a rule in which one of these changes nothing is known any more: it begins anew."""
_STORED = frozenset(spec.name for spec in fields(Rule)) - {"id", "holds", "created_at", "updated_at"}
_DEFAULTS: dict[str, Any] = {spec.name: spec.default for spec in fields(Rule) if spec.name in _STORED}
_DEFAULTS |= dict.fromkeys(("name", "condition", "reach", "armed_at"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What making a rule takes. `platforms` are those that are known."""

    vault: Vault
    allow_private: bool
    platforms: Sequence[str]

    @classmethod
    def of(cls, settings: Settings, platforms: Sequence[str]) -> Means:
        """As the settings have it."""
        allow = bool(settings.alert_allow_private)
        return cls(vault=Vault.from_settings(settings), allow_private=allow, platforms=tuple(platforms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A rule that was made or changed, what is odd about it, and for how many products it fired at once."""

    rule: Row
    warnings: tuple[str, ...]
    fired: int


async def page(conn: AsyncConnection[Any], *, after: int | None = None, limit: int = 50) -> list[Row]:
    """Rules by number, those after `after`."""
    return await rows(conn, _q.rules, {"id": None, "after": after, "limit": limit})


async def one(conn: AsyncConnection[Any], rule_id: int) -> Row:
    """One rule as it is shown; raises NotFound."""
    found = await rows(conn, _q.rules, {"id": rule_id, "after": None, "limit": 1})
    if not found:
        raise NotFound(f"alert rule {rule_id} does not exist")
    return found[0]


async def lock(conn: AsyncConnection[Any], rule_id: int) -> None:
    """Nobody else changes this rule until the transaction ends; raises NotFound."""
    if await alerts.lock(conn, rule_id) is None:
        raise NotFound(f"alert rule {rule_id} does not exist")


async def find(conn: AsyncConnection[Any], text: str) -> Rule:
    """The rule of that name or number; raises NotFound with near names."""
    found = await alerts.find(conn, text)
    if found is None:
        names = [rule.name for rule in await alerts.listed(conn)]
        raise NotFound(f"alert rule {text!r} does not exist{_near(text, names)}")
    return found


async def add(conn: AsyncConnection[Any], wish: Mapping[str, Any], *, means: Means, now: datetime) -> Made:
    """Makes a rule of what `wish` names (the columns of a rule, `store`, and `channels` of kind, url and secret). Raises Unusable."""
    channels = _channels(wish.get("channels") or (), means)
    values, warnings = await _checked(conn, {**_DEFAULTS, **_columns(wish)}, wish.get("store"), means)
    made = await alerts.insert(conn, values, now)
    if made is None:
        raise Unusable("name", f"there is an alert rule {values['name']!r} already: give another name")
    await alerts.set_channels(conn, made.id, channels)
    if not channels:
        warnings.append("it has no channel: what it finds is on the list of events, and nobody is told")
    fired = await _begin(conn, made, now)
    await audit.record(
        conn, "alert_rule_made", ("alert_rule", made.id), name=made.name, condition=made.condition, reach=made.reach
    )
    return Made(rule=await one(conn, made.id), warnings=tuple(warnings), fired=fired)


async def change(
    conn: AsyncConnection[Any], rule_id: int, wish: Mapping[str, Any], *, means: Means, now: datetime
) -> Made:
    """Changes what `wish` names; `channels` are replaced as a whole. A rule that is enabled again, or whose scope or condition is
    another one, begins anew. Raises NotFound and Unusable."""
    rule = await alerts.lock(conn, rule_id)
    if rule is None:
        raise NotFound(f"alert rule {rule_id} does not exist")
    before = {name: getattr(rule, name) for name in _STORED}
    values, warnings = await _checked(conn, {**before, **_columns(wish)}, wish.get("store"), means)
    anew = values["enabled"] and (not rule.enabled or any(values[name] != before[name] for name in _TERMS))
    values["armed_at"] = now if anew else rule.armed_at
    try:
        async with conn.transaction():
            changed = await alerts.update(conn, rule_id, values, now)
    except UniqueViolation:
        raise Unusable("name", f"there is an alert rule {values['name']!r} already: give another name") from None
    if wish.get("channels") is not None:
        await alerts.set_channels(conn, rule_id, _channels(wish["channels"], means))
    fired = 0
    if anew:
        await alerts.forget(conn, rule_id)
        fired = await _begin(conn, changed, now)
    # Names alone: among the values are addresses of channels and their secrets.
    await audit.record(conn, "alert_rule_changed", ("alert_rule", rule_id), name=changed.name, fields=sorted(wish))
    return Made(rule=await one(conn, rule_id), warnings=tuple(warnings), fired=fired)


async def remove(conn: AsyncConnection[Any], rule_id: int) -> Row:
    """Removes a rule with its events and deliveries; returns it as it was. Raises NotFound."""
    found = await one(conn, rule_id)
    await alerts.remove(conn, rule_id)
    await audit.record(conn, "alert_rule_removed", ("alert_rule", rule_id), name=found["name"])
    return found


async def test(conn: AsyncConnection[Any], rule_id: int, *, now: datetime) -> list[int]:
    """Puts a sample message into each channel of a rule; returns their numbers. Raises NotFound, and Conflict where it has none."""
    found = await alerts.lock(conn, rule_id)
    if found is None:
        raise NotFound(f"alert rule {rule_id} does not exist")
    channels = await alerts.channels(conn, [rule_id])
    if not channels:
        raise Conflict(f"alert rule {found.name!r} has no channel: there is nobody to send a test to")
    body = message.sample(found, now)
    await audit.record(conn, "alert_tested", ("alert_rule", rule_id), channels=len(channels))
    return [await alerts.put_delivery(conn, channel, body, now, kind="test") for channel in channels]


async def deliveries(
    conn: AsyncConnection[Any],
    *,
    rule_id: int | None = None,
    status: str | None = None,
    ids: Sequence[int] | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[Row]:
    """Messages, newest first, those before the one numbered `after`."""
    values = {"rule_id": rule_id, "status": status, "ids": ids, "after": after, "limit": limit}
    return await rows(conn, _q.deliveries, values)


async def events(
    conn: AsyncConnection[Any], *, rule_id: int | None = None, after: int | None = None, limit: int = 50
) -> list[Row]:
    """What rules found, newest first, before the one numbered `after`."""
    return await rows(conn, _q.events, {"rule_id": rule_id, "after": after, "limit": limit})


async def replay(conn: AsyncConnection[Any], delivery_id: int, *, now: datetime) -> Row:
    """Sends a message once more, under the same key; returns it. Raises NotFound and Conflict."""
    found = await deliveries(conn, ids=[delivery_id], limit=1)
    if not found:
        raise NotFound(f"delivery {delivery_id} does not exist")
    if not await alerts.replay(conn, delivery_id, now):
        state = found[0]["status"]
        why = "its channel was removed or changed" if state in ("delivered", "failed") else f"it is {state}"
        raise Conflict(f"delivery {delivery_id} cannot be sent again: {why}")
    await audit.record(conn, "alert_replayed", ("delivery", delivery_id))
    return (await deliveries(conn, ids=[delivery_id], limit=1))[0]


async def _begin(conn: AsyncConnection[Any], rule: Rule, now: datetime) -> int:
    if not rule.enabled or rule.on_existing != "fire":
        return 0
    return await evaluate.look_at_existing(conn, rule, now)


def _columns(wish: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wish.items() if name in _STORED}


def _near(text: str, names: Sequence[str]) -> str:
    folded = {name.casefold(): name for name in names}
    found = [folded[near] for near in difflib.get_close_matches(text.casefold(), folded, n=3, cutoff=0.6)]
    return f": did you mean {' or '.join(map(repr, found))}?" if found else ""


async def _checked(
    conn: AsyncConnection[Any], values: dict[str, Any], store: str | None, means: Means
) -> tuple[dict[str, Any], list[str]]:
    if store is not None:
        values["dispensary_id"] = await _store(conn, store)
    if not (values["name"] or "").strip():
        raise Unusable("name", "an alert rule needs a name")
    _check_terms(values)
    _check_times(values)
    _check_scope(values)
    return values, await _check_place(conn, values, means)


async def _store(conn: AsyncConnection[Any], text: str) -> int:
    found = await stores.find(conn, text)
    if found is None:
        names = [row["name"] for row in await rows(conn, _q.store_names, {})]
        raise Unusable("store_id", f"store {text!r} does not exist, so the rule could never fire{_near(text, names)}")
    return found.id


def _check_terms(values: Mapping[str, Any]) -> None:
    condition, amount, percent = values["condition"], values["amount"], values["percent"]
    if condition not in PRICE_CONDITIONS:
        for name in ("amount", "percent"):
            if values[name] is not None:
                raise Unusable(name, f"{condition} has no {name}: it is for price_below and price_drops_by")
        if values["price"] != "effective":
            raise Unusable("price", f"{condition} looks at no price")
    elif condition == "price_below":
        if percent is not None:
            raise Unusable("percent", "price_below takes an amount: a drop by percent is price_drops_by")
        if amount is None:
            raise Unusable("amount", "a rule for a price that falls below an amount needs the amount")
    elif (amount is None) == (percent is None):
        raise Unusable("percent", "price_drops_by needs either an amount or a percentage")
    if amount is not None and (not amount.is_finite() or amount <= 0):
        raise Unusable("amount", f"it could never fire: no price is below or drops by {amount}; it must be more than 0")
    if percent is not None and (not percent.is_finite() or not 0 < percent <= 100):
        # By all of it can be: Dutchie lists goods at 0.
        why = "no price falls by more than all of it" if percent.is_finite() and percent > 100 else "that is no drop"
        raise Unusable("percent", f"it could never fire by {percent} %: {why}. It must be more than 0 and at most 100")
    hysteresis = values["hysteresis_percent"]
    if not hysteresis.is_finite() or not 0 <= hysteresis <= 1000:
        raise Unusable("hysteresis_percent", f"the hysteresis is {hysteresis}: it must lie between 0 and 1000 percent")
    if values["option"] is not None and condition in (*OPERATIONS, "new_product"):
        raise Unusable("option", f"{condition} is about no option of a product")
    if values["on_existing"] == "fire" and condition not in ("price_below", "out_of_stock"):
        raise Unusable(
            "on_existing", f"{condition} is something that happens, so it holds for nothing yet: leave it at skip"
        )


def _check_times(values: dict[str, Any]) -> None:
    for name, least, most in (
        ("debounce_crawls", 1, 100),
        ("debounce_minutes", 0, 43_200),
        ("cooldown_minutes", 0, 525_600),
    ):
        if not least <= values[name] <= most:
            raise Unusable(name, f"{name} is {values[name]}: it must lie between {least} and {most}")
    if (values["digest"] == "daily") != (values["digest_at"] is not None):
        said = (
            "a daily digest needs its time of day, as 08:00"
            if values["digest"] == "daily"
            else "only a daily digest has one"
        )
        raise Unusable("digest_at", said)
    if isinstance(values["digest_at"], str):
        try:
            values["digest_at"] = time.fromisoformat(values["digest_at"])
        except ValueError:
            raise Unusable("digest_at", f"{values['digest_at']!r} is no time of day: write it as 08:00") from None
    try:
        ZoneInfo(values["timezone"])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Unusable(
            "timezone", f"time zone {values['timezone']!r} does not exist: name it as America/Phoenix"
        ) from None


def _check_scope(values: dict[str, Any]) -> None:
    given = [name for name in SCOPE if values[name] is not None]
    for name in ("brand", "category", "search"):
        if values[name] is not None and not values[name].strip():
            raise Unusable(name, f"the {name} is empty: leave it out")
    if values["condition"] in OPERATIONS:
        if given:
            raise Unusable(given[0], f"{values['condition']} is about the work itself, and has no scope")
        values["reach"] = "operations"
        return
    reach = next((reach for column, reach in _REACHES if values[column] is not None), None)
    if reach is None:
        raise Unusable("product_id", "the rule names no scope: give a product, brand, category, store or search text")
    values["reach"] = reach
    if values["state"] is not None:
        try:
            values["state"] = parse_state(values["state"])
        except Refused as error:
            raise Unusable("state", str(error)) from None


async def _check_place(conn: AsyncConnection[Any], values: Mapping[str, Any], means: Means) -> list[str]:
    """Refuses scopes that contradict themselves; returns what is odd about the rest."""
    platform = values["platform"]
    if platform is not None and platform not in means.platforms:
        raise Unusable("platform", f"platform {platform!r} is not known: it is one of {', '.join(means.platforms)}")
    for name, place in await _places(conn, values):
        if values["dispensary_id"] not in (None, place.store):
            raise Unusable("store_id", f"{name} is another store's, so the rule could never fire")
        if platform not in (None, place.platform):
            raise Unusable("platform", f"{name} is on {place.platform}, so the rule could never fire")
        if values["state"] is not None and place.state not in (None, values["state"]):
            raise Unusable("state", f"{name} is in {place.state}, so the rule could never fire")
    warnings = []
    for name, query in (("brand", _q.brand_names), ("category", _q.category_names)):
        if values[name] is not None:
            names = [next(iter(row.values())) for row in await rows(conn, query, {})]
            if values[name].casefold() not in {one.casefold() for one in names}:
                warnings.append(f"no product has the {name} {values[name]!r} yet{_near(values[name], names)}")
    return warnings


@dataclass(frozen=True, slots=True)
class _Place:
    store: int
    platform: str
    state: str | None


async def _places(conn: AsyncConnection[Any], values: Mapping[str, Any]) -> list[tuple[str, _Place]]:
    """Where the product and the store that a rule names are, which they do not change; of a store that may be found to lie in a state
    yet, that is None. Raises Unusable for one that does not exist."""
    places = []
    if (number := values["product_id"]) is not None:
        found = await row(conn, _q.product_place, {"id": number})
        if found is None:
            raise Unusable("product_id", f"product {number} does not exist, so the rule could never fire")
        if values["condition"] == "new_product":
            raise Unusable("product_id", "a product that is there already is never new, so the rule could never fire")
        places.append(("the product", _Place(found["dispensary_id"], found["provider"], found["state"])))
    if (number := values["dispensary_id"]) is not None:
        store = await stores.get(conn, number)
        if store is None:
            raise Unusable("store_id", f"store {number} does not exist, so the rule could never fire")
        places.append(("the store", _Place(store.id, store.platform, store.state)))
    return places


def _channels(wishes: Sequence[Mapping[str, Any]], means: Means) -> list[dict[str, Any]]:
    made = []
    for number, wish in enumerate(wishes):
        url, secret = wish["url"], wish.get("secret")
        field = f"channels/{number}"
        try:
            if wish["kind"] == "webhook":
                guard.check_literal(url, allow_private=means.allow_private)
                shown = guard.shown(url)
            else:
                shown = notify.check(url, allow_private=means.allow_private)
        except Refused as error:
            raise Unusable(f"{field}/url", str(error)) from None
        if wish["kind"] == "webhook" and (secret is None or len(secret) < SHORTEST_SECRET):
            raise Unusable(
                f"{field}/secret",
                f"a webhook needs a secret of at least {SHORTEST_SECRET} characters, with which its messages are signed",
            )
        if wish["kind"] == "apprise" and secret is not None:
            raise Unusable(
                f"{field}/secret", "only webhooks are signed: a notification URL holds what its service needs"
            )
        made.append(
            {"kind": wish["kind"], "address": means.vault.seal(url), "secret": means.vault.seal(secret), "shown": shown}
        )
    return made
