"""Making the figures anew. One at a time, all steps in one transaction: they look at one moment of the database, and what is read
changes with its end, all at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
from psycopg import sql as statements

from menuwatch.analytics.model import DAYS, WINDOW, Refreshed, Step, UnderWay
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool

log = get_logger(__name__)
_q = sql.load(__package__)

_WORK_MEMORY = "64MB"
"""For the sorts of one step; what a refresh may take of the server's memory, about."""

TABLES = (
    "figure_stores",
    "figure_prices",
    "figure_discounts",
    "figure_brands",
    "figure_stock",
    "figure_out_products",
    "figure_days",
)
"""Where the figures lie. What is removed goes the other way round."""

_TEMPORARY = ("attempts", "crawls", "offers", "carried", "times")

_STEPS: tuple[tuple[str, str, str], ...] = (
    ("attempts", "fill_attempts", "attempts"),
    ("crawls", "fill_crawls", "crawls"),
    ("stores", "fill_stores", "figure_stores"),
    ("offers", "fill_offers", "offers"),
    ("prices", "fill_prices", "figure_prices"),
    ("discounts", "fill_discounts", "figure_discounts"),
    ("carried", "fill_carried", "carried"),
    ("brands", "fill_brands", "figure_brands"),
    ("times", "fill_times", "times"),
    ("stock", "fill_stock", "figure_stock"),
    ("out_products", "fill_out_products", "figure_out_products"),
    ("days", "fill_days", "figure_days"),
)
"""Name, statement and the table that it fills, in their order: later ones stand on earlier ones."""


async def refresh(pool: Pool, *, window: timedelta = WINDOW, now: datetime | None = None) -> Refreshed | UnderWay:
    """Makes all figures anew; `window` before `now` (the database's time) is what they look back on.

    Does nothing where another refresh is under way. Whatever goes wrong is raised, after the run was marked as failed: then the
    figures of the run before are still the ones that are read.
    """
    async with pool.connection() as conn:
        if not await _one(conn, _q.take_lock):
            found = await (await conn.execute(_q.running)).fetchone()
            return UnderWay(run_id=found[0] if found else None, started_at=found[1] if found else None)
        try:
            return await _refresh(conn, window, now)
        finally:
            # A connection that broke has lost its lock already.
            if not conn.closed:
                await conn.execute(_q.free_lock)
                await conn.execute("DISCARD TEMP")


async def _refresh(conn: Connection, window: timedelta, now: datetime | None) -> Refreshed:
    await conn.execute(_q.abandon_runs)
    await _remove_old(conn)
    values = {"window": window.total_seconds(), "now": now}
    row = await (await conn.execute(_q.begin_run, values)).fetchone()
    assert row is not None, "an insert returns its row"
    run_id, started_at, since, until = row
    steps: list[Step] = []
    began = time.perf_counter()
    try:
        await _run(conn, run_id, since, until, steps)
    except (Exception, asyncio.CancelledError) as error:
        await _failed(conn, run_id, steps, error)
        raise
    seconds = time.perf_counter() - began
    log.info(
        "the figures are new",
        action="analytics_refreshed",
        run_id=run_id,
        seconds=round(seconds, 2),
        rows={step.step: step.rows for step in steps},
    )
    return Refreshed(
        run_id=run_id,
        started_at=started_at,
        window_from=since,
        window_to=until,
        seconds=seconds,
        steps=tuple(steps),
    )


async def _run(conn: Connection, run_id: int, since: datetime, until: datetime, steps: list[Step]) -> None:
    for name in _TEMPORARY:
        await conn.execute(_q[f"create_{name}"])
        await conn.execute(statements.SQL("TRUNCATE {}").format(statements.Identifier("pg_temp", name)))
    midnight = until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = min(midnight - timedelta(days=DAYS - 1), since)
    async with conn.transaction():
        # With a snapshot for each step, a crawl that is taken in between two of them would be in the states and not in the crawls.
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await conn.execute(f"SET LOCAL work_mem = '{_WORK_MEMORY}'")
        for name, query, table in _STEPS:
            began = time.perf_counter()
            # Attempts reach back as far as the days do; whoever looks at the window alone leaves the earlier ones out.
            first = days if name == "attempts" else since
            values: Mapping[str, Any] = {"run": run_id, "since": first, "until": until, "days": days}
            # Planned for these very tables: what a statement stands on was empty a moment ago.
            written = (await conn.execute(_q[query], _wanted(_q[query], values), prepare=False)).rowcount
            await conn.execute(statements.SQL("ANALYZE {}").format(statements.Identifier(table)))
            steps.append(Step(step=name, seconds=round(time.perf_counter() - began, 3), rows=written))
        await conn.execute(_q.end_run, {"run": run_id, "steps": _told(steps)})


def _wanted(query: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if f"%({name})s" in query}


async def _remove_old(conn: Connection) -> None:
    ids = [row[0] for row in await (await conn.execute(_q.old_runs)).fetchall()]
    if ids:
        for table in reversed(TABLES):
            query = statements.SQL("DELETE FROM {} WHERE run_id = ANY (%s)").format(statements.Identifier(table))
            await conn.execute(query, [ids])
    await conn.execute(_q.prune_runs)


async def _failed(conn: Connection, run_id: int, steps: Sequence[Step], error: BaseException) -> None:
    why = str(error).strip() or type(error).__name__
    log.warning("the figures could not be made anew", action="analytics_failed", run_id=run_id, error=why)
    if conn.closed:
        return
    try:
        await conn.execute(_q.fail_run, {"run": run_id, "steps": _told(steps), "error": why[:2000]})
    except psycopg.Error as second:
        # The next refresh says then that this one went away.
        log.warning("the failure could not be noted", action="analytics_failed", run_id=run_id, error=str(second))


def _told(steps: Sequence[Step]) -> str:
    return msgspec.json.encode([asdict(step) for step in steps]).decode()


async def _one(conn: Connection, query: Any) -> Any:
    row = await (await conn.execute(query)).fetchone()
    assert row is not None, "a function answers with one row"
    return row[0]
