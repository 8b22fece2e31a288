"""What a real installation has after weeks, and a market that was crawled three times has not: pods at work, tasks that failed, a
payload in quarantine, alerts that fired."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import msgspec

from menuwatch import bootstrap
from menuwatch.cli import demo
from menuwatch.db.pool import Connection
from menuwatch.images import store as images
from menuwatch.sim.process import Simulator
from menuwatch.system import System
from menuwatch.workers import logs
from menuwatch.workers.logs import NewLine
from tests.dashboard.crawl_rows import half_done

_PICTURES = 30
"""So many are downloaded: drawing all that the market has takes longer than crawling it."""
_LONG_NAME = "The Extraordinarily Long-Named Neighbourhood Dispensary & Wellness Cooperative of North Phoenix, Inc."
PODS = ("Aethelgard", "Xylos", "Kryll")
_ERRORS = (
    "dutchie answered 502 to page 3 of 9",
    "dutchie answered 502 to page 7 of 11",
    "store 62f1 is not known to dutchie",
    "the answer ended after 48,112 bytes of 190,004",
)


async def crawl(simulator: Simulator, system: System, cycles: int) -> None:
    """What the demo does, with fewer pictures: finds the stores of a market, crawls them while it changes, downloads some pictures."""
    async with bootstrap.run_worker(system):
        await demo.first_crawl(system, None, simulator)
        for _ in range(cycles - 1):
            await simulator.tick()
            await demo.crawl_all(system)
        async with bootstrap.run_image_downloads(system, at_once=4), asyncio.timeout(60):
            while True:
                async with system.pool.connection() as conn:
                    counts = await images.counts(conn)
                if counts.stored >= _PICTURES or not counts.queued + counts.waiting:
                    return
                await asyncio.sleep(0.05)


_WORKER = """
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, status, started_at, last_heartbeat_at, heartbeat)
VALUES (%s, %s, %s, %s, %s, 'active', now() - interval '3 hours', now() + interval '1 hour', %s::jsonb)
"""
_AT_WORK = """
INSERT INTO task_live (role, dispensary_id, priority, state, worker_id, claimed_at, started_at, last_heartbeat_at, attempt)
VALUES ('payload_fetch', %s, 10, 'a', %s, now() - interval '40 seconds', now() - interval '38 seconds', now() + interval '1 hour', 1)
"""
_FAILED = """
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,
                          max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)
VALUES (nextval('task_ids'), now() - interval '50 minutes', now() - interval '49 minutes', now() - interval '49 minutes',
        now() - %s * interval '1 minute', %s, 0, 4, 3, 3, 0, 'payload_fetch', 'dutchie', 'failed', %s, %s, '{}')
"""
_TRACE = """Traceback (most recent call last):
  File "menuwatch/pipeline/payload_fetch.py", line 88, in fetch
    page = await session.get(url, params={"offset": 200, "limit": 100, "includeEnterpriseSpecials": False, "pricingType": "rec"})
  File "menuwatch/platforms/retry.py", line 71, in with_retries
    raise problem
