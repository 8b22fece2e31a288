"""Data quality: findings, scores of stores, one store's measures with their bands, and rules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.pages.stores import StorePath
from menuwatch.db.pool import Connection
from menuwatch.quality import labels
from menuwatch.quality import service as quality
from menuwatch.quality.audit import list_audits
from menuwatch.quality.measures import NAMES
from menuwatch.quality.service import CONDITIONS, SCOPES, SEVERITIES, FindingFilter, store_key
from menuwatch.stores import service as stores
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/quality", dependencies=[require(Permission.READ)])

TABS = (
    ("", "Findings"),
    ("/stores", "Stores"),
    ("/words", "Category words"),
    ("/audits", "Audits"),
    ("/rules", "Rules"),
)
WORDS = {"new": "New ones", "unknown": "Not in the taxonomy", "all": "All"}
STATUSES = {"open": "Open", "closed": "Ended", "all": "All"}
SCOPE_NAMES = {
    "store": "One store", "chain": "A chain", "point_of_sale": "A point of sale", "platform": "A platform",
    "normalizer": "A release of Menuwatch",
}  # fmt: skip
CONDITION_NAMES = {"above": "Above", "below": "Below", "ignore": "Do not monitor"}
RESULTS = {
    "equal": ("equal", "good"), "different": ("different", "bad"), "not_found": ("not in the payload", "bad"),
    "unreadable": ("payload unreadable", "bad"),
}  # fmt: skip
"""Label and colour of each result of an audit."""
KINDS = {"critical": "bad", "warning": "warn", "info": "none"}
"""Colour of each severity."""
RulePath = Annotated[int, Path(ge=1, le=2**31 - 1)]
_TEXT = {
    "label": labels.measure_label,
    "value": labels.value_text,
    "band": labels.band_text,
    "cause": labels.cause_text,
}


@router.get("")
async def list_findings(
    request: Request,
    form: Annotated[FormInput, fields("status", "severity", "scope", "measure", "platform", "state", longest=80)],
    conn: ReadConn,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Findings, newest first, with the counts of the installation."""
    status = form.parse_choice("status", tuple(STATUSES))
    severity, scope = form.parse_choice("severity", SEVERITIES), form.parse_choice("scope", SCOPES)
    where = FindingFilter(
        status=status or "open",  # type: ignore[arg-type]
        severity=[severity] if severity else None,
        scope=scope,
        measure=form.text("measure"),
        platform=form.text("platform"),
        state=form.text("state"),
    )
    rows = []
    if form.ok:
        before = screen.parse_cursor(request, cursor, tuple[datetime, int])
        rows = await quality.list_findings(conn, where, before=before, limit=tables.page_size(request) + 1)
    shown, page = tables.page(request, rows, "opened_at", "id")
    platforms, states = await stores.platforms_and_states(conn)
    context = {
        "tabs": TABS,
        "tab": "",
        "form": form,
        "summary": await quality.get_summary(conn),
        "findings": shown,
        "statuses": list(STATUSES.items()),
        "severities": [(one, one.capitalize()) for one in SEVERITIES],
        "scopes": list(SCOPE_NAMES.items()),
        "platforms": screen.platform_choices(request, platforms),
        "states": [(one, one) for one in states],
        "kinds": KINDS,
        "text": _TEXT,
        "filtered": any(form.text(name) for name in form.values),
        "page": page,
    }
    return screen.render(request, "quality/findings.html", context, live="products", status=200 if form.ok else 422)


