"""Alerts: the rules, what they found, and whether people were told. What is secret of a channel is in no page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.operations import alert_words, alerts
from menuwatch.operations.alerts import Means
from menuwatch.operations.reading import Row
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, System, Writing
from menuwatch.web.words import many

router = APIRouter(prefix="/alerts", dependencies=[allowed(Permission.READ)])
may = allowed(Permission.ALERTS)

SHOWN = 50
STATUSES = {"waiting": "none", "sending": "info", "delivered": "good", "failed": "bad"}
"""States of a message, and their colours."""
RulePath = Annotated[int, Path(ge=1, le=2_147_483_647)]
DeliveryPath = Annotated[int, Path(ge=1, le=9_223_372_036_854_775_807)]
RuleQuery = Annotated[int | None, Query(ge=1, le=2_147_483_647)]


def means(system: System) -> Means:
    """What making a rule takes."""
    return Means.of(system.settings, tuple(system.platforms))


def channels(row: Row) -> list[dict[str, str]]:
    """Where a rule's messages go, without what is secret of it."""
    found: list[dict[str, str]] = msgspec.json.decode(bytes(row["channels"]))
    return found


@router.get("")
async def rules(request: Request, conn: Reading, cursor: str = "") -> Response:
    """The rules, in words."""
    after = screen.place(request, cursor, tuple[int])
    found = await alerts.page(conn, after=after[0] if after else None, limit=SHOWN + 1)
    shown = found[:SHOWN]
    more = paging.encode(shown[-1]["id"]) if len(found) > SHOWN else None
    context = {
        "shown": [(one, alert_words.sentence(one), channels(one)) for one in shown],
        **_frame(request, more, first=after is not None),
    }
    return screen.show(request, "alerts/rules.html", context, live="alerts")


@router.get("/events")
async def events(request: Request, conn: Reading, rule: RuleQuery = None, cursor: str = "") -> Response:
    """What the rules found."""
    after = screen.place(request, cursor, tuple[int])
    found = await alerts.events(conn, rule_id=rule, after=after[0] if after else None, limit=SHOWN + 1)
    shown = found[:SHOWN]
    more = paging.encode(shown[-1]["id"]) if len(found) > SHOWN else None
    context = {
        "shown": [(one, alert_words.found(one)) for one in shown],
        "rule": await alerts.one(conn, rule) if rule else None,
        "conditions": alert_words.CONDITIONS,
        **_frame(request, more, first=after is not None),
    }
    return screen.show(request, "alerts/events.html", context, live="alerts")


@router.get("/messages")
async def messages(
    request: Request,
    conn: Reading,
    rule: RuleQuery = None,
    status: Literal["", "waiting", "sending", "delivered", "failed"] = "",
    cursor: str = "",
) -> Response:
    """What was sent, to whom, and whether it arrived."""
    after = screen.place(request, cursor, tuple[int])
    found = await alerts.deliveries(
        conn, rule_id=rule, status=status or None, after=after[0] if after else None, limit=SHOWN + 1
    )
    shown = found[:SHOWN]
    more = paging.encode(shown[-1]["id"]) if len(found) > SHOWN else None
    context = {
        "shown": [(one, msgspec.json.decode(bytes(one["tries"]))) for one in shown],
        "rule": await alerts.one(conn, rule) if rule else None,
        "status": status,
        "statuses": STATUSES,
        "tab": lambda value: screen.query(request, status=value or None),
        **_frame(request, more, first=after is not None),
    }
    return screen.show(request, "alerts/messages.html", context, live="alerts")


def _frame(request: Request, more: str | None, *, first: bool) -> dict[str, object]:
    return {
        "next_href": screen.query(request, cursor=more) if more else None,
        "first_href": screen.query(request) if first else None,
        "may": screen.principal(request).may(Permission.ALERTS),
    }


@router.post("/messages/{delivery_id}/again", dependencies=[may])
async def again(request: Request, conn: Writing, delivery_id: DeliveryPath) -> Response:
    """The same message once more, under the same key."""
    found = await alerts.replay(conn, delivery_id, now=datetime.now(UTC))
    said = f"Message {delivery_id} is sent again to {found['channel']}."
    return screen.back(request, screen.came_from(request), said)


@router.post("/{rule_id}/test", dependencies=[may])
async def try_out(request: Request, conn: Writing, rule_id: RulePath) -> Response:
    """A sample message to each channel."""
    sent = await alerts.test(conn, rule_id, now=datetime.now(UTC))
    said = f"{many(len(sent), 'test message')} on the way; whether it arrives is said here."
    return screen.back(request, f"/alerts/messages?rule={rule_id}", said)


@router.post("/{rule_id}/enable", dependencies=[may])
async def enable(request: Request, conn: Writing, rule_id: RulePath) -> Response:
    """It looks again, and begins anew."""
    return await _switch(request, conn, rule_id, enabled=True)


@router.post("/{rule_id}/disable", dependencies=[may])
async def disable(request: Request, conn: Writing, rule_id: RulePath) -> Response:
    """It looks at nothing."""
    return await _switch(request, conn, rule_id, enabled=False)


async def _switch(request: Request, conn: Writing, rule_id: int, *, enabled: bool) -> Response:
    system: System = request.app.state.system
    made = await alerts.change(conn, rule_id, {"enabled": enabled}, means=means(system), now=datetime.now(UTC))
    word = "on, and begins anew" if enabled else "off"
    return screen.back(request, screen.came_from(request), f"“{made.rule['name']}” is {word}.")


@router.post("/{rule_id}/remove", dependencies=[may])
async def remove(request: Request, conn: Writing, rule_id: RulePath) -> Response:
    """With all that it found and sent."""
    found = await alerts.remove(conn, rule_id)
    return screen.back(request, "/alerts", f"“{found['name']}” is removed, with all that it found and sent.")
