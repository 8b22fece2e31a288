"""Stores: age of each menu, crawl results, and actions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.archive import service as payloads
from menuwatch.archive.service import PayloadFilter
from menuwatch.catalog import changes
from menuwatch.catalog.changes import ChangeFilter
from menuwatch.core.errors import Conflict, InvalidField
from menuwatch.core.format import duration, pluralize
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.charts.timelines import draw_crawls, draw_outcomes
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.pages.views import saved
from menuwatch.geo.states import NAMES, PROVINCES
from menuwatch.matching.locations import service as locations
from menuwatch.pipeline import store_changes
from menuwatch.pipeline.store_discovery import add_store as add_store_by_url
from menuwatch.platforms.registry import unknown_platform
from menuwatch.quality import service as quality
from menuwatch.queue.enqueue import TaskRequest, enqueue
from menuwatch.queue.model import Role
from menuwatch.storefront import page_queries
from menuwatch.stores import service as stores
from menuwatch.stores.service import CrawlSettings, CrawlSettingsChanged, Freshness, StoreFilter
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(dependencies=[require(Permission.READ)])

_SHOWN = 8
_MOST_ADDED = 500
StorePath = Annotated[int, Path(ge=1, le=2**31 - 1)]

FRESHNESS: Mapping[Freshness, tuple[str, str, str]] = {
    Freshness.FRESH: ("Fresh", "good", "Up to date"),
    Freshness.LATE: ("Late", "warn", "Late: the crawl is overdue by a quarter of the interval"),
    Freshness.STALE: ("Stale", "bad", "Stale: no successful crawl in twice the interval"),
    Freshness.NEVER: ("Never crawled", "info", "Never crawled: the first crawl is pending"),
    Freshness.UNRESOLVED: ("Not found yet", "amber", "Not yet resolved on the platform"),
    Freshness.OFF: ("Off", "none", "Crawling disabled: the store is not contacted"),
}  # fmt: skip
"""Label, colour and meaning of each state."""


def _total(by_freshness: dict[Freshness, int], where: StoreFilter) -> int:
    return sum(n for one, n in by_freshness.items() if where.freshness is None or one in where.freshness)


@router.get("/stores")
async def list_stores(
    request: Request,
    conn: ReadConn,
    q: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[str, Query(max_length=8)] = "",
    platform: Annotated[str, Query(max_length=60)] = "",
    freshness: Annotated[str, Query(max_length=20)] = "",
    crawl: Annotated[str, Query(max_length=3)] = "",
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Every store, the one that is due longest first."""
    form = FormInput({"q": q, "state": state, "platform": platform, "freshness": freshness, "crawl": crawl})
    platforms, states = await stores.platforms_and_states(conn)
    form.parse_choice("crawl", ("on", "off"))
    form.parse_choice("freshness", [str(one) for one in Freshness])
    where = StoreFilter(
        states=[state] if state else None,
        platform=form.text("platform"),
        crawl_enabled=form.value("crawl") == "on" if form.text("crawl") else None,
        freshness=[Freshness(form.value("freshness"))] if form.text("freshness") and form.ok else None,
        q=(form.text("q") or "").replace("\x00", "") or None,
    )
    sort = tables.sorting(request, stores.SORTS)
    size = tables.page_size(request)
    offset = max(screen.parse_number_cursor(request, cursor) or 0, 0)
    rows = await stores.list_health(conn, where, sort=sort.code, offset=offset, limit=size + 1) if form.ok else []
    counts = await stores.count_by_freshness(conn, platform=where.platform)
    by_freshness = {one: sum(n.get(one, 0) for s, n in counts.items() if state in ("", s)) for one in Freshness}
    shown = rows[:size]
    after = paging.encode(offset + size) if len(rows) > size else None
    context = {
        "form": form,
        "stores": shown,
        "platforms": screen.platform_choices(request, platforms),
        "states": [(one, one) for one in states],
        "freshness": FRESHNESS,
        "counts": by_freshness,
        "total": sum(by_freshness.values()),
        "outcomes": draw_outcomes,
        "filtered": any((q, state, platform, freshness, crawl)),
        "sort": sort,
        "page": tables.page_of(request, len(shown), after),
        "matched": None if where.q or where.crawl_enabled is not None else _total(by_freshness, where),
        **await saved(request, conn),
    }
    return screen.render(request, "stores/list.html", context, live="stores,tasks")


