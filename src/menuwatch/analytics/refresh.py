"""Recomputes the reports. One refresh at a time, all steps in one transaction: they read one snapshot of the database, and all reports
change when it commits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import psycopg
from psycopg import sql as statements

from menuwatch.analytics import price_index, special_checks
from menuwatch.analytics.products import IMPLAUSIBLE
from menuwatch.catalog.taxonomy import unit_price
from menuwatch.catalog.taxonomy.categories import WEIGHED
from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool

WINDOW = timedelta(days=7)
"""Default period of durations such as coverage and time out of stock (ANALYTICS_WINDOW_DAYS)."""

DAYS = 30
"""Days for which new and gone products are counted; the window's length if that is more."""

LEAST_OPTIONS = 10
"""Options of a category and currency from which on a price per gram can be implausible: the median of fewer says little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a refresh: how long it took, in seconds, and how many rows it wrote."""

    step: str
    seconds: float
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """A refresh whose reports are published."""

    run_id: int
    started_at: datetime
    window_from: datetime
    window_to: datetime
    seconds: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRunning:
    """Another refresh is running, since `started_at`; None if it has only just begun or ended."""

    run_id: int | None
    started_at: datetime | None


log = get_logger(__name__)
_q = sql.load(__package__)
_statements = {**_q, **sql.load(__package__, "canonical.sql"), **sql.load(__package__, "bargains.sql")}

_WORK_MEMORY = "64MB"
"""Memory for the sorts of one step; about what a refresh takes of the server's memory."""

TABLES = (
    "analytics_store_stats",
    "analytics_price_stats",
    "analytics_discount_stats",
    "analytics_brand_stats",
    "analytics_category_stats",
    "analytics_stock_stats",
    "analytics_out_product_stats",
    "analytics_daily_stats",
    "analytics_distribution_stats",
    "analytics_brand_distribution_stats",
    "analytics_dispersion_stats",
    "analytics_cheapest_stats",
    "analytics_special_stats",
    "analytics_special_group_stats",
    "analytics_shrinkflation_stats",
)
"""Tables of the reports. Rows are deleted in reverse order."""

_TEMPORARY = (
    "attempts", "crawls", "options", "listings", "carried", "times", "places", "carriers", "sellers", "sizes", "priced",
    "pack_sizes", "packs",
)  # fmt: skip

_STEPS: tuple[tuple[str, str, str], ...] = (
    ("attempts", "fill_attempts", "attempts"),
    ("crawls", "fill_crawls", "crawls"),
    ("stores", "fill_stores", "analytics_store_stats"),
    ("options", "fill_options", "options"),
    ("listings", "fill_listings", "listings"),
    ("prices", "fill_prices", "analytics_price_stats"),
    ("discounts", "fill_discounts", "analytics_discount_stats"),
    ("carried", "fill_carried", "carried"),
    ("brands", "fill_brands", "analytics_brand_stats"),
    ("categories", "fill_categories", "analytics_category_stats"),
    ("times", "fill_times", "times"),
    ("stock", "fill_stock", "analytics_stock_stats"),
    ("out_products", "fill_out_products", "analytics_out_product_stats"),
    ("days", "fill_days", "analytics_daily_stats"),
    ("places", "fill_places", "places"),
    ("carriers", "fill_carriers", "carriers"),
    ("sellers", "fill_sellers", "sellers"),
    ("distribution", "fill_distribution", "analytics_distribution_stats"),
    ("brand_distribution", "fill_brand_distribution", "analytics_brand_distribution_stats"),
    ("sizes", "fill_sizes", "sizes"),
    ("priced", "fill_priced", "priced"),
    ("dispersion", "fill_dispersion", "analytics_dispersion_stats"),
    ("cheapest", "fill_cheapest", "analytics_cheapest_stats"),
    ("specials", "fill_specials", "analytics_special_stats"),
    ("special_groups", "fill_special_groups", "analytics_special_group_stats"),
    ("gone_options", "note_gone_options", "gone_options"),
    ("packs", "fill_packs", "packs"),
    ("pack_sizes", "fill_pack_sizes", "pack_sizes"),
    ("shrinkflation", "fill_shrinkflation", "analytics_shrinkflation_stats"),
    ("clear_market_days", "clear_market_days", "market_days"),
    ("market_days", "fill_market_days", "market_days"),
    ("clear_brand_days", "clear_brand_days", "brand_days"),
    ("brand_days", "fill_brand_days", "brand_days"),
)
"""Name, statement and target table of each step, in order: later steps read earlier ones."""


