"""Key figures and throughput."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from msgspec import Struct

from menuwatch.accounts.model import Permission
from menuwatch.api.responses import answer, returns
from menuwatch.ops.key_figures import KeyFigures, key_figures
from menuwatch.queue.throughput import Interval, throughput
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn

router = APIRouter(prefix="/api/overview", tags=["health"], dependencies=[require(Permission.READ)])


class Throughput(Struct, frozen=True):
    """Tasks over time."""

    items: list[Interval]


@router.get("", **returns(KeyFigures), summary="Get key figures")
async def get_key_figures(request: Request, system: AppDep, conn: ReadConn) -> Response:
    """Freshness of menus, payloads and price changes of the day, block rate, proxies and disk space."""
    return answer(request, await key_figures(conn, system.settings, system.host_hours))


@router.get("/throughput", **returns(Throughput), summary="Get tasks over time")
async def get_throughput(
    request: Request,
    conn: ReadConn,
    hours: Annotated[
        int, Query(ge=1, le=24, description="How far to go back; longer times have longer intervals.")
    ] = 3,
) -> Response:
    """Tasks enqueued and finished, with percentiles of their duration and wait."""
    return answer(request, Throughput(items=await throughput(conn, hours)))
