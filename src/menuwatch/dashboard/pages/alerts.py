"""Alert rules, their events and deliveries. URLs and secrets of channels are never shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.alerts import events as alert_events
from menuwatch.alerts import format as alert_format
from menuwatch.alerts import message as alert_message
from menuwatch.alerts import service as alerts
from menuwatch.alerts.events import AlertEvent, EventNotification
from menuwatch.alerts.model import CONDITIONS
from menuwatch.alerts.service import AlertRule
from menuwatch.alerts.validate import AlertSettings
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.core.format import pluralize, timestamp
from menuwatch.dashboard import screen
from menuwatch.dashboard.json_tree import tree
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.ops import alert_readings
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/alerts", dependencies=[require(Permission.READ)])
may = require(Permission.ALERTS)

SHOWN = 50
RECENT = 10
"""Events and messages on the page of a rule."""
MUTES = {"1h": "1 hour", "8h": "8 hours", "1d": "1 day", "7d": "7 days"}
_SPANS = {"1h": timedelta(hours=1), "8h": timedelta(hours=8), "1d": timedelta(days=1), "7d": timedelta(days=7)}
STATUSES = {"waiting": "none", "sending": "info", "delivered": "good", "failed": "bad"}
"""States of a delivery, and their colours."""
RulePath = Annotated[int, Path(ge=1, le=2_147_483_647)]
DeliveryPath = Annotated[int, Path(ge=1, le=9_223_372_036_854_775_807)]
RuleQuery = Annotated[int | None, Query(ge=1, le=2_147_483_647)]


def alert_settings(system: AppContext) -> AlertSettings:
    return AlertSettings.of(system.settings, tuple(system.platforms))


@router.get("")
async def rules(request: Request, conn: ReadConn, cursor: str = "") -> Response:
    """Lists rules."""
    after = screen.parse_number_cursor(request, cursor)
    found = await alerts.list_rules(conn, after=after, limit=SHOWN + 1)
    shown, links = screen.paginate(request, found, SHOWN, "id")
    context = {
        "shown": [(rule, alert_format.sentence(rule), rule.decode_channels()) for rule in shown],
        "now": await database_now(conn),
        **links,
        "may": screen.may(request, Permission.ALERTS),
    }
    return screen.render(request, "alerts/rules.html", context, live="alerts")


@router.get("/events")
async def events(request: Request, conn: ReadConn, rule: RuleQuery = None, cursor: str = "") -> Response:
    """Lists events."""
    after = screen.parse_number_cursor(request, cursor)
    found = await alert_events.list_events(conn, rule_id=rule, after=after, limit=SHOWN + 1)
    shown, links = screen.paginate(request, found, SHOWN, "id")
    context = {
        "shown": _lines(shown),
        "statuses": STATUSES,
        "rule": await alerts.get_rule(conn, rule) if rule else None,
        "conditions": alert_format.CONDITION_LABELS,
        **links,
        "may": screen.may(request, Permission.ALERTS),
    }
    return screen.render(request, "alerts/events.html", context, live="alerts")


def _lines(events: Sequence[AlertEvent]) -> list[tuple[AlertEvent, str, list[EventNotification]]]:
    return [(event, alert_format.event_line(event), event.decode_deliveries()) for event in events]


@router.get("/messages")
async def messages(
    request: Request,
    conn: ReadConn,
    rule: RuleQuery = None,
    status: Literal["", "waiting", "sending", "delivered", "failed"] = "",
    cursor: str = "",
) -> Response:
    """Lists deliveries."""
    after = screen.parse_number_cursor(request, cursor)
    found = await alert_events.list_deliveries(conn, rule_id=rule, status=status or None, after=after, limit=SHOWN + 1)
    shown, links = screen.paginate(request, found, SHOWN, "id")
    context = {
        "shown": [(delivery, delivery.decode_tries()) for delivery in shown],
        "rule": await alerts.get_rule(conn, rule) if rule else None,
        "status": status,
        "statuses": STATUSES,
        "tab": lambda value: screen.query(request, status=value or None),
        **links,
        "may": screen.may(request, Permission.ALERTS),
    }
    return screen.render(request, "alerts/messages.html", context, live="alerts")


@router.get("/messages/{delivery_id}")
async def message(request: Request, conn: ReadConn, delivery_id: DeliveryPath) -> Response:
    """One delivery: its attempts and the body of the message."""
    found = await alert_events.list_deliveries(conn, ids=[delivery_id], limit=1)
    if not found:
        raise NotFound(f"alert message {delivery_id} does not exist")
    body = msgspec.json.decode(found[0].payload)
    context = {
        "one": found[0],
        "tries": found[0].decode_tries(),
        "statuses": STATUSES,
        "text": alert_message.text(body) if body else None,
        "body": tree(body, "message", open_to=3),
        "may": screen.may(request, Permission.ALERTS),
    }
    return screen.render(request, "alerts/message.html", context, live="alerts")


@router.post("/messages/{delivery_id}/again", dependencies=[may])
async def again(request: Request, conn: WriteConn, delivery_id: DeliveryPath) -> Response:
    """Queues a message again, with the same key."""
    delivery = await alert_events.replay(conn, delivery_id, now=await database_now(conn))
    said = f"Message {delivery_id} queued again for {delivery.channel}."
    return screen.flash_back(request, said)


@router.get("/{rule_id}")
async def one(request: Request, system: AppDep, conn: ReadConn, rule_id: RulePath) -> Response:
    """A rule with what it does now, its latest events and messages."""
    rule = await alerts.get_rule(conn, rule_id)
    deliveries = await alert_events.list_deliveries(conn, rule_id=rule_id, limit=RECENT)
    context = {
        "rule": rule,
        "sentence": alert_format.sentence(rule),
        "channels": rule.decode_channels(),
        "muted": rule.muted_until is not None and rule.muted_until > await database_now(conn),
        "present": await _present(conn, system, rule),
        "events": _lines(await alert_events.list_events(conn, rule_id=rule_id, limit=RECENT)),
        "messages": [(delivery, delivery.decode_tries()) for delivery in deliveries],
        "statuses": STATUSES,
        "mutes": list(MUTES.items()),
        "may": screen.may(request, Permission.ALERTS),
    }
    return screen.render(request, "alerts/one.html", context, live="alerts")


async def _present(conn: Connection, system: AppContext, rule: AlertRule) -> str | None:
    """The present reading of a rule about operations."""
    if CONDITIONS[rule.condition].about_products or rule.condition == "circuit_opened":
        return None
    reading = (await alert_readings.reader(system.settings)(conn, [rule.condition])).get(rule.condition)
    return reading and reading.detail


@router.post("/{rule_id}/test", dependencies=[may])
async def try_out(request: Request, conn: WriteConn, rule_id: RulePath) -> Response:
    """Queues a test message for each channel."""
    sent = await alerts.send_test(conn, rule_id, now=await database_now(conn))
    said = f"{pluralize(len(sent), 'test message')} queued; the delivery result appears here."
    return screen.flash_to(request, f"/alerts/{rule_id}", said)


@router.post("/{rule_id}/mute", dependencies=[may])
async def mute(
    request: Request, conn: WriteConn, rule_id: RulePath, form: Annotated[FormInput, fields("for", "until")]
) -> Response:
    """Mutes a rule for some time or until a time; with neither, unmutes it."""
    now = await database_now(conn)
    until, span = form.parse_time("until"), form.parse_choice("for", MUTES)
    if until is None and span is not None:
        until = now + _SPANS[span]
    if not form.ok:
        return screen.flash_back(request, f"Not muted: {'; '.join(form.errors.values())}.", "bad")
    try:
        rule = await alerts.mute_rule(conn, rule_id, until, now=now)
    except InvalidField as error:
        return screen.flash_back(request, f"Not muted: {error}.", "bad")
    if rule.muted_until is None:
        return screen.flash_back(request, f"“{rule.name}” is not muted.")
    undo = screen.Undo(f"/alerts/{rule_id}/mute")
    return screen.flash_back(request, f"“{rule.name}” is muted until {timestamp(rule.muted_until)}.", undo=undo)


@router.post("/{rule_id}/remove", dependencies=[may])
async def remove(request: Request, conn: WriteConn, rule_id: RulePath) -> Response:
    """Deletes a rule with its events and deliveries."""
    rule = await alerts.remove_rule(conn, rule_id)
    return screen.flash_to(request, "/alerts", f"“{rule.name}” was removed with its events and messages.")


@router.post("/{rule_id}/{switch}", dependencies=[may])
async def switch(
    request: Request, system: AppDep, conn: WriteConn, rule_id: RulePath, switch: Literal["enable", "disable"]
) -> Response:
    """Enables a rule, which resets its state, or disables it."""
    enabled = switch == "enable"
    changed = await alerts.change_rule(
        conn, rule_id, {"enabled": enabled}, settings=alert_settings(system), now=await database_now(conn)
    )
    word = "enabled; its state was reset" if enabled else "disabled"
    undo = None if enabled else screen.Undo(f"/alerts/{rule_id}/enable")
    return screen.flash_back(request, f"“{changed.rule.name}” is {word}.", undo=undo)
