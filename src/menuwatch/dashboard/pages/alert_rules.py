"""Making and changing an alert rule. Addresses and secrets of channels that are kept are never shown; one that was typed a moment ago
stays in the form that is answered to whoever typed it, where something else is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.alerts import store
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.alerts import RulePath, channels, means
from menuwatch.operations import alert_words, alerts
from menuwatch.operations.alerts import Made
from menuwatch.operations.reading import Row
from menuwatch.operations.refusals import Stale, Unusable
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Reading, Sys, Writing
from menuwatch.web.words import many

router = APIRouter(prefix="/alerts", dependencies=[allowed(Permission.ALERTS)])

TEXTS = (
    "name", "condition", "brand", "category", "search", "state", "platform", "option", "price", "timezone", "on_existing",
)  # fmt: skip
LABELS = {
    "name": "Name", "condition": "Condition", "amount": "Amount", "percent": "Share", "product_id": "Product", "store": "Store",
    "brand": "Brand", "category": "Category", "search": "Words in the name", "state": "State", "platform": "Platform",
    "option": "Size or package", "price": "Which price", "hysteresis_percent": "Re-arm above",
    "debounce_crawls": "Crawls in a row", "debounce_minutes": "Minutes in a row", "cooldown_minutes": "Cooldown, minutes",
    "digest": "How often", "digest_at": "Time of day", "timezone": "Time zone", "on_existing": "Matches that exist already",
}  # fmt: skip
_FRESH = {
    "condition": "price_below", "price": "effective", "hysteresis_percent": "2", "debounce_crawls": "1", "debounce_minutes": "0",
    "cooldown_minutes": "0", "digest": "immediately", "timezone": "UTC", "on_existing": "skip",
}  # fmt: skip


async def _typed(request: Request) -> Filled:
    sent = await request.form(max_fields=60)
    return Filled({name: value[:4000] for name, value in sent.items() if isinstance(value, str)})


Typed = Annotated[Filled, Depends(_typed)]
"""What was typed. It stands before a route's connection, so that whoever sends slowly keeps none from others."""


@router.get("/add")
async def adding(request: Request) -> Response:
    """The form for a rule."""
    return _page(request, Filled(_FRESH))


@router.post("/add")
async def add(request: Request, form: Typed, system: Sys) -> Response:
    """Makes it."""
    wish = _wish(form)
    if form.ok:
        try:
            async with system.pool.connection(timeout=10) as conn, conn.transaction():
                made = await alerts.add(conn, wish, means=means(system), now=datetime.now(UTC))
        except Unusable as error:
            _refuse(form, error)
        else:
            return _done(request, made, "made")
    return _page(request, form, status=422)


@router.get("/{rule_id}")
async def editing(request: Request, conn: Reading, rule_id: RulePath) -> Response:
    """The form with the rule in it."""
    found = await alerts.one(conn, rule_id)
    return _page(request, Filled(_values(found)), found)


@router.post("/{rule_id}")
async def edit(request: Request, form: Typed, system: Sys, conn: Writing, rule_id: RulePath) -> Response:
    """Changes it, unless somebody else has since."""
    wish = _wish(form)
    before = await alerts.one(conn, rule_id)
    if form.ok:
        try:
            async with conn.transaction():
                await store.lock(conn, rule_id)
                before = await alerts.one(conn, rule_id)
                if _version(before) != form.value("version"):
                    raise Stale("somebody has changed the rule since")
                made = await alerts.change(conn, rule_id, wish, means=means(system), now=datetime.now(UTC))
        except Unusable as error:
            _refuse(form, error)
        except Stale:
            return _page(request, form, before, stale=True, status=412)
        else:
            return _done(request, made, "changed")
    return _page(request, form, before, status=422)


def _done(request: Request, made: Made, what: str) -> Response:
    said = f"“{made.rule['name']}” is {what}. {alert_words.sentence(made.rule)}"
    if made.fired:
        said += f" It holds already for {many(made.fired, 'product')}, and told so."
    said += "".join(f" Note: {warning}." for warning in made.warnings)
    return screen.back(request, "/alerts", said, "warn" if made.warnings else "good")


