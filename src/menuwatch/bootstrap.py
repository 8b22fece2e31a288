"""The composition root: from settings to the parts that work, in the order in which a start must happen.

database up → migrations → storage check → orphan clean-up → (stale recovery, in the worker and server) →
(default schedules → due schedules at once → poll loop, in the server) → ready
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from menuwatch.archive.files import FileArchive
from menuwatch.backup.marker import refuse_unfinished
from menuwatch.cluster import kubernetes, local
from menuwatch.cluster.base import Scaler
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.crawls.base import Provider, Site
from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Pool, open_pool
from menuwatch.engine.courier import Courier
from menuwatch.engine.crawl_fetches import CrawlFetches
from menuwatch.engine.crawl_loops import crawl_loops
from menuwatch.engine.exposition import exposed
from menuwatch.engine.handler import Claimable
from menuwatch.engine.image_downloads import ImageDownloads, Manner
from menuwatch.engine.janitor import Janitor, Keep
from menuwatch.engine.loop import Loop
from menuwatch.engine.measures import Measures
from menuwatch.engine.options import Options
from menuwatch.engine.pod_orders import PodOrders
from menuwatch.engine.prober import Prober
from menuwatch.engine.scheduler import Scheduler
from menuwatch.engine.worker import Worker
from menuwatch.fetch import profiles
from menuwatch.fetch.browser import Profile
from menuwatch.fetch.ledger import Report
from menuwatch.fetch.rotator import Rotator
from menuwatch.imaging.files import ImageFiles
from menuwatch.operations import openings, proxies
from menuwatch.operations.orphans import recover_archive
from menuwatch.pipeline.parts import Parts
from menuwatch.pipeline.registry import handlers
from menuwatch.pipeline.robots_rules import robots_policy
from menuwatch.platforms.base import Platform
from menuwatch.platforms.registry import platforms
from menuwatch.providers.registry import providers
from menuwatch.proxies.vault import Vault
from menuwatch.schedules import store as schedules
from menuwatch.schedules.model import wanted
from menuwatch.site.loops import Postman, Shelf
from menuwatch.sites.registry import sites
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import NETWORK_ROLES, Role

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = get_logger(__name__)
_L = TypeVar("_L", bound=Loop)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What every command, the server and the workers are made of."""

    settings: Settings
    database_url: str
    pool: Pool
    archive: FileArchive
    clock: Clock
    platforms: Mapping[str, Platform]
    profiles: Sequence[Profile]
    sites: Mapping[str, Site]
    providers: Mapping[str, Provider]
    at_end: AsyncExitStack
    """What is to be closed with it."""


@asynccontextmanager
async def open_system(settings: Settings, *, clock: Clock | None = None, pool_size: int = 10) -> AsyncIterator[System]:
    """Brings everything up to where work can begin; raises Refused with what is wrong where it cannot."""
    browsers = profiles.load(settings.profiles_file).profiles
    refuse_unfinished(settings.storage)
    with embedded.database_url(settings) as url:
        migrated = await asyncio.to_thread(migrate.migrate, url)
        if migrated.changed:
            log.info("database migrated", action="migrated", before=migrated.before, after=migrated.after)
        log.info("the database is at this version's schema", action="start_migrated", revision=migrated.after)
        archive = FileArchive(settings.storage, level=settings.archive_level)
        archive.check()
        log.info("the storage can be written", action="start_storage_checked")
        async with open_pool(url, max_size=pool_size) as pool, AsyncExitStack() as at_end:
            published, removed = await recover_archive(pool, archive)
            log.info("no orphans in the archive", action="start_orphans_cleaned", published=published, removed=removed)
            clock = clock or SystemClock()
            yield System(
                settings=settings,
                database_url=url,
                pool=pool,
                archive=archive,
                clock=clock,
                platforms=platforms(settings),
                profiles=browsers,
                sites=sites(settings),
                providers=providers(settings, pool, clock, at_end),
                at_end=at_end,
            )


def parts(system: System, measures: Measures | None = None) -> Parts:
    """What handlers are given to work with. What they ask of hosts is counted in `measures`."""
    counted = measures or Measures()

    def count(report: Report) -> None:
        for made in report.attempts:
            counted.requested(made.host, made.verdict, made.waited_ms / 1000)

    rotator = Rotator(
        system.pool,
        system.settings,
        clock=system.clock,
        profiles=system.profiles,
        unseal=Vault.from_settings(system.settings).usable,
        robots=robots_policy(system.platforms, system.settings, system.sites),
        on_report=count,
    )
    counted.fetching(idle=lambda: rotator.idle, leases=lambda: rotator.leases)
    system.at_end.push_async_callback(rotator.close)
    return Parts(
        pool=system.pool,
        clock=system.clock,
        archive=system.archive,
        platforms=system.platforms,
        open_session=rotator.open,
        suspect_share=system.settings.suspect_share,
        blocked_wait=timedelta(seconds=system.settings.blocked_wait_seconds),
        analytics_window=timedelta(days=system.settings.analytics_window_days),
    )


