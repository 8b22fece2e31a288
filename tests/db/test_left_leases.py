"""Leases that a dead worker left behind keep nobody from a host, once its tasks were taken back."""

from __future__ import annotations

from menuwatch.db.pool import Pool
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import all_closed
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role

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
            return all_closed([HOST], await hosts.availability(conn, [HOST])) is not None

        assert await closed(), "one identity tries at a time"
        await conn.execute(
            "UPDATE task_live SET last_heartbeat_at = now() - interval '1 day', claimed_at = now() - interval '1 day'"
        )
        assert await tasks.recover_stale(conn, 1) == 1
        assert not await closed(), "its task was taken back, and whoever claims next may try"


async def test_a_host_is_busy_while_every_active_proxy_is_in_use_on_it(pool: Pool) -> None:
    """Otherwise all waiting tasks would be claimed and put back in turn."""
    async with pool.connection() as conn:
        await hosts.add(conn, HOST, Limits(concurrency=6))
        await conn.execute(
            "INSERT INTO proxies (host, port, protocol) SELECT 'p.invalid', n, 'http' FROM generate_series(1, 3) n"
        )

        async def lease(task: int) -> None:
            await conn.execute("SELECT FROM lease_identity(%s, ARRAY[1, 2, 3], %s, 3600, 1, 1, 0, NULL)", (HOST, task))

        async def is_open() -> tuple[bool, int, int]:
            (availability,) = await hosts.availability(conn, [HOST])
            return availability.is_open, availability.leases, availability.concurrency

        assert await is_open() == (True, 0, 3)
        await lease(101)
        await lease(102)
        assert await is_open() == (True, 2, 3)
        await conn.execute("UPDATE proxies SET is_active = false WHERE id = 1")
        assert await is_open() == (True, 2, 3), "one that was taken out while it is in use takes nobody's place"
        await conn.execute("UPDATE proxies SET is_active = false WHERE id = 3")
        assert await is_open() == (False, 2, 2)
        await conn.execute("UPDATE hosts SET concurrency = 1")
        assert await is_open() == (False, 2, 1)
