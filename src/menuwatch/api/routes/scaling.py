"""How many workers there are, and having more or fewer."""

from __future__ import annotations

import dataclasses

from fastapi import APIRouter, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api.answers import answer
from menuwatch.api.schemas.scaling import ReplicaCount, Scale
from menuwatch.operations import scaling
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/workers/k8s", tags=["workers"], dependencies=[allowed_by_method(Permission.WORKERS)])


@router.get("/replicas", response_model=ReplicaCount, summary="How many workers there are and should be")
async def get_replicas(request: Request, system: Sys, conn: Reading) -> Response:
    """Whatever runs them: the path is that of the former system."""
    found = await scaling.replicas(conn, system.scaler, system.settings)
    return answer(request, dataclasses.asdict(found))


@router.post("/scale", response_model=ReplicaCount, summary="Have more or fewer workers")
async def scale_workers(request: Request, system: Sys, conn: Writing, wanted: Scale) -> Response:
    """It is ordered, not done yet, when this answers. 400 outside the limits; 409 where nothing that runs workers is connected."""
    found = await scaling.scale(conn, system.scaler, system.settings, wanted.replicas)
    return answer(request, dataclasses.asdict(found))
