"""Tasks counted without reading all of them: the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from menuwatch.db.pool import Connection, Pool
from menuwatch.queue import counts, store
from menuwatch.queue.model import Role, Status
from menuwatch.queue.task_list import TaskFilter, count_tasks, list_tasks

_ENDED = (
    "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,"
    " max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)"
    " SELECT nextval('task_ids'), at, at, at, at, 1 + n %% 7, n %% 30, 1, 0, 3, 0, %s, 'dutchie', %s, 'w' || n %% 5,"
    " CASE WHEN %s <> 'completed' THEN 'why' END, '{}' FROM generate_series(1, %s) n, (SELECT now() - %s * interval '1 day') t(at)"
)


async def _history(conn: Connection) -> None:
    await conn.execute(
        "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 6) d"
    )
    for role, status, n, days in (
        ("payload_fetch", "completed", 40, 5),
        ("product_refresh", "completed", 30, 5),
        ("payload_fetch", "failed", 3, 3),
        ("payload_fetch", "completed", 20, 2),
        ("payload_fetch", "completed", 10, 0),
        ("payload_fetch", "cancelled", 1, 0),
    ):
        await conn.execute(_ENDED.encode(), (role, status, status, n, days))
    await conn.execute("INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')")


WHOLE = {
    "payload_fetch": {"completed": 70, "failed": 3, "cancelled": 1},
    "product_refresh": {"completed": 30},
    "analytics_refresh": {"pending": 1},
}

FILTERS = (
    TaskFilter(),
    TaskFilter(roles=[Role.PAYLOAD_FETCH]),
    TaskFilter(statuses=[Status.FAILED, Status.COMPLETED]),
    TaskFilter(statuses=[Status.PENDING]),
    TaskFilter(platform="other"),
    TaskFilter(worker_ids=["w1"]),
    TaskFilter(dispensary_id=3, roles=[Role.PAYLOAD_FETCH]),
    TaskFilter(priority_min=10),
)


async def test_the_same_numbers_before_and_after_days_are_counted(pool: Pool) -> None:
    async with pool.connection() as conn:
        await _history(conn)

        async def same() -> Mapping[str, Any]:
            for where in FILTERS:
                found = await counts.count_by_status(conn, where)
                assert found.exact
                assert found.by_role == await count_tasks(conn, where), where
            return (await counts.count_by_status(conn, TaskFilter())).by_role

        assert await same() == WHOLE
        # Those of 6 to 2 days ago; yesterday counts as over only from six o'clock on.
        assert await store.count_days(conn) in (5, 6)
        assert await same() == WHOLE
        assert await store.count_days(conn) == 0
        # They are read from what was counted: what is written into a day that is over is not seen.
        await conn.execute(_ENDED.encode(), ("payload_fetch", "completed", "completed", 9, 5))
        assert (await counts.count_by_status(conn, TaskFilter())).by_role == WHOLE
        await conn.execute("DELETE FROM task_days WHERE day = (now() - interval '5 days')::date")
        more = await same()
        assert more["payload_fetch"]["completed"] == 79
        assert await store.count_days(conn) == 1
        assert await same() == more


async def test_days_that_were_dropped_count_no_more(pool: Pool) -> None:
    async with pool.connection() as conn:
        await _history(conn)
        await store.count_days(conn)
        cursor = await conn.execute("SELECT 'task_history_' || to_char(now() - interval '5 days', 'YYYYMMDD')")
        ((part,),) = await cursor.fetchall()
        await conn.execute(f"ALTER TABLE task_history DETACH PARTITION {part}".encode())
        await conn.execute(f"DROP TABLE {part}".encode())
        found = await counts.count_by_status(conn, TaskFilter())
        assert found.by_role == {
            "payload_fetch": {"completed": 30, "failed": 3, "cancelled": 1},
            "analytics_refresh": {"pending": 1},
        }
        assert (found.total, found.completed) == (35, 30)
        await store.count_days(conn)
        cursor = await conn.execute("SELECT count(*) FROM task_day_counts WHERE n = 40")
        assert await cursor.fetchone() == (0,)


async def test_beyond_a_cost_what_was_completed_is_an_estimate_and_the_rest_is_exact(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "_COST", 0.0)
    async with pool.connection() as conn:
        await _history(conn)
        await conn.execute("ANALYZE task_history")
        found = await counts.count_by_status(conn, TaskFilter(worker_ids=["w1"]))
        assert not found.exact
        exact = await count_tasks(conn, TaskFilter(worker_ids=["w1"]))
        assert found.by_role["payload_fetch"]["failed"] == exact["payload_fetch"]["failed"] == 1
        assert 14 / 3 < found.by_role["payload_fetch"]["completed"] < 14 * 3
        assert (await counts.count_by_status(conn, TaskFilter(worker_ids=["w1"], statuses=[Status.FAILED]))).exact


async def test_the_bound_of_ids_leaves_nobody_out(pool: Pool) -> None:
    async with pool.connection() as conn:
        await _history(conn)
        for days in (7, 4, 2.5, 1, 0):
            cursor = await conn.execute(
                "SELECT coalesce(max(id), 0), task_id_bound(now() - %(days)s * interval '1 day') FROM worker_tasks"
                " WHERE created_at < now() - %(days)s * interval '1 day'",
                {"days": days},
            )
            ((largest, bound),) = await cursor.fetchall()
            assert largest < max(bound, 1)
        cursor = await conn.execute(
            "SELECT task_id_bound(now() - interval '4 days') = min(id) FROM task_history WHERE status = 'failed'"
        )
        assert await cursor.fetchone() == (True,), "and is no larger than it must be"


async def test_tasks_of_one_worker_are_found_on_whatever_days_they_ended(pool: Pool) -> None:
    async with pool.connection() as conn:
        await _history(conn)
        # Somebody who worked on two days alone, one who works today alone, and one who has something in hand.
        some = "SELECT id FROM task_history WHERE {} LIMIT 2"
        moved = f"UPDATE task_history SET worker_id = %s WHERE id = ANY (ARRAY ({some})) RETURNING id"
        of: dict[str, set[int]] = {"nobody": set(), "begun": set()}
        for worker, where in (
            ("once", "completed_at < now() - interval '4 days'"),
            ("once", "completed_at BETWEEN now() - interval '3 days 2 hours' AND now() - interval '2 days 22 hours'"),
            ("new", "completed_at > now() - interval '1 hour'"),
        ):
            found = await (await conn.execute(moved.format(where).encode(), [worker])).fetchall()
            of.setdefault(worker, set()).update(one for (one,) in found)
        assert [len(one) for one in of.values()] == [0, 0, 4, 2]
        (mine,) = await store.claim(conn, "begun", [Role.ANALYTICS_REFRESH], 1)
        of["begun"] = {mine.id}
        for _ in range(2):
            for worker, ids in of.items():
                where = TaskFilter(worker_ids=[worker])
                assert {task.id for task in await list_tasks(conn, where)} == ids, worker
                assert (await counts.count_by_status(conn, where)).total == len(ids), worker
            await store.count_days(conn)
