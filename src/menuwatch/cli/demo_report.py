"""What `menuwatch demo` prints at its end: how much was crawled on each platform, and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menuwatch.catalog import store as catalog
from menuwatch.cli.output import Column, Format, echo, print_detail, print_list
from menuwatch.core.format import money, pluralize
from menuwatch.db import sql
from menuwatch.db.query import fetch_all
from menuwatch.fetch import attempts
from menuwatch.images import store as images
from menuwatch.queue.task_list import TaskFilter, count_tasks
from menuwatch.system import System

_q = sql.load(__package__, "demo.sql")


async def figures(system: System) -> dict[str, Any]:
    """The demo's results, with the keys of `demo --json`."""
    async with system.pool.connection() as conn:
        totals = await catalog.totals(conn)
        counts = await count_tasks(conn, TaskFilter())
        fetched = await attempts.traffic(conn)
        image_counts = await images.counts(conn)
        platforms = await fetch_all(conn, _q.platform_figures, {})
        row = await (await conn.execute(_q.payloads)).fetchone()
    assert row is not None, "a SELECT without GROUP BY gives a row"
    return {
        "stores": sum(one["stores"] for one in platforms),
        "platforms": [one | {"label": system.platforms[one["platform"]].label} for one in platforms],
        "payloads": row[0],
        **totals,
        "blocked_requests": fetched["blocked"],
        "rotations": fetched["rotations"],
        "images": image_counts.stored,
        "tasks": counts,
    }


FIGURES = (
    Column("stores", "stores"),
    Column("payloads archived", "payloads"),
    Column("products", "products"),
    Column("snapshots", "snapshots"),
    Column("price changes", "price_changes"),
    Column("stock changes", "stock_changes"),
    Column("newly out of stock", "out_of_stock"),
    Column("products with an image", "images"),
    Column("blocked requests", "blocked_requests"),
    Column("identity rotations", "rotations"),
    Column("seconds", "seconds"),
)
PLATFORMS = (
    Column("Platform", "label"),
    Column("Stores", "stores", align="right"),
    Column("Products", "products", align="right"),
)
DROPS = (
    Column("Biggest price drops", "name"),
    Column("Store", "store"),
    Column("Before", "price_before", money, align="right"),
    Column("Now", "price_after", money, align="right"),
    Column("", "percent", lambda percent: f"-{percent:g} %", align="right"),
)


async def print_report(system: System, report: dict[str, Any]) -> None:
    """The figures, each platform's stores and products, and the biggest price drops."""
    async with system.pool.connection() as conn:
        drops = await catalog.price_drops(conn, 5)
    echo("")
    print_detail(report, FIGURES)
    echo("")
    print_list(report["platforms"], PLATFORMS, Format.TABLE)
    echo("")
    if drops:
        print_list(drops, DROPS, Format.TABLE)
        echo("")
    echo(_summarize(report["tasks"]))


def _summarize(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How the tasks ended; roles are named only if some tasks did not complete."""
    total = sum(n for by_status in counts.values() for n in by_status.values())
    others = [
        f"{n} {role} {status}"
        for role, by_status in sorted(counts.items())
        for status, n in sorted(by_status.items())
        if status != "completed"
    ]
    return f"{pluralize(total, 'task')}: " + (f"all but {', '.join(others)} completed" if others else "all completed")
