"""The composition root of what goes on running: workers, the scheduler, maintenance, search crawls, image downloads.

A start opens the system (system.py), recovers stale tasks in workers and the server, and in the server creates default schedules and
fires due ones at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import pkgutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from datetime import timedelta
from functools import partial

from menuwatch.alerts.delivery_worker import AlertDeliverer
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import running
from menuwatch.fetch.reports import Report
from menuwatch.fetch.rotator import Rotator
from menuwatch.images.downloads import DownloadPolicy, ImageDownloads
from menuwatch.images.files import ImageFiles
from menuwatch.matching.engine import ProductMatcher
from menuwatch.matching.locations.engine import LocationMatcher
from menuwatch.ops import alert_readings
from menuwatch.ops.disk_space import DiskReadings
from menuwatch.ops.janitor import Janitor
from menuwatch.ops.retention import Retention
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.registry import handlers, platform_policies, robots_policy
from menuwatch.proxies import service as proxies
from menuwatch.proxies.passwords import decrypt_password_or_drop
from menuwatch.proxies.prober import Prober
from menuwatch.queue import store as tasks
from menuwatch.queue.model import FORMER_WORKER_ROLES, NETWORK_ROLES, Role
from menuwatch.queue.schedules.scheduler import Scheduler
from menuwatch.scaling import kubernetes, local
from menuwatch.scaling.kubernetes import PodReconciler
from menuwatch.scaling.model import Scaler
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.providers.identities import CrawlFetcher
from menuwatch.search_crawl.setup import build_loops
from menuwatch.storage.service import open_storage
from menuwatch.storefront.indexer import StorefrontIndexer
from menuwatch.storefront.watches import service as watches
from menuwatch.storefront.watches.sender import WatchSender
from menuwatch.system import System, ensure_default_schedules
from menuwatch.workers.engine.claimable_roles import Claimable, query_claimable
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.metrics import WorkerMetrics, serve_metrics
from menuwatch.workers.engine.worker import Worker

log = get_logger(__name__)


def handler_context(system: System, measures: WorkerMetrics | None = None) -> HandlerContext:
    """What handlers work with. What they ask of hosts is counted in `measures`."""
    counted = measures or WorkerMetrics()

    def count(report: Report) -> None:
        for attempt in report.attempts:
            counted.requested(attempt.host, attempt.verdict, attempt.waited_ms / 1000)

    rotator = Rotator(
        system.pool,
        system.settings,
        clock=system.clock,
        profiles=system.profiles,
        unseal=partial(decrypt_password_or_drop, SecretBox(system.settings.secret_key)),
        robots=robots_policy(system.platforms, system.settings, system.sites),
        on_report=count,
    )
    counted.fetching(idle=lambda: rotator.idle, leases=lambda: rotator.leases)
    system.at_end.push_async_callback(rotator.close)
    return HandlerContext(
        pool=system.pool,
        clock=system.clock,
        archive=system.archive,
        platforms=system.platforms,
        open_session=rotator.open,
        suspect_share=system.settings.suspect_share,
        blocked_wait=timedelta(seconds=system.settings.blocked_wait_seconds),
        analytics_window=timedelta(days=system.settings.analytics_window_days),
        robots=platform_policies(system.platforms, system.settings),
    )


async def recover_tasks(system: System) -> int:
    """Returns tasks of dead workers to the queue; returns how many."""
    async with system.pool.connection() as conn:
        await tasks.set_stale_after(conn, system.settings.stale_after_minutes)
        await tasks.set_retry_base(conn, system.settings.task_retry_base_seconds)
        recovered = await tasks.recover_stale(conn)
    log.info("stale tasks recovered", action="start_tasks_recovered", count=recovered)
    return recovered


@asynccontextmanager
async def run_scheduler(system: System) -> AsyncIterator[Scheduler]:
    """Fires schedules for as long as the context lasts; those that are due have been fired when it begins."""
    async with system.pool.connection() as conn:
        await tasks.set_platform_hosts(conn, {name: platform.hosts for name, platform in system.platforms.items()})
    created = await ensure_default_schedules(system)
    log.info("default schedules ensured", action="start_schedules_ready", created=created)
    scheduler = Scheduler(system.pool, clock=system.clock)
    await scheduler.step()
    log.info("due schedules fired", action="start_schedules_fired")
    async with running(scheduler):
        log.info("scheduler started", action="start_scheduling", every_seconds=scheduler.interval)
        yield scheduler


@asynccontextmanager
async def run_maintenance(system: System) -> AsyncIterator[Janitor]:
    """Runs the loops that keep an installation in shape: retention, tests of inactive proxies, delivery of alerts, matching of
    products and of stores, the storefront."""
    pages = PageArchive(system.archive.storage)
    retention = Retention.configured(system.settings)
    janitor = Janitor(system.pool, retention=retention, archive=system.archive, pages=pages, platforms=system.platforms)
    prober = Prober(system.pool, system.settings, clock=system.clock)
    readings = alert_readings.reader(system.settings)
    deliverer = AlertDeliverer(system.pool, system.settings, read=readings, clock=system.clock)
    matcher = ProductMatcher(system.pool)
    indexer = StorefrontIndexer(system.pool, watcher=watches.evaluate_store)
    locations = LocationMatcher(system.pool)
    sender = WatchSender(system.pool, system.settings, clock=system.clock)
    disk = DiskReadings(system.pool, system.settings)
    async with (
        running(janitor),
        running(prober),
        running(deliverer),
        running(matcher),
        running(indexer),
        running(locations),
        running(sender),
        running(disk),
    ):
        yield janitor


def check_roles(system: System) -> None:
    """Raises Refused for roles without a handler in this version."""
    _check_roles(
        WorkerConfig.from_settings(system.settings), handlers(handler_context(system)), system.settings.worker_role
    )


def _check_roles(options: WorkerConfig, served: Mapping[Role, object], asked: Sequence[str]) -> None:
    if options.roles is not None and not options.roles & served.keys():
        raise Refused(f"WORKER_ROLE={', '.join(asked)}: this version has no handler for that role")


async def worker(system: System, *, ordinal: int | None = None, monitor_resources: bool = True) -> Worker:
    """A worker that is ready to run. Raises Refused for roles that do not exist, and when no proxy is active.

    `ordinal` is its place in its pod; one that is not `monitor_resources` never backs off for want of memory or processor.
    """
    options = dataclasses.replace(WorkerConfig.from_settings(system.settings), ordinal=ordinal)
    if not monitor_resources:
        options = dataclasses.replace(options, thresholds=None)
    measures = WorkerMetrics()
    context = handler_context(system, measures)
    served = handlers(context)
    _check_roles(options, served, system.settings.worker_role)
    for name in sorted(FORMER_WORKER_ROLES.keys() & set(system.settings.worker_role)):
        log.warning(
            f"WORKER_ROLE={name} is a former role: this worker does {' and '.join(sorted(FORMER_WORKER_ROLES[name]))}",
            action="former_worker_role",
        )
    await proxies.require_active(system.pool, system.settings)

    async def may_claim() -> Claimable:
        # While all proxies are down or a host is blocked, roles that need none go on, and the others wait.
        async with system.pool.connection() as conn:
            return await query_claimable(conn, system.platforms)

    asks = served.keys() & NETWORK_ROLES & (options.roles or frozenset(Role))
    downloads_images = asks and system.settings.image_downloads
    downloads = image_downloads(system, context, on_ended=measures.pictured) if downloads_images else None
    fetches = crawl_fetches(system, context) if asks else None
    runner = Worker(
        system.pool,
        system.database_url,
        served,
        options,
        may_claim=may_claim,
        clock=system.clock,
        measures=measures,
        extra_loops=tuple(loop for loop in (downloads, fetches) if loop is not None),
    )
    for loop in (downloads, fetches):
        if loop is not None:
            loop.held = lambda: runner.gate.delay_before_claim() is not None
    return runner


def crawl_fetches(system: System, context: HandlerContext) -> CrawlFetcher:
    """The loop that fetches pages of search crawls, with the identities of `context`."""
    return CrawlFetcher(
        system.pool,
        system.sites,
        context.open_session,
        timeout_seconds=system.settings.fetch_timeout_seconds,
        deadline=timedelta(minutes=system.settings.crawl_deadline_minutes),
        clock=system.clock,
        interval=system.settings.poll_interval_ms / 1000,
    )


@asynccontextmanager
async def run_search_crawls(system: System) -> AsyncIterator[None]:
    """Submits pages of search crawls, and reads those that come, for as long as the context lasts."""
    pacer, reader = build_loops(
        system.pool, system.settings, system.sites, system.providers, system.at_end, clock=system.clock
    )
    async with running(pacer), running(reader):
        yield


@asynccontextmanager
async def run_image_downloads(system: System, *, at_once: int) -> AsyncIterator[ImageDownloads]:
    """Downloads images for as long as the context lasts."""
    async with running(image_downloads(system, handler_context(system), at_once=at_once)) as loop:
        yield loop


def image_downloads(
    system: System,
    context: HandlerContext,
    *,
    at_once: int | None = None,
    on_ended: Callable[[str], None] = lambda _: None,
) -> ImageDownloads:
    """The loop that downloads images, with the identities of `context`; `at_once` is IMAGE_DOWNLOADS by default."""
    settings = system.settings
    policy = DownloadPolicy(
        hosts=settings.image_hosts,
        concurrency=at_once or settings.image_downloads,
        tries=settings.image_tries,
        backoff=Backoff(base=settings.image_retry_seconds, cap=86_400.0, factor=4.0),
        blocked_seconds=settings.blocked_wait_seconds,
        timeout_seconds=settings.fetch_timeout_seconds,
    )
    files = ImageFiles(open_storage(settings))
    every = settings.poll_interval_ms / 1000
    return ImageDownloads(system.pool, files, context.open_session, policy, interval=every, on_ended=on_ended)


def metrics(system: System, runner: Worker, *, ordinal: int | None = None) -> AbstractContextManager[int | None]:
    """The worker's own metrics over HTTP while the context lasts, where METRICS_PORT asks for them; gives the port."""
    host, port = system.settings.metrics_host, system.settings.metrics_port
    return serve_metrics(runner.measures, host=host, port=port, ordinal=ordinal or 0)


