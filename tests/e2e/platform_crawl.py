"""Crawls of a simulated market on any platform, for tests that compare them with what the market shows."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from psycopg.rows import dict_row

from menuwatch.cli.demo import settle
from menuwatch.platforms.base import Platform
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from menuwatch.sim.process import Simulator
from menuwatch.system import System
from tests.e2e.expected_catalog import assert_catalogue, snapshot_of, snapshots

_ALL: dict[str, dict[str, Any]] = {
    "fair": {},
    "hostile": {
        "forbidden": {"rate": 0.08},
        "rate_limited": {"rate": 0.03, "retry_after": 1},
        "server_error": {"rate": 0.05},
        "html": {"rate": 0.03},
        "truncated": {"rate": 0.05},
        "errors": {"rate": 0.03},
        "empty_page": {"rate": 0.05},
        "clamp": {"rate": 0.3, "per_page": 40},
        "pinned": {"rate": 0.3},
    },
}
MOODS = {name: faults for name, faults in _ALL.items() if faults or "ALL_MOODS" in os.environ}
"""`test_demo_truth` crawls all platforms without faults, too; `make proofs` each of them by itself."""


def with_platform(system: System, adapter: Platform) -> System:
    """The system with that adapter instead of its own one."""
    changed = replace(system)
    vars(changed)["platforms"] = {**system.platforms, adapter.name: adapter}  # a cached property
    return changed


async def query(system: System, text: Any) -> list[dict[str, Any]]:
    async with system.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(text)
        return await cur.fetchall()


async def discover(system: System, platform: str, **where: str) -> dict[str, Any]:
    """Lists a platform's stores, whose first crawls follow; the result of the task."""
    async with system.pool.connection() as conn:
        await tasks.enqueue(conn, [NewTask(role=Role.STORE_DISCOVERY, platform=platform, payload=where)])
    await settle(system)
    found = await query(
        system, "SELECT result FROM worker_tasks WHERE role = 'store_discovery' ORDER BY id DESC LIMIT 1"
    )
    return dict(found[0]["result"])


async def crawl(system: System) -> None:
    """Every store once, each on its platform."""
    rows = await query(system, "SELECT id, platform FROM dispensaries ORDER BY id")
    new = [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=row["id"], platform=row["platform"]) for row in rows]
    async with system.pool.connection() as conn:
        await tasks.enqueue(conn, new)
    await settle(system)


async def ended(system: System) -> set[str]:
    return {row["status"] for row in await query(system, "SELECT DISTINCT status FROM worker_tasks")}


async def assert_history(sim: Simulator, system: System, cycles: int) -> None:
    """Catalogue and snapshots of every store are what the market's expected state says of that many crawls, one at each tick."""
    ticks = {store.slug: list(range(cycles)) for store in sim.market.stores}
    expected, _ = sim.expect(ticks)
    await assert_catalogue(system.pool, expected)
    history = await snapshots(system.pool)
    for store in sim.market.stores:
        shown = [
            {product: snapshot_of(row) for product, row in sim.expected.rows(store.slug, tick).items()}
            for tick in range(cycles)
        ]
        assert history[store.slug] == shown, store.slug
