"""Target hosts: list, set limits, pause, resume, reset."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query, Request, Response
from pydantic import Field, Strict, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Input, Instant, NoQuery, PageQuery, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.problems import InvalidRequest
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.core.errors import InvalidField
from menuwatch.hosts import service as hosts
from menuwatch.hosts.service import LONGEST_PAUSE, Host, HostDetail, HostEvent, HostList
from menuwatch.queue import service as tasks
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

HostPath = Annotated[str, Path(max_length=260, description="Host name, with the port if its URLs contain one.")]
SECOND = timedelta(seconds=1)
Finite = Annotated[float, Strict(), Field(allow_inf_nan=False)]


class HostChange(Input):
    """Limits to set; omitted fields keep their value."""

    rate: Annotated[Finite, Field(ge=1e-6, le=1_000_000)] | None = Field(
        None, description="Rate limit, in requests per second."
    )
    burst: Annotated[int, Strict(), Field(ge=1, le=10_000)] | None = Field(
        None, description="Maximum number of requests in a burst."
    )
    concurrency: Annotated[int, Strict(), Field(ge=1, le=10_000)] | None = Field(
        None, description="Maximum number of concurrent identities."
    )
    min_gap: Annotated[Finite, Field(ge=0, le=86_400)] | None = Field(
        None, description="Minimum time between two requests, in seconds."
    )

    @model_validator(mode="after")
    def _says_something(self) -> HostChange:
        if all(getattr(self, name) is None for name in HostChange.model_fields):
            raise ValueError(f"nothing to change: give at least one of {', '.join(HostChange.model_fields)}")
        return self


class PauseHost(Input):
    """Why and for how long a host is paused: without an end, until it is resumed."""

    reason: Annotated[Text, Field(min_length=1, max_length=500)] | None = Field(
        None, description="Reason, shown with the host."
    )
    until: Instant | None = Field(None, description="Requests resume at this time; within a year.")
    seconds: Annotated[int, Strict(), Field(ge=1, le=LONGEST_PAUSE // SECOND)] | None = Field(
        None, description="Requests resume after this many seconds."
    )

    @model_validator(mode="after")
    def _one_end(self) -> PauseHost:
        if self.until is not None and self.seconds is not None:
            raise ValueError("give either until or seconds")
        return self

    def end(self) -> datetime | timedelta | None:
        """When the pause ends."""
        return self.until if self.seconds is None else timedelta(seconds=self.seconds)


router = APIRouter(prefix="/api/hosts", tags=["hosts"], dependencies=[require_by_method(Permission.HOSTS)])


def _named(host: str) -> str:
    try:
        return hosts.parse_host(host)
    except InvalidField as error:
        raise InvalidRequest.parameter("host", str(error), "path") from None


@router.get("", **returns(HostList), summary="List hosts")
async def list_hosts(request: Request, conn: ReadConn, query: Annotated[NoQuery, Query()]) -> Response:
    """Lists every host that was requested or configured, by name, with state, current rate and limits."""
    return answer(request, HostList(items=await hosts.list_hosts(conn)))


@router.get("/{host}", **returns(HostDetail), summary="Get a host")
async def get_host(request: Request, system: AppDep, conn: ReadConn, host: HostPath) -> Response:
    """Returns its state with reason and remedy, active leases, request outcomes, requests by hour, best and worst proxies, and recent
    events."""
    return answer(request, await hosts.detail(conn, _named(host), book=system.host_hours))


@router.patch("/{host}", **returns(Host), summary="Set a host's limits")
async def change_host(request: Request, system: AppDep, conn: WriteConn, host: HostPath, new: HostChange) -> Response:
    """Effective immediately for all workers. For a new host, omitted limits come from the server's settings. The current rate
    rises to a higher limit by a tenth of it per minute."""
    return answer(request, await hosts.change(conn, _named(host), system.settings, **new.model_dump()))


@router.delete("/{host}", **returns(Host), summary="Delete a host")
async def delete_host(request: Request, conn: WriteConn, host: HostPath) -> Response:
    """Deletes its limits, events and scores, and returns it as it was. Refused while it is paused or an identity uses it."""
    return answer(request, await hosts.remove(conn, _named(host)))


@router.post("/{host}/pause", **returns(Host), summary="Pause a host")
async def pause_host(
    request: Request,
    system: AppDep,
    conn: WriteConn,
    host: HostPath,
    body: Annotated[PauseHost | None, Body(title="Reason")] = None,
) -> Response:
    """Stops all requests until the host is resumed, or until the given time. Tasks wait without using retries."""
    given = body or PauseHost.model_validate({})
    return answer(request, await hosts.pause(conn, _named(host), system.settings, given.reason, until=given.end()))


@router.post("/{host}/resume", **returns(Host), summary="Resume a host")
async def resume_host(request: Request, conn: WriteConn, host: HostPath) -> Response:
    """Allows requests again, unless the host cools down or its circuit is open. Tasks that the pause postponed become due within a
    minute."""
    resumed, _ = await tasks.resume_host(conn, _named(host))
    return answer(request, resumed)


@router.post("/{host}/reset", **returns(Host), summary="Reset a host's cool-down and circuit breaker")
async def reset_host(request: Request, conn: WriteConn, host: HostPath) -> Response:
    """Ends cool-down, open circuit and reduced rate: requests resume immediately. A pause stays."""
    return answer(request, await hosts.reset(conn, _named(host)))


@router.get("/{host}/events", **returns_page(HostEvent), summary="List host events")
async def list_host_events(
    request: Request, conn: ReadConn, host: HostPath, query: Annotated[PageQuery, Query()]
) -> Response:
    """Lists events within the retention period, newest first."""
    name = (await hosts.get_host(conn, _named(host))).host
    keys = Keyset(query, tuple[datetime, int], "host events", name)
    events = await hosts.list_events(conn, name, after=keys.after, limit=keys.limit)
    return keys.page(request, events, lambda event: (event.happened_at, event.id))
