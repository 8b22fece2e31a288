"""Single requests outside of tasks (probes and tests of proxies): they keep to the host's budget and go on record like all others."""

from __future__ import annotations

import asyncio
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.settings import Settings
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.ledger import Ledger, Report
from menuwatch.fetch.probe import Probed
from menuwatch.fetch.reaction import REACTIONS, Move
from menuwatch.fetch.verdict import Verdict
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import LetIn, News, SlowDown, Trouble, Waits

_q = sql.load(__package__)

_PATIENCE_SECONDS = 2.0
"""A turn that comes within this time is waited for."""
_CLOSED_SECONDS = 60.0
"""When a host is looked at again that is closed until somebody opens it, or that one identity is trying just now."""


class Errands:
    """`permit` asks a host's budget for one request, `record` writes down what came of it. One per process."""

    def __init__(self, pool: Pool, settings: Settings, *, clock: Clock | None = None) -> None:
        self._pool = pool
        self._clock = clock or SystemClock()
        self._limits = Limits.from_settings(settings)
        self._ledger = Ledger(pool, waits=Waits.from_settings(settings))

    async def permit(self, host: str) -> float | None:
        """None when it may be asked now, having waited for its turn where that was near; else when to ask again, in seconds."""
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
            await cur.execute(_q.take_errand, {"host": host, "patience": _PATIENCE_SECONDS})
            row = await cur.fetchone()
        assert row is not None, "the function answers with one row"
        return row

    async def record(self, probed: Probed) -> None:
        """One attempt, of a proxy that has a number, and what it says of the host."""
        report = Report(news=[(probed.host, item) for item in _news(probed)])
        if probed.proxy_id:
            report.attempts.append(
                Attempt(
                    task_id=None,
                    dispensary_id=None,
                    host=probed.host,
                    proxy_id=probed.proxy_id,
                    profile=probed.profile,
                    verdict=probed.judgement.verdict,
                    blame=probed.judgement.blame,
                    reaction=Move.RETURN if probed.answered else Move.GIVE_UP,
                    status=probed.status,
                    rotated=False,
                    waited_ms=0.0,
                    bytes=probed.bytes,
                    elapsed_ms=probed.elapsed_ms,
                    error=None if probed.judgement.verdict is Verdict.OK else probed.judgement.reason,
                    attempted_at=self._clock.now(),
                )
            )
        await self._ledger.write(report)


def _news(probed: Probed) -> list[News]:
    """A refusal is no news: the proxies that are tried are those that were refused before, and the host is not to be blamed for it."""
    judgement = probed.judgement
    reaction = REACTIONS[judgement.verdict]
    if judgement.verdict is Verdict.OK:
        return [LetIn()]
    if reaction.cools_host:
        return [SlowDown(judgement.retry_after, judgement.reason)]
    return [Trouble(judgement.reason)] if reaction.slows_host else []
