"""The audit: who did what, when, and through which face."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.saved import saved
from menuwatch.operations import audit
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Reading

router = APIRouter(prefix="/audit", dependencies=[allowed(Permission.ACCOUNTS)])

SHOWN = 100
Text = Annotated[str, Query(max_length=200)]
_PAGES = {
    "task": "/tasks/", "proxy": "/proxies/", "host": "/hosts/", "alert_rule": "/alerts/", "store": "/stores/",
    "schedule": "/schedules/", "payload": "/payloads/", "worker": "/workers/",
}  # fmt: skip
"""Where what was changed is looked at, by its kind."""


@router.get("")
async def listed(
    request: Request,
    conn: Reading,
    actor: Text = "",
    action: Text = "",
    kind: Text = "",
    id: Text = "",  # noqa: A002
    since: Text = "",
    until: Text = "",
    cursor: str = "",
) -> Response:
    """What was done, newest first."""
    form = Filled({"actor": actor, "action": action, "kind": kind, "id": id, "since": since, "until": until})
    begin, end = _day(form, "since"), _day(form, "until")
    after = screen.place(request, cursor, tuple[int])
    found = []
    if form.ok:
        found = await audit.page(
            conn,
            actor=form.text("actor"),
            action="_".join(action.lower().split()) or None,
            subject_kind=form.text("kind"),
            subject_id=form.text("id"),
            since=begin,
            until=end + timedelta(days=1) if end else None,
            after=after[0] if after else None,
            limit=SHOWN + 1,
        )
    shown = found[:SHOWN]
    more = paging.encode(shown[-1]["id"]) if len(found) > SHOWN else None
    context = {
        "form": form,
        "filtered": any(form.value(name) for name in form.values),
        "shown": [(one, msgspec.json.decode(bytes(one["details"]))) for one in shown],
        "pages": _PAGES,
        "next_href": screen.query(request, cursor=more) if more else None,
        "first_href": screen.query(request) if after else None,
        **await saved(request, conn, "/audit"),
    }
    return screen.show(request, "audit.html", context, live="accounts", status=200 if form.ok else 422)


def _day(form: Filled, name: str) -> datetime | None:
    text = form.text(name)
    if text is None:
        return None
    try:
        found = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        form.refuse(name, f"{text[:20]!r} is no day: write it as 2026-11-21")
        return None
    if found.year >= 9999:  # the day after it would be no date any more
        form.refuse(name, f"{text[:20]} is too late a day: write it as 2026-11-21")
        return None
    return found
