"""Whether anybody can be asked, by what there is work for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from menuwatch.db.pool import Connection, Pool
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.operations.openings import closed
from menuwatch.platforms.base import Platform


class _Served:
    def __init__(self, *hosts: str) -> None:
        self.hosts = frozenset(hosts)


PLATFORMS = cast("Mapping[str, Platform]", {"dutchie": _Served("d.example"), "weedmaps": _Served("w.example")})


async def _store(conn: Connection, platform: str, **more: Any) -> None:
    enabled = more.get("crawl_enabled", True)
    await conn.execute(
        "INSERT INTO dispensaries (platform, name, name_raw, slug, crawl_enabled) VALUES (%s, 'S', 'S', %s, %s)",
        [platform, f"s-{platform}-{enabled}", enabled],
    )


async def _close(conn: Connection, host: str) -> None:
    await hosts.add(conn, host, Limits())
    await hosts.pause(conn, host, "for the test")


@pytest.fixture
async def conn(pool: Pool) -> Any:
    async with pool.connection() as found:
        await found.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9)")
        yield found


async def test_without_a_proxy_nobody_can_be_asked(conn: Connection) -> None:
    assert await closed(conn, PLATFORMS) is None
    await conn.execute("UPDATE proxies SET is_active = false")
    assert await closed(conn, PLATFORMS) == ("no proxy is active", None)


async def test_a_platform_that_nobody_uses_keeps_none_open(conn: Connection) -> None:
    await _store(conn, "dutchie")
    await _store(conn, "weedmaps", crawl_enabled=False)
    assert await closed(conn, PLATFORMS) is None
    await _close(conn, "d.example")
    assert await closed(conn, PLATFORMS) == ("d.example is not asked: for the test", None)
    # Stores that are yet to be found are work as well.
    await conn.execute("INSERT INTO worker_tasks (role, platform) VALUES ('store_discovery', 'weedmaps')")
    assert await closed(conn, PLATFORMS) is None
    await _close(conn, "w.example")
    assert await closed(conn, PLATFORMS) is not None


async def test_a_host_whose_turns_are_taken_is_looked_at_again_soon(conn: Connection) -> None:
    await _store(conn, "dutchie")
    await hosts.add(conn, "d.example", Limits(rate=0.1, burst=1))
    await conn.execute("SELECT * FROM take_slots('d.example', 1, 60, 0)")
    found = await closed(conn, PLATFORMS)
    assert found is not None
    reason, again = found
    # The next turn is ten seconds away, and a session may wait one second for its first.
    assert again is not None
    assert 7 < again <= 9, reason
