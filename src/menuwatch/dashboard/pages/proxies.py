"""Proxies: how each is, and what can be done about it. No page of these holds a password."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.saved import saved
from menuwatch.operations import attempts, proxies, proxy_list
from menuwatch.operations.attempts import AttemptFilter
from menuwatch.operations.proxies import ProxyView
from menuwatch.operations.proxy_list import place_version
from menuwatch.operations.refusals import Stale, Unusable
from menuwatch.proxies import store
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Reading, Sys, Writing
from menuwatch.web.words import many

router = APIRouter(prefix="/proxies", dependencies=[allowed(Permission.READ)])
may = allowed(Permission.PROXIES)

SHOWN = 50
"""Rows on a page, and proxies that can be acted on at once: a test of so many takes about half a minute."""
_NAMED = 3
LATELY = timedelta(days=1)
ProxyPath = Annotated[int, Path(ge=1, le=2_147_483_647)]
Chosen = Annotated[list[int], Form(max_length=SHOWN)]
Status = Literal["", "active", "failing", "inactive", "disabled"]
PLACE = ("city", "state", "country", "timezone")


@router.get("")
async def listed(
    request: Request,
    conn: Reading,
    status: Status = "",
    q: Annotated[str, Query(max_length=200)] = "",
    cursor: str = "",
) -> Response:
    """All of them, by how they are."""
    after = screen.place(request, cursor, tuple[int])
    found = await proxy_list.page(
        conn, status=status or None, q=q.strip() or None, after=after[0] if after else 0, limit=SHOWN + 1
    )
    shown = found[:SHOWN]
    more = paging.encode(shown[-1].proxy.id) if len(found) > SHOWN else None
    context = {
        "standing": await store.standing(conn),
        "shown": shown,
        "form": Filled({"q": q}),
        "status": status,
        "filtered": bool(status or q.strip()),
        "tab": lambda value: screen.query(request, status=value or None),
        "next_href": screen.query(request, cursor=more) if more else None,
        "first_href": screen.query(request) if after else None,
        "may": screen.principal(request).may(Permission.PROXIES),
        **await saved(request, conn, "/proxies"),
    }
    return screen.show(request, "proxies/list.html", context, live="proxies")


@router.post("/test", dependencies=[may])
async def try_out(request: Request, system: Sys, id: Chosen = []) -> Response:  # noqa: A002, B006
    """One request through each; says what came back."""
    if not id:
        return _nothing_chosen(request)
    found = await proxies.test(system.pool, system.settings, proxy_ids=list(dict.fromkeys(id)))
    if len(found) == 1:
        (one,) = found
        said = f"Proxy {one.id} {one.words}. {_sentence(one.reason)} ({one.elapsed_ms:,.0f} ms)."
        kind = "good" if one.ok and not one.refused else "warn" if one.words != "fails" else "bad"
        return screen.back(request, screen.came_from(request), said, kind)
    odd = [one for one in found if not one.ok] + [one for one in found if one.refused]
    said = f"{sum(one.ok for one in found)} of {len(found)} proxies work."
    more = f" And {len(odd) - _NAMED} more." if len(odd) > _NAMED else ""
    named = "".join(f" Proxy {one.id} {one.words}: {one.reason}." for one in odd[:_NAMED])
    return screen.back(request, screen.came_from(request), said + named + more, "warn" if odd else "good")


def _sentence(reason: str) -> str:
    return f"It {reason}" if reason.startswith("reached ") else reason[:1].upper() + reason[1:]


@router.post("/enable", dependencies=[may])
async def enable(request: Request, system: Sys, id: Chosen = []) -> Response:  # noqa: A002, B006
    """To work again, each after a test."""
    if not id:
        return _nothing_chosen(request)
    found = await proxies.enable(system.pool, system.settings, id)
    out = [one for one in found if one.status != "active"]
    at_work = len(found) - len(out)
    said = f"{many(at_work, 'proxy', 'proxies')} put to work." if at_work else "None was put to work."
    if out:
        said += f" {many(len(out), 'proxy', 'proxies')} failed the test, and will be tried again:{_named(out)}"
    return screen.back(request, screen.came_from(request), said, "warn" if out else "good")


@router.post("/disable", dependencies=[may])
async def disable(
    request: Request,
    conn: Writing,
    id: Chosen = [],  # noqa: A002, B006
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Out until somebody enables them."""
    if not id:
        return _nothing_chosen(request)
    found = await proxies.disable(conn, id, reason or f"taken out by {screen.principal(request).name}")
    said = f"{many(len(found), 'proxy', 'proxies')} disabled. What runs through them comes to its end."
    return screen.back(request, screen.came_from(request), said)


@router.post("/remove", dependencies=[may])
async def remove(request: Request, conn: Writing, id: Chosen = []) -> Response:  # noqa: A002, B006
    """Deletes them."""
    if not id:
        return _nothing_chosen(request)
    found = await proxies.remove(conn, id)
    there = screen.came_from(request)
    gone = any(there.startswith(f"/proxies/{one.id}") for one in found)
    said = f"{many(len(found), 'proxy', 'proxies')} removed:{_addresses(found)}"
    return screen.back(request, "/proxies" if gone else there, said)


def _nothing_chosen(request: Request) -> Response:
    return screen.back(request, screen.came_from(request), "Nothing was changed: tick the proxies first.", "warn")


def _named(found: Sequence[Any]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "".join(f" Proxy {one.id}: {one.reason}." for one in found[:_NAMED]) + more


def _addresses(found: Sequence[ProxyView]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return " " + ", ".join(one.address for one in found[:_NAMED]) + more + "."


@router.get("/{proxy_id}")
async def one(request: Request, conn: Reading, proxy_id: ProxyPath) -> Response:
    """One proxy: how it is, where it stands, how it fares, its last requests."""
    return await _one(request, conn, proxy_id)


async def _one(
    request: Request,
    conn: Reading,
    proxy_id: int,
    form: Filled | None = None,
    *,
    stale: bool = False,
    status: int = 200,
) -> Response:
    proxy = await proxies.one(conn, proxy_id)
    place = {name: getattr(proxy, name) or "" for name in PLACE}
    context = {
        "proxy": proxy,
        "form": form or Filled(place),
        "place": place,
        "stale": stale,
        "edited_from": place_version(proxy),
        "hosts": await proxy_list.hosts(conn, proxy_id),
        "attempts": await attempts.page(
            conn, AttemptFilter(proxy_id=proxy_id, since=datetime.now(UTC) - LATELY), limit=20
        ),
        "may": screen.principal(request).may(Permission.PROXIES),
    }
    return screen.show(request, "proxies/one.html", context, live="proxies", status=status)


@router.post("/{proxy_id}", dependencies=[may])
async def place(
    request: Request,
    conn: Writing,
    proxy_id: ProxyPath,
    version: Annotated[str, Form(max_length=100)] = "",
    city: Annotated[str, Form(max_length=500)] = "",
    state: Annotated[str, Form(max_length=100)] = "",
    country: Annotated[str, Form(max_length=100)] = "",
    timezone: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """Where it stands."""
    form = Filled({"city": city, "state": state, "country": country, "timezone": timezone})
    given = {name: form.text(name) for name in PLACE}
    try:
        async with conn.transaction():
            await proxy_list.place(conn, proxy_id, version=version, **given)
    except Unusable as error:
        form.refuse(error.field, str(error))
        return await _one(request, conn, proxy_id, form, status=422)
    except Stale:
        return await _one(request, conn, proxy_id, form, stale=True, status=412)
    return screen.back(request, f"/proxies/{proxy_id}", "It is noted where this proxy stands.")