async def refresh(
    pool: Pool, *, window: timedelta = WINDOW, now: datetime | None = None
) -> RefreshResult | RefreshRunning:
    """Recomputes all reports for the `window` before `now` (the database's time), then computes new days of the price index.

    Does nothing while another refresh runs. An error is raised after the run was marked as failed; the reports of the previous run
    stay published.
    """
    async with pool.connection() as conn:
        if not await _fetch_value(conn, _q.take_lock):
            run = await (await conn.execute(_q.running)).fetchone()
            return RefreshRunning(run_id=run[0] if run else None, started_at=run[1] if run else None)
        try:
            return await _refresh(conn, window, now)
        finally:
            # A broken connection has lost its lock already.
            if not conn.closed:
                await conn.execute(_q.free_lock)
                await conn.execute("DISCARD TEMP")


async def _refresh(conn: Connection, window: timedelta, now: datetime | None) -> RefreshResult:
    await conn.execute(_q.abandon_runs)
    await _remove_old(conn)
    values = {"window": window.total_seconds(), "now": now}
    row = await (await conn.execute(_q.begin_run, values)).fetchone()
    assert row is not None, "an insert returns its row"
    run_id, started_at, since, until = row
    steps: list[Step] = []
    began = time.perf_counter()
    try:
        steps.append(await _check_specials(conn, until))
        await _run(conn, run_id, since, until, steps)
    except (Exception, asyncio.CancelledError) as error:
        await _record_failure(conn, run_id, steps, error)
        raise
    steps.append(await _compute_price_index(conn, until))
    seconds = time.perf_counter() - began
    log.info(
        "analytics refreshed",
        action="analytics_refreshed",
        run_id=run_id,
        seconds=round(seconds, 2),
        rows={step.step: step.rows for step in steps},
    )
    return RefreshResult(
        run_id=run_id,
        started_at=started_at,
        window_from=since,
        window_to=until,
        seconds=seconds,
        steps=tuple(steps),
    )


async def _run(conn: Connection, run_id: int, since: datetime, until: datetime, steps: list[Step]) -> None:
    for name in _TEMPORARY:
        await conn.execute(_statements[f"create_{name}"])
        await conn.execute(statements.SQL("TRUNCATE {}").format(statements.Identifier("pg_temp", name)))
    midnight = until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = min(midnight - timedelta(days=DAYS - 1), since)
    async with conn.transaction():
        # With a snapshot per step, a crawl that commits between two steps would be in the states and not in the crawls.
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await conn.execute(f"SET LOCAL work_mem = '{_WORK_MEMORY}'")
        for name, query, table in _STEPS:
            began = time.perf_counter()
            # Attempts reach back as far as the days do; statements on the window alone exclude the earlier ones.
            first = days if name == "attempts" else since
            values: dict[str, Any] = {"run": run_id, "since": first, "until": until, "days": days}
            values["implausible"] = IMPLAUSIBLE
            if name == "prices":
                values |= {"factor": unit_price.IMPLAUSIBLE, "weighed": sorted(WEIGHED), "least": LEAST_OPTIONS}
            if name == "sizes":
                values |= await _sizes(conn)
            if name == "pack_sizes":
                values |= await _pack_sizes(conn)
            # Planned with the current tables: the ones that a statement reads were empty until now.
            written = (await conn.execute(_statements[query], values, prepare=False)).rowcount
            await conn.execute(statements.SQL("ANALYZE {}").format(statements.Identifier(table)))
            steps.append(Step(step=name, seconds=round(time.perf_counter() - began, 3), rows=written))
        await conn.execute(_statements["prune_gone_options"], {"until": until})
        await conn.execute(_q.end_run, {"run": run_id, "steps": _encode_steps(steps)})


