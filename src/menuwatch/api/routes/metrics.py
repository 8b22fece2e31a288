"""Metrics for Prometheus; a test compares docs/reference/metrics.md with these families."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from fastapi import APIRouter, Request, Response
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from menuwatch.accounts.model import Permission
from menuwatch.ops.metrics import Fetched, Figures, Reader
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep

router = APIRouter(tags=["health"])

Samples = float | None | Mapping[tuple[str, ...], float]
"""The value of a family without labels, None if it is unknown; of one with labels the value by label values."""


class Family(Struct, frozen=True):
    """One metric: its samples are `read` from a snapshot; of a part that could not be read there are none."""

    name: str
    text: str
    labels: tuple[str, ...]
    read: Callable[[Figures], Samples]
    counter: bool = False

    def metric(self, figures: Figures) -> Metric:
        samples = self.read(figures)
        if not self.labels:
            assert not isinstance(samples, Mapping), "a family without labels has one value"
            return GaugeMetricFamily(self.name, self.text, value=samples)
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        family = kind(self.name, self.text, labels=self.labels)
        assert isinstance(samples, Mapping), "a family with labels has a value for each"
        for values, value in samples.items():
            family.add_metric(values, value)
        return family


def _by_name(values: Mapping[str, float] | None) -> dict[tuple[str, ...], float]:
    return {(name,): value for name, value in (values or {}).items()}


def _retries(f: Figures) -> dict[tuple[str, ...], float]:
    roles = sorted({row.role for row in f.queue})
    return {(role,): sum(row.retrying for row in f.queue if row.role == role) for role in roles}


def _by_host(f: Figures, value: Callable[[Fetched], float]) -> dict[tuple[str, ...], float]:
    return {(host,): sum(map(value, rows)) for host, rows in groupby(f.fetched, key=lambda row: row.host)}


_DELIVERY_STATUSES = ("waiting", "sending", "delivered", "failed")
_REASONS = ("paused", "circuit", "cooling")

FAMILIES = (
    Family("menuwatch_database_up", "Whether the database responds: 1 or 0.", (), lambda f: int(f.up)),
    Family("menuwatch_figures_seconds", "Time to read these metrics, in seconds.", (), lambda f: f.seconds),
    Family("menuwatch_figures_missing", "Number of metric groups that could not be read in time.", (), lambda f: len(f.missing)),
    Family("menuwatch_findings", "Findings of the health assessment, as the overview and the doctor show them.", ("check", "level"),
           lambda f: dict(Counter((one.check, str(one.level)) for one in f.assessment.findings)) if f.assessment else {}),
    Family("menuwatch_queue_tasks", "Live tasks by role and state: ready, blocked, scheduled, parked, active.", ("role", "state"),
           lambda f: {(row.role, row.state): row.n for row in f.queue}),
    Family("menuwatch_queue_oldest_ready_seconds", "Age of the oldest due task, in seconds.", ("role",),
           lambda f: {(row.role,): row.oldest_ready for row in f.queue if row.state == "ready" and row.oldest_ready is not None}),
    Family("menuwatch_queue_retries_waiting", "Tasks that wait for a retry.", ("role",), _retries),
    Family("menuwatch_queue_stale_tasks", "Tasks whose worker stopped sending heartbeats and that are not recovered yet.", ("role",),
           lambda f: {(row.role,): row.stale for row in f.queue if row.state == "active"}),
    Family("menuwatch_tasks_ended_last_hour",
           "Tasks that ended in the last hour, by role and outcome: completed, failed, cancelled.", ("role", "outcome"),
           lambda f: dict(sorted(f.ended.items()))),
    Family("menuwatch_workers", "Registered workers by status.", ("status",),
           lambda f: _by_name(f.workers.by_status if f.workers else None)),
    Family("menuwatch_workers_silent", "Workers without a heartbeat for 2 minutes.", (),
           lambda f: f.workers.silent if f.workers else None),
    Family("menuwatch_workers_oldest_heartbeat_seconds",
           "Age of the oldest last heartbeat of all workers that have not stopped, in seconds.", (),
           lambda f: f.workers.oldest_heartbeat if f.workers else None),
    Family("menuwatch_schedules_late", "Enabled schedules that are more than two minutes late.", (),
           lambda f: f.schedules.late if f.schedules else None),
    Family("menuwatch_schedules_late_seconds", "Delay of the latest schedule, in seconds; 0 if none is late.", (),
           lambda f: f.schedules.late_seconds if f.schedules else None),
    Family("menuwatch_schedules_failing", "Enabled schedules whose last run failed.", (),
           lambda f: f.schedules.failing if f.schedules else None),
    Family("menuwatch_schedules_next_due_timestamp_seconds", "Time of the next scheduled run, in seconds since the epoch.", (),
           lambda f: f.schedules.next_due if f.schedules else None),
    Family("menuwatch_payloads_last_hour", "Payloads fetched in the last hour, by current status.", ("status",),
           lambda f: _by_name(f.recent_payloads)),
    Family("menuwatch_payloads_quarantined", "Payloads in quarantine.", (), lambda f: f.quarantined),
    Family("menuwatch_database_oldest_transaction_seconds",
           "Age of the oldest open transaction that blocks the cleanup of finished tasks, in seconds; 0 if there is none.", (),
           lambda f: None if f.holders is None else max((holder.seconds for holder in f.holders), default=0)),
    Family("menuwatch_maintenance_succeeded_timestamp_seconds",
           "Time of the last success of each maintenance job, in seconds since the epoch.", ("maintenance_job",),
           lambda f: {(row.job,): row.succeeded_at for row in f.maintenance if row.succeeded_at is not None}),
    Family("menuwatch_maintenance_failing", "1 if the last run of the maintenance job failed, else 0.", ("maintenance_job",),
           lambda f: {(row.job,): int(row.failing) for row in f.maintenance}),
    Family("menuwatch_analytics_refreshed_timestamp_seconds", "Time of the last analytics refresh, in seconds since the epoch.", (),
           lambda f: f.analytics.refreshed if f.analytics else None),
    Family("menuwatch_analytics_refresh_seconds", "Duration of the last analytics refresh, in seconds.", (),
           lambda f: f.analytics.seconds if f.analytics else None),
    Family("menuwatch_analytics_failing", "1 if the last analytics refresh failed, else 0.", (),
           lambda f: int(f.analytics.failing) if f.analytics else None),
    Family("menuwatch_fetch_requests", "Requests by host and outcome.", ("host", "verdict"),
           lambda f: {(row.host, row.verdict): row.requests for row in f.fetched}, counter=True),
    Family("menuwatch_fetch_bytes", "Decoded size of all responses, in bytes.", ("host",),
           lambda f: _by_host(f, lambda row: row.bytes), counter=True),
    Family("menuwatch_fetch_wait_seconds", "Time that requests waited for the host's rate limit, in seconds.", ("host",),
           lambda f: _by_host(f, lambda row: row.waited), counter=True),
    Family("menuwatch_fetch_seconds", "Duration of requests, in seconds.", ("host",),
           lambda f: _by_host(f, lambda row: row.took), counter=True),
    Family("menuwatch_host_current_rate", "Current request rate limit of the host, in requests per second.", ("host",),
           lambda f: {(row.host,): row.current_rate for row in f.hosts}),
    Family("menuwatch_host_open", "1 while requests to the host are allowed, else 0.", ("host",),
           lambda f: {(row.host,): int(row.code is None) for row in f.hosts}),
    Family("menuwatch_host_closed", "1 for the reason that blocks requests to the host: paused, circuit, cooling.", ("host", "reason"),
           lambda f: {(row.host, reason): int(row.code == reason) for row in f.hosts for reason in _REASONS}),
    Family("menuwatch_host_leases", "Identities that hold a lease for the host.", ("host",),
           lambda f: {(row.host,): row.leases for row in f.hosts}),
    Family("menuwatch_proxies", "Proxies by state: active, untested, inactive, disabled.", ("state",), lambda f: _by_name(f.proxies)),
    Family("menuwatch_images_waiting",
           "Images not stored yet: queued (from menus), waiting (for download), failed (permanently).", ("state",),
           lambda f: {(state,): getattr(f.images, state) for state in ("queued", "waiting", "failed")} if f.images else {}),
    Family("menuwatch_images_oldest_due_seconds",
           "How long the oldest image URL has been due for download, in seconds; 0 if none is due.", (),
           lambda f: f.images.oldest_due or 0 if f.images else None),
    Family("menuwatch_matching_waiting",
           "Backlog of product matching: stores with a new menu, blocks to group, pairs awaiting review (reviews).",
           ("kind",),
           lambda f: {(kind,): getattr(f.matching, kind) for kind in ("stores", "blocks", "reviews")} if f.matching else {}),
    Family("menuwatch_matching_oldest_seconds",
           "Age of the oldest menu that is not matched yet, in seconds; 0 if all are matched.", (),
           lambda f: f.matching.oldest or 0 if f.matching else None),
    Family("menuwatch_alert_events_waiting", "Alert events not yet sent: digests wait for their time.", (),
           lambda f: f.alerts.events if f.alerts else None),
    Family("menuwatch_alert_deliveries_pending", "Alert deliveries waiting for a first attempt or a retry.", (),
           lambda f: f.alerts.pending if f.alerts else None),
    Family("menuwatch_alert_deliveries_oldest_pending_seconds",
           "Age of the oldest pending alert delivery, in seconds; 0 if none is pending.", (),
           lambda f: f.alerts.oldest or 0 if f.alerts else None),
    Family("menuwatch_alert_deliveries", "Alert deliveries by status: waiting, sending, delivered, failed.", ("status",),
           lambda f: {(status,): f.alerts.by_status.get(status, 0) for status in _DELIVERY_STATUSES} if f.alerts else {}),
    Family("menuwatch_price_watches", "Confirmed price watches of shoppers.", ("channel",),
           lambda f: {(row.channel,): row.watches for row in f.price_watches}),
    Family("menuwatch_price_watch_messages_pending", "Messages of price watches that wait to be sent, for the first time or again.",
           ("channel",), lambda f: {(row.channel,): row.pending for row in f.price_watches}),
    Family("menuwatch_crawls_running", "Running search crawls.", (), lambda f: f.crawls.running if f.crawls else None),
    Family("menuwatch_crawl_pages_under_way", "Search crawl pages submitted and not yet received.", (),
           lambda f: f.crawls.under_way if f.crawls else None),
    Family("menuwatch_crawls_late_seconds",
           "Delay of the most overdue search crawl, in seconds; 0 if none is due. It grows if no server has its provider.", (),
           lambda f: f.crawls.late or 0 if f.crawls else None),
    Family("menuwatch_crawl_deliveries_waiting", "Search crawl results received and not yet processed.", (),
           lambda f: f.crawls.waiting if f.crawls else None),
    Family("menuwatch_crawl_deliveries_oldest_seconds",
           "Delay of the most overdue search crawl result, in seconds; 0 if none is due.", (),
           lambda f: f.crawls.oldest or 0 if f.crawls else None),
)  # fmt: skip


class DatabaseMetrics(Collector):
    """One snapshot as metrics. A family without samples could not be read or has no data."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        return (family.metric(self._figures) for family in FAMILIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCacheMetrics(Collector):
    """Image cache metrics of this process for `GET /img`. `room_bytes` is the maximum size."""

    hits: int = 0
    misses: int = 0
    used_bytes: int | None = None
    room_bytes: int | None = None

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "menuwatch_image_cache_requests",
            "Requests for resized images by cache result: hit, miss.",
            labels=("result",),
        )
        requests.add_metric(("hit",), self.hits)
        requests.add_metric(("miss",), self.misses)
        yield requests
        yield GaugeMetricFamily(
            "menuwatch_image_cache_bytes", "Size of the image cache, in bytes.", value=self.used_bytes
        )
        yield GaugeMetricFamily(
            "menuwatch_image_cache_room_bytes",
            "Maximum size of the image cache (IMAGE_CACHE_MB), in bytes.",
            value=self.room_bytes,
        )


async def _image_cache(request: Request) -> ImageCacheMetrics:
    caches = request.app.state.images.server.caches
    # The first time it counts what is on disk.
    used = await asyncio.to_thread(lambda: sum(cache.used() for cache in caches))
    hits, misses, room = map(sum, zip(*((c.hits, c.misses, c.room) for c in caches), strict=True))
    return ImageCacheMetrics(hits=hits, misses=misses, used_bytes=used, room_bytes=room)


@router.get(
    "/metrics",
    dependencies=[require(Permission.READ)],
    summary="Prometheus metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus text exposition format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
async def metrics(request: Request, system: AppDep) -> Response:
    """HTTP metrics of this process, and queue, worker, schedule and payload metrics from the database, at most a few seconds old.
    Workers serve their own metrics (METRICS_PORT)."""
    state: Any = request.app.state
    if getattr(state, "figures", None) is None:
        state.figures = Reader(system.pool)
    registry = CollectorRegistry()
    registry.register(DatabaseMetrics(await state.figures.read()))
    registry.register(await _image_cache(request))
    text = generate_latest(state.traffic.registry) + generate_latest(registry)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})