menuwatch.core.errors.Transient: dutchie answered 502 to page 3 of 9"""


async def _write_log(conn: Connection, worker_id: str, task_id: int | None, ended: datetime) -> None:
    """A worker's log, of an attempt that failed if it had one."""
    first, of = ended - timedelta(seconds=8), {"role": "payload_fetch", "dispensary_id": 45}
    lines: list[tuple[str, str, str, dict[str, object]]] = [
        ("info", "task_claimed", "Claimed task (payload_fetch) for dispensary 45", of),
        (
            "info",
            "fetch_attempt",
            "request failed",
            {"host": "dutchie.com", "proxy_id": 7, "verdict": "server_error", "reason": "HTTP 502: <b>Bad gateway</b>"},
        ),
        ("error", "task_error", "handler raised an exception", {**of, "exception": _TRACE}),
        ("warning", "task_failed", "task failed", {"status": "failed", "ran_ms": 812.4, "reason": _ERRORS[0]}),
    ]
    started = NewLine(at=first, level="info", action="worker_started", message="worker started")
    dropped = NewLine(
        at=ended - timedelta(seconds=1),
        level="warning",
        action="log_lines_dropped",
        message="1,200 log lines dropped",
        dropped=1200,
        dropped_since=first,
    )
    about = [
        NewLine(
            at=first + timedelta(seconds=n),
            level=level,
            action=action,
            message=message,
            task_id=task_id,
            attempt=4,
            details=_json(details),
        )
        for n, (level, action, message, details) in enumerate(lines, 1)
        if task_id is not None
    ]
    await logs.insert(conn, worker_id, [started, *about, dropped])


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def furnish(system: System) -> None:
    """Writes it, by SQL: what the screens read, not what they call."""
    # Fetched by a service that this server does not have, so nothing moves in it.
    await half_done(system.pool)
    async with system.pool.connection() as conn, conn.transaction():
        await conn.execute(
            "INSERT INTO dispensaries (name, name_raw, slug, platform, menu_url, state, city) "
            "VALUES (%(name)s, %(name)s, 'long-name', 'dutchie', 'https://dutchie.com/dispensary/long-name', 'AZ', 'Phoenix')",
            {"name": _LONG_NAME},
        )
        for p, pod in enumerate(PODS):
            for n in range(5):
                load = min(0.97, 0.18 + 0.11 * n + 0.2 * p)
                backing = p == 2 and n == 4
                beat = {
                    "worker_id": f"{pod.lower()}-{n}",
                    "current_task_ids": [],
                    "active_task_count": 0,
                    "max_concurrent_tasks": 3,
                    "status": "active",
                    "resources": {
                        "memory_mb": round(load * 2048),
                        "memory_total_mb": 2048,
                        "memory_rss_mb": 180.0,
                        "memory_percent": round(load * 100, 1),
                        "cpu_user_ms": 1000,
                        "cpu_system_ms": 100,
                        "cpu_percent": round(max(2.0, load * 90 - 9), 1),
                        "is_backing_off": backing,
                        "backoff_reason": "memory at 97 % of 2,048 MB (limit 85 %)" if backing else None,
                    },
                }
                await conn.execute(
                    _WORKER,
                    [beat["worker_id"], f"{pod} {n + 1}", pod, f"{pod.lower()}.local", 4000 + 10 * p + n, _json(beat)],
                )
        # Soon after midnight some of it ended yesterday.
        await conn.execute("SELECT ensure_task_history_partition(now() - interval '1 day')")
        stores = [
            row[0] for row in await (await conn.execute("SELECT id FROM dispensaries ORDER BY id LIMIT 6")).fetchall()
        ]
        for n, store in enumerate(stores[:3]):
            await conn.execute(
                _AT_WORK,
                [store, f"{PODS[n].lower()}-0"],
            )
        for n in range(12):
            await conn.execute(
                _FAILED,
                [3 * n + 1, stores[n % len(stores)], f"{PODS[n % 3].lower()}-{n % 5}", _ERRORS[n % 4]],
            )
        cursor = await conn.execute(
            "SELECT w.worker_id, t.id, coalesce(t.completed_at, now()) FROM worker_registry w"
            " LEFT JOIN task_history t USING (worker_id) WHERE w.pod = ANY (%s) ORDER BY 1, 3",
            [list(PODS)],
        )
        for worker_id, task_id, ended in await cursor.fetchall():
            await _write_log(conn, worker_id, task_id, ended)
        await conn.execute(
            "INSERT INTO worker_tasks (role, dispensary_id, priority, scheduled_for) "
            "SELECT 'payload_fetch', id, 0, now() + interval '2 hours' FROM dispensaries ORDER BY id DESC LIMIT 2"
        )
