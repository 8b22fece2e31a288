"""What a platform's robots.txt does to tasks: forbidden ones fail and say why, and once it can be read again, work goes on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from menuwatch import bootstrap
from menuwatch.cli.demo import market
from menuwatch.queue.model import NewTask, Role
from menuwatch.system import System
from tests.workers.waiting import look, put, until

DISCOVERY = NewTask(role=Role.STORE_DISCOVERY, platform="dutchie", unique=False)


async def run(system: System, *, becomes: str) -> str:
    """A discovery, and what it says once it has become that."""
    (task_id,) = await put(system.pool, DISCOVERY)

    async def so() -> bool:
        task = await look(system.pool, task_id)
        return task.status == becomes and (becomes != "pending" or task.error_message is not None)

    async with bootstrap.run_worker(system):
        await until(so, seconds=30)
    task = await look(system.pool, task_id)
    assert task.retry_count == 0
    return task.error_message or ""


async def test_forbidden_unknown_ignored(home: Path) -> None:
    async with market(home, store_count=1, product_count=20, seed=3) as (sim, system):
        host = sim.base_url.removeprefix("http://")
        await sim.robots("", status=503)
        said = await run(system, becomes="pending")
        assert f"requests to {host} are blocked: its robots.txt could not be read (HTTP 503)" in said
        assert {arrival.path for arrival in await sim.arrivals()} == {"/robots.txt"}

        await sim.robots("User-agent: *\nDisallow: /api-3/\n")
        async with system.pool.connection() as conn:
            await conn.execute("UPDATE hosts SET robots_due_at = NULL")
        said = await run(system, becomes="failed")
        assert said == (
            f"{host} forbids /api-3/graphql to crawlers: 'Disallow: /api-3/' in its robots.txt. "
            "DUTCHIE_ROBOTS=ignore overrides this and requires the site's permission"
        )
        before = await sim.arrivals()
        assert {arrival.path for arrival in before} == {"/robots.txt"}

        permitted = dataclasses.replace(system, settings=dataclasses.replace(system.settings, dutchie_robots="ignore"))
        await run(permitted, becomes="completed")
        after = await sim.arrivals(len(before))
        assert "/robots.txt" not in {arrival.path for arrival in after}
        assert after
