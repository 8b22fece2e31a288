"""Proxies: state and actions. No page shows a password."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField, PreconditionFailed, Refused
from menuwatch.core.format import duration, pluralize
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.charts.requests import request_counts, response_time
from menuwatch.dashboard.pages.views import saved
from menuwatch.fetch import attempts
from menuwatch.fetch.attempts import AttemptFilter
from menuwatch.proxies import bulk, store
from menuwatch.proxies import service as proxies
from menuwatch.proxies.bulk import ProxyAction
from menuwatch.proxies.location import LOCATION
from menuwatch.proxies.service import SORTS, Proxy, ProxyFilter, details_etag
from menuwatch.proxies.service import Status as AnyStatus
from menuwatch.proxies.statistics import get_statistics
from menuwatch.proxies.tags import count_tags, split_tags
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/proxies", dependencies=[require(Permission.READ)])
may = require(Permission.PROXIES)

TESTED_HERE = 50
"""Most proxies that are tested while the page waits, which takes about half a minute: workers test more than that."""
_NAMED = 3
LATELY = timedelta(days=1)
ProxyPath = Annotated[int, Path(ge=1, le=2_147_483_647)]
Status = Literal["", AnyStatus]
Tag = Annotated[str, Query(max_length=40)]
Text = Annotated[str, Query(max_length=200)]


async def _selected(
    ids: Annotated[Sequence[int], Form(alias="id", max_length=max(tables.SIZES))] = (),
) -> Sequence[int]:
    if not ids:
        raise Refused("select proxies first")
    return ids


Chosen = Annotated[Sequence[int], Depends(_selected)]
"""Numbers of the proxies that were selected in the list; refuses none."""


@router.get("")
async def listed(
    request: Request,
    conn: ReadConn,
    status: Status = "",
    q: Text = "",
    tag: Tag = "",
    cursor: str = "",
) -> Response:
    """The list: search, tabs by status, tags."""
    sort, size = tables.sorting(request, SORTS), tables.page_size(request)
    offset = max(screen.parse_number_cursor(request, cursor) or 0, 0)
    where = parse_filter(status, q, tag)
    rows = await proxies.list_proxies(conn, where, sort=sort.code, offset=offset, limit=size + 1)
    shown = rows[:size]
    after = paging.encode(offset + size) if len(rows) > size else None
    context = {
        "counts": await store.count(conn),
        "shown": shown,
        "matched": await bulk.count_proxies(conn, where),
        "form": FormInput({"q": q, "tag": tag}),
        "tags": [(name, f"{name} ({n:,})") for name, n in (await count_tags(conn)).items()],
        "status": status,
        "filtered": bool(status or q.strip() or tag),
        "filters": {name: value for name, value in (("status", status), ("q", q.strip()), ("tag", tag)) if value},
        "tab": lambda value: screen.query(request, status=value or None),
        "sort": sort,
        "page": tables.page_of(request, len(shown), after),
        "may": screen.may(request, Permission.PROXIES),
        **await saved(request, conn),
    }
    return screen.render(request, "proxies/list.html", context, live="proxies")


def parse_filter(status: Status, q: str, tag: str) -> ProxyFilter:
    """The filter of the list."""
    return ProxyFilter(status=status or None, q=q.replace("\x00", "").strip() or None, tag=tag.strip().lower() or None)


@router.post("/test", dependencies=[may])
async def try_out(request: Request, system: AppDep, ids: Chosen) -> Response:
    """Sends one request through each proxy; shows the results. Workers test many."""
    if len(ids) > TESTED_HERE:
        return await _leave(request, system, ProxyAction.TEST, ids)
    found = await proxies.run_tests(system.pool, system.settings, proxy_ids=list(dict.fromkeys(ids)))
    if len(found) == 1:
        (one,) = found
        said = f"Proxy {one.id} {one.label}. {_sentence(one.reason)} ({duration(one.elapsed_ms / 1000)})."
        kind = "good" if one.ok and not one.refused else "warn" if one.label != "fails" else "bad"
        return screen.flash_back(request, said, kind)
    odd = [one for one in found if not one.ok] + [one for one in found if one.refused]
    said = f"{sum(one.ok for one in found)} of {len(found)} proxies work."
    more = f" And {len(odd) - _NAMED} more." if len(odd) > _NAMED else ""
    named = "".join(f" Proxy {one.id} {one.label}: {one.reason}." for one in odd[:_NAMED])
    return screen.flash_back(request, said + named + more, "warn" if odd else "good")


def _sentence(reason: str) -> str:
    return f"It {reason}" if reason.startswith("reached ") else reason[:1].upper() + reason[1:]


@router.post("/enable", dependencies=[may])
async def enable(request: Request, system: AppDep, ids: Chosen) -> Response:
    """To work again, each after a test. Workers test many."""
    if len(ids) > TESTED_HERE:
        return await _leave(request, system, ProxyAction.ENABLE, ids)
    found = await proxies.enable(system.pool, system.settings, ids)
    out = [one for one in found if one.status != "active"]
    at_work = len(found) - len(out)
    said = f"{pluralize(at_work, 'proxy', 'proxies')} enabled." if at_work else "No proxy was enabled."
    if out:
        said += f" {pluralize(len(out), 'proxy', 'proxies')} failed the test and will be retried:{_named(out)}"
    return screen.flash_back(request, said, "warn" if out else "good")


async def _leave(request: Request, system: AppContext, action: ProxyAction, ids: Sequence[int]) -> Response:
    async with system.pool.connection() as conn, conn.transaction():
        result = await bulk.apply(conn, action, ProxyFilter(ids=ids))
    return screen.flash_back(request, describe(action, result))


_DONE = {
    ProxyAction.TEST: "queued for a test by the workers",
    ProxyAction.ENABLE: "queued for a test by the workers; each is active once it passes",
    ProxyAction.DISABLE: "disabled",
    ProxyAction.REMOVE: "removed",
    ProxyAction.TAG: "tagged",
    ProxyAction.UNTAG: "untagged",
}


def describe(action: ProxyAction, result: bulk.ProxyBulkResult, *, force: bool = False) -> str:
    """What a bulk action did."""
    done = "enabled" if force and action is ProxyAction.ENABLE else _DONE[action]
    skipped = ", ".join(f"{n:,} {why}" for why, n in result.skipped.items())
    return f"{pluralize(result.done, 'proxy', 'proxies')} {done}" + (f"; skipped: {skipped}." if skipped else ".")


@router.post("/disable", dependencies=[may])
async def disable(
    request: Request,
    conn: WriteConn,
    ids: Chosen,
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Disable proxies until an operator enables them."""
    found = await proxies.disable(conn, ids, reason or f"disabled by {screen.principal(request).name}")
    said = f"{pluralize(len(found), 'proxy', 'proxies')} disabled. Running requests finish."
    undo = screen.Undo("/proxies/enable", [("id", str(one.id)) for one in found])
    return screen.flash_back(request, said, undo=undo if found else None)