async def recover_tasks(system: System) -> int:
    """Takes back what workers that died left behind; returns how many tasks."""
    async with system.pool.connection() as conn:
        recovered = await tasks.recover_stale(conn, system.settings.stale_after_minutes)
    log.info("tasks of silent workers are taken back", action="start_tasks_recovered", count=recovered)
    return recovered


async def default_schedules(system: System) -> int:
    """Creates the schedules that every installation has, where they are missing; returns how many."""
    async with system.pool.connection() as conn:
        asked = [name for name, platform in system.platforms.items() if platform.hosts]
        return await schedules.create_missing(conn, system.clock.now(), wanted(asked))


@asynccontextmanager
async def scheduling(system: System) -> AsyncIterator[Scheduler]:
    """Fires schedules for as long as the context lasts; those that are due have been fired when it begins."""
    created = await default_schedules(system)
    log.info("the default schedules are there", action="start_schedules_ready", created=created)
    scheduler = Scheduler(system.pool, clock=system.clock)
    await scheduler.step()
    log.info("what was due is fired", action="start_schedules_fired")
    async with _running(scheduler):
        log.info("schedules are looked at", action="start_scheduling", every_seconds=scheduler.interval)
        yield scheduler


@asynccontextmanager
async def keeping(system: System) -> AsyncIterator[Janitor]:
    """Keeps the database in shape for as long as the context lasts: drops what is past its time, renews statistics; tries proxies
    that were deactivated, carries alerts to whoever wants them, and what changed on menus to where shoppers look."""
    keep = Keep(
        history=timedelta(days=system.settings.task_history_days),
        attempts=timedelta(days=system.settings.fetch_attempt_days),
        states=timedelta(days=days) if (days := system.settings.product_history_days) else None,
        runs=timedelta(days=system.settings.schedule_run_days),
        audit=timedelta(days=days) if (days := system.settings.audit_days) else None,
    )
    janitor = Janitor(system.pool, keep=keep, clock=system.clock)
    prober = Prober(system.pool, system.settings, clock=system.clock)
    courier = Courier(system.pool, system.settings, clock=system.clock)
    shelf, postman = Shelf(system.pool), Postman(system.pool, system.settings, clock=system.clock)
    async with _running(janitor), _running(prober), _running(courier), _running(shelf), _running(postman):
        yield janitor


