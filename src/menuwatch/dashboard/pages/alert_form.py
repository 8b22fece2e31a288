"""The form of an alert rule: first the condition is chosen, then the form has the fields of that condition.

Stored URLs and secrets of channels are never shown; one that was just typed stays in the form when another field is invalid. A
generated secret is on the page after saving, once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.alerts import format as alert_format
from menuwatch.alerts import service as alerts
from menuwatch.alerts.model import CONDITIONS, Condition, ConditionKind
from menuwatch.alerts.service import AlertRule, CreatedRule, RulePreview
from menuwatch.alerts.validate import near_values
from menuwatch.catalog import service as catalog
from menuwatch.core.errors import InvalidField, MenuwatchError, PreconditionFailed, Refused
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.alerts import RulePath, alert_settings
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.geo import states
from menuwatch.geo.circle import FARTHEST_MILES
from menuwatch.ops import alert_readings
from menuwatch.stores import store as stores
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/alerts", dependencies=[require(Permission.ALERTS)])

LABELS = {
    "name": "Name", "condition": "Condition", "amount": "Amount", "percent": "Percentage", "product_id": "Product",
    "canonical_product_id": "Canonical product", "near": "Near", "miles": "Miles", "store": "Store",
    "brand": "Brand", "category": "Category", "search": "Name contains", "state": "State", "platform": "Platform",
    "option": "Size or package", "price": "Which price", "hysteresis_percent": "Re-arm above",
    "debounce_crawls": "Consecutive crawls", "debounce_minutes": "Minimum duration, minutes", "cooldown_minutes": "Cool-down, minutes",
    "digest": "How often", "digest_at": "Time of day", "timezone": "Time zone", "on_existing": "Existing matches",
}  # fmt: skip
_FRESH = {
    "price": "effective", "hysteresis_percent": "2", "debounce_crawls": "1", "debounce_minutes": "0", "cooldown_minutes": "0",
    "digest": "immediately", "timezone": "UTC", "on_existing": "skip",
}  # fmt: skip
_KINDS: Mapping[str, ConditionKind] = {name: kind for name, kind in CONDITIONS.items()}  # noqa: C416 - str, as forms have it
_TEXTS = ("name", "brand", "category", "search", "state", "platform", "option", "price", "timezone", "on_existing")
_SCOPE = (
    "product_id",
    "canonical_product_id",
    "near",
    "miles",
    "store",
    "brand",
    "category",
    "search",
    "state",
    "platform",
)

Typed = Annotated[FormInput, fields(*LABELS, "webhook", "secret", "notify", "no_channels", "version", "act")]
Scope = Annotated[FormInput, fields("condition", "product", *_SCOPE)]


@router.get("/new")
async def new(request: Request, conn: ReadConn, given: Scope) -> Response:
    """The choice of a condition; with one, the form. The scope may be given, as links to "Alert me" do."""
    scope = {name: given.value(name) for name in _SCOPE if given.value(name)}
    if product := given.value("product"):
        scope["product_id"] = product
    if given.value("condition") not in CONDITIONS:
        return screen.render(request, "alerts/choose.html", {"choices": _choices(scope), "scope": scope})
    condition = given.value("condition")
    kind = _KINDS[condition]
    usual = "" if kind.usual is None else str(kind.usual)
    size = {"percent" if "percent" in kind.fields else "amount": usual} if usual else {}
    name = await _suggested_name(conn, kind.title, scope) if kind.about_products else kind.label
    return _page(request, FormInput({**_FRESH, **size, **scope, "condition": condition, "name": name}))


def _choices(scope: Mapping[str, str]) -> list[tuple[str, list[tuple[Condition, str, str]]]]:
    """Conditions by group, with label and sentence. With a scope, those that take it."""
    columns = {{"store": "dispensary_id", "near": "latitude"}.get(name, name) for name in scope}
    groups: list[tuple[str, list[tuple[Condition, str, str]]]] = []
    for title, about_products in (("Products", True), ("Operations", False)):
        rows = [
            (name, kind.label, alert_format.condition_sentence(name))
            for name, kind in CONDITIONS.items()
            if kind.about_products == about_products and columns <= set(kind.fields)
        ]
        if rows:
            groups.append((title, rows))
    return groups


async def _suggested_name(conn: Connection, title: str, scope: Mapping[str, str]) -> str:
    """The product or the store of a link, with the condition; empty where there is none."""
    try:
        if number := scope.get("product_id"):
            return f"{(await catalog.get_product(conn, int(number))).name}: {title}"
        if text := scope.get("store"):
            return f"{(await stores.resolve(conn, text)).name}: {title}"
    except (MenuwatchError, ValueError):
        pass  # the form says what is wrong with it when it is sent
    return ""


@router.post("/new")
async def add(request: Request, form: Typed, system: AppDep) -> Response:
    """Creates the rule, or previews it."""
    wish = _wish(form)
    preview = None
    async with system.pool.connection(timeout=10) as conn:
        if not form.ok or form.value("act") == "preview":
            preview = await _preview(conn, system, form, wish, None)
        else:
            try:
                async with conn.transaction():
                    now = await database_now(conn)
                    made = await alerts.add_rule(conn, wish, settings=alert_settings(system), now=now)
            except InvalidField as error:
                _add_errors(form, error)
            else:
                return _done(request, made, "created")
    return _page(request, form, preview=preview)


@router.get("/{rule_id}/edit")
async def editing(
    request: Request, conn: ReadConn, rule_id: RulePath, condition: Annotated[str, Query(max_length=50)] = ""
) -> Response:
    """The form with the rule in it, for its condition or another one."""
    rule = await alerts.get_rule(conn, rule_id)
    values = _values(rule)
    if condition in CONDITIONS:
        values["condition"] = condition
    return _page(request, FormInput(values), rule)


@router.post("/{rule_id}/edit")
async def edit(request: Request, form: Typed, system: AppDep, conn: WriteConn, rule_id: RulePath) -> Response:
    """Changes the rule, unless it was changed since the form was loaded."""
    wish = _wish(form)
    before = await alerts.get_rule(conn, rule_id)
    if not form.ok or form.value("act") == "preview":
        return _page(request, form, before, preview=await _preview(conn, system, form, wish, rule_id))
    try:
        async with conn.transaction():
            await alerts.lock_rule(conn, rule_id)
            before = await alerts.get_rule(conn, rule_id)
            if _version(before) != form.value("version"):
                raise PreconditionFailed("the rule was changed in the meantime")
            now = await database_now(conn)
            made = await alerts.change_rule(conn, rule_id, wish, settings=alert_settings(system), now=now)
    except InvalidField as error:
        _add_errors(form, error)
        return _page(request, form, before)
    except PreconditionFailed:
        return _page(request, form, before, stale=True, status=412)
    return _done(request, made, "changed")


async def _preview(
    conn: Connection, system: AppContext, form: FormInput, wish: Mapping[str, Any], rule_id: int | None
) -> RulePreview | None:
    """What the rule would do. Where the form has errors already, adds all others, so that they are shown at once."""
    if not wish:
        return None
    now, read = await database_now(conn), alert_readings.reader(system.settings)
    settings = alert_settings(system)
    try:
        preview = await alerts.preview(conn, wish, rule_id=rule_id, settings=settings, now=now, read=read)
    except InvalidField as error:
        _add_errors(form, error)
        return None
    return preview if form.ok else None


def _done(request: Request, made: CreatedRule, what: str) -> Response:
    said = f"“{made.rule.name}” is {what}. {alert_format.sentence(made.rule)}"
    if made.fired:
        said += f" {pluralize(made.fired, 'product')} already matched and triggered alerts."
    said += "".join(f" Note: {warning}." for warning in made.warnings)
    if made.secrets:
        return screen.render(request, "alerts/once.html", {"rule": made.rule, "secrets": made.secrets, "said": said})
    return screen.flash_to(request, f"/alerts/{made.rule.id}", said, "warn" if made.warnings else "good")


def _page(
    request: Request,
    form: FormInput,
    rule: AlertRule | None = None,
    *,
    preview: RulePreview | None = None,
    stale: bool = False,
    status: int | None = None,
) -> Response:
    present = _values(rule) if rule is not None else {}
    condition = form.value("condition")
    kind = _KINDS.get(condition, CONDITIONS["price_below"])
    context = {
        "form": form,
        "row": rule,
        "kind": kind,
        "uses": {"store" if name == "dispensary_id" else name for name in kind.fields},
        "condition": condition,
        "choices": _choices({}),
        # The edit page has the scope from the rule.
        "scope": {name: form.value(name) for name in _SCOPE if form.value(name)} if rule is None else {},
        "preview": preview,
        "channels": rule.decode_channels() if rule is not None else [],
        "edited_from": _version(rule) if rule is not None else "",
        "present": present,
        "stale": stale,
        "differing": [name for name in LABELS if present.get(name, "") != form.value(name)] if stale else [],
        "labels": LABELS,
        "prices": list(alert_format.PRICES.items()),
        "platforms": screen.platform_choices(request, request.app.state.system.platforms),
        "states": [(code, name) for code, name in (states.NAMES | states.PROVINCES).items()],
    }
    return screen.render(request, "alerts/edit.html", context, status=status)


def _version(rule: AlertRule) -> str:
    return rule.updated_at.astimezone(UTC).isoformat()


def _values(rule: AlertRule) -> dict[str, str]:
    values = {name: _text(getattr(rule, name)) for name in (*_TEXTS, "condition")}
    for name in ("amount", "percent", "hysteresis_percent"):
        values[name] = "" if (value := getattr(rule, name)) is None else f"{value.normalize():f}"
    for name in (
        "product_id",
        "canonical_product_id",
        "miles",
        "debounce_crawls",
        "debounce_minutes",
        "cooldown_minutes",
        "digest",
        "digest_at",
    ):
        values[name] = _text(getattr(rule, name))
    values["near"] = "" if rule.miles is None else f"{_degrees(rule.latitude)},{_degrees(rule.longitude)}"
    values["store"] = _text(rule.store_id)
    return values


def _degrees(value: float | None) -> str:
    """All digits, without an exponent: the form gives back the very position, else the rule would be reset."""
    return f"{Decimal(repr(value)):f}"


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _wish(form: FormInput) -> dict[str, Any]:
    """Parses the fields of the form's condition; the others get their defaults. Adds errors to the form."""
    condition = form.parse_choice("condition", _KINDS)
    if condition is None:
        form.add_error("condition", "choose a condition")
        return {}
    uses = _KINDS[condition].fields
    wish: dict[str, Any] = {
        name: form.text(name) if name in uses or name in ("name", "timezone") else None for name in _TEXTS
    }
    wish["condition"] = condition
    for name in ("amount", "percent"):
        wish[name] = form.parse_decimal(name, "a number such as 24.50") if name in uses else None
    hysteresis = (
        form.parse_decimal("hysteresis_percent", "a number such as 2") if "hysteresis_percent" in uses else Decimal(2)
    )
    wish["hysteresis_percent"] = hysteresis or Decimal(0)
    wish["product_id"] = (
        form.parse_int("product_id", low=1, high=9_223_372_036_854_775_807) if "product_id" in uses else None
    )
    wish["canonical_product_id"] = (
        form.parse_int("canonical_product_id", low=1, high=9_223_372_036_854_775_807)
        if "canonical_product_id" in uses
        else None
    )
    wish |= _place(form) if "latitude" in uses else dict.fromkeys(("latitude", "longitude", "miles"))
    for name, least, most in (
        ("debounce_crawls", 1, 100),
        ("debounce_minutes", 0, 43_200),
        ("cooldown_minutes", 0, 525_600),
    ):
        wish[name] = (form.parse_int(name, low=least, high=most) if name in uses else None) or least
    wish["digest"] = form.parse_choice("digest", ("immediately", "hourly", "daily")) or "immediately"
    wish["digest_at"] = form.text("digest_at") if wish["digest"] == "daily" else None
    wish["timezone"] = wish["timezone"] or "UTC"
    form.parse_choice("price", alert_format.PRICES)
    form.parse_choice("on_existing", ("skip", "fire"))
    wish["price"] = wish["price"] or "effective"
    wish["on_existing"] = wish["on_existing"] or "skip"
    if wish["name"] is None:
        form.add_error("name", "enter a name")
    wish["dispensary_id"] = None
    wish["store"] = form.text("store") if "dispensary_id" in uses else None
    channels = _channels(form)
    if channels is not None:
        wish["channels"] = channels
    return wish