def _page(
    request: Request, form: Filled, row: Row | None = None, *, stale: bool = False, status: int = 200
) -> Response:
    present = _values(row) if row is not None else {}
    context = {
        "form": form,
        "row": row,
        "sentence": alert_words.sentence(row) if row is not None else "",
        "channels": channels(row) if row is not None else [],
        "edited_from": _version(row) if row is not None else "",
        "present": present,
        "stale": stale,
        "differing": [name for name in LABELS if present.get(name, "") != form.value(name)] if stale else [],
        "labels": LABELS,
        "conditions": list(alert_words.CONDITIONS.items()),
        "prices": list(alert_words.PRICES.items()),
        "platforms": [(name, name) for name in request.app.state.system.platforms],
    }
    return screen.show(request, "alerts/edit.html", context, status=status)


def _version(row: Row) -> str:
    moment: datetime = row["updated_at"]
    return moment.astimezone(UTC).isoformat()


def _values(row: Row) -> dict[str, str]:
    found = {name: "" if row[name] is None else str(row[name]) for name in TEXTS}
    for name in ("amount", "percent", "hysteresis_percent"):
        found[name] = "" if row[name] is None else f"{row[name].normalize():f}"
    for name in ("product_id", "debounce_crawls", "debounce_minutes", "cooldown_minutes", "digest", "digest_at"):
        found[name] = "" if row[name] is None else str(row[name])
    found["store"] = "" if row["store_id"] is None else str(row["store_id"])
    return found


def _wish(form: Filled) -> dict[str, Any]:
    """What was asked for; notes in the form what cannot be meant."""
    wish: dict[str, Any] = {name: form.text(name) for name in TEXTS}
    for name in ("amount", "percent"):
        wish[name] = _decimal(form, name)
    wish["hysteresis_percent"] = _decimal(form, "hysteresis_percent") or Decimal(0)
    wish["product_id"] = form.whole("product_id", low=1, high=9_223_372_036_854_775_807)
    for name, least, most in (
        ("debounce_crawls", 1, 100),
        ("debounce_minutes", 0, 43_200),
        ("cooldown_minutes", 0, 525_600),
    ):
        wish[name] = form.whole(name, low=least, high=most) or least
    wish["digest"] = form.one_of("digest", ("immediately", "hourly", "daily")) or "immediately"
    wish["digest_at"] = form.text("digest_at") if wish["digest"] == "daily" else None
    wish["timezone"] = wish["timezone"] or "UTC"
    form.one_of("condition", alert_words.CONDITIONS)
    form.one_of("price", alert_words.PRICES)
    form.one_of("on_existing", ("skip", "fire"))
    wish["price"] = wish["price"] or "effective"
    wish["on_existing"] = wish["on_existing"] or "skip"
    if wish["condition"] is None:
        form.refuse("condition", "say what it waits for")
    if wish["name"] is None:
        form.refuse("name", "an alert rule needs a name")
    wish["dispensary_id"] = None
    wish["store"] = form.text("store")
    asked = _channels(form)
    if asked is not None:
        wish["channels"] = asked
    return wish


def _channels(form: Filled) -> list[Mapping[str, Any]] | None:
    """Those that were given; None: they stay as they are."""
    made: list[Mapping[str, Any]] = []
    if (url := form.text("webhook")) is not None:
        made.append({"kind": "webhook", "url": url, "secret": form.text("secret")})
    elif form.text("secret") is not None:
        form.refuse("webhook", "a secret signs the messages of a webhook: give its address as well")
    made += [
        {"kind": "apprise", "url": line.strip(), "secret": None}
        for line in form.value("notify").splitlines()
        if line.strip()
    ]
    if len(made) > 10:
        form.refuse("notify", "a rule has at most 10 channels")
    return made if made or form.value("nobody") else None


_FIELDS = {"store_id": "store", "dispensary_id": "store"}


def _refuse(form: Filled, error: Unusable) -> None:
    field = _FIELDS.get(error.field, error.field)
    if field.startswith("channels/"):
        _, place, part = field.split("/")
        webhook = form.text("webhook") is not None and place == "0"
        field = ("secret" if part == "secret" else "webhook") if webhook else "notify"
    form.refuse(field, str(error))


def _decimal(form: Filled, name: str) -> Decimal | None:
    text = form.text(name)
    if text is None:
        return None
    try:
        found = Decimal(text.removeprefix("$").removesuffix("%").replace(",", "").strip())
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or len(found.as_tuple().digits) > 20:
        form.refuse(name, f"a number, as 24.50, not {text[:40]!r}")
        return None
    return found
