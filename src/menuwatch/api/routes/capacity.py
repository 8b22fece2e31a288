"""Capacity: what there is to do, how fast it gets done, and the workers that it takes."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api.answers import answer
from menuwatch.api.schemas.schedules import Capacity, CapacityList
from menuwatch.api.schemas.tasks import AnyRole
from menuwatch.tasks import capacity as found
from menuwatch.tasks.capacity import HOURS, workers_needed
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading

router = APIRouter(prefix="/api/tasks/capacity", tags=["tasks"], dependencies=[allowed(Permission.READ)])


def _shown(one: found.Capacity) -> dict[str, Any]:
    needed = {
        f"for_{hours}_hour{'s' if hours > 1 else ''}": workers_needed(
            one.pending_tasks, one.tasks_per_worker_hour, hours
        )
        for hours in HOURS
    }
    return {**dataclasses.asdict(one), "workers_needed": needed}


@router.get("", response_model=CapacityList, summary="Capacity of every role")
async def list_capacity(request: Request, conn: Reading) -> Response:
    """What waits, how long it takes, and how many workers would get it done in one, four and eight hours."""
    return answer(request, {"items": [_shown(one) for one in await found.capacity(conn)]})


@router.get("/{role}", response_model=Capacity, summary="Capacity of one role")
async def get_capacity(
    request: Request,
    conn: Reading,
    role: Annotated[AnyRole, Path(description="The kind of work, by its present or former name.")],
) -> Response:
    """The same for one role."""
    (one,) = await found.capacity(conn, role)
    return answer(request, _shown(one))
