"""Checks alert rules and their channels: what is invalid, or could never fire, is refused with the reason."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from datetime import time
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.alerts import notify, ssrf_guard, webhook
from menuwatch.alerts.model import CONDITIONS, SCOPE, Condition
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import InvalidField, InvalidFields, Refused, unknown_value
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_one
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, parse_area
from menuwatch.geo.states import parse_state
from menuwatch.stores import store as stores

_q = sql.load(__package__, "service.sql")

_REACHES = (
    ("product_id", "product"), ("canonical_product_id", "canonical_product"), ("brand", "brand"), ("category", "category"),
    ("search", "search"), ("dispensary_id", "store"),
)  # fmt: skip


class AlertSettings(Struct, frozen=True, kw_only=True):
    """What the creation of a rule depends on. `platforms` are the known ones."""

    secret_box: SecretBox
    allow_private: bool
    platforms: Sequence[str]

    @classmethod
    def of(cls, settings: Settings, platforms: Sequence[str]) -> AlertSettings:
        allow = bool(settings.alert_allow_private)
        return cls(secret_box=SecretBox(settings.secret_key), allow_private=allow, platforms=tuple(platforms))


def suggest(text: str, names: Sequence[str]) -> str:
    """`: did you mean 'x'?` if one of the names is similar, else nothing."""
    folded = {name.casefold(): name for name in names}
    similar = [folded[near] for near in difflib.get_close_matches(text.casefold(), folded, n=3, cutoff=0.6)]
    return f": did you mean {' or '.join(map(repr, similar))}?" if similar else ""


class _Errors(list[InvalidField]):
    """Invalid values of one rule, the first of each field."""

    def add(self, field: str, message: str) -> None:
        if all(error.field != field for error in self):
            self.append(InvalidField(field, message))

    def raise_any(self) -> None:
        if self:
            raise self[0] if len(self) == 1 else InvalidFields(self)


async def check_rule(
    conn: AsyncConnection[Any],
    values: dict[str, Any],
    store: str | None,
    channels: Sequence[Mapping[str, Any]],
    settings: AlertSettings,
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """Completes the values of a rule; returns them, the columns of its channels, and warnings. Raises InvalidField for all that is
    invalid or could never fire."""
    errors = _Errors()
    if store is not None:
        try:
            values["dispensary_id"] = await _store(conn, store)
        except InvalidField as error:
            errors.append(error)
    if not (values["name"] or "").strip():
        errors.add("name", "an alert rule needs a name")
    _check_terms(values, errors)
    _check_times(values, errors)
    _check_scope(values, errors, store_given=store is not None)
    warnings = await _check_place(conn, values, settings, errors)
    await _check_canonical(conn, values, errors, warnings)
    columns = _check_channels(channels, settings, errors)
    errors.raise_any()
    return values, columns, warnings


async def _store(conn: AsyncConnection[Any], text: str) -> int:
    try:
        return (await stores.resolve(conn, text)).id
    except Refused as error:
        raise InvalidField("store_id", str(error)) from None


_UNUSED = {
    "amount": None, "percent": None, "price": "effective", "option": None, "on_existing": "skip", "hysteresis_percent": 2,
    "debounce_crawls": 1, "debounce_minutes": 0, "cooldown_minutes": 0,
}  # fmt: skip
"""Values of terms that a condition does not use."""


def _check_terms(values: Mapping[str, Any], errors: _Errors) -> None:
    condition: Condition = values["condition"]
    kind = CONDITIONS[condition]
    amount, percent = values["amount"], values["percent"]
    hysteresis = values["hysteresis_percent"]
    if not hysteresis.is_finite() or not 0 <= hysteresis <= 1000:
        errors.add("hysteresis_percent", f"hysteresis must be between 0 and 1000 percent, not {hysteresis}")
    for name, default in _UNUSED.items():
        if name not in kind.fields and values[name] != default:
            errors.add(name, _unused(name, condition))
    if condition == "price_drops_by":
        if (amount is None) == (percent is None):
            errors.add("percent", "price_drops_by needs either an amount or a percentage")
    else:
        for name, value in (("amount", amount), ("percent", percent)):
            if name in kind.fields and value is None:
                errors.add(name, f"{condition} needs {'an amount' if name == 'amount' else 'a percentage'}")
    if amount is not None and not (amount.is_finite() and 0 < amount < 10**9):
        errors.add("amount", "the amount must be greater than 0")
    if percent is not None and (not percent.is_finite() or not 0 < percent <= 100):
        # 100 is possible: Dutchie lists products at 0.
        errors.add("percent", "the percentage must be greater than 0 and at most 100")


def _unused(name: str, condition: Condition) -> str:
    if name == "percent" and condition == "price_below":
        return "price_below needs an amount; for a drop in percent, use price_drops_by"
    if name == "price":
        return f"{condition} does not use a price"
    if name == "on_existing":
        return f"{condition} cannot match existing products: use on_existing=skip"
    return f"{condition} does not take {'an' if name[0] in 'ao' else 'a'} {name}"


def _check_times(values: dict[str, Any], errors: _Errors) -> None:
    for name, least, most in (
        ("debounce_crawls", 1, 100),
        ("debounce_minutes", 0, 43_200),
        ("cooldown_minutes", 0, 525_600),
    ):
        if not least <= values[name] <= most:
            errors.add(name, f"{name} must be between {least} and {most}, not {values[name]}")
    if (values["digest"] == "daily") != (values["digest_at"] is not None):
        message = (
            "a daily digest needs a time of day, for example 08:00"
            if values["digest"] == "daily"
            else "only a daily digest has a time of day"
        )
        errors.add("digest_at", message)
    if isinstance(values["digest_at"], str):
        try:
            values["digest_at"] = time.fromisoformat(values["digest_at"])
        except ValueError:
            errors.add("digest_at", f"{values['digest_at']!r} is not a time of day: for example 08:00")
    try:
        ZoneInfo(values["timezone"])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        errors.add("timezone", f"unknown time zone {values['timezone']!r}: use an IANA name such as America/Phoenix")


def _check_scope(values: dict[str, Any], errors: _Errors, *, store_given: bool) -> None:
    given = [name for name in SCOPE if values[name] is not None]
    for name in ("brand", "category", "search"):
        if values[name] is not None and not values[name].strip():
            errors.add(name, f"the {name} is empty: leave it out")
    if not CONDITIONS[values["condition"]].about_products:
        if given:
            errors.add(given[0], f"{values['condition']} concerns the installation and takes no scope")
        values["reach"] = "operations"
        return
    reach = next((reach for column, reach in _REACHES if values[column] is not None), None)
    if reach is None and not store_given:
        errors.add(
            "product_id",
            "the rule has no scope: give a product, canonical product, brand, category, store or search text",
        )
    values["reach"] = reach
    if values["product_id"] is not None and values["canonical_product_id"] is not None:
        errors.add("canonical_product_id", "a product is at one store, a canonical product at all: give one of them")
    _check_near(values, errors)
    if values["state"] is not None:
        try:
            values["state"] = parse_state(values["state"])
        except Refused as error:
            errors.add("state", str(error))


_NEAR = (("latitude", -90, 90), ("longitude", -180, 180), ("miles", 0, FARTHEST_MILES))


def near_values(near: str, miles: float | None) -> dict[str, float]:
    """The fields of a rule that say near which place; raises Refused for an unknown place."""
    miles = DEFAULT_MILES if miles is None else miles
    circle = parse_area(near, miles).circle
    return {"latitude": circle.latitude, "longitude": circle.longitude, "miles": miles}


def _check_near(values: Mapping[str, Any], errors: _Errors) -> None:
    given = [name for name, _, _ in _NEAR if values[name] is not None]
    for name, low, high in _NEAR:
        value = values[name]
        if given and value is None:
            errors.add(name, f"a place is latitude, longitude and miles: {name} is missing")
        elif value is not None and (not low <= value <= high or (name == "miles" and value == 0)):
            span = f"more than 0 and at most {high}" if name == "miles" else f"between {low} and {high}"
            errors.add(name, f"{name} must be {span}, not {value:g}")


async def _check_canonical(
    conn: AsyncConnection[Any], values: dict[str, Any], errors: _Errors, warnings: list[str]
) -> None:
    """Follows a canonical product that was merged into another one."""
    if (number := values["canonical_product_id"]) is None:
        return
    if values["condition"] == "new_product":
        errors.add(
            "canonical_product_id", "new_product does not take a canonical product: use price_below or back_in_stock"
        )
    found = await fetch_one(conn, _q.canonical_product, {"id": number})
    if found is None:
        errors.add("canonical_product_id", f"canonical product {number} does not exist")
    elif found["id"] != number:
        values["canonical_product_id"] = found["id"]
        warnings.append(f"canonical product {number} was merged into {found['id']}, {found['name']}")


async def _check_place(
    conn: AsyncConnection[Any], values: Mapping[str, Any], settings: AlertSettings, errors: _Errors
) -> list[str]:
    """Refuses contradictory scopes; returns warnings about the rest."""
    platform = values["platform"]
    if platform is not None and platform not in settings.platforms:
        errors.add("platform", unknown_value("platform", platform, settings.platforms))
    for name, place in await _places(conn, values, errors):
        if values["dispensary_id"] not in (None, place.store):
            errors.add("store_id", f"{name} is another store's")
        if platform not in (None, place.platform):
            errors.add("platform", f"{name} is on {place.platform}")
        if values["state"] is not None and place.state not in (None, values["state"]):
            errors.add("state", f"{name} is in {place.state}")
    warnings = []
    for name, query in (("brand", _q.brand_names), ("category", _q.category_names)):
        if values[name] is not None:
            names = [next(iter(row.values())) for row in await fetch_all(conn, query, {})]
            if values[name].casefold() not in {one.casefold() for one in names}:
                warnings.append(f"no product has the {name} {values[name]!r} yet{suggest(values[name], names)}")
    return warnings


class _Place(Struct, frozen=True):
    store: int
    platform: str
    state: str | None


async def _places(conn: AsyncConnection[Any], values: Mapping[str, Any], errors: _Errors) -> list[tuple[str, _Place]]:
    """Store, platform and state (None: not known yet) of the product and the store that a rule names."""
    places = []
    if (number := values["product_id"]) is not None:
        found = await fetch_one(conn, _q.product_place, {"id": number})
        if values["condition"] == "new_product":
            errors.add("product_id", "new_product does not take a product: an existing product is never new")
        if found is None:
            errors.add("product_id", f"product {number} does not exist")
        else:
            places.append(("the product", _Place(found["dispensary_id"], found["provider"], found["state"])))
    if (number := values["dispensary_id"]) is not None:
        store = await stores.get(conn, number)
        if store is None:
            errors.add("store_id", f"store {number} does not exist")
        else:
            places.append(("the store", _Place(store.id, store.platform, store.state)))
    return places


def _check_channels(
    channels: Sequence[Mapping[str, Any]], settings: AlertSettings, errors: _Errors
) -> list[dict[str, Any]]:
    """Columns of these channels (`kind`, `url`, `secret`), encrypted."""
    columns = []
    for number, channel in enumerate(channels):
        url, secret = channel["url"], channel.get("secret")
        is_webhook = channel["kind"] == "webhook"
        shown = ""
        try:
            if is_webhook:
                ssrf_guard.check_literal(url, allow_private=settings.allow_private)
            shown = ssrf_guard.shown(url) if is_webhook else notify.check(url, allow_private=settings.allow_private)
        except Refused as error:
            errors.add(f"channels/{number}/url", str(error))
        try:
            if is_webhook:
                webhook.signing_key(secret or "")
            elif secret is not None:
                raise Refused("secret is for webhooks only")
        except Refused as error:
            errors.add(f"channels/{number}/secret", str(error))
        encrypt = settings.secret_box.encrypt
        columns.append({"kind": channel["kind"], "address": encrypt(url), "secret": encrypt(secret), "shown": shown})
    return columns
