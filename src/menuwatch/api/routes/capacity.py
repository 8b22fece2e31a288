"""Capacity: backlog, throughput and required workers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from msgspec import Struct

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import AnyRole
from menuwatch.api.responses import answer, returns
from menuwatch.queue.capacity import Capacity, capacity
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api/tasks/capacity", tags=["tasks"], dependencies=[require(Permission.READ)])


class CapacityList(Struct, frozen=True):
    """The capacity of every role."""

    items: list[Capacity]


@router.get("", **returns(CapacityList), summary="Get the capacity of every role")
async def list_capacity(request: Request, conn: ReadConn) -> Response:
    """Backlog, throughput, and the number of workers that would finish the backlog in one, four and eight hours."""
    return answer(request, CapacityList(items=await capacity(conn)))


@router.get("/{role}", **returns(Capacity), summary="Get the capacity of one role")
async def get_capacity(
    request: Request,
    conn: ReadConn,
    role: Annotated[AnyRole, Path(description="Role of the tasks, by its current or former name.")],
) -> Response:
    """The same for one role."""
    (of_role,) = await capacity(conn, role)
    return answer(request, of_role)
