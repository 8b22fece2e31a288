"""`menuwatch demo`: a simulated market is found, crawled and compared before your eyes."""

from __future__ import annotations

import asyncio
import functools
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.catalog import store as catalog
from menuwatch.cli.demo_keep import keep
from menuwatch.cli.output import console, errors, plain, plural, print_json
from menuwatch.core import telemetry
from menuwatch.core.errors import Transient
from menuwatch.core.settings import Settings
from menuwatch.fetch import attempts
from menuwatch.images import store as images
from menuwatch.operations import proxies as proxy_operations
from menuwatch.sim.market import IMAGE_BASE
from menuwatch.sim.process import Simulator
from menuwatch.stores import store as stores
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import PRIORITY_DISCOVERY, NewTask, Role

MISCHIEF: dict[str, Any] = {
    "forbidden": {"rate": 0.05, "lasts": 12},
    "rate_limited": {"rate": 0.01, "retry_after": 1},
    "server_error": {"rate": 0.02},
    "truncated": {"rate": 0.01},
    "html": {"rate": 0.01},
    "pinned": {"rate": 0.2},
}
"""How the market misbehaves in a demo: about as often as a real one does on a fair day."""

_STUCK_SECONDS = 600.0
_PICTURE_SECONDS = 2.0
_PICTURES_AT_ONCE = 6
"""Pictures take longer than everything else together, so a demo only begins with them, once the menus are there."""


def demo(
    store_count: Annotated[int, typer.Option("--stores", min=1, max=500, help="Stores in the market.")] = 12,
    product_count: Annotated[
        int, typer.Option("--products", min=1, max=5000, help="Products in each store, about.")
    ] = 120,
    cycles: Annotated[int, typer.Option(min=1, max=100, help="Times that every store is crawled.")] = 4,
    seed: Annotated[int, typer.Option(help="Another seed is another market.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    stay: Annotated[
        bool,
        typer.Option(
            "--keep", help="Leave the dashboard and the public site up afterwards, and the market live, until Ctrl-C."
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the server that --keep leaves up; 0 takes a free one.")
    ] = 0,
) -> None:
    """See it work: find the stores of a simulated market, crawl them while it drifts, show what changed.

    Everything is real but the market: database, proxies, requests, archive, catalogue. Nothing leaves this machine, and the
    data are removed at the end. Exit code 1 if any task did not end well.
    """
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
    weedmaps_count: int = 0,
    mischief: dict[str, Any] | None = None,
    proxies: int = 6,
    image_downloads: int = 0,
    port: int = 0,
) -> AsyncIterator[tuple[Simulator, System]]:
    """A simulated market, and a Menuwatch of its own in `home` that is set to watch it through the market's proxies.

    It has `store_count` stores on the first platform, `weedmaps_count` on the second. Its pictures are downloaded by `image_downloads`
    identities at once."""
    telemetry.configure("console", "error")
    async with Simulator(
        stores=store_count, weedmaps=weedmaps_count, products=product_count, seed=seed, proxies=proxies
    ) as simulator:
        settings = Settings(
            home=home,
            port=port,
            dutchie_base_url=simulator.base_url,
            weedmaps_base_url=simulator.weedmaps_url,
            task_retry_base_seconds=0.2,
            fetch_retry_base_seconds=0.05,
            blocked_wait_seconds=0.5,
            fetch_timeout_seconds=20,
            # Nobody else uses the simulated host: it may be asked as fast as it answers.
            host_rate=1000,
            host_burst=100,
            host_cooldown_seconds=0.2,
            circuit_seconds=0.5,
            poll_interval_ms=200,
            max_concurrent_tasks=4,
            image_hosts=(str(urlsplit(IMAGE_BASE).hostname),),
            image_downloads=image_downloads,
            image_retry_seconds=0.05,
            # All of it is on this machine, also a receiver of webhooks that somebody tries it with.
            alert_allow_private=1,
        )
        async with bootstrap.open_system(settings) as system:
            for proxy in simulator.proxies:
                await proxy_operations.add(system.pool, proxy.url, state=proxy.state, timezone=proxy.timezone)
            if mischief:
                await simulator.misbehave(mischief)
            yield simulator, system


async def _demo(
    store_count: int, product_count: int, cycles: int, seed: int, *, json: bool, stay: bool, port: int
) -> bool:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="menuwatch-demo-") as folder:
        async with market(
            Path(folder) / "home",
            store_count=store_count,
            product_count=product_count,
            seed=seed,
            mischief=MISCHIEF,
            port=port,
        ) as (simulator, system):
            async with bootstrap.working(system):
                await crawl(simulator, system, store_count, cycles)
            report = await figures(system)
            report["seconds"] = round(time.monotonic() - started, 1)
            ok = set().union(*report["tasks"].values()) == {"completed"} and report["stores"] == store_count
            if json:
                print_json(report)
            else:
                await _print(system, report)
            if not ok:
                errors.print("menuwatch: not every task ended well", style="red")
            if stay:
                await keep(simulator, system)
    return ok


