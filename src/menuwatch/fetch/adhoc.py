"""Single requests outside of tasks (proxy probes and tests): limited by the host's budget and recorded like all others."""

from __future__ import annotations

import asyncio
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.classify import Verdict
from menuwatch.fetch.probe import ProbeResponse
from menuwatch.fetch.reports import Report, ReportWriter, host_signal
from menuwatch.fetch.retry_policy import Action
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import Delays

_q = sql.load(__package__)

_PATIENCE_SECONDS = 2.0
"""Longest wait for a request slot."""
_CLOSED_SECONDS = 60.0
"""Delay before the next check of a host that is paused or whose circuit is being probed."""


class AdhocRequests:
    """Acquires request slots from a host's budget and records the results. One per process."""

    def __init__(self, pool: Pool, settings: Settings, *, clock: Clock | None = None) -> None:
        self._pool = pool
        self._clock = clock or SystemClock()
        self._limits = Limits.from_settings(settings)
        self._writer = ReportWriter(pool, delays=Delays.from_settings(settings))

    async def acquire(self, host: str) -> float | None:
        """Acquire a request slot, waiting briefly if necessary. Returns None, or the seconds after which to try again."""
        async with self._pool.connection() as conn:
            row = await self._take(conn, host)
            if row["code"] == "unknown":
                await hosts.add(conn, host, self._limits)
                row = await self._take(conn, host)
        if row["code"] is not None or not row["slots"]:
            return _CLOSED_SECONDS if row["wait"] is None else float(row["wait"])
        await asyncio.sleep(row["slots"][0])
        return None

    async def _take(self, conn: AsyncConnection[Any], host: str) -> dict[str, Any]:
        async with conn.cursor(row_factory=dict_row) as cur:
            await cur.execute(_q.acquire_adhoc_slot, {"host": host, "max_wait": _PATIENCE_SECONDS})
            row = await cur.fetchone()
        assert row is not None, "the function answers with one row"
        return row

    async def record(self, probed: ProbeResponse) -> None:
        """Record an attempt through a stored proxy, and its effect on the host."""
        signal = host_signal(probed.classification)
        # Refusals are ignored: the tested proxies were refused before, so the host is not to blame.
        report = Report(signals=[] if signal is None else [(probed.host, signal)])
        if probed.proxy_id:
            report.attempts.append(
                Attempt(
                    task_id=None,
                    dispensary_id=None,
                    host=probed.host,
                    proxy_id=probed.proxy_id,
                    profile=probed.profile,
                    verdict=probed.classification.verdict,
                    blame=probed.classification.blame,
                    reaction=Action.RETURN if probed.answered else Action.GIVE_UP,
                    status=probed.status,
                    rotated=False,
                    waited_ms=0.0,
                    bytes=probed.bytes,
                    elapsed_ms=probed.elapsed_ms,
                    error=None if probed.classification.verdict is Verdict.OK else probed.classification.reason,
                    attempted_at=self._clock.now(),
                )
            )
        await self._writer.write(report)
