"""Alerts: rules, what they found, what was sent."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging, versions
from menuwatch.api.answers import answer, page, tag_of
from menuwatch.api.schemas.alerts import (
    Delivery,
    DeliveryPage,
    DeliveryQuery,
    EventPage,
    EventQuery,
    MadeRule,
    NewRule,
    Queued,
    Rule,
    RuleChange,
    RulePage,
)
from menuwatch.api.schemas.common import BIGINT_MAX, INTEGER_MAX, PageQuery
from menuwatch.api.versions import IfMatch
from menuwatch.operations import alerts
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, System, Writing

router = APIRouter(prefix="/api/alerts", tags=["alerts"], dependencies=[allowed_by_method(Permission.ALERTS)])

RulePath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Number of the rule.")]
DeliveryPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Number of the message.")]


def _means(system: System) -> alerts.Means:
    return alerts.Means.of(system.settings, tuple(system.platforms))


@router.get("", response_model=RulePage, summary="List alert rules")
async def list_alert_rules(request: Request, conn: Reading, query: Annotated[PageQuery, Query()]) -> Response:
    """What people want to be told of."""
    mark = paging.mark("alert rules")
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[int])[0]
    found = await alerts.page(conn, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["id"]) if len(found) > query.limit else None)


@router.post("", response_model=MadeRule, status_code=201, summary="Make an alert rule")
async def make_alert_rule(request: Request, system: Sys, conn: Writing, rule: NewRule) -> Response:
    """A rule that could never fire is refused with the reason."""
    made = await alerts.add(conn, rule.wish(), means=_means(system), now=datetime.now(UTC))
    return answer(request, dataclasses.asdict(made), status=201)


@router.get("/events", response_model=EventPage, summary="List what rules found, newest first")
async def list_alert_events(request: Request, conn: Reading, query: Annotated[EventQuery, Query()]) -> Response:
    """Each crossing once, with the product before and after it."""
    mark = paging.mark("alert events", query.rule_id)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[int])[0]
    found = await alerts.events(conn, rule_id=query.rule_id, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["id"]) if len(found) > query.limit else None)


@router.get("/deliveries", response_model=DeliveryPage, summary="List messages, newest first")
async def list_alert_deliveries(request: Request, conn: Reading, query: Annotated[DeliveryQuery, Query()]) -> Response:
    """Every message with every try to get it to its receiver."""
    mark = paging.mark("alert deliveries", query.rule_id, query.status)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[int])[0]
    found = await alerts.deliveries(
        conn, rule_id=query.rule_id, status=query.status, after=after, limit=query.limit + 1
    )
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["id"]) if len(found) > query.limit else None)


@router.post("/deliveries/{delivery_id}/replay", response_model=Delivery, summary="Send a message again")
async def replay_alert_delivery(request: Request, conn: Writing, delivery_id: DeliveryPath) -> Response:
    """The same message under the same key; `replay` in it counts how often."""
    return answer(request, await alerts.replay(conn, delivery_id, now=datetime.now(UTC)))


@router.get("/{rule_id}", response_model=Rule, summary="Show an alert rule")
async def show_alert_rule(request: Request, conn: Reading, rule_id: RulePath) -> Response:
    """One rule."""
    return answer(request, await alerts.one(conn, rule_id))


@router.patch("/{rule_id}", response_model=MadeRule, summary="Change an alert rule")
async def change_alert_rule(
    request: Request, system: Sys, conn: Writing, rule_id: RulePath, change: RuleChange, if_match: IfMatch = None
) -> Response:
    """What the body names is changed. With another scope or condition, or enabled again, the rule begins anew."""
    await alerts.lock(conn, rule_id)
    versions.check(if_match, await alerts.one(conn, rule_id), f"alert rule {rule_id}")
    made = await alerts.change(conn, rule_id, change.wish(), means=_means(system), now=datetime.now(UTC))
    return answer(request, dataclasses.asdict(made), headers={"ETag": tag_of(made.rule)})


@router.delete("/{rule_id}", response_model=Rule, summary="Remove an alert rule")
async def remove_alert_rule(request: Request, conn: Writing, rule_id: RulePath) -> Response:
    """With all that it found and sent; answers with the rule as it was."""
    return answer(request, await alerts.remove(conn, rule_id))


@router.post("/{rule_id}/test", response_model=Queued, status_code=202, summary="Send a test message")
async def test_alert_rule(request: Request, conn: Writing, rule_id: RulePath) -> Response:
    """One to each channel, within seconds; how it went is in the list of messages."""
    return answer(request, {"deliveries": await alerts.test(conn, rule_id, now=datetime.now(UTC))}, status=202)