@router.get("/stores/new", dependencies=[require(Permission.STORES)])
async def new_store(request: Request, system: AppDep) -> Response:
    """Two ways to more stores: one by its address, many by looking where they are."""
    return _new(request, system, FormInput({}), 200)


def _new(
    request: Request,
    system: AppDep,
    form: FormInput,
    status: int,
    *,
    added: Sequence[int] = (),
    links: Mapping[str, int] = MappingProxyType({}),
) -> Response:
    """`added`: ids of the stores that were added; `links`: ids of known stores by the name of the error that says so."""
    requested = [name for name, platform in system.platforms.items() if platform.requested]
    asked = [name for name in requested if system.platforms[name].lists_stores]
    places = sorted((NAMES | PROVINCES).items(), key=lambda place: place[1])
    context = {
        "form": form,
        "requested": [(name, name) for name in requested],
        "asked": asked,
        "places": places,
        "added": added,
        "links": links,
    }
    return screen.render(request, "stores/new.html", context, status=status)


@router.post("/stores/new", dependencies=[require(Permission.STORES)])
async def add_store(
    request: Request,
    form: Annotated[FormInput, fields("menu_url", "menu_platform", longest=200_000)],
    system: AppDep,
    conn: WriteConn,
) -> Response:
    """Adds stores by their menu URLs, one per line; workers resolve and crawl them. Lines that cannot be added stay in the form."""
    lines = list(dict.fromkeys(form.value("menu_url").split()))
    if not lines:
        form.add_error("menu_url", "enter the menu URL, e.g. https://dutchie.com/dispensary/<slug>")
    elif len(lines) > _MOST_ADDED:
        form.add_error("menu_url", f"{len(lines):,} URLs: at most {_MOST_ADDED} can be added at once")
    platform = form.text("menu_platform")
    if platform is not None and platform not in system.platforms:
        form.add_error("menu_platform", unknown_platform(platform, system.platforms))
    if not form.ok:
        return _new(request, system, form, 422)
    added: list[int] = []
    wrong: dict[str, str] = {}
    for line in lines:
        try:
            async with conn.transaction():
                added.append((await add_store_by_url(conn, system.platforms, line[:2000], platform))[0].id)
        except (InvalidField, Conflict) as error:
            wrong[line] = str(error)
    if wrong:
        rest = FormInput({"menu_url": "\n".join(wrong), "menu_platform": platform or ""})
        for number, why in enumerate(wrong.values(), 1):
            rest.add_error(f"line {number}", why if len(lines) == 1 else f"{list(wrong)[number - 1]}: {why}")
        rest.add_error(
            "menu_url", f"{pluralize(len(added), 'store')} added, {len(wrong)} not:" if added else "Not added:"
        )
        known = {f"line {n}": re.search(r"with id (\d+)$", why) for n, why in enumerate(wrong.values(), 1)}
        links = {name: int(found[1]) for name, found in known.items() if found}
        return _new(request, system, rest, 422, added=added, links=links)
    if len(added) > 1:
        return screen.flash_to(request, "/stores", f"{len(added)} stores added. Workers resolve and crawl them.")
    return screen.flash_to(
        request, f"/stores/{added[0]}", "Store added. A worker resolves it on its platform and crawls it."
    )


@router.post("/stores/discover", dependencies=[require(Permission.TASKS)])
async def discover(
    request: Request,
    form: Annotated[FormInput, fields("platform", "state_code", "city")],
    system: AppDep,
    conn: WriteConn,
) -> Response:
    """Starts store discovery on a platform, for one place or everywhere."""
    place = {name: form.text(name) for name in ("state_code", "city")}
    requested = TaskRequest(
        role=Role.STORE_DISCOVERY,
        platform=form.text("platform"),
        payload={name: value for name, value in place.items() if value is not None} or None,
    )
    try:
        enqueued = await enqueue(conn, requested, platforms=list(system.platforms))
    except InvalidField as error:
        form.add_error("platform" if error.field == "platform" else "state_code", str(error))
        return _new(request, system, form, 422)
    said = "Store discovery enqueued." if enqueued.created else "Store discovery is already queued."
    return screen.flash_to(request, f"/tasks/{enqueued.task.id}", said)


@router.get("/stores/{store_id}")
async def one_store(request: Request, conn: ReadConn, store_id: StorePath) -> Response:
    """One store: crawl settings, menu, changes."""
    return await _one(request, conn, store_id, None)


