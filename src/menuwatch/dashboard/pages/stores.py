"""Stores: how fresh each menu is, how its crawls went, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.reading import decoded
from menuwatch.dashboard.saved import saved
from menuwatch.dashboard.svg.crawl_strip import strip
from menuwatch.dashboard.svg.outcomes import outcomes
from menuwatch.operations import changes, payloads, store_crawling, store_health, stores, wishes
from menuwatch.operations.changes import ChangeFilter
from menuwatch.operations.refusals import Conflict, Unusable
from menuwatch.operations.store_crawling import LONGEST_HOURS, SHORTEST_HOURS, Crawling, Stale
from menuwatch.operations.store_health import Freshness, StoreFilter
from menuwatch.operations.wishes import Wish
from menuwatch.tasks.model import PRIORITY_URGENT, Role
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys, Writing
from menuwatch.web.words import span

router = APIRouter(dependencies=[allowed(Permission.READ)])

_ON_PAGE = 50
_SHOWN = 8
StorePath = Annotated[int, Path(ge=1, le=2**31 - 1)]

FRESHNESS: Mapping[Freshness, tuple[str, str, str]] = {
    Freshness.FRESH: ("Fresh", "good", "The menu is younger than the time between two crawls"),
    Freshness.LATE: ("Late", "warn", "A crawl is overdue by a quarter of the time between two"),
    Freshness.STALE: ("Stale", "bad", "No menu for more than twice the time between two crawls"),
    Freshness.NEVER: ("Never crawled", "info", "No menu yet: the first crawl is still to come"),
    Freshness.UNRESOLVED: ("Not found yet", "amber", "Known by its address alone: the platform has yet to say which store it is"),
    Freshness.OFF: ("Off", "none", "Crawling is switched off: the store is not contacted"),
}  # fmt: skip
"""What each is called here, its colour, and what it means."""


@router.get("/stores")
async def list_stores(
    request: Request,
    conn: Reading,
    q: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[str, Query(max_length=8)] = "",
    platform: Annotated[str, Query(max_length=60)] = "",
    freshness: Annotated[str, Query(max_length=20)] = "",
    crawl: Annotated[str, Query(max_length=3)] = "",
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Every store, the one that is due longest first."""
    form = Form({"q": q, "state": state, "platform": platform, "freshness": freshness, "crawl": crawl})
    platforms, states = await store_crawling.platforms_and_states(conn)
    form.one_of("crawl", ("on", "off"))
    form.one_of("freshness", [str(one) for one in Freshness])
    where = StoreFilter(
        states=[state] if state else None,
        platform=form.text("platform"),
        freshness=_wanted(form),
        q=(form.text("q") or "").replace("\x00", "") or None,
    )
    after = screen.place(request, cursor, tuple[datetime, int])
    found = await store_health.page(conn, where, after=after, limit=_ON_PAGE + 1) if form.ok else []
    counted = await store_health.counts(conn, platform=where.platform)
    by_freshness = {one: sum(n.get(one, 0) for s, n in counted.items() if state in ("", s)) for one in Freshness}
    shown = found[:_ON_PAGE]
    context = {
        "form": form,
        "stores": shown,
        "platforms": [(one, one) for one in platforms],
        "states": [(one, one) for one in states],
        "freshness": FRESHNESS,
        "counts": by_freshness,
        "total": sum(by_freshness.values()),
        "outcomes": outcomes,
        "filtered": any((q, state, platform, freshness, crawl)),
        "query": lambda **changed: screen.query(request, **changed),
        "next": paging.encode(shown[-1].due_at, shown[-1].id) if len(found) > _ON_PAGE else None,
        "first": bool(cursor),
        **await saved(request, conn, "/stores"),
    }
    return screen.show(request, "stores/list.html", context, live="stores,tasks", status=200 if form.ok else 422)


def _wanted(form: Form) -> list[Freshness] | None:
    wanted = set(Freshness)
    if form.text("freshness"):
        wanted &= {one for one in Freshness if one == form.value("freshness")}
    if form.text("crawl"):
        wanted &= {Freshness.OFF} if form.value("crawl") == "off" else set(Freshness) - {Freshness.OFF}
    return None if wanted == set(Freshness) else sorted(wanted)


@router.get("/stores/new", dependencies=[allowed(Permission.STORES)])
async def new_store(request: Request, system: Sys) -> Response:
    """Two ways to more stores: one by its address, many by looking where they are."""
    return _new(request, system, Form({}), 200)


def _new(request: Request, system: Sys, form: Form, status: int) -> Response:
    asked = [name for name, one in system.platforms.items() if one.hosts]
    return screen.show(request, "stores/new.html", {"form": form, "asked": asked}, status=status)


async def _sent(request: Request) -> Form:
    return Form({name: value for name, value in (await request.form()).items() if isinstance(value, str)})


Sent = Annotated[Form, Depends(_sent)]
"""What was typed. It stands before a route's connection, so that whoever sends slowly keeps none from others."""


@router.post("/stores/new", dependencies=[allowed(Permission.STORES)])
async def add_store(request: Request, form: Sent, system: Sys, conn: Writing) -> Response:
    """Adds a store by the address of its menu; a worker finds out the rest."""
    address = form.text("menu_url")
    if address is None:
        form.refuse("menu_url", "the address of the store's menu, as https://dutchie.com/dispensary/<slug>")
        return _new(request, system, form, 422)
    try:
        store_id, _ = await stores.add_by_url(conn, system.platforms, address.replace("\x00", "")[:2000])
    except Unusable as error:
        form.refuse("menu_url", str(error))
    except Conflict as error:
        form.refuse("menu_url", str(error))
    if not form.ok:
        return _new(request, system, form, 422)
    return screen.back(
        request, f"/stores/{store_id}", "The store is added. A worker now asks the platform which it is, and crawls it."
    )


