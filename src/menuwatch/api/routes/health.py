"""Probes and metrics, outside `/api`: machines ask them every few seconds."""

from __future__ import annotations

from typing import Any

import psycopg
from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CollectorRegistry, GaugeMetricFamily
from prometheus_client.registry import Collector

from menuwatch import __version__
from menuwatch.api.answers import answer
from menuwatch.api.schemas.health import Alive, Readiness
from menuwatch.api.system import Sys
from menuwatch.operations import health, payloads, tasks

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
    """Looks at the database, its schema, the archive's folder and the proxies. No active proxy is a warning: the server works
    without, workers do not."""
    found = await health.check(system.pool, system.archive)
    warnings = [found.proxies.detail] if found.database.ok and found.migrations.ok and not found.proxies.ok else []
    body = {"status": "ready" if found.ready else "not_ready", "checks": found, "warnings": warnings}
    return answer(request, body, status=200 if found.ready else 503)


class _Counts(Collector):
    """Gauges that were read from the database a moment ago."""

    def __init__(self, families: list[GaugeMetricFamily]) -> None:
        self._families = families

    def collect(self) -> list[GaugeMetricFamily]:
        return self._families


async def _counted(system: Sys) -> list[GaugeMetricFamily]:
    up = GaugeMetricFamily("menuwatch_database_up", "Whether the database answered at this scrape.")
    by_role = GaugeMetricFamily("menuwatch_tasks", "Tasks by role and status.", labels=("role", "status"))
    by_status = GaugeMetricFamily("menuwatch_payloads", "Archived payloads by status.", labels=("status",))
    try:
        async with system.pool.connection(timeout=3) as conn:
            for role, statuses in (await tasks.count(conn, tasks.TaskFilter())).items():
                for status, n in statuses.items():
                    by_role.add_metric((role, status), n)
            for status, n in (await payloads.counts(conn)).items():
                by_status.add_metric((status,), n)
    except psycopg.Error:
        up.add_metric((), 0)
        return [up]
    up.add_metric((), 1)
    return [up, by_role, by_status]


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={
        200: {"description": "Text exposition format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
async def metrics(request: Request, system: Sys) -> Response:
    """Requests of this process, and tasks and payloads as the database has them at this moment."""
    counts = CollectorRegistry()
    counts.register(_Counts(await _counted(system)))
    traffic: Any = request.app.state.traffic
    text = generate_latest(traffic.registry) + generate_latest(counts)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})
