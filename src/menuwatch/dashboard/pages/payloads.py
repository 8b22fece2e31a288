"""Payloads: the archived answers, what differs between two, and applying one again after having seen what that would do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.dashboard import menu_diff, screen
from menuwatch.dashboard.json_tree import tree
from menuwatch.dashboard.reading import decoded, plain
from menuwatch.dashboard.saved import saved
from menuwatch.dashboard.svg.crawl_strip import strip
from menuwatch.operations import changes, payload_list, payloads, store_crawling, wishes
from menuwatch.operations.changes import ChangeFilter
from menuwatch.operations.products import Span
from menuwatch.operations.wishes import Wish
from menuwatch.payloads.store import Payload
from menuwatch.pipeline.rehearsal import rehearsing
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.tasks.model import PRIORITY_URGENT, Role
from menuwatch.web import csrf, paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys, System, Writing

router = APIRouter(dependencies=[allowed(Permission.READ)])

_ON_PAGE = 50
_ITEMS = 5
_LONGEST_ITEM = 20_000
_SHOWN = 100
PayloadPath = Annotated[int, Path(ge=1, le=2**63 - 1)]
STATES = {
    "ok": "A menu, applied or to be applied",
    "partial": "Pages are missing: kept, never applied",
    "quarantined": "It looks wrong: kept from the catalogue until a person releases it",
    "rejected": "No menu at all: an error page, or answers that cannot be read",
}


@router.get("/payloads")
async def list_payloads(
    request: Request,
    conn: Reading,
    store: Annotated[str, Query(max_length=200)] = "",
    status: Annotated[str, Query(max_length=20)] = "",
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Every archived answer, newest first; of one store also as a timeline."""
    form = Form({"store": store.replace("\x00", ""), "status": status})
    form.one_of("status", payload_list.STATUSES)
    chosen = None
    if (text := form.text("store")) is not None:
        try:
            chosen = await stores.find(conn, text)
        except Refused as error:
            form.refuse("store", str(error))
        if chosen is None:
            form.refuse("store", f"no store has the number or slug {text[:60]!r}")
    found = []
    if form.ok:
        before = screen.place(request, cursor, tuple[datetime, int])
        found = await payload_list.page(
            conn, store=chosen.id if chosen else None, status=form.text("status"), before=before, limit=_ON_PAGE + 1
        )
    shown = found[:_ON_PAGE]
    crawls = await store_crawling.recent(conn, chosen.id) if chosen else []
    root: str = request.scope.get("root_path", "")
    context = {
        "form": form,
        "payloads": shown,
        "store": chosen,
        "crawls": crawls,
        "strip": strip(
            crawls, now=datetime.now(UTC), interval=timedelta(hours=float(chosen.crawl_interval_hours)), address=root
        )
        if chosen
        else "",
        "states": STATES,
        "waiting": await payload_list.waiting(conn),
        "most": payload_list.MOST_COUNTED,
        "next": paging.encode(shown[-1]["fetched_at"], shown[-1]["id"]) if len(found) > _ON_PAGE else None,
        "first": bool(cursor),
        "query": lambda **changed: screen.query(request, **changed),
        **await saved(request, conn, "/payloads"),
    }
    return screen.show(request, "payloads/list.html", context, live="payloads", status=200 if form.ok else 422)


@router.get("/payloads/{payload_id}")
async def one_payload(request: Request, conn: Reading, payload_id: PayloadPath) -> Response:
    """One answer: what is known of it, what the catalogue took from it, who else has the same."""
    payload = await payloads.one(conn, payload_id)
    usage = await payloads.usage(conn, payload)
    before, after = await payload_list.near(conn, payload_id)
    context = {
        "payload": payload,
        **usage,
        "said": STATES.get(payload.status, ""),
        "before": before,
        "after": after,
        "beside": next((one["id"] for one in [*before, *after] if one["status"] == "ok"), None),
    }
    return screen.show(request, "payloads/one.html", context, live="payloads,products")


@router.get("/payloads/{payload_id}/data")
async def payload_data(
    request: Request, system: Sys, payload_id: PayloadPath, item: Annotated[int, Query(ge=1, le=1_000_000)] = 1
) -> Response:
    """A few of the items of the answer, as the platform sent them."""
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.one(conn, payload_id)
    items, total, why = await asyncio.to_thread(_items, system, payload, item - 1)
    context = {
        "payload": payload,
        "items": items,
        "first": item,
        "total": total,
        "why": why,
        "step": _ITEMS,
        "query": lambda **changed: screen.query(request, **changed),
    }
    return screen.show(request, "payloads/data.html", context)


@dataclass(frozen=True, slots=True)
class _Item:
    """One item: the product that it is, as a tree (None where no tree can be made of it), and as text."""

    name: str | None
    tree: Markup | None
    text: str


def _items(system: System, payload: Payload, first: int) -> tuple[list[_Item], int, str | None]:
    """(some items, how many there are, why none can be shown)."""
    try:
        document = system.archive.read(payload.path, payload.sha256)
        platform = system.platforms[payload.platform]
        items = [one for page in document.pages for one in platform.split(page)]
    except KeyError:
        return [], 0, f"it is of platform {payload.platform!r}, which is not known here"
    except BadPayload as error:
        return [], 0, f"it holds no menu: {error.kind}: {error}"
    except Refused as error:
        return [], 0, f"its file cannot be read: {error}"
    chosen = enumerate(items[first : first + _ITEMS], first + 1)
    return [_item(platform, one, place) for place, one in chosen], len(items), None


