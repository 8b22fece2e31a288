"""Probes, outside `/api`."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from msgspec import Struct

from menuwatch import __version__
from menuwatch.api.responses import answer, returns
from menuwatch.core.shapes import doc
from menuwatch.ops import health
from menuwatch.ops.health import Readiness
from menuwatch.web.dependencies import AppDep

router = APIRouter(tags=["health"])


class Liveness(Struct, kw_only=True, frozen=True):
    """The process is alive."""

    status: Annotated[Literal["ok"], doc("Always `ok`.")]
    version: Annotated[str, doc("Version of Menuwatch.")]


@router.get("/healthz", **returns(Liveness), summary="Liveness probe")
async def healthz(request: Request) -> Response:
    """Responds as long as the process runs; checks nothing else."""
    return answer(request, Liveness(status="ok", version=__version__))


@router.get(
    "/readyz",
    **returns(Readiness, also={503: "The database, migrations or storage check failed."}),
    summary="Readiness probe",
)
async def readyz(request: Request, system: AppDep) -> Response:
    """Checks the database, its schema, the archive directory, the proxies and the hosts. No active proxy, or a platform without
    an available host, is only a warning: the server works without them, workers do not."""
    readiness = await health.check(system.pool, system.archive, system.platforms, system.keeper)
    return answer(request, readiness, status=200 if readiness.ready else 503)
