"""The quarantine: suspicious menus beside the last good one, to release or reject."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.archive import diff as archive_diff
from menuwatch.archive import service as payloads
from menuwatch.archive.service import PayloadFilter
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.payload_diff import price_rows
from menuwatch.dashboard.pages.payloads import PayloadPath
from menuwatch.stores import store as stores
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/quarantine", dependencies=[require(Permission.READ)])

_ON_PAGE = 50


@router.get("")
async def inbox(
    request: Request,
    system: AppDep,
    payload: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Quarantined payloads, newest first, and one of them beside the last good menu of its store."""
    async with system.pool.connection(timeout=10) as conn:
        before = screen.parse_cursor(request, cursor, tuple[datetime, int])
        found = await payloads.list_with_previous(
            conn, PayloadFilter(status="quarantined"), before=before, limit=_ON_PAGE + 1
        )
        waiting = await payloads.count_quarantined(conn)
    shown, links = screen.paginate(request, found, _ON_PAGE, "fetched_at", "id")
    chosen = next((one for one in shown if one["id"] == payload), shown[0] if shown else None)
    context: dict[str, Any] = {
        "payloads": shown,
        "chosen": chosen,
        "waiting": waiting,
        "most_counted": payloads.MOST_COUNTED,
        "compared": await _compare(system, chosen["id"]) if chosen else None,
        **links,
    }
    return screen.render(request, "payloads/quarantine.html", context, live="payloads")


async def _compare(system: AppContext, payload_id: int) -> dict[str, Any]:
    """The payload, the last good one before it (None without one) and their differences, or why there are none."""
    async with system.pool.connection(timeout=10) as conn:
        held = await payloads.get_payload(conn, payload_id)
        store = await stores.get(conn, held.dispensary_id)
        try:
            good, _ = await payloads.choose_pair(conn, held.dispensary_id, None, payload_id)
        except Refused:
            good = None
    context: dict[str, Any] = {"held": held, "good": good, "store": store, "found": None, "why": None, "prices": []}
    if good is None:
        return context | {"why": "The store has no earlier good menu to compare with."}
    try:
        # Normalizing takes a while: no connection is held meanwhile.
        found = await archive_diff.compare(system.archive, system.platforms, good, held)
    except Refused as error:
        return context | {"why": str(error)}
    return context | {"found": found, "prices": price_rows(found)}


@router.post("/{payload_id}/release", dependencies=[require(Permission.PAYLOADS)])
async def release(
    request: Request, form: Annotated[FormInput, fields("note")], conn: WriteConn, payload_id: PayloadPath
) -> Response:
    """Releases it, and shows the next one."""
    try:
        task_id = await payloads.release(conn, payload_id, form.text("note"))
    except InvalidField as error:
        return screen.flash_back(request, f"Nothing was changed: the note has {error}", "bad")
    return screen.flash_to(request, "/quarantine", f"Payload {payload_id} released; task {task_id} applies it.")


@router.post("/{payload_id}/reject", dependencies=[require(Permission.PAYLOADS)])
async def reject(
    request: Request, form: Annotated[FormInput, fields("note")], conn: WriteConn, payload_id: PayloadPath
) -> Response:
    """Rejects it, and shows the next one."""
    try:
        await payloads.reject(conn, payload_id, form.text("note"))
    except InvalidField as error:
        return screen.flash_back(request, f"Nothing was changed: the note has {error}", "bad")
    return screen.flash_to(request, "/quarantine", f"Payload {payload_id} rejected.")
