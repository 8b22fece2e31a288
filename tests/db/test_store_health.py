"""How stores are crawled, by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from menuwatch.core.errors import NotFound
from menuwatch.db.pool import Pool
from menuwatch.stores import service as stores
from menuwatch.stores.service import LAST, NEVER, Freshness, StoreFilter

_ENDED = (
    "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,"
    " max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)"
    " SELECT nextval('task_ids'), at, at, at, at, %s, 0, 1, 0, 3, 0, %s, 'dutchie', %s, 'w', nullif(%s, ''), '{}'"
    " FROM (SELECT now() - %s * interval '1 hour') t(at)"
)


async def _stores(pool: Pool) -> dict[str, int]:
    """One store of each freshness by its name; all are crawled every four hours."""
    made = {}
    async with pool.connection() as conn:
        for name, hours, enabled, platform_id in (
            ("fresh", 1.0, True, "a"),
            ("late", 5.5, True, "b"),
            ("stale", 9.0, True, "c"),
            ("never", None, True, "d"),
            ("off", 1.0, False, "e"),
            ("unresolved", None, True, None),
        ):
            cursor = await conn.execute(
                "INSERT INTO dispensaries (name, name_raw, slug, state, crawl_enabled, platform_dispensary_id, last_crawled_at)"
                " VALUES (%s, %s, %s, 'AZ', %s, %s, now() - %s * interval '1 hour') RETURNING id",
                (name, name, name, enabled, platform_id, hours),
            )
            made[name] = (await cursor.fetchone() or [0])[0]
        await conn.execute("UPDATE dispensaries SET state = 'NV' WHERE name = 'stale'")
        await conn.execute(
            "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 2) d"
        )
    return made


async def test_the_longest_due_come_first_and_pages_join(pool: Pool) -> None:
    await _stores(pool)
    order = ["never", "stale", "late", "fresh", "off", "unresolved"]
    async with pool.connection() as conn:
        whole = await stores.list_health(conn, StoreFilter())
        assert [one.name for one in whole] == order
        assert [str(one.freshness) for one in whole] == order
        found = []
        after = None
        while part := await stores.list_health(conn, StoreFilter(), after=after, limit=1):
            found += [one.name for one in part]
            after = (part[-1].due_at, part[-1].id)
        assert found == order
        assert (whole[0].due_at, whole[4].due_at, whole[5].due_at) == (NEVER, LAST, LAST)
        assert whole[3].last_crawled_at is not None
        assert whole[3].due_at == whole[3].next_at == whole[3].last_crawled_at + timedelta(hours=4)
        for where, expected in (
            (StoreFilter(states=["NV"]), ["stale"]),
            (StoreFilter(freshness=[Freshness.LATE, Freshness.OFF]), ["late", "off"]),
            (StoreFilter(q="RES"), ["fresh", "unresolved"]),
            (StoreFilter(platform="other"), []),
            (StoreFilter(crawl_enabled=False), ["off"]),
        ):
            assert [store.name for store in await stores.list_health(conn, where)] == expected
            assert {store.name for store in await stores.list_stores(conn, where)} == set(expected)
        assert await stores.count_by_freshness(conn) == {
            "AZ": dict.fromkeys(
                (Freshness.FRESH, Freshness.LATE, Freshness.NEVER, Freshness.OFF, Freshness.UNRESOLVED), 1
            ),
            "NV": {Freshness.STALE: 1},
        }


async def test_streaks_and_what_comes_next(pool: Pool) -> None:
    made = await _stores(pool)
    async with pool.connection() as conn:
        for hours, role, status in (
            (40, "payload_fetch", "completed"),
            (30, "product_discovery", "failed"),
            (20, "payload_fetch", "completed"),
            (10, "payload_fetch", "completed"),
            (9, "payload_fetch", "cancelled"),
            (8, "product_refresh", "failed"),
        ):
            reason = "" if status == "completed" else "why"
            await conn.execute(_ENDED.encode(), (made["fresh"], role, status, reason, hours))
        for hours in (3, 2):
            await conn.execute(_ENDED.encode(), (made["stale"], "payload_fetch", "failed", "why", hours))
        await conn.execute(
            "INSERT INTO worker_tasks (role, dispensary_id, scheduled_for) VALUES ('payload_fetch', %s, now() + interval '1 hour'),"
            " ('product_refresh', %s, now())",
            (made["late"], made["never"]),
        )
        await conn.execute("SELECT claim_tasks(NULL, 'w', 5)")
        fresh = await stores.get_health(conn, made["fresh"])
        assert (fresh.outcomes, fresh.success_streak, fresh.consecutive_failures) == ([True, True, False, True], 2, 0)
        stale = await stores.get_health(conn, made["stale"])
        assert (stale.success_streak, stale.consecutive_failures) == (0, 2)
        late = await stores.get_health(conn, made["late"])
        assert late.waiting_task_id is not None
        assert late.next_at is not None
        assert late.next_at > late.due_at
        never = await stores.get_health(conn, made["never"])
        assert never.active_task_id is not None
        assert (never.next_at, never.outcomes, never.success_streak) == (None, [], 0)
        with pytest.raises(NotFound, match="store 99 does not exist"):
            await stores.get_health(conn, 99)