async def _check_specials(conn: Connection, until: datetime) -> Step:
    """Before the reports, which show the checks; in transactions of its own, since it may take a minute."""
    began = time.perf_counter()
    checked = await special_checks.check_specials(conn, until)
    return Step(step="special_checks", seconds=round(time.perf_counter() - began, 3), rows=checked)


async def _compute_price_index(conn: Connection, until: datetime) -> Step:
    """After the reports, which it needs nothing of: an error here fails the task, and leaves them published."""
    began = time.perf_counter()
    days = await price_index.compute(conn, until)
    return Step(step="price_index", seconds=round(time.perf_counter() - began, 3), rows=days)


_SIZE_FIELDS = {"g": "weight_g", "m": "content_mg", "p": "pieces", "o": "option"}


async def _sizes(conn: Connection) -> dict[str, list[str]]:
    """The size of each kind of option that is on offer; those without one are left out: they are compared with nothing."""
    known = await _read_sizes(conn, _statements["size_keys"])
    return {"keys": list(known), "sizes": list(known.values())}


_UNITS = {"g": "g", "mg": "mg", "piece": "pieces", "pieces": "pieces"}


async def _pack_sizes(conn: Connection) -> dict[str, list[Any]]:
    """The sizes that are amounts, with their units, of what is or was on a menu."""
    found = {}
    for key, size in (await _read_sizes(conn, _statements["pack_size_keys"])).items():
        amount, _, unit = size.partition(" ")
        try:
            number = Decimal(amount)
        except InvalidOperation:
            continue
        if unit in _UNITS and number > 0:
            found[key] = (size, _UNITS[unit], number)
    sizes, units, amounts = zip(*found.values(), strict=True) if found else ((), (), ())
    return {"keys": list(found), "sizes": list(sizes), "units": list(units), "amounts": list(amounts)}


async def _read_sizes(conn: Connection, query: Any) -> dict[str, str]:
    """The size of each key that has one."""
    keys = [row[0] for row in await (await conn.execute(query)).fetchall()]
    sizes = {key: size_of({_SIZE_FIELDS[key[0]]: int(key[1:]) if key[0] == "p" else key[1:]}) for key in keys}
    return {key: size for key, size in sizes.items() if size is not None}


async def _remove_old(conn: Connection) -> None:
    ids = [row[0] for row in await (await conn.execute(_q.old_runs)).fetchall()]
    if ids:
        for table in reversed(TABLES):
            query = statements.SQL("DELETE FROM {} WHERE run_id = ANY (%s)").format(statements.Identifier(table))
            await conn.execute(query, [ids])
    await conn.execute(_q.prune_runs)


async def _record_failure(conn: Connection, run_id: int, steps: Sequence[Step], error: BaseException) -> None:
    why = str(error).strip() or type(error).__name__
    log.warning("analytics refresh failed", action="analytics_failed", run_id=run_id, error=why)
    if conn.closed:
        return
    try:
        await conn.execute(_q.fail_run, {"run": run_id, "steps": _encode_steps(steps), "error": why[:2000]})
    except psycopg.Error as second:
        # The next refresh then marks this one as aborted.
        log.warning(
            "recording the analytics failure failed", action="analytics_failed", run_id=run_id, error=str(second)
        )


def _encode_steps(steps: Sequence[Step]) -> str:
    return msgspec.json.encode([asdict(step) for step in steps]).decode()


async def _fetch_value(conn: Connection, query: Any) -> Any:
    row = await (await conn.execute(query)).fetchone()
    assert row is not None, "a function answers with one row"
    return row[0]