@router.get("/stores")
async def list_stores(
    request: Request,
    form: Annotated[FormInput, fields("platform", "state", longest=80)],
    conn: ReadConn,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Stores by score, the worst first."""
    after = screen.parse_cursor(request, cursor, tuple[int, int])
    size = tables.page_size(request)
    rows = await quality.list_stores(
        conn, platform=form.text("platform"), state=form.text("state"), after=after, limit=size + 1
    )
    shown = rows[:size]
    platforms, states = await stores.platforms_and_states(conn)
    context = {
        "tabs": TABS,
        "tab": "/stores",
        "form": form,
        "stores": shown,
        "platforms": screen.platform_choices(request, platforms),
        "states": [(one, one) for one in states],
        "filtered": any(form.text(name) for name in form.values),
        "page": tables.page_of(request, len(shown), paging.encode(*store_key(shown[-1])) if len(rows) > size else None),
    }
    return screen.render(request, "quality/stores.html", context, live="products")


@router.get("/stores/{store_id}")
async def show_store(request: Request, conn: ReadConn, store_id: StorePath) -> Response:
    """One store: its score, the measures of its last menu with their bands, and its findings."""
    return await _store(request, conn, store_id)


async def _store(request: Request, conn: Connection, store_id: int, form: FormInput | None = None) -> Response:
    found = await quality.get_store(conn, store_id)
    form = form or FormInput({"name": found.point_of_sale or ""})
    context = {
        "form": form,
        "may": screen.may(request, Permission.ALERTS),
        "store": await stores.get_store(conn, store_id),
        "quality": found,
        "past": await quality.list_findings(conn, FindingFilter(status="closed", store=[store_id]), limit=20),
        "kinds": KINDS,
        "text": _TEXT,
    }
    return screen.render(request, "quality/store.html", context, live="products", status=200 if form.ok else 422)


@router.post("/stores/{store_id}/point-of-sale", dependencies=[require(Permission.ALERTS)])
async def set_point_of_sale(
    request: Request, form: Annotated[FormInput, fields("name", longest=200)], conn: WriteConn, store_id: StorePath
) -> Response:
    """Says which software the shop uses; an empty name says that it is not known."""
    try:
        found = await quality.set_point_of_sale(conn, store_id, form.text("name"))
    except InvalidField as error:
        form.add_error(error.field, str(error))
        return await _store(request, conn, store_id, form)
    said = f"Point of sale: {found.point_of_sale}." if found.point_of_sale else "Point of sale cleared."
    return screen.flash_to(request, f"/quality/stores/{store_id}", said)


@router.get("/audits")
async def list_audited_values(
    request: Request, conn: ReadConn, cursor: Annotated[str, Query(max_length=400)] = ""
) -> Response:
    """Values of the weekly samples, traced back to the bytes of their payload, newest first."""
    before = screen.parse_number_cursor(request, cursor)
    rows = await list_audits(conn, before=before, limit=tables.page_size(request) + 1)
    shown, page = tables.page(request, rows, "id")
    context = {"tabs": TABS, "tab": "/audits", "values": shown, "results": RESULTS, "page": page}
    return screen.render(request, "quality/audits.html", context)


@router.get("/words")
async def list_words(
    request: Request,
    form: Annotated[FormInput, fields("platform", "show", longest=80)],
    conn: ReadConn,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Words that platforms began to use for categories, newest first."""
    show = form.parse_choice("show", tuple(WORDS)) or "new"
    before = screen.parse_cursor(request, cursor, tuple[datetime, str, str])
    rows = await quality.list_words(
        conn, platform=form.text("platform"), events=show == "new", unknown=show == "unknown", before=before,
        limit=tables.page_size(request) + 1,
    )  # fmt: skip
    shown, page = tables.page(request, rows, "first_seen_at", "platform", "word")
    platforms, _ = await stores.platforms_and_states(conn)
    context = {
        "tabs": TABS,
        "tab": "/words",
        "form": form,
        "words": shown,
        "shows": list(WORDS.items()),
        "platforms": screen.platform_choices(request, platforms),
        "page": page,
    }
    return screen.render(request, "quality/words.html", context, live="products", status=200 if form.ok else 422)


@router.get("/rules")
async def list_rules(request: Request, conn: ReadConn) -> Response:
    """Rules, with a form to add one."""
    return await _rules(request, conn, FormInput({}))


async def _rules(request: Request, conn: ReadConn, form: FormInput) -> Response:
    platforms, _ = await stores.platforms_and_states(conn)
    context = {
        "tabs": TABS,
        "tab": "/rules",
        "form": form,
        "rules": await quality.list_rules(conn),
        "measures": [name for name in NAMES if not name.endswith("…")],
        "families": [name.removesuffix("…") + "*" for name in NAMES if name.endswith("…")],
        "conditions": list(CONDITION_NAMES.items()),
        "severities": [(one, one.capitalize()) for one in SEVERITIES],
        "platforms": screen.platform_choices(request, platforms),
        "kinds": KINDS,
        "may": screen.may(request, Permission.ALERTS),
    }
    return screen.render(request, "quality/rules.html", context, status=200 if form.ok else 422)


@router.post("/rules", dependencies=[require(Permission.ALERTS)])
async def add_rule(
    request: Request,
    form: Annotated[
        FormInput, fields("measure", "condition", "amount", "severity", "platform", "store", "note", longest=500)
    ],
    conn: WriteConn,
    system: AppDep,
) -> Response:
    """Adds a rule; what is wrong is marked at its field."""
    condition = form.parse_choice("condition", CONDITIONS)
    amount = form.parse_decimal("amount", "a number: shares are from 0 to 1, 0.2 is a fifth")
    store = form.parse_int("store", low=1, high=2**31 - 1)
    severity = form.parse_choice("severity", SEVERITIES)
    platform = form.parse_choice("platform", tuple(system.platforms))
    if not form.ok:
        return await _rules(request, conn, form)
    try:
        rule = await quality.add_rule(
            conn, measure=form.text("measure") or "", condition=condition or "",
            amount=None if amount is None else float(amount), severity=None if condition == "ignore" else severity,
            platform=platform, store=store, note=form.text("note"),
        )  # fmt: skip
    except InvalidField as error:
        form.add_error(error.field, str(error))
        return await _rules(request, conn, form)
    return screen.flash_to(request, "/quality/rules", f"Rule {rule.id} added: it applies to menus checked from now on.")


@router.post("/rules/{rule_id}/remove", dependencies=[require(Permission.ALERTS)])
async def remove_rule(request: Request, conn: WriteConn, rule_id: RulePath) -> Response:
    """Removes a rule with its findings."""
    try:
        rule = await quality.remove_rule(conn, rule_id)
    except NotFound as error:
        return screen.flash_to(request, "/quality/rules", f"Nothing was changed: {error}.", "bad")
    return screen.flash_to(request, "/quality/rules", f"Rule {rule.id} for {rule.measure} removed.")