def _place(form: FormInput) -> dict[str, float | None]:
    given = form.parse_decimal("miles", f"a distance up to {FARTHEST_MILES} miles", 0, FARTHEST_MILES)
    miles = None if given is None else float(given)
    if (near := form.text("near")) is not None:
        try:
            return {**near_values(near, miles)}
        except Refused as error:
            form.add_error("near", str(error))
    elif miles is not None:
        form.add_error("near", "enter the place that the distance is from")
    return dict.fromkeys(("latitude", "longitude", "miles"))


def _channels(form: FormInput) -> list[Mapping[str, Any]] | None:
    """Those that were given; None: they stay as they are."""
    made: list[Mapping[str, Any]] = []
    if (url := form.text("webhook")) is not None:
        made.append({"kind": "webhook", "url": url, "secret": form.text("secret")})
    elif form.text("secret") is not None:
        form.add_error("webhook", "a secret needs a webhook URL: enter the URL as well")
    made += [
        {"kind": "apprise", "url": line.strip(), "secret": None}
        for line in form.value("notify").splitlines()
        if line.strip()
    ]
    if len(made) > 10:
        form.add_error("notify", "a rule has at most 10 channels")
    return made if made or form.value("no_channels") else None


def _add_errors(form: FormInput, error: InvalidField) -> None:
    for one in error.errors:
        field = "store" if one.field in ("store_id", "dispensary_id") else one.field
        if field.startswith("channels/"):
            _, place, part = field.split("/")
            webhook = form.text("webhook") is not None and place == "0"
            field = ("secret" if part == "secret" else "webhook") if webhook else "notify"
        form.add_error(field, str(one))