async def crawl(simulator: Simulator, system: System, store_count: int, cycles: int) -> None:
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description:34}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        disable=not errors.is_terminal,
    ) as progress:
        bar = progress.add_task("Finding stores, first crawl", total=1 + 2 * store_count)
        await first_crawl(system, lambda done: progress.update(bar, completed=done))
        for cycle in range(2, cycles + 1):
            await simulator.tick()
            bar = progress.add_task(f"Crawl {cycle} of {cycles}, the market drifts", total=2 * store_count)
            await crawl_all(system, functools.partial(_update, progress, bar))
        bar = progress.add_task("Pictures, for a moment", total=None)
        async with bootstrap.downloading(system, at_once=_PICTURES_AT_ONCE):
            await pictures(system, lambda done, total: progress.update(bar, completed=done, total=total))


def _update(progress: Progress, bar: TaskID, done: int) -> None:
    progress.update(bar, completed=done)


async def first_crawl(system: System, report: Callable[[int], object] | None = None) -> None:
    """Discovers the stores; their first crawls follow. `report` is told how many tasks have ended."""
    await _enqueue(system, [NewTask(role=Role.STORE_DISCOVERY, priority=PRIORITY_DISCOVERY)])
    await settle(system, report)


async def crawl_all(system: System, report: Callable[[int], object] | None = None) -> None:
    """Crawls every store once. `report` is told how many tasks have ended."""
    async with system.pool.connection() as conn:
        found = await stores.crawlable(conn)
    await _enqueue(system, [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=store) for store in found])
    await settle(system, report)


async def _enqueue(system: System, new: list[NewTask]) -> None:
    async with system.pool.connection() as conn, conn.transaction():
        await tasks.enqueue(conn, new)


_ENDED = frozenset({"completed", "failed", "cancelled"})


async def _count(system: System) -> tuple[int, int]:
    """(tasks that wait or run, tasks that ended)."""
    async with system.pool.connection() as conn:
        counts = await tasks.counts(conn)
    ended = sum(n for by_status in counts.values() for status, n in by_status.items() if status in _ENDED)
    return sum(n for by_status in counts.values() for n in by_status.values()) - ended, ended


async def settle(system: System, report: Callable[[int], object] | None = None) -> None:
    """Waits until no task waits or runs; `report` is told how many have ended since the call."""
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


async def pictures(system: System, report: Callable[[int, int], object] | None = None) -> None:
    """Waits until no picture is asked for any more, for a while; `report` is told (settled, all)."""
    deadline = time.monotonic() + _PICTURE_SECONDS
    while time.monotonic() < deadline:
        async with system.pool.connection() as conn:
            found = await images.counts(conn)
        left = found["queued"] + found["waiting"]
        if report is not None:
            report(found["stored"] + found["failed"], left + found["stored"] + found["failed"])
        if not left:
            return
        await asyncio.sleep(0.05)


async def figures(system: System) -> dict[str, Any]:
    """What was found, in the words of `demo --json`."""
    async with system.pool.connection() as conn:
        totals = await catalog.totals(conn)
        counts = await tasks.counts(conn)
        fetched = await attempts.traffic(conn)
        shown = await images.counts(conn)
        cursor = await conn.execute(
            "SELECT (SELECT count(*) FROM dispensaries), (SELECT count(*) FROM raw_crawl_payloads)"
        )
        row = await cursor.fetchone()
    assert row is not None, "a SELECT without FROM gives a row"
    return {
        "stores": row[0],
        "payloads": row[1],
        **totals,
        "blocked_requests": fetched["blocked"],
        "rotations": fetched["rotations"],
        "images": shown["stored"],
        "tasks": counts,
    }


async def _print(system: System, report: dict[str, Any]) -> None:
    async with system.pool.connection() as conn:
        drops = await catalog.price_drops(conn, 5)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    for key, words in (
        ("stores", "stores"),
        ("payloads", "payloads archived"),
        ("products", "products"),
        ("snapshots", "snapshots"),
        ("price_changes", "price changes"),
        ("stock_changes", "stock changes"),
        ("out_of_stock", "newly out of stock"),
        ("images", "products with a picture"),
        ("blocked_requests", "blocks met"),
        ("rotations", "identity rotations"),
    ):
        table.add_row(words, f"{report[key]:,}")
    table.add_row("seconds", f"{report['seconds']:.1f}")
    console.print()
    console.print(table)
    if drops:
        best = Table(
            box=None,
            pad_edge=False,
            header_style="bold",
            title="Biggest price drops",
            title_justify="left",
            title_style="bold",
        )
        for heading, justify in (
            ("Product", "left"),
            ("Store", "left"),
            ("Before", "right"),
            ("Now", "right"),
            ("", "right"),
        ):
            best.add_column(heading, justify=justify)  # type: ignore[arg-type]
        for drop in drops:
            best.add_row(
                _fit(drop["name"], 38), _fit(drop["store"], 24), f"${drop['price_before']:,.2f}", f"${drop['price_after']:,.2f}",
                f"-{drop['percent']:g} %",
            )  # fmt: skip
        console.print()
        console.print(best)
    console.print()
    console.print(_ended(report["tasks"]), markup=False)


def _ended(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How the tasks ended, in a line; roles are named only where something did not end well."""
    total = sum(n for by_status in counts.values() for n in by_status.values())
    odd = [
        f"{n} {role} {status}"
        for role, by_status in sorted(counts.items())
        for status, n in sorted(by_status.items())
        if status != "completed"
    ]
    return f"{plural(total, 'task')}: " + (f"all but {', '.join(odd)} completed" if odd else "all completed")


def _fit(text: str, width: int) -> Text:
    text = plain(text)
    return Text(text if len(text) <= width else text[: width - 1] + "…")
