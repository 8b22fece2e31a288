"""Hosts: look at them, set limits, pause, resume, reset."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import answer, page
from menuwatch.api.problems import InvalidRequest
from menuwatch.api.schemas.common import NoQuery
from menuwatch.api.schemas.hosts import (
    Host,
    HostChange,
    HostDetail,
    HostEventPage,
    HostEventQuery,
    HostList,
    HostPath,
    PauseHost,
)
from menuwatch.operations import hosts
from menuwatch.operations.refusals import Unusable
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/hosts", tags=["hosts"], dependencies=[allowed_by_method(Permission.HOSTS)])


def _named(host: str) -> str:
    try:
        return hosts.named(host)
    except Unusable as error:
        raise InvalidRequest(f"host: {error}", [{"parameter": "host", "in": "path", "detail": str(error)}]) from None


@router.get("", response_model=HostList, summary="List hosts")
async def list_hosts(request: Request, conn: Reading, query: Annotated[NoQuery, Query()]) -> Response:
    """Every host that was ever asked or given limits, by name: state, pace, limits."""
    return answer(request, {"items": await hosts.all_of(conn)})


@router.get("/{host}", response_model=HostDetail, summary="One host")
async def get_host(request: Request, conn: Reading, host: HostPath) -> Response:
    """Why it is asked as it is and what can be done, who talks to it, what became of requests, who fares how, and its last
    events."""
    return answer(request, await hosts.detail(conn, _named(host)))


@router.patch("/{host}", response_model=Host, summary="Set a host's limits")
async def change_host(request: Request, system: Sys, conn: Writing, host: HostPath, new: HostChange) -> Response:
    """In force at once for all workers. A host that was never asked gets the limits that are left out from the server's settings. A
    higher rate is grown into, by a tenth of it a minute."""
    return answer(request, await hosts.change(conn, _named(host), system.settings, **new.model_dump()))


@router.post("/{host}/pause", response_model=Host, summary="Pause a host")
async def pause_host(
    request: Request, system: Sys, conn: Writing, host: HostPath, why: Annotated[PauseHost | None, Body()] = None
) -> Response:
    """Nobody asks it until it is resumed. Tasks wait, and use up no retry."""
    reason = why.reason if why is not None else None
    return answer(request, await hosts.pause(conn, _named(host), system.settings, reason))


@router.post("/{host}/resume", response_model=Host, summary="Take back a pause")
async def resume_host(request: Request, conn: Writing, host: HostPath) -> Response:
    """It is asked again, unless it cools down or its circuit is open."""
    return answer(request, await hosts.resume(conn, _named(host)))


@router.post("/{host}/reset", response_model=Host, summary="Forget what a host said")
async def reset_host(request: Request, conn: Writing, host: HostPath) -> Response:
    """Cool-down, circuit and slower pace are over: it is asked again at once. A pause stays."""
    return answer(request, await hosts.reset(conn, _named(host)))


@router.get("/{host}/events", response_model=HostEventPage, summary="What befell a host")
async def list_host_events(
    request: Request, conn: Reading, host: HostPath, query: Annotated[HostEventQuery, Query()]
) -> Response:
    """The newest first, as long as they are kept."""
    name = (await hosts.one(conn, _named(host))).host
    mark = paging.mark("host events", name)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[datetime, int])
    found = await hosts.happened(conn, name, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    more = len(found) > query.limit
    return page(request, shown, paging.encode(mark, shown[-1]["happened_at"], shown[-1]["id"]) if more else None)
