"""Whether anybody can be asked, by what there is work for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Connection, Pool
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.platforms.base import Platform
from menuwatch.queue.model import NETWORK_ROLES, Role
from menuwatch.workers.engine.claimable_roles import Claimable, query_claimable
from tests.host_rows import pause


class _Served:
    def __init__(self, *hosts: str) -> None:
        self.hosts = frozenset(hosts)


OFFLINE = frozenset(Role) - NETWORK_ROLES
ALL = Claimable(frozenset(Role))
PLATFORMS = cast("Mapping[str, Platform]", {"dutchie": _Served("d.example"), "weedmaps": _Served("w.example")})


async def _store(conn: Connection, platform: str, **more: Any) -> None:
    enabled = more.get("crawl_enabled", True)
    await conn.execute(
        "INSERT INTO dispensaries (platform, name, name_raw, slug, crawl_enabled) VALUES (%s, 'S', 'S', %s, %s)",
        [platform, f"s-{platform}-{enabled}", enabled],
    )


async def _close(conn: Connection, host: str) -> None:
    await hosts.add(conn, host, Limits())
    await pause(conn, host, "for the test")


@pytest.fixture
async def conn(pool: Pool) -> Any:
    async with pool.connection() as found:
        await found.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9)")
        yield found


async def test_without_a_proxy_nobody_can_be_asked(conn: Connection) -> None:
    assert await query_claimable(conn, PLATFORMS) == ALL
    await conn.execute("UPDATE proxies SET is_active = false")
    assert await query_claimable(conn, PLATFORMS) == Claimable(
        OFFLINE, "no proxy is active", None, PostponeCode.NO_PROXY
    )


async def test_a_platform_that_nobody_uses_keeps_none_open(conn: Connection) -> None:
    await _store(conn, "dutchie")
    await _store(conn, "weedmaps", crawl_enabled=False)
    assert await query_claimable(conn, PLATFORMS) == ALL
    await _close(conn, "d.example")
    assert await query_claimable(conn, PLATFORMS) == Claimable(
        OFFLINE, "d.example is blocked: for the test", None, PostponeCode.PAUSED
    )
    # Stores that are yet to be found are work as well.
    await conn.execute("INSERT INTO worker_tasks (role, platform) VALUES ('store_discovery', 'weedmaps')")
    assert await query_claimable(conn, PLATFORMS) == ALL
    await _close(conn, "w.example")
    assert (await query_claimable(conn, PLATFORMS)).roles == OFFLINE


async def test_a_host_whose_turns_are_taken_is_looked_at_again_soon(conn: Connection) -> None:
    await _store(conn, "dutchie")
    await hosts.add(conn, "d.example", Limits(rate=0.1, burst=1))
    await conn.execute("SELECT * FROM acquire_slots('d.example', 1, 60, 0)")
    found = await query_claimable(conn, PLATFORMS)
    assert (found.roles, found.code) == (OFFLINE, PostponeCode.BUSY)
    # The next turn is ten seconds away, and a session may wait one second for its first.
    assert found.again is not None
    assert 7 < found.again <= 9, found.reason
