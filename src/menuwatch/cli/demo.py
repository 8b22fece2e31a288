"""`menuwatch demo`: discover and crawl a simulated market, and show its changes."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from menuwatch import bootstrap
from menuwatch.accounts import users
from menuwatch.cli.demo_report import figures, print_report
from menuwatch.cli.options import JsonOption
from menuwatch.cli.output import echo, errors, notice, print_json
from menuwatch.cli.worker_processes import run_worker_pool
from menuwatch.config.settings import Settings
from menuwatch.core import logging as telemetry
from menuwatch.core.errors import Transient
from menuwatch.core.format import duration
from menuwatch.db import sql
from menuwatch.images import store as images
from menuwatch.platforms.base import Platform
from menuwatch.proxies import service as proxy_operations
from menuwatch.queue import store as tasks
from menuwatch.queue.model import PRIORITY_DISCOVERY, NewTask, Role
from menuwatch.queue.task_list import TaskFilter, count_tasks
from menuwatch.sim.config import IMAGE_BASE
from menuwatch.sim.platform import platform_names
from menuwatch.sim.process import Simulator
from menuwatch.stores import store as stores
from menuwatch.system import System, open_system

FAULTS: dict[str, Any] = {
    "forbidden": {"rate": 0.05, "lasts": 12},
    "rate_limited": {"rate": 0.01, "retry_after": 1},
    "server_error": {"rate": 0.02},
    "truncated": {"rate": 0.01},
    "html": {"rate": 0.01},
    "pinned": {"rate": 0.2},
}
"""Faults of the market in a demo: about as frequent as those of a real one on a good day."""

_q = sql.load(__package__, "demo.sql")
_STUCK_SECONDS = 600.0
_IMAGE_SECONDS = 8.0
_IMAGES_AT_ONCE = 6
"""Images take longer than everything else together, so a demo downloads only some of them, after the menus."""
_INTERVAL = timedelta(minutes=1.2)
"""Crawl interval of a store: short enough to watch changes."""
_POLL_SECONDS = 2.0
"""Between two checks for schedules that are due, which are due once a minute or so."""
WORKERS = 3
"""Each of them downloads images, too."""


def demo(
    store_count: Annotated[int, typer.Option("--stores", min=1, max=500, help="Number of stores in the market.")] = 20,
    product_count: Annotated[
        int, typer.Option("--products", min=1, max=5000, help="Approximate number of products per store.")
    ] = 120,
    cycles: Annotated[int, typer.Option(min=1, max=100, help="Number of crawls of every store.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the simulated market.")] = 1,
    json: JsonOption = False,
    stay: Annotated[
        bool,
        typer.Option("--keep", help="Keep the dashboard, the public site and the market running until Ctrl-C."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the server with --keep; 0 selects a free one.")
    ] = 0,
) -> None:
    """Run a demonstration: find the stores of a simulated market, crawl them while it changes, show the changes. Everything else
    is real: database, proxies, requests, archive, catalog. Nothing leaves this machine, and the data is deleted at the end.
    Exit code 1 if any task failed."""
    ok = asyncio.run(_demo(store_count, product_count, cycles, seed, json=json, stay=stay, port=port))
    if not ok:
        raise typer.Exit(1)


@asynccontextmanager
async def market(
    home: Path,
    *,
    store_count: int,
    product_count: int,
    seed: int,
    platform_counts: Mapping[str, int] | None = None,
    faults: dict[str, Any] | None = None,
    proxies: int = 6,
    image_downloads: int = 0,
    port: int = 0,
    goes_on: bool = False,
) -> AsyncIterator[tuple[Simulator, System]]:
    """A simulated market, and a Menuwatch of its own in `home` that is set to watch it through the market's proxies.

    It has `store_count` stores on Dutchie, and so many on each of `platform_counts`. Its pictures are downloaded by `image_downloads`
    identities at once. One that `goes_on` restarts its database when it dies."""
    telemetry.configure("console", "error")
    async with Simulator(
        stores=store_count,
        platforms=dict(platform_counts or {}),
        products=product_count,
        seed=seed,
        proxies=proxies,
    ) as simulator:
        settings = Settings(
            home=home,
            port=port,
            dutchie_base_url=simulator.base_url,
            platforms=simulator.platforms,
            task_retry_base_seconds=0.2,
            fetch_retry_base_seconds=0.05,
            blocked_wait_seconds=0.5,
            fetch_timeout_seconds=20,
            # The simulated host has no other users: requests may be as fast as it answers.
            host_rate=1000,
            host_burst=100,
            host_cooldown_seconds=0.2,
            circuit_seconds=0.5,
            poll_interval_ms=200,
            max_concurrent_tasks=4,
            image_hosts=(str(urlsplit(IMAGE_BASE).hostname),),
            image_downloads=image_downloads,
            image_retry_seconds=0.05,
            # Everything is on this machine, including webhook receivers that users try.
            alert_allow_private=1,
        )
        async with open_system(settings, goes_on=goes_on) as system:
            for proxy in simulator.proxies:
                await proxy_operations.add(system.pool, proxy.url, state=proxy.state, timezone=proxy.timezone)
            if faults:
                await simulator.inject_faults(faults)
            yield simulator, system


async def _demo(
    store_count: int, product_count: int, cycles: int, seed: int, *, json: bool, stay: bool, port: int
) -> bool:
    started = time.monotonic()
    dutchie_count, platform_counts = spread(store_count)
    with tempfile.TemporaryDirectory(prefix="menuwatch-demo-") as folder:
        async with market(
            Path(folder) / "home",
            store_count=dutchie_count,
            platform_counts=platform_counts,
            product_count=product_count,
            seed=seed,
            faults=FAULTS,
            port=port,
            goes_on=stay,
        ) as (simulator, system):
            async with bootstrap.run_worker(system):
                await crawl(simulator, system, cycles)
            report = await figures(system)
            report["seconds"] = round(time.monotonic() - started, 1)
            ok = set().union(*report["tasks"].values()) == {"completed"} and report["stores"] == store_count
            if json:
                print_json(report)
            else:
                await print_report(system, report)
            if not ok:
                notice("menuwatch: not all tasks completed")
            if stay:
                await _keep(simulator, system)
    return ok


def spread(store_count: int) -> tuple[int, dict[str, int]]:
    """(stores on Dutchie, stores on each other platform of the simulator) for so many stores: Dutchie has the most. Where there are
    fewer stores than platforms, the last platforms have none."""
    names = platform_names()
    each = max(1, store_count // (len(names) + 2))
    counts = dict.fromkeys(names[: max(0, (store_count - 1) // each)], each)
    return store_count - sum(counts.values()), counts


async def crawl(simulator: Simulator, system: System, cycles: int) -> None:
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description:34}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        disable=not errors.is_terminal,
    ) as progress:
        store_count = len(simulator.market.stores)
        lookups = sum(
            1 if platform.lists_stores else len(simulator.market.on(platform.name)) for platform in _requested(system)
        )
        bar = progress.add_task("Discovering stores, first crawl", total=lookups + 2 * store_count)
        await first_crawl(system, lambda done: progress.update(bar, completed=done), simulator)
        for cycle in range(2, cycles + 1):
            await simulator.tick()
            bar = progress.add_task(f"Crawl {cycle} of {cycles}", total=2 * store_count)
            await crawl_all(system, functools.partial(lambda bar, done: progress.update(bar, completed=done), bar))
        bar = progress.add_task(f"Downloading images for {_IMAGE_SECONDS:g} s", total=None)
        async with bootstrap.run_image_downloads(system, at_once=_IMAGES_AT_ONCE):
            await pictures(system, lambda done: progress.update(bar, completed=done))
        async with system.pool.connection() as conn:
            counts = await images.counts(conn)
        # The rest is not downloaded: the bar ends full.
        progress.update(bar, completed=counts.stored + counts.failed, total=counts.stored + counts.failed)


def _requested(system: System) -> list[Platform]:
    return [platform for platform in system.platforms.values() if platform.requested]


async def first_crawl(
    system: System, report: Callable[[int], object] | None = None, simulator: Simulator | None = None
) -> None:
    """Discovers the stores of every platform and waits for their first crawls. Stores of platforms that have no list of them are added
    as the simulator knows them. `report` is called with the number of finished tasks."""
    new = []
    for platform in _requested(system):
        if platform.lists_stores:
            new.append(NewTask(role=Role.STORE_DISCOVERY, platform=platform.name, priority=PRIORITY_DISCOVERY))
            continue
        async with system.pool.connection() as conn, conn.transaction():
            for shop in simulator.market.on(platform.name) if simulator is not None else ():
                store = await stores.add_by_url(conn, platform=platform.name, slug=shop.slug)
                new.append(NewTask(role=Role.ENTRY_POINT_DISCOVERY, dispensary_id=store.id, platform=platform.name))
    await _enqueue(system, new)
    await settle(system, report)


async def crawl_all(system: System, report: Callable[[int], object] | None = None) -> None:
    """Crawls every store once. `report` is called with the number of finished tasks."""
    async with system.pool.connection() as conn:
        rows = await (await conn.execute(_q.crawlable)).fetchall()
    await _enqueue(
        system,
        [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=store_id, platform=platform) for store_id, platform in rows],
    )
    await settle(system, report)


async def _enqueue(system: System, new: list[NewTask]) -> None:
    async with system.pool.connection() as conn, conn.transaction():
        await tasks.enqueue(conn, new)


_ENDED = frozenset({"completed", "failed", "cancelled"})


async def _count(system: System) -> tuple[int, int]:
    """(tasks that wait or run, tasks that ended)."""
    async with system.pool.connection() as conn:
        counts = await count_tasks(conn, TaskFilter())
    ended = sum(n for by_status in counts.values() for status, n in by_status.items() if status in _ENDED)
    return sum(n for by_status in counts.values() for n in by_status.values()) - ended, ended


async def settle(system: System, report: Callable[[int], object] | None = None) -> None:
    """Waits until no task is pending or running; `report` is called with the number of tasks finished since the call."""
    deadline = time.monotonic() + _STUCK_SECONDS
    before: int | None = None
    while True:
        live, ended = await _count(system)
        before = ended if before is None else before
        if report is not None:
            report(ended - before)
        if not live:
            return
        if time.monotonic() > deadline:
            raise Transient(f"the crawl did not end within {_STUCK_SECONDS:g} s: {live} tasks are left")
        await asyncio.sleep(0.05)


async def pictures(system: System, report: Callable[[int], object] | None = None) -> None:
    """Waits until no image is due, for _IMAGE_SECONDS at most; `report` is called with the number that is settled."""
    deadline = time.monotonic() + _IMAGE_SECONDS
    while time.monotonic() < deadline:
        async with system.pool.connection() as conn:
            counts = await images.counts(conn)
        left = counts.queued + counts.waiting
        if report is not None:
            report(counts.stored + counts.failed)
        if not left:
            return
        await asyncio.sleep(0.05)


async def _keep(simulator: Simulator, system: System) -> None:
    """Serves until Ctrl-C, with workers that crawl by schedule and download images."""
    from menuwatch.cli.serving import address_lines, listening, serve
    from menuwatch.dashboard import demo_login

    bootstrap.load_apps()  # before the workers start: their supervisor needs the event loop
    password = await users.first_admin(system.pool, must_change=False)
    assert password is not None, "the demo's database is new"
    token = secrets.token_urlsafe(24)
    settings = dataclasses.replace(
        system.settings,
        image_downloads=1,
        log_level="error",
        # The market has this machine as well, so that a busy one is no reason for its workers to wait.
        memory_backoff_threshold=1.0,
        cpu_backoff_threshold=1.0,
        event_loop_lag_backoff_ms=60_000,
    )

    def on_up(address: str) -> None:
        echo(
            *address_lines(
                address,
                f"User         {users.FIRST_NAME}, password {password}",
                "",
                "Open this link to be logged in, on this machine and while the demo runs:",
                f"{address}/admin{demo_login.PATH}?token={token}",
            ),
            f"The market keeps changing: each store is crawled every {duration(_INTERVAL.total_seconds())} by {WORKERS} workers. "
            "Press Ctrl-C to stop.",
        )

    with listening(settings) as listener:
        async with (
            bootstrap.run_maintenance(system),
            _frequent_schedules(system),
            run_worker_pool(system, requested=WORKERS, env=settings.to_env()),
        ):
            drift = asyncio.create_task(_drift(simulator), name="market")
            try:
                await serve(dataclasses.replace(system, settings=settings), listener, on_up, demo_token=token)
            finally:
                drift.cancel()
                await asyncio.gather(drift, return_exceptions=True)


@asynccontextmanager
async def _frequent_schedules(system: System) -> AsyncIterator[None]:
    """Schedules that crawl each store at the demo's interval: one for each state of a platform, evenly distributed over it."""
    hours = Decimal(str(_INTERVAL.total_seconds())) / 3600
    async with system.pool.connection() as conn, conn.transaction():
        await conn.execute(_q.crawl_every, {"hours": hours})
        groups = await (await conn.execute(_q.crawl_groups)).fetchall()
        now = system.clock.now()
        for position, (platform, state) in enumerate(groups, 1):
            name = "_".join(("payload_fetch", platform, *([state.lower()] if state else ())))
            values = {"name": name, "hours": hours, "platform": platform, "state": state}
            await conn.execute(_q.schedule_of_group, {**values, "first": now + _INTERVAL * position / len(groups)})
    async with bootstrap.run_scheduler(system) as scheduler:
        scheduler.interval = _POLL_SECONDS
        yield


async def _drift(simulator: Simulator) -> None:
    while True:
        await asyncio.sleep(_INTERVAL.total_seconds() / 2)
        await simulator.tick()
