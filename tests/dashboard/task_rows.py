"""Tasks for tests of the dashboard, put in as the queue's own functions and tables do."""

from __future__ import annotations

from typing import Any

from menuwatch.db.pool import Pool

_OVER = """
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,
                          max_retries, postpone_count, role, platform, status, worker_id, error_message, payload, result)
VALUES (nextval('task_ids'), now() - interval '20 minutes', now() - interval '10 minutes', now() - interval '10 minutes',
        now() - interval '5 minutes', %(store)s, 0, 1, 0, 3, 0, %(role)s, 'dutchie', %(status)s, 'w-1', %(error)s,
        %(payload)s::jsonb, %(result)s::jsonb)
RETURNING id
"""


async def one(pool: Pool, statement: str, values: Any = None) -> Any:
    """The first value that a statement answers with."""
    async with pool.connection() as conn:
        row = await (await conn.execute(statement, values)).fetchone()  # type: ignore[arg-type]
    return None if row is None else row[0]


async def store(pool: Pool, slug: str = "green-leaf", name: str = "Green Leaf") -> int:
    """A store that can be crawled."""
    found: int = await one(
        pool,
        "INSERT INTO dispensaries (name, name_raw, slug, platform, platform_dispensary_id, state) "
        "VALUES (%(name)s, %(name)s, %(slug)s, 'dutchie', md5(%(slug)s), 'AZ') RETURNING id",
        {"name": name, "slug": slug},
    )
    return found


async def waiting(pool: Pool, role: str = "analytics_refresh", of: int | None = None, **more: Any) -> int:
    """A task that waits."""
    values = {"role": role, "store": of, "priority": 0, "payload": "{}", "due": None, **more}
    found: int = await one(
        pool,
        "INSERT INTO worker_tasks (role, dispensary_id, priority, payload, scheduled_for) "
        "VALUES (%(role)s, %(store)s, %(priority)s, %(payload)s::jsonb, %(due)s::timestamptz) RETURNING id",
        values,
    )
    return found


async def over(
    pool: Pool,
    status: str = "failed",
    error: str | None = "it broke",
    *,
    of: int | None = None,
    role: str = "payload_fetch",
    payload: str = "{}",
    result: str | None = None,
) -> int:
    """A task that is over."""
    async with pool.connection() as conn:  # it ended minutes ago, maybe yesterday
        await conn.execute("SELECT ensure_task_history_partition(now() - interval '1 day')")
    reason = None if status == "completed" else error
    values = {"store": of, "role": role, "status": status, "error": reason, "payload": payload, "result": result}
    found: int = await one(pool, _OVER, values)
    return found


async def claimed(pool: Pool, worker: str = "w-1") -> int:
    """The next task, in the hands of a worker."""
    found: int = await one(pool, "SELECT id FROM claim_task(NULL, %s)", [worker])
    return found