@router.post("/stores/discover", dependencies=[allowed(Permission.TASKS)])
async def discover(request: Request, form: Sent, system: Sys, conn: Writing) -> Response:
    """Has a platform asked for its stores, of one place or wherever there are any."""
    place = {name: form.text(name) for name in ("state_code", "city")}
    wish = Wish(
        role=Role.STORE_DISCOVERY,
        platform=form.text("platform"),
        payload={name: value for name, value in place.items() if value is not None} or None,
    )
    try:
        task_id, created = await wishes.enqueue(conn, wish, platforms=list(system.platforms))
    except Unusable as error:
        form.refuse("platform" if error.field == "platform" else "state_code", str(error))
        return _new(request, system, form, 422)
    said = "A worker will look for stores." if created else "That search waits already."
    return screen.back(request, f"/tasks/{task_id}", said)


@router.get("/stores/{store_id}")
async def one_store(request: Request, conn: Reading, store_id: StorePath) -> Response:
    """One store: how it is crawled, what it offers, what changed."""
    return await _one(request, conn, store_id, None)


async def _one(
    request: Request, conn: Reading, store_id: int, form: Form | None, *, stale: tuple[Crawling, Crawling] | None = None
) -> Response:
    store = await stores.one(conn, store_id)
    health = await store_health.one(conn, store_id)
    crawls = await store_crawling.recent(conn, store_id)
    newest = await changes.newest(conn, ChangeFilter(stores=[store_id]), limit=_SHOWN)
    crawling = Crawling(enabled=store["crawl_enabled"], interval_hours=store["crawl_interval_hours"])
    now = datetime.now(UTC)
    root: str = request.scope.get("root_path", "")
    kept = await payloads.page(conn, dispensary_id=store_id, limit=_SHOWN + 1)
    status = 412 if stale else 200 if form is None or form.ok else 422
    context: dict[str, Any] = {
        "store": store,
        "health": health,
        "freshness": FRESHNESS[health.freshness],
        "outcomes": outcomes,
        "crawling": crawling,
        "form": form
        or Form({
            "enabled": "on" if crawling.enabled else "",
            "interval_hours": f"{crawling.interval_hours.normalize():f}",
            "version": crawling.version,
        }),
        "stale": stale,
        "crawls": crawls,
        "strip": strip(
            crawls, now=now, interval=timedelta(hours=float(crawling.interval_hours)), address=root
        ),
        "summary": await store_crawling.summary(conn, store_id),
        "payloads": kept[:_SHOWN],
        "older": kept[1:],
        "changes": decoded(newest.rows),
    }  # fmt: skip
    return screen.show(request, "stores/one.html", context, live="stores,tasks,payloads,products", status=status)


@router.post("/stores/{store_id}/crawl", dependencies=[allowed(Permission.TASKS)])
async def crawl_now(request: Request, system: Sys, conn: Writing, store_id: StorePath) -> Response:
    """Asks for a crawl ahead of all that is scheduled."""
    store = await stores.one(conn, store_id)
    role = Role.PAYLOAD_FETCH if store["platform_dispensary_id"] else Role.ENTRY_POINT_DISCOVERY
    wish = Wish(role=role, dispensary_id=store_id, priority=PRIORITY_URGENT)
    task_id, created = await wishes.enqueue(conn, wish, platforms=list(system.platforms))
    said = (
        f"Task {task_id} crawls it ahead of other work."
        if created
        else f"Task {task_id} was waiting already, and now goes first."
    )
    return screen.back(request, f"/stores/{store_id}", said)


@router.post("/stores/{store_id}", dependencies=[allowed(Permission.STORES)])
async def change_store(request: Request, form: Sent, conn: Writing, store_id: StorePath) -> Response:
    """Sets whether and how often it is crawled. What somebody else set meanwhile is not overwritten: both are shown."""
    hours = _hours(form)
    if hours is None or not form.ok:
        return await _one(request, conn, store_id, form)
    wanted = Crawling(enabled=form.value("enabled") == "on", interval_hours=hours)
    try:
        await store_crawling.change(conn, store_id, wanted, version=form.value("version"))
    except Stale as error:
        again = Form({**form.values, "version": error.now.version})
        return await _one(request, conn, store_id, again, stale=(error.now, wanted))
    said = (
        f"Crawled every {span(float(wanted.interval_hours) * 3600)} from now on."
        if wanted.enabled
        else "Crawling is off: this store is not contacted any more."
    )
    return screen.back(request, f"/stores/{store_id}", said)


def _hours(form: Form) -> Decimal | None:
    text = form.text("interval_hours")
    if text is None:
        form.refuse("interval_hours", "how many hours lie between two crawls, as 4")
        return None
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    if found.is_finite() and form.value("version").partition(":")[2] == f"{found.normalize():f}":
        return found  # as it is, however it came to be
    if not found.is_finite() or not SHORTEST_HOURS <= found <= LONGEST_HOURS:
        form.refuse("interval_hours", f"a number of hours from {SHORTEST_HOURS} to {LONGEST_HOURS}, not {text[:40]!r}")
        return None
    return round(found, 2)