def _item(platform: Platform, item: msgspec.Raw, place: int) -> _Item:
    products = platform.normalize((item,)).products
    try:
        branches = tree(plain(item), f"item-{place}", open_to=1)
    except (msgspec.DecodeError, ValueError, RecursionError):
        branches = None
    return _Item(products[0].name if products else None, branches, _pretty(item))


def _pretty(item: msgspec.Raw) -> str:
    text = msgspec.json.format(bytes(item), indent=2).decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_ITEM else text[:_LONGEST_ITEM] + "\n…"


@router.get("/payloads/{payload_id}/diff")
async def difference(
    request: Request,
    system: Sys,
    payload_id: PayloadPath,
    other: Annotated[int | None, Query(alias="with", ge=1, le=2**63 - 1)] = None,
) -> Response:
    """What differs between another answer, the one before it where none is named, and this one."""
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.one(conn, payload_id)
        pair = await payloads.to_compare(conn, payload.dispensary_id, other, payload_id)
        before, after = await payload_list.near(conn, payload_id)
        store = await stores.get(conn, payload.dispensary_id)
    # What was and what is, whichever of the two was asked for first.
    first, second = sorted(pair, key=lambda one: (one.fetched_at, one.id))
    # Normalizing takes a while: no connection is held meanwhile.
    found = await payloads.compare(system.archive, system.platforms, first, second)
    async with system.pool.connection(timeout=10) as conn:
        known = await payload_list.in_catalogue(conn, payload.dispensary_id, payload.platform, menu_diff.items(found))
    context = {
        "payload": payload,
        "store": store,
        "older": first,
        "newer": second,
        "before": before,
        "after": after,
        "beside": pair[0],
        "known": known,
        "diff": found.diff,
        "prices": menu_diff.price_rows(found),
        "stocks": menu_diff.stock_rows(found),
        "unreadable": found.unreadable,
        "large": menu_diff.is_large(found),
        "most": menu_diff.MOST,
        "nothing": not any(
            (*found.diff.added, *found.diff.removed, *found.diff.price_changes, *found.diff.stock_changes)
        )
        and not found.unreadable,
    }
    return screen.show(request, "payloads/diff.html", context)


@router.get("/payloads/{payload_id}/replay", dependencies=[allowed(Permission.PAYLOADS)])
async def rehearse(request: Request, system: Sys, payload_id: PayloadPath) -> Response:
    """What applying it would change: done in earnest, and taken back. That takes a store's row for a while, so a page of somebody
    else cannot have it done by a link."""
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") or "sec-purpose" in request.headers:
        raise csrf.CrossSite("a rehearsal begins on the payload's own page")
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.one(conn, payload_id)
        store = await stores.get(conn, payload.dispensary_id)
    context: dict[str, Any] = {
        "payload": payload,
        "store": store,
        "changes": [],
        "more": False,
        "refused": None,
        "rehearsal": None,
    }
    try:
        async with rehearsing(
            system.pool, system.archive, system.platforms, payload_id, suspect_share=system.settings.suspect_share
        ) as tried:
            context |= {"rehearsal": tried, "refused": tried.refused}
            if tried.refused is None:
                at = payload.fetched_at
                where = ChangeFilter(
                    stores=[payload.dispensary_id], span=Span(since=at, until=at + timedelta(microseconds=1))
                )
                newest = await changes.newest(tried.conn, where, limit=_SHOWN)
                context |= {"changes": decoded(newest.rows), "more": newest.next is not None}
    except Refused as error:
        context["refused"] = str(error)
    return screen.show(request, "payloads/replay.html", context)


@router.post("/payloads/{payload_id}/replay", dependencies=[allowed(Permission.PAYLOADS)])
async def replay(request: Request, system: Sys, conn: Writing, payload_id: PayloadPath) -> Response:
    """Has a worker apply it, ahead of other work."""
    payload = await payloads.one(conn, payload_id)
    if payload.status == "quarantined":
        return await release(request, conn, payload_id)
    wish = Wish(
        role=Role.PRODUCT_REFRESH,
        dispensary_id=payload.dispensary_id,
        priority=PRIORITY_URGENT,
        payload={"payload_id": payload_id},
    )
    task_id, _ = await wishes.enqueue(conn, wish, platforms=list(system.platforms))
    return screen.back(request, f"/payloads/{payload_id}", f"Task {task_id} applies it ahead of other work.")


@router.post("/payloads/{payload_id}/release", dependencies=[allowed(Permission.PAYLOADS)])
async def release(request: Request, conn: Writing, payload_id: PayloadPath) -> Response:
    """A person has looked: it is the store's menu after all."""
    task_id = await payloads.release(conn, payload_id)
    return screen.back(
        request, f"/payloads/{payload_id}", f"It is out of quarantine; task {task_id} applies it ahead of other work."
    )
