"""The demo that stays up: faces and workers on a market that goes on drifting, until Ctrl-C."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal

from rich.table import Table

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.crews import supervising
from menuwatch.cli.output import errors
from menuwatch.db import sql
from menuwatch.operations import accounts
from menuwatch.operations.wording import span
from menuwatch.sim.process import Simulator

_q = sql.load(__package__, "demo.sql")

INTERVAL_HOURS = Decimal("0.02")
"""Between two crawls of a store: often enough that one sees things move, and what every page says of these stores."""
_INTERVAL = timedelta(hours=float(INTERVAL_HOURS))
_LOOK_SECONDS = 2.0
"""Between two looks for schedules that are due: of such short intervals a minute is most."""
WORKERS = 3
"""Each of them downloads pictures, too: the first crawls only began with them."""


async def keep(simulator: Simulator, system: System) -> None:
    """Serves until Ctrl-C, with workers that crawl by schedule and download what pictures there are."""
    from menuwatch.cli.serving import serve

    bootstrap.load_faces()  # before there are workers: who holds them needs the event loop
    password = await accounts.first_admin(system.pool)
    settings = dataclasses.replace(
        system.settings,
        image_downloads=1,
        log_level="error",
        # The market has this machine as well, so that a busy one is no reason for its workers to wait.
        memory_backoff_threshold=1.0,
        cpu_backoff_threshold=1.0,
        event_loop_lag_backoff_ms=60_000,
    )

    def up(address: str) -> None:
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_row("Dashboard", f"{address}/admin/")
        table.add_row("Public site", f"{address}/")
        table.add_row("API", f"{address}/docs")
        table.add_row("Log in as", accounts.FIRST_NAME)
        table.add_row("Password", f"{password}  (once: you choose your own then)")
        errors.print()
        errors.print(table)
        every = span(_INTERVAL.total_seconds())
        errors.print(
            f"\nThe market goes on: each store is crawled every {every}, by {WORKERS} workers. Ctrl-C ends it.",
            soft_wrap=True,
        )

    async with (
        bootstrap.keeping(system),
        _often(system),
        supervising(system, asked=WORKERS, env=settings.to_env()),
    ):
        living = asyncio.create_task(_drift(simulator), name="market")
        try:
            await serve(dataclasses.replace(system, settings=settings), up)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)


@asynccontextmanager
async def _often(system: System) -> AsyncIterator[None]:
    """Schedules that crawl each store at the demo's interval: one for each state, one after the other, so that something is always
    going on."""
    async with system.pool.connection() as conn, conn.transaction():
        await conn.execute(_q.crawl_every, {"hours": INTERVAL_HOURS})
        found = await (await conn.execute(_q.states_of_stores)).fetchall()
        now = system.clock.now()
        for place, (state,) in enumerate(found):
            first = now + _INTERVAL * (place + 1) / len(found)
            name = f"payload_fetch_{state.lower()}"
            values = {"name": name, "hours": INTERVAL_HOURS, "state": state, "first": first}
            await conn.execute(_q.schedule_of_state, values)
    async with bootstrap.scheduling(system) as scheduler:
        scheduler.interval = _LOOK_SECONDS
        yield


async def _drift(simulator: Simulator) -> None:
    while True:
        await asyncio.sleep(_INTERVAL.total_seconds() / 2)
        await simulator.tick()
