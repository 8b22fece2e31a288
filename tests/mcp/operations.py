"""The state of a system at work, for questions of operators."""

from __future__ import annotations

from collections.abc import Sequence

from menuwatch.db.pool import Pool
from tests.host_rows import pause

WAITING, FAILED = 3, 2
"""Pending and failed tasks."""

_FAILED = """
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,
                          max_retries, postpone_count, role, status, platform, worker_id, error_message, payload)
SELECT nextval('task_ids'), t.begun, t.begun, t.begun, t.begun + interval '10 minutes', store, 0, 1, 3, 3, 0, 'payload_fetch',
       'failed', 'dutchie', 'worker-a', 'HTTP 500 from menus.example', '{}'
  FROM unnest(%s::integer[]) store, (SELECT now() - interval '1 hour' AS begun) t"""
_WAITING = """
INSERT INTO worker_tasks (role, dispensary_id, platform) SELECT 'payload_fetch', store, 'dutchie' FROM unnest(%s::integer[]) store"""
_WORKERS = """
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at)
VALUES ('worker-a', 'Xylos', 'Aethelgard', 'machine-1', 'stopped', now() - interval '1 day'),
       ('worker-b', 'Kryll', 'Aethelgard', 'machine-1', 'active', now())"""


async def put_in(pool: Pool, store_ids: Sequence[int]) -> None:
    """Pending and failed tasks, a live and a stopped worker, and a paused host."""
    async with pool.connection() as conn:
        await conn.execute(_WAITING, [list(store_ids[:WAITING])])
        await conn.execute("SELECT ensure_task_history_partition(now() - interval '1 hour')")
        await conn.execute(_FAILED, [list(store_ids[-FAILED:])])
        await conn.execute(_WORKERS)
        await pause(conn, "menus.example", "for the proof")


async def beat(pool: Pool) -> None:
    """A heartbeat of the live worker: it counts as silent after two minutes."""
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_registry SET last_heartbeat_at = now() WHERE worker_id = 'worker-b'")
