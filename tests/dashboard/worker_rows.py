"""Workers to look at, as values and as rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from menuwatch.db.pool import Pool
from menuwatch.workers.pods import PodStatus, State, WorkerStatus

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def worker(name: str, **more: Any) -> WorkerStatus:
    """A worker at work."""
    values: dict[str, Any] = {
        "worker_id": name.lower(),
        "name": name,
        "pod": "Xylos",
        "host": "h",
        "pid": None,
        "roles": None,
        "state": "active",
        "started_at": NOW - timedelta(hours=1),
        "last_heartbeat_at": NOW,
        "silent_seconds": 0.0,
        "task_ids": [],
        "slots": 3,
        "cpu": 0.04,
        "memory": 0.06,
        "machine_cpu": 0.97,
        "machine_memory": 0.5,
        "rss_mb": 120.0,
        "memory_total_mb": 2000.0,
        "why": None,
        "paused_roles": [],
        "pending_commands": [],
        **more,
    }
    return WorkerStatus(**values)


def pod(name: str, states: Sequence[State] = ("active",) * 5, **more: Any) -> PodStatus:
    """A pod with a worker in each of these states."""
    return PodStatus(
        name=name, workers=[worker(f"{name}-{n}", pod=name, state=state, **more) for n, state in enumerate(states)]
    )


async def enter(
    pool: Pool, worker_id: str, *, pod: str | None = "Xylos", status: str = "active", silent: float = 0.0, **beat: Any
) -> None:
    """A worker in the registry, whose last sign was so many seconds ago."""
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, status, last_heartbeat_at, heartbeat) "
            "VALUES (%s, %s, %s, 'box', 7, %s, now() - %s * interval '1 second', %s)",
            [worker_id, worker_id.title(), pod, status, silent, Jsonb(beat)],
        )


async def hold(pool: Pool, worker_id: str, store: int | None = None) -> int:
    """A task that it has in hand; returns its number."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "INSERT INTO task_live (role, dispensary_id, state, worker_id, claimed_at, started_at, last_heartbeat_at, attempt) "
            "VALUES ('analytics_refresh', %s, 'a', %s, now(), now(), now(), 1) RETURNING id",
            [store, worker_id],
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def sent_commands(pool: Pool) -> list[tuple[str, str, str | None]]:
    """Every command that was given: to whom, what, by whom."""
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT worker_id, command, created_by FROM worker_commands ORDER BY worker_id, id")
        return await cursor.fetchall()
