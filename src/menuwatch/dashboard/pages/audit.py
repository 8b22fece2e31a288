"""The audit log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts import audit
from menuwatch.accounts.audit import AuditFilter
from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.known_parameters import reads
from menuwatch.dashboard.pages.exports import export_list
from menuwatch.dashboard.pages.views import saved
from menuwatch.db.pool import Connection
from menuwatch.exports.tables import AUDIT_COLUMNS, Format
from menuwatch.ops.export import RowExport
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter(prefix="/audit", dependencies=[require(Permission.ACCOUNTS)])

Text = Annotated[str, Query(max_length=200)]
_FILTERS = ("actor", "action", "kind", "id", "since", "until")
_PAGES = {
    "task": "/tasks/", "proxy": "/proxies/", "host": "/hosts/", "alert_rule": "/alerts/", "store": "/stores/",
    "schedule": "/schedules/", "payload": "/payloads/", "worker": "/workers/",
}  # fmt: skip
"""Page of an object, by its kind."""


@router.get("")
async def listed(
    request: Request,
    conn: ReadConn,
    actor: Text = "",
    action: Text = "",
    kind: Text = "",
    id: Text = "",  # noqa: A002
    since: Text = "",
    until: Text = "",
    cursor: str = "",
) -> Response:
    """Entries, newest first."""
    options = await audit.filter_options(conn)
    # Old links and typed URLs may use another case.
    actor = next((name for name in options.actors if name.lower() == actor.strip().lower()), actor)
    action = "_".join(action.lower().split())
    form = FormInput({"actor": actor, "action": action, "kind": kind, "id": id, "since": since, "until": until})
    where = _where(form)
    after = screen.parse_number_cursor(request, cursor)
    entries = await audit.list_entries(conn, where, after=after, limit=tables.page_size(request) + 1) if where else []
    shown, page = tables.page(request, entries, "id")
    context = {
        "form": form,
        "filtered": any(form.value(name) for name in form.values),
        "shown": [(entry, describe_details(msgspec.json.decode(entry.details))) for entry in shown],
        "actors": [(name, name) for name in options.actors],
        "actions": [(code, _words(code).capitalize()) for code in options.actions],
        "kinds": [(code, _words(code).capitalize()) for code in options.kinds],
        "pages": _PAGES,
        "page": page,
        **await saved(request, conn),
    }
    return screen.render(request, "audit.html", context, live="accounts")


@router.get("/export", dependencies=[require(Permission.EXPORT), reads(*_FILTERS, "format")])
async def export_entries(request: Request, system: AppDep) -> Response:
    """The list as a file, with the same filters."""

    async def rows(_: Connection, fmt: Format) -> RowExport:
        form = FormInput({name: request.query_params.get(name, "").replace("\x00", "")[:200] for name in _FILTERS})
        where = _where(form)
        screen.refuse_invalid(form)
        assert where is not None, "without errors there is a filter"
        statement, values = audit.select_entries(where)
        return RowExport(columns=AUDIT_COLUMNS, statement=statement, parameters=values, fmt=fmt)

    return await export_list(request, system, "audit", rows)


def _where(form: FormInput) -> AuditFilter | None:
    """The filter of a form; None if it has errors."""
    begin, end = form.parse_date("since"), form.parse_date("until")
    try:
        where = AuditFilter(
            actor=form.text("actor"),
            action="_".join(form.value("action").lower().split()) or None,
            subject_kind=form.text("kind"),
            subject_id=form.text("id"),
            since=_midnight(begin),
            until=_midnight(end + timedelta(days=1)) if end else None,
        )
    except InvalidField:
        form.add_error("until", "the end date is before the start date")
        return None
    return where if form.ok else None


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)


def _words(name: str) -> str:
    return name.replace("_", " ")


def describe_details(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Details for display: label and value of each. Old and new value share a row."""
    if {"before", "after"} <= details.keys():
        before, after = details["before"], details["after"]
        rest = {name: value for name, value in details.items() if name not in ("before", "after")}
        if isinstance(before, dict) and isinstance(after, dict):
            names = dict.fromkeys([*before, *after])
            changed = [
                (n, f"{_value(before.get(n))} → {_value(after.get(n))}") for n in names if before.get(n) != after.get(n)
            ]
            return [(_words(name), text) for name, text in changed] + describe_details(rest)
        return [("changed", f"{_value(before)} → {_value(after)}"), *describe_details(rest)]
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
