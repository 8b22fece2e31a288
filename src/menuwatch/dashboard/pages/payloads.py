"""Payloads: archived responses, diffs between two, and re-applying one after a dry run."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request
from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.archive import service as payloads
from menuwatch.archive.service import PayloadFilter
from menuwatch.archive.store import Payload
from menuwatch.catalog import changes
from menuwatch.catalog.changes import ChangeFilter
from menuwatch.catalog.service import Span
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.charts.timelines import draw_crawls
from menuwatch.dashboard.decode import decoded, plain
from menuwatch.dashboard.json_tree import tree
from menuwatch.dashboard.pages.views import saved
from menuwatch.pipeline.product_refresh import dry_run
from menuwatch.platforms.base import Platform
from menuwatch.platforms.items import oversized
from menuwatch.queue.enqueue import TaskRequest, enqueue
from menuwatch.queue.model import PRIORITY_URGENT, Role
from menuwatch.stores import service as store_service
from menuwatch.stores import store as stores
from menuwatch.web import csrf
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput

router = APIRouter(dependencies=[require(Permission.READ)])

_ITEMS = 5
_LONGEST_ITEM = 20_000
_SHOWN = 100
PayloadPath = Annotated[int, Path(ge=1, le=2**63 - 1)]
STATES = {
    "ok": "Menu payload",
    "partial": "Incomplete: pages are missing; kept, never applied",
    "quarantined": "Suspicious: not applied until a user releases it",
    "rejected": "Never applied: an error page, an unreadable response, or rejected after review",
}


@router.get("/payloads")
async def list_payloads(
    request: Request,
    conn: ReadConn,
    store: Annotated[str, Query(max_length=200)] = "",
    status: Annotated[str, Query(max_length=20)] = "",
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Lists archived payloads, newest first; of one store also as a timeline."""
    form = FormInput({"store": store.replace("\x00", ""), "status": status})
    form.parse_choice("status", payloads.STATUSES)
    chosen = None
    if (text := form.text("store")) is not None:
        try:
            chosen = await stores.resolve(conn, text)
        except Refused as error:
            form.add_error("store", str(error))
    found = []
    if form.ok:
        before = screen.parse_cursor(request, cursor, tuple[datetime, int])
        found = await payloads.list_with_previous(
            conn,
            PayloadFilter(dispensary_id=chosen.id if chosen else None, status=form.text("status")),
            before=before,
            limit=tables.page_size(request) + 1,
        )
    shown, page = tables.page(request, found, "fetched_at", "id")
    crawls = await store_service.recent_crawls(conn, chosen.id) if chosen else []
    root: str = request.scope.get("root_path", "")
    context = {
        "form": form,
        "payloads": shown,
        "store": chosen,
        "crawls": crawls,
        "strip": draw_crawls(
            crawls, now=datetime.now(UTC), interval=timedelta(hours=float(chosen.crawl_interval_hours)), address=root
        )
        if chosen
        else "",
        "states": STATES,
        "waiting": await payloads.count_quarantined(conn),
        "most": payloads.MOST_COUNTED,
        "page": page,
        **await saved(request, conn),
    }
    return screen.render(request, "payloads/list.html", context, live="payloads")


@router.get("/payloads/{payload_id}")
async def show_payload(request: Request, conn: ReadConn, payload_id: PayloadPath) -> Response:
    """Shows one payload: metadata, the crawl made from it, and payloads with the same content."""
    payload = await payloads.get_payload(conn, payload_id)
    usage = await payloads.get_usage(conn, payload)
    before, after = await payloads.list_comparable(conn, payload_id)
    context = {
        "payload": payload,
        **usage,
        "said": STATES.get(payload.status, ""),
        "before": before,
        "after": after,
        "beside": next((other["id"] for other in [*before, *after] if other["status"] == "ok"), None),
    }
    return screen.render(request, "payloads/one.html", context, live="payloads,products")


@router.get("/payloads/{payload_id}/data")
async def show_payload_items(
    request: Request, system: AppDep, payload_id: PayloadPath, item: Annotated[int, Query(ge=1, le=1_000_000)] = 1
) -> Response:
    """Shows a few items as the platform sent them."""
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.get_payload(conn, payload_id)
    items, total, why = await asyncio.to_thread(_items, system, payload, item - 1)
    context = {
        "payload": payload,
        "items": items,
        "first": item,
        "total": total,
        "why": why,
        "step": _ITEMS,
    }
    return screen.render(request, "payloads/data.html", context)


