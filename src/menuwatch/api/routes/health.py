"""Probes and metrics, outside `/api`: machines ask them every few seconds."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CollectorRegistry

from menuwatch import __version__
from menuwatch.accounts.model import Permission
from menuwatch.api.answers import answer
from menuwatch.api.gauges import Gauges, PictureCounts
from menuwatch.api.schemas.health import Alive, Readiness
from menuwatch.operations import health
from menuwatch.operations.figures import Reader
from menuwatch.web.auth import allowed
from menuwatch.web.system import Sys

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=Alive, summary="Whether the process is up")
async def healthz(request: Request) -> Response:
    """Answers as long as the process does; looks at nothing else."""
    return answer(request, {"status": "ok", "version": __version__})


@router.get(
    "/readyz",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "Database, migrations or storage are not as they must be."}},
    summary="Whether the server can do its work",
)
async def readyz(request: Request, system: Sys) -> Response:
    """Looks at the database, its schema, the archive's folder, the proxies and the hosts. No active proxy, or a platform all of whose
    hosts are closed, is a warning: the server works without, workers do not."""
    found = await health.check(system.pool, system.archive, system.platforms)
    body = {"status": "ready" if found.ready else "not_ready", "checks": found, "warnings": found.warnings}
    return answer(request, body, status=200 if found.ready else 503)


def _reader(request: Request, system: Sys) -> Reader:
    """The app's one reader, made at its first scrape."""
    state: Any = request.app.state
    if getattr(state, "figures", None) is None:
        state.figures = Reader(system.pool, stale_after=timedelta(minutes=system.settings.stale_after_minutes))
    found: Reader = state.figures
    return found


async def _pictures(request: Request) -> PictureCounts:
    derived = request.app.state.gallery.pictures.derived
    # The first time it counts what is on disk.
    used = await asyncio.to_thread(derived.used)
    return PictureCounts(kept=derived.hits, made=derived.misses, room=derived.room, used=used)


@router.get(
    "/metrics",
    dependencies=[allowed(Permission.READ)],
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={
        200: {"description": "Text exposition format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
async def metrics(request: Request, system: Sys) -> Response:
    """Requests of this process, and what the database says of queue, workers, schedules and payloads: at most a few seconds old, and
    as cheap with years of history as on the first day. A worker has metrics of its own (METRICS_PORT)."""
    counts = CollectorRegistry()
    counts.register(Gauges(await _reader(request, system).read()))
    counts.register(await _pictures(request))
    traffic: Any = request.app.state.traffic
    text = generate_latest(traffic.registry) + generate_latest(counts)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})
