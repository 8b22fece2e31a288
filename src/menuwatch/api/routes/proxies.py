"""Proxies: list, add, test, take out, put back, remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import answer, page
from menuwatch.api.problems import InvalidRequest
from menuwatch.api.schemas.proxies import (
    DisableProxy,
    EnableProxy,
    NewProxies,
    Proxy,
    ProxyPage,
    ProxyPath,
    ProxyQuery,
    ProxyResults,
    ProxyTest,
)
from menuwatch.core.errors import Refused
from menuwatch.operations import proxies
from menuwatch.operations.proxy_intake import Intake, bring_in
from menuwatch.operations.refusals import Unusable
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.place import country_code, state_code, time_zone
from menuwatch.proxies.sheet import Given, Rejected, placed
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/proxies", tags=["proxies"], dependencies=[allowed_by_method(Permission.PROXIES)])


@router.get("", response_model=ProxyPage, summary="List proxies")
async def list_proxies(request: Request, conn: Reading, query: Annotated[ProxyQuery, Query()]) -> Response:
    """Every proxy with its health, by number."""
    mark = paging.mark("proxies", query.active)
    after = paging.decode(query.cursor, mark, tuple[int])[0] if query.cursor is not None else 0
    found = await proxies.page(conn, active=query.active, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1].id) if len(found) > query.limit else None)


@router.post(
    "",
    response_model=ProxyResults,
    status_code=201,
    responses={200: {"model": ProxyResults, "description": "None is new: they were known, or are no proxies."}},
    summary="Add proxies",
)
async def add_proxies(request: Request, system: Sys, new: NewProxies) -> Response:
    """Each is tested first, with one request to the platform through it. One that fails is added inactive, and tried again by itself.
    A text that is no proxy is named by its place, and the others are added."""
    _check_place(new)
    given, rejected = _read(new)
    if not given:
        errors = [{"pointer": f"#/proxies/{line.number}", "detail": line.reason} for line in rejected]
        raise InvalidRequest("; ".join(f"proxies[{line.number}]: {line.reason}" for line in rejected), errors)
    intake = await bring_in(system.pool, system.settings, given, rejected, test=not new.force)
    return answer(request, _results(intake, given), status=201 if intake.added else 200)


@router.get("/{proxy_id}", response_model=Proxy, summary="One proxy")
async def get_proxy(request: Request, conn: Reading, proxy_id: ProxyPath) -> Response:
    """One proxy with its health."""
    return answer(request, await proxies.one(conn, proxy_id))


@router.post("/{proxy_id}/enable", response_model=Proxy, summary="Put a proxy back to work")
async def enable_proxy(
    request: Request, system: Sys, proxy_id: ProxyPath, how: Annotated[EnableProxy | None, Body()] = None
) -> Response:
    """Clears its counters. It is tested first: one that fails is no longer disabled, but inactive, and tried again by itself."""
    force = how is not None and how.force
    (found,) = await proxies.enable(system.pool, system.settings, [proxy_id], force=force)
    return answer(request, found)


@router.post("/{proxy_id}/disable", response_model=Proxy, summary="Take a proxy out")
async def disable_proxy(
    request: Request, conn: Writing, proxy_id: ProxyPath, why: Annotated[DisableProxy | None, Body()] = None
) -> Response:
    """Until somebody enables it: nothing else brings it back. What runs through it now comes to its end."""
    (found,) = await proxies.disable(conn, [proxy_id], why.reason if why is not None else None)
    return answer(request, found)


@router.post("/{proxy_id}/test", response_model=ProxyTest, summary="Test a proxy")
async def test_proxy(request: Request, system: Sys, proxy_id: ProxyPath) -> Response:
    """Makes one request to the platform through it, and says what came back. Counts nothing."""
    (found,) = await proxies.test(system.pool, system.settings, proxy_ids=[proxy_id])
    return answer(request, found)


@router.delete("/{proxy_id}", response_model=Proxy, summary="Remove a proxy")
async def remove_proxy(request: Request, conn: Writing, proxy_id: ProxyPath) -> Response:
    """Deletes it; answers with what it was."""
    (found,) = await proxies.remove(conn, [proxy_id])
    return answer(request, found)


def _check_place(new: NewProxies) -> None:
    country = _usable("country", lambda: country_code(new.country))
    _usable("state", lambda: state_code(new.state, country))
    _usable("timezone", lambda: time_zone(new.timezone))


def _usable(field: str, check: Callable[[], str | None]) -> str | None:
    try:
        return check()
    except Refused as error:
        raise Unusable(field, str(error)) from None


def _read(new: NewProxies) -> tuple[list[Given], list[Rejected]]:
    """Their numbers are places in the request."""
    given: list[Given] = []
    rejected: list[Rejected] = []
    for place, text in enumerate(new.proxies):
        try:
            proxy = placed(parse_line(text), city=new.city, state=new.state, country=new.country, timezone=new.timezone)
        except Refused as error:
            rejected.append(Rejected(number=place, reason=str(error)))
        else:
            given.append(Given(number=place, proxy=proxy))
    return given, rejected


def _results(intake: Intake, given: list[Given]) -> dict[str, object]:
    nothing = {"id": None, "address": None, "active": False, "reason": None}
    by_place: dict[int, dict[str, object]] = {
        one.number: {
            "outcome": "added" if one.created else "updated",
            "id": one.id,
            "address": one.address,
            "active": one.active,
            "reason": one.reason,
        }
        for one in intake.brought
    }
    by_key = {one.proxy.key: by_place[one.number] for one in given if one.number in by_place}
    for one in given:
        if one.number not in by_place:
            by_place[one.number] = by_key[one.proxy.key] | {"outcome": "repeated"}
    for line in intake.rejected:
        by_place[line.number] = nothing | {"outcome": "rejected", "reason": line.reason}
    return {
        "added": intake.added,
        "updated": intake.updated,
        "rejected": len(intake.rejected),
        "inactive": intake.failed,
        "results": [{"index": place, **by_place[place]} for place in sorted(by_place)],
    }
