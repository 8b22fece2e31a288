"""Store discovery: in which states."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Input, Text
from menuwatch.api.responses import answer, returns
from menuwatch.db.clock import database_now
from menuwatch.queue.schedules.discovery import DiscoveryChoice, choose_states, get_discovery
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

router = APIRouter(prefix="/api/discovery", tags=["schedules"], dependencies=[require_by_method(Permission.SCHEDULES)])


class ChooseStates(Input):
    """Where stores are discovered; everywhere else discovery is disabled."""

    platform: Text | None = Field(None, description="Platform; the first one if omitted.")
    states: list[Text] = Field(
        default_factory=list, max_length=100, description="States and provinces (two letters); empty: none."
    )
    all_states: bool = Field(False, strict=True, description="Discover the whole platform; `states` must be empty.")


@router.get("", **returns(DiscoveryChoice), summary="Get the states in which stores are discovered")
async def get(
    request: Request,
    system: AppDep,
    conn: ReadConn,
    platform: Annotated[str | None, Query(max_length=80, description="Platform; the first one if omitted.")] = None,
) -> Response:
    """With known stores, and estimates of the requests that crawling them takes."""
    names = tuple(system.platforms)
    return answer(request, await get_discovery(conn, platform or names[0], platforms=names))


@router.put("", **returns(DiscoveryChoice), summary="Choose the states in which stores are discovered")
async def put(request: Request, system: AppDep, conn: WriteConn, change: Annotated[ChooseStates, Body()]) -> Response:
    """Creates or enables a `store_discovery` schedule for each chosen state and disables those of the platform's other states. The
    first run is due at once; every store that is found is crawled every four hours."""
    names = tuple(system.platforms)
    choice = await choose_states(
        conn,
        change.platform or names[0],
        change.states,
        all_states=change.all_states,
        platforms=names,
        now=await database_now(conn),
    )
    return answer(request, choice)
