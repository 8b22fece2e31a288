"""A crawl with refusals and a storm: what the worker counted, what the story says and what the host shows agree with what happened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from menuwatch import bootstrap
from menuwatch.cli.demo import crawl_all, first_crawl, market
from menuwatch.db.pool import Connection
from menuwatch.hosts import service as hosts
from menuwatch.queue.explain.service import explain
from menuwatch.queue.trace import trace_task
from menuwatch.system import System


async def _query(conn: Connection, query: str) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query.encode())
        return await cur.fetchall()


def _asked(system: System) -> dict[str, frozenset[str]]:
    return {name: platform.hosts for name, platform in system.platforms.items()}


async def test_from_refusals_to_a_storm(home: Path) -> None:
    faults = {"forbidden": {"rate": 0.3, "lasts": 2}}
    async with market(home, store_count=3, product_count=20, seed=3, faults=faults) as (sim, system):
        async with bootstrap.run_worker(system) as worker:
            await first_crawl(system)
            await sim.inject_faults({"rate_limited": {"rate": 1.0, "retry_after": 3000}})
            waiting = asyncio.create_task(crawl_all(system))
            async with system.pool.connection() as conn, asyncio.timeout(20):
                while not await _query(conn, "SELECT FROM hosts WHERE cooldown_until > now()"):
                    await asyncio.sleep(0.02)
                while await _query(conn, "SELECT FROM worker_tasks WHERE status IN ('claimed', 'running')"):
                    await asyncio.sleep(0.02)
            waiting.cancel()
            async with system.pool.connection() as conn:
                (task,) = await _query(
                    conn, "SELECT min(id) AS id FROM worker_tasks WHERE status = 'pending' AND attempt > 0"
                )
                why = await explain(conn, task["id"])
                trace = await trace_task(conn, task["id"])
                ready = await _query(conn, "SELECT id FROM worker_tasks WHERE status = 'pending' AND attempt = 0")
                others = [await explain(conn, one["id"]) for one in ready]
                (name,) = [row["host"] for row in await _query(conn, "SELECT host FROM hosts")]
                host = await hosts.detail(conn, name)
                totals = await _query(conn, "SELECT host, verdict, requests FROM fetch_totals")
                refused = await _query(
                    conn,
                    "SELECT DISTINCT task_id FROM fetch_attempts WHERE verdict = 'blocked' AND task_id IS NOT NULL",
                )
                stories = [await trace_task(conn, row["task_id"]) for row in refused]
        assert worker.measures.requests == {(row["host"], row["verdict"]): row["requests"] for row in totals}
        assert worker.measures.turns.counts[-1] == 0
        figures = {family.name: family for family in worker.measures.collect()}
        (leases,) = figures["menuwatch_worker_leases"].samples
        assert leases.value == 0, "all were given back"

        assert (why.code, why.details["host"], why.details["host_code"]) == ("host_closed", name, "cooling")
        assert why.seconds is not None
        assert 2900 < why.seconds <= 3000
        assert trace.requests_total == len(trace.requests)
        assert {one.verdict for one in trace.requests} <= {"rate_limited"}
        assert {one.code for one in others} <= {"host_closed"}
        assert (host.host.state, host.host.reason) == ("cooling", "HTTP 429, wait 3000 s")
        assert {one.verdict: (one.total, one.day) for one in host.verdicts} == {
            row["verdict"]: (row["requests"], row["requests"]) for row in totals
        }
        assert host.events[0].kind == "cooldown"
        assert stories, "some were refused"
        assert sum(one.rotations for one in stories) > 0
        for one in stories:
            assert one.rotations == sum(request.rotated for request in one.requests) <= one.troubles
            assert {request.proxy is not None for request in one.requests} == {True}