@router.post("/remove", dependencies=[may])
async def remove(request: Request, conn: WriteConn, ids: Chosen) -> Response:
    """Deletes them."""
    found = await proxies.remove(conn, ids)
    there = screen.referer_path(request)
    gone = any(there.startswith(f"/proxies/{one.id}") for one in found)
    said = f"{pluralize(len(found), 'proxy', 'proxies')} removed:{_addresses(found)}"
    return screen.flash_to(request, "/proxies" if gone else there, said)


def _named(found: Sequence[Any]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "".join(f" Proxy {one.id}: {one.reason}." for one in found[:_NAMED]) + more


def _addresses(found: Sequence[Proxy]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return " " + ", ".join(one.address for one in found[:_NAMED]) + more + "."


@router.get("/{proxy_id}")
async def one(request: Request, conn: ReadConn, proxy_id: ProxyPath) -> Response:
    """One proxy: state, location, statistics, last requests."""
    return await _one(request, conn, proxy_id)


async def _one(
    request: Request,
    conn: ReadConn,
    proxy_id: int,
    form: FormInput | None = None,
    *,
    stale: bool = False,
    status: int = 200,
) -> Response:
    proxy = await proxies.get_proxy(conn, proxy_id)
    present = {name: getattr(proxy, name) or "" for name in LOCATION} | {"tags": ", ".join(proxy.tags)}
    system: AppContext = request.app.state.system
    day = await get_statistics(conn, proxy_id, system.host_hours)
    context = {
        "proxy": proxy,
        "form": form or FormInput(present),
        "present": present,
        "stale": stale,
        "edited_from": details_etag(proxy),
        "day": day,
        "counts": request_counts(day.hours),
        "latency": response_time(day.hours),
        "attempts": await attempts.list_attempts(
            conn, AttemptFilter(proxy_id=proxy_id, since=datetime.now(UTC) - LATELY), limit=20
        ),
        "may": screen.may(request, Permission.PROXIES),
    }
    return screen.render(request, "proxies/one.html", context, live="proxies", status=status)


@router.post("/{proxy_id}", dependencies=[may])
async def set_details(
    request: Request,
    form: Annotated[FormInput, fields("version", "tags", *LOCATION, longest=500)],
    conn: WriteConn,
    proxy_id: ProxyPath,
) -> Response:
    changes = {name: form.text(name) for name in LOCATION}
    try:
        async with conn.transaction():
            tags = split_tags(form.value("tags"))
            await proxies.set_details(conn, proxy_id, changes, tags=tags, etag=form.value("version"))
    except InvalidField as error:
        form.add_error(error.field, str(error))
        return await _one(request, conn, proxy_id, form, status=422)
    except PreconditionFailed:
        return await _one(request, conn, proxy_id, form, stale=True, status=412)
    return screen.flash_to(request, f"/proxies/{proxy_id}", "Location and tags saved.")
