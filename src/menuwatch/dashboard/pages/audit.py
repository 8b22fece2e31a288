"""The audit: who did what, when, and through which face."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

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
    seen = await audit.seen(conn)
    # Links of old, and people who type an address, may write a name in other letters.
    actor = next((one for one in seen.actors if one.lower() == actor.strip().lower()), actor)
    action = "_".join(action.lower().split())
    form = Filled({"actor": actor, "action": action, "kind": kind, "id": id, "since": since, "until": until})
    begin, end = _day(form, "since"), _day(form, "until")
    if begin and end and end < begin:
        form.refuse("until", "this is before the first day")
    after = screen.place(request, cursor, tuple[int])
    found = []
    if form.ok:
        found = await audit.page(
            conn,
            actor=form.text("actor"),
            action=form.text("action"),
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
        "shown": [(one, told(msgspec.json.decode(bytes(one["details"])))) for one in shown],
        "actors": [(one, one) for one in seen.actors],
        "actions": [(one, _words(one).capitalize()) for one in seen.actions],
        "kinds": [(one, _words(one).capitalize()) for one in seen.kinds],
        "pages": _PAGES,
        "next_href": screen.query(request, cursor=more) if more else None,
        "first_href": screen.query(request) if after else None,
        **await saved(request, conn, "/audit"),
    }
    return screen.show(request, "audit.html", context, live="accounts", status=200 if form.ok else 422)


def _words(name: str) -> str:
    return name.replace("_", " ")


def told(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Details as people read them: the name of each and its value in words. What it was and what it is now are one."""
    if {"before", "after"} <= details.keys():
        before, after = details["before"], details["after"]
        rest = {name: value for name, value in details.items() if name not in ("before", "after")}
        if isinstance(before, dict) and isinstance(after, dict):
            names = dict.fromkeys([*before, *after])
            changed = [
                (n, f"{_value(before.get(n))} → {_value(after.get(n))}") for n in names if before.get(n) != after.get(n)
            ]
            return [(_words(name), text) for name, text in changed] + told(rest)
        return [("changed", f"{_value(before)} → {_value(after)}"), *told(rest)]
    return [(_words(name), _value(value)) for name, value in details.items()]


def _value(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(_value, value)) or "none"
        case dict():
            return ", ".join(f"{_words(str(name))}: {_value(inner)}" for name, inner in value.items()) or "none"
        case str() if _MOMENT.fullmatch(value):
            return f"{value[:10]} {value[11:16]} UTC"
        case _:
            return str(value)


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)")


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