def scaler(settings: Settings) -> Scaler:
    """What starts and stops workers when their number is changed."""
    return kubernetes.KubernetesScaler(settings) if kubernetes.runs_workers(settings) else local.LocalScaler(settings)


@asynccontextmanager
async def run_scaler(system: System) -> AsyncIterator[Scaler]:
    """The scaler; where servers must reconcile pods, this one does for as long as the context lasts."""
    chosen = scaler(system.settings)
    reconciler = PodReconciler(system.pool, chosen) if isinstance(chosen, kubernetes.KubernetesScaler) else None
    async with nullcontext() if reconciler is None else running(reconciler):
        yield chosen


@asynccontextmanager
async def run_worker(system: System) -> AsyncIterator[Worker]:
    """A worker at work in this process for as long as the context lasts. Raises what ended it, if it ended without being stopped.

    It shares the machine with whatever else this process does (a simulated market, say), so a busy machine is not a reason to wait.
    """
    runner = await worker(system, monitor_resources=False)
    task = asyncio.create_task(runner.run(), name="worker")
    try:
        yield runner
    finally:
        runner.stop()
        await task


def load_apps() -> None:
    """Imports all routes, which takes a second or two: call it in a thread beside a busy event loop."""
    for package in ("api.routes", "dashboard.pages", "site.pages"):
        found = importlib.import_module(f"menuwatch.{package}")
        for module in pkgutil.iter_modules(found.__path__):
            importlib.import_module(f"{found.__name__}.{module.name}")