class _Item(Struct, frozen=True):
    """One item: the product that it is, as a tree (None where no tree can be made of it), and as text."""

    name: str | None
    tree: Markup | None
    text: str


def _items(system: AppContext, payload: Payload, first: int) -> tuple[list[_Item], int, str | None]:
    """(some items, how many there are, why none can be shown). Raises PayloadMissing and PayloadDamaged."""
    try:
        document = payloads.read(system.archive, payload)
        platform = system.platforms[payload.platform]
        items = [item for page in platform.split_menu(document.pages) for item in page]
    except KeyError:
        return [], 0, f"unknown platform {payload.platform!r}"
    except BadPayload as error:
        return [], 0, f"no menu: {error.kind}: {error}"
    chosen = enumerate(items[first : first + _ITEMS], first + 1)
    return [_item(platform, item, place) for place, item in chosen], len(items), None


def _item(platform: Platform, item: msgspec.Raw, place: int) -> _Item:
    if oversized(item):
        return _Item(None, None, bytes(memoryview(item)[:_LONGEST_ITEM]).decode("utf-8", "replace") + "\n…")
    products = platform.normalize((item,)).products
    try:
        branches = tree(plain(item), f"item-{place}", open_to=1)
    except (msgspec.DecodeError, ValueError, RecursionError):
        branches = None
    return _Item(products[0].name if products else None, branches, _pretty(item))


def _pretty(item: msgspec.Raw) -> str:
    text = msgspec.json.format(bytes(item), indent=2).decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_ITEM else text[:_LONGEST_ITEM] + "\n…"


@router.get("/payloads/{payload_id}/replay", dependencies=[require(Permission.PAYLOADS)])
async def show_dry_run(request: Request, system: AppDep, payload_id: PayloadPath) -> Response:
    """Shows what applying it would change: applies it and rolls back. That locks the store's row for a while, so links from
    other sites are refused."""
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") or "sec-purpose" in request.headers:
        raise csrf.CrossSite("a dry run starts on the payload's own page")
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.get_payload(conn, payload_id)
        store = await stores.get(conn, payload.dispensary_id)
    context: dict[str, Any] = {
        "payload": payload,
        "store": store,
        "changes": [],
        "more": False,
        "refused": None,
        "dry_run": None,
    }
    try:
        async with dry_run(
            system.pool, system.archive, system.platforms, payload_id, suspect_share=system.settings.suspect_share
        ) as trial:
            context |= {"dry_run": trial, "refused": trial.refused}
            if trial.refused is None:
                at = payload.fetched_at
                where = ChangeFilter(
                    stores=[payload.dispensary_id], span=Span(since=at, until=at + timedelta(microseconds=1))
                )
                newest = await changes.list_changes(trial.conn, where, limit=_SHOWN)
                context |= {"changes": decoded(newest.items), "more": newest.next is not None}
    except Refused as error:
        context["refused"] = str(error)
    return screen.render(request, "payloads/replay.html", context)


@router.post("/payloads/{payload_id}/replay", dependencies=[require(Permission.PAYLOADS)])
async def apply_again(request: Request, system: AppDep, conn: WriteConn, payload_id: PayloadPath) -> Response:
    """Enqueues a task that applies it, ahead of other tasks."""
    payload = await payloads.get_payload(conn, payload_id)
    if payload.status == "quarantined":
        return await release_payload(request, conn, payload_id)
    requested = TaskRequest(
        role=Role.PRODUCT_REFRESH,
        dispensary_id=payload.dispensary_id,
        priority=PRIORITY_URGENT,
        payload={"payload_id": payload_id},
    )
    enqueued = await enqueue(conn, requested, platforms=list(system.platforms))
    return screen.flash_to(
        request, f"/payloads/{payload_id}", f"Task {enqueued.task.id} applies it ahead of other tasks."
    )


@router.post("/payloads/{payload_id}/release", dependencies=[require(Permission.PAYLOADS)])
async def release_payload(request: Request, conn: WriteConn, payload_id: PayloadPath) -> Response:
    """Releases it from quarantine."""
    task_id = await payloads.release(conn, payload_id)
    return screen.flash_to(
        request, f"/payloads/{payload_id}", f"Released from quarantine; task {task_id} applies it ahead of other tasks."
    )
