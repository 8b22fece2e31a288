"""Leases that a dead worker left behind keep nobody from a host, once its tasks were taken back."""

from __future__ import annotations

from menuwatch.db.pool import Pool
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import all_closed
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import NewTask, Role

HOST = "menus.invalid"


async def test_the_one_identity_that_tries_a_closed_host_dies_and_others_try_in_its_place(pool: Pool) -> None:
    async with pool.connection() as conn:
        await hosts.add(conn, HOST, Limits(concurrency=6))
        await conn.execute(
            "UPDATE hosts SET circuit = 'open', circuit_opened_at = now(), circuit_until = now(), circuit_reason = 'refused'"
        )
        await conn.execute(
            "INSERT INTO proxies (host, port, protocol) SELECT 'p.invalid', n, 'http' FROM generate_series(1, 2) n"
        )
        await tasks.enqueue(conn, [NewTask(role=Role.STORE_DISCOVERY)])
        (claimed,) = await tasks.claim(conn, "dies", None, 1)
        cursor = await conn.execute(
            "SELECT lease, code, probing FROM lease_identity(%s, ARRAY[1, 2], %s, 3600, 1, 1, 0, NULL)",
            (HOST, claimed.id),
        )
        assert [(code, probing) for _, code, probing in await cursor.fetchall()] == [(None, True)]

        async def closed() -> bool:
            return all_closed([HOST], await hosts.outlook(conn, [HOST])) is not None

        assert await closed(), "one identity tries at a time"
        await conn.execute(
            "UPDATE task_live SET last_heartbeat_at = now() - interval '1 day', claimed_at = now() - interval '1 day'"
        )
        assert await tasks.recover_stale(conn, 1) == 1
        assert not await closed(), "its task was taken back, and whoever claims next may try"