async def _one(
    request: Request,
    conn: ReadConn,
    store_id: int,
    form: FormInput | None,
    *,
    stale: tuple[CrawlSettings, CrawlSettings] | None = None,
) -> Response:
    store = await stores.get_store(conn, store_id)
    health = await stores.get_health(conn, store_id)
    crawls = await stores.recent_crawls(conn, store_id)
    newest = await changes.list_changes(conn, ChangeFilter(stores=[store_id]), limit=_SHOWN)
    crawling = CrawlSettings(enabled=store.crawl_enabled, interval_hours=store.crawl_interval_hours)
    now = datetime.now(UTC)
    root: str = request.scope.get("root_path", "")
    kept = await payloads.list_payloads(conn, PayloadFilter(dispensary_id=store_id), limit=_SHOWN + 1)
    status = 412 if stale else 200 if form is None or form.ok else 422
    location_id = await locations.location_of_store(conn, store_id)
    context: dict[str, Any] = {
        "store": store,
        "location": None if location_id is None else await locations.get_location(conn, location_id),
        "health": health,
        "quality": await quality.get_store(conn, store_id),
        "freshness": FRESHNESS[Freshness(health.freshness)],
        "outcomes": draw_outcomes,
        "crawling": crawling,
        "form": form
        or FormInput({
            "enabled": "on" if crawling.enabled else "",
            "interval_hours": f"{crawling.interval_hours.normalize():f}",
            "version": crawling.version,
        }),
        "stale": stale,
        "public": await page_queries.get_store(conn, store_id) is not None,
        "failure": next((one for one in crawls[::-1] if one.outcome != "ok"), None) if health.last_error else None,
        "crawls": crawls,
        "most": max((one.products or 0 for one in crawls), default=0),
        "strip": draw_crawls(
            crawls, now=now, interval=timedelta(hours=float(crawling.interval_hours)), address=root
        ),
        "summary": await stores.count_by_category(conn, store_id),
        "payloads": kept[:_SHOWN],
        "older": kept[1:],
        "changes": decoded(newest.items),
    }  # fmt: skip
    return screen.render(request, "stores/one.html", context, live="stores,tasks,payloads,products", status=status)


@router.post("/stores/{store_id}/crawl", dependencies=[require(Permission.TASKS)])
async def crawl_now(request: Request, system: AppDep, conn: WriteConn, store_id: StorePath) -> Response:
    """Asks for a crawl ahead of all that is scheduled."""
    store = await stores.get_store(conn, store_id)
    enqueued = await store_changes.crawl_now(conn, system.platforms, store)
    task_id = enqueued.task.id
    said = (
        f"Crawl queued ahead of other tasks: task {task_id}."
        if enqueued.created
        else f"Task {task_id} was already queued and now goes first."
    )
    return screen.flash_to(request, f"/stores/{store_id}", said)


@router.post("/stores/{store_id}", dependencies=[require(Permission.STORES)])
async def change_store(
    request: Request,
    form: Annotated[FormInput, fields("enabled", "interval_hours", "version")],
    conn: WriteConn,
    store_id: StorePath,
) -> Response:
    """Sets whether and how often a store is crawled. A concurrent change is not overwritten: both versions are shown."""
    hours = form.parse_decimal("interval_hours", "the crawl interval in hours, e.g. 4")
    if hours is None and form.ok:
        form.add_error("interval_hours", "enter the crawl interval in hours, e.g. 4")
    if hours is None or not form.ok:
        return await _one(request, conn, store_id, form)
    wanted = CrawlSettings(enabled=form.value("enabled") == "on", interval_hours=hours)
    try:
        new = await stores.change_crawl_settings(
            conn, store_id, enabled=wanted.enabled, interval_hours=hours, version=form.value("version")
        )
    except InvalidField as error:
        form.add_error("interval_hours", str(error))
        return await _one(request, conn, store_id, form)
    except CrawlSettingsChanged as error:
        again = FormInput({**form.values, "version": error.now.version})
        return await _one(request, conn, store_id, again, stale=(error.now, wanted))
    said = (
        f"Crawled every {duration(float(new.interval_hours) * 3600)} from now on."
        if new.enabled
        else "Crawling disabled: this store is no longer contacted."
    )
    return screen.flash_to(request, f"/stores/{store_id}", said)