@asynccontextmanager
async def _running(loop: _L) -> AsyncIterator[_L]:
    """The loop at work in this process. At the end its present step may end, within reason."""
    task = asyncio.create_task(loop.run(), name=loop.name)
    try:
        yield loop
    finally:
        loop.stop()
        await asyncio.wait({task}, timeout=10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def check_roles(system: System) -> None:
    """Raises Refused for roles that no worker of this version does."""
    _served(Options.from_settings(system.settings), handlers(parts(system)), system.settings.worker_role)


def _served(options: Options, served: Mapping[Role, object], asked: Sequence[str]) -> None:
    if options.roles is not None and not options.roles & served.keys():
        raise Refused(
            f"WORKER_ROLE={', '.join(asked)}: this version has no handler for it, so the worker would never do anything"
        )


async def worker(system: System, *, ordinal: int | None = None, watchful: bool = True) -> Worker:
    """A worker that is ready to run. Raises Refused for roles that do not exist, and when no proxy is active.

    `ordinal` is its place in its pod; one that is not `watchful` never backs off for want of memory or processor.
    """
    options = dataclasses.replace(Options.from_settings(system.settings), ordinal=ordinal)
    if not watchful:
        options = dataclasses.replace(options, thresholds=None)
    measures = Measures()
    given = parts(system, measures)
    served = handlers(given)
    _served(options, served, system.settings.worker_role)
    await proxies.require_active(system.pool, system.settings)

    async def may_claim() -> Claimable:
        # All proxies may go down while it runs, or a host may want to be left alone: then what needs none goes on, and the rest waits.
        async with system.pool.connection() as conn:
            closed = await openings.closed(conn, system.platforms)
        if closed is None:
            return Claimable(frozenset(Role))
        return Claimable(frozenset(Role) - NETWORK_ROLES, *closed)

    asks = served.keys() & NETWORK_ROLES & (options.roles or frozenset(Role))
    wanted = asks and system.settings.image_downloads
    downloads = image_downloads(system, given, on_ended=measures.pictured) if wanted else None
    fetches = crawl_fetches(system, given) if asks else None
    found = Worker(
        system.pool,
        system.database_url,
        served,
        options,
        may_claim=may_claim,
        clock=system.clock,
        measures=measures,
        beside=tuple(loop for loop in (downloads, fetches) if loop is not None),
    )
    for loop in (downloads, fetches):
        if loop is not None:
            loop.held = lambda: found.gate.look() is not None
    return found


def crawl_fetches(system: System, given: Parts) -> CrawlFetches:
    """The loop that fetches pages of search crawls, with the identities of `given`."""
    return CrawlFetches(
        system.pool,
        system.sites,
        given.open_session,
        timeout_seconds=system.settings.fetch_timeout_seconds,
        deadline=timedelta(minutes=system.settings.crawl_deadline_minutes),
        clock=system.clock,
        interval=system.settings.poll_interval_ms / 1000,
    )


@asynccontextmanager
async def crawling(system: System) -> AsyncIterator[None]:
    """Submits pages of search crawls, and reads those that come, for as long as the context lasts."""
    pacer, reader = crawl_loops(
        system.pool, system.settings, system.sites, system.providers, system.at_end, clock=system.clock
    )
    async with _running(pacer), _running(reader):
        yield


@asynccontextmanager
async def downloading(system: System, *, at_once: int) -> AsyncIterator[ImageDownloads]:
    """Downloads pictures for as long as the context lasts, beside whatever workers do."""
    async with _running(image_downloads(system, parts(system), at_once=at_once)) as loop:
        yield loop


def image_downloads(
    system: System, given: Parts, *, at_once: int | None = None, on_ended: Callable[[str], None] = lambda _: None
) -> ImageDownloads:
    """The loop that downloads pictures, with the identities of `given`; IMAGE_DOWNLOADS of them `at_once` where nothing is said."""
    settings = system.settings
    manner = Manner(
        hosts=settings.image_hosts,
        at_once=at_once or settings.image_downloads,
        tries=settings.image_tries,
        backoff=Backoff(base=settings.image_retry_seconds, cap=86_400.0, factor=4.0),
        blocked_seconds=settings.blocked_wait_seconds,
        timeout_seconds=settings.fetch_timeout_seconds,
    )
    files = ImageFiles(settings.storage)
    every = settings.poll_interval_ms / 1000
    return ImageDownloads(system.pool, files, given.open_session, manner, interval=every, on_ended=on_ended)


def metrics(system: System, runner: Worker, *, ordinal: int | None = None) -> AbstractContextManager[int | None]:
    """The worker's own metrics over HTTP while the context lasts, where METRICS_PORT asks for them; gives the port."""
    host, port = system.settings.metrics_host, system.settings.metrics_port
    return exposed(runner.measures, host=host, port=port, ordinal=ordinal or 0)


def scaler(settings: Settings) -> Scaler:
    """What people's orders for more or fewer workers go to."""
    return kubernetes.KubernetesScaler(settings) if kubernetes.scales(settings) else local.LocalScaler(settings)


@asynccontextmanager
async def scaling(system: System) -> AsyncIterator[Scaler]:
    """The same, and where servers have to carry orders out, this one does for as long as the context lasts."""
    found = scaler(system.settings)
    if isinstance(found, kubernetes.KubernetesScaler):
        async with _running(PodOrders(system.pool, found)):
            yield found
    else:
        yield found


@asynccontextmanager
async def working(system: System) -> AsyncIterator[Worker]:
    """A worker at work in this process for as long as the context lasts. Raises what ended it, if it ended by itself.

    It shares the machine with whatever else this process does (a simulated market, say), so a busy machine is no reason to wait.
    """
    runner = await worker(system, watchful=False)
    task = asyncio.create_task(runner.run(), name="worker")
    try:
        yield runner
    finally:
        runner.stop()
        await task


def load_faces() -> None:
    """Loads what `serving` needs, which takes a while: for whoever has something else to do on the event loop."""
    for face in ("api", "dashboard", "site"):
        importlib.import_module(f"menuwatch.{face}.app")


@asynccontextmanager
async def serving(system: System) -> AsyncIterator[ASGIApp]:
    """Every face on this system: the API, the dashboard, the public site; and what they do beside answering, for as long as the
    context lasts. Raises Refused for a GEOIP_DATABASE that cannot be used."""
    # Only who serves pays for loading the web framework: a third of the start of every other command.
    from menuwatch.api.app import create_app
    from menuwatch.dashboard.app import create_dashboard
    from menuwatch.geo import postcodes
    from menuwatch.geo.database import opened
    from menuwatch.site.app import create_site
    from menuwatch.web.faces import Faces, prefix_of
    from menuwatch.web.live import Live
    from menuwatch.web.observe import Traffic
    from menuwatch.web.system import System as Served
    from menuwatch.web.visit_log import VisitLog

    traffic, live = Traffic(), Live(system.pool)
    scaled = await system.at_end.enter_async_context(scaling(system))
    geo = opened(system.settings.geoip_database)
    if geo is not None:
        system.at_end.callback(geo.close)
    visits = VisitLog(system.pool, geo, clock=system.clock, registry=traffic.registry)
    served = Served(
        pool=system.pool,
        archive=system.archive,
        platforms=system.platforms,
        settings=system.settings,
        geo=geo,
        visits=visits,
        scaler=scaled,
        sites=system.sites,
        providers=system.providers,
    )
    postcodes.warm()  # else the first shopper who names a postcode waits for it, and all others with them
    async with _running(visits), crawling(system):
        yield Faces(
            api=create_app(served, traffic, live),
            dashboard=create_dashboard(served, traffic, live),
            site=create_site(served, traffic),
            prefix=prefix_of(system.settings.public_url),
        )
