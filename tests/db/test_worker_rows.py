"""What workers say of themselves may be anything: somebody else may have written them. And how long the audit is kept."""

from __future__ import annotations

from datetime import timedelta

from psycopg.types.json import Jsonb

from menuwatch.db.pool import Pool
from menuwatch.ops import overview
from menuwatch.ops.janitor import Janitor
from menuwatch.ops.retention import Retention
from menuwatch.queue import capacity
from menuwatch.workers import pods, registry
from menuwatch.workers import service as workers
from menuwatch.workers.registry import Identity

ODD = ["many", None, True, [4], {}, -3, 10**30, 2.5]
"""None of it is a number of tasks but the last three, which are 1, 1000 and 3 (half is rounded up)."""


async def test_a_heartbeat_that_says_nonsense_breaks_no_page(pool: Pool) -> None:
    async with pool.connection() as conn:
        for index, slots in enumerate(ODD):
            await registry.register(
                conn, Identity(worker_id=f"w{index}", friendly_name="x", host="box", pid=1, pod="p", version="9.9")
            )
            await conn.execute(
                "UPDATE worker_registry SET heartbeat = %s WHERE worker_id = %s",
                [Jsonb({"max_concurrent_tasks": slots}), f"w{index}"],
            )
        rows = await capacity.capacity(conn)
        assert {row.active_workers for row in rows} == {8}
        expected = 5 * 1 + 1 + 1000 + 3
        assert {row.slots for row in await workers.count_by_role(conn)} == {expected}
        assert (await overview.overview(conn)).workers.slots == expected
        (pod,) = await pods.pods(conn)
        assert (len(pod.workers), list(pod.versions)) == (8, ["9.9"])


async def test_the_audit_goes_when_its_time_is_over(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO audit_log (at, actor, actor_kind, via, action)"
            " SELECT now() - d * interval '1 day', 'a', 'cli', 'cli', 'x' || d FROM unnest(ARRAY[1, 29, 31, 5000]) d"
        )
    left = []
    for keep in (None, timedelta(days=30)):
        async with pool.connection() as conn:
            await conn.execute("DELETE FROM maintenance_runs")
        await Janitor(pool, retention=Retention(audit=keep)).step()
        async with pool.connection() as conn:
            found = await (await conn.execute("SELECT action FROM audit_log ORDER BY at")).fetchall()
        left.append([row[0] for row in found])
    assert left == [["x5000", "x31", "x29", "x1"], ["x29", "x1"]]
