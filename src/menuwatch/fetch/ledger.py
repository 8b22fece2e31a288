"""What became of requests, written down: attempts, how hosts took it, how proxies and browsers did, leases that ended.

These are facts whatever becomes of the task that asked, so they are written in transactions of their own. Sessions that
report at the same time share one: while a transaction is under way, what comes in meanwhile gathers for the next (group commit).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import PoolClosed

from menuwatch.core.backoff import Backoff
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Pool, gone
from menuwatch.fetch import attempts as rows
from menuwatch.fetch import leases
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.scores import HALF_LIFE, Experience, added_up
from menuwatch.hosts import store as hosts
from menuwatch.hosts.rules import LetIn, News, Waits
from menuwatch.proxies import store as proxies
from menuwatch.proxies.health import PROBING, Happened

log = get_logger(__name__)

_q = sql.load(__package__)
_CONFLICTS = 3
"""Times that a transaction is tried which others made impossible."""
_CLOSING_SECONDS = 5.0
_AGAIN = Backoff(base=0.1, cap=5.0)
_rng = random.Random()  # noqa: S311 - jitter, no secret


@dataclass(slots=True)
class Report:
    """What one session has to tell. `leases` are those that end with it."""

    attempts: list[Attempt] = field(default_factory=list)
    news: list[tuple[str, News]] = field(default_factory=list)
    proxies: list[Happened] = field(default_factory=list)
    experiences: list[Experience] = field(default_factory=list)
    leases: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.attempts or self.news or self.proxies or self.experiences or self.leases)

    def add(self, other: Report) -> None:
        """Puts another one's behind this one's."""
        self.attempts += other.attempts
        self.news += other.news
        self.proxies += other.proxies
        self.experiences += other.experiences
        self.leases += other.leases


class Ledger:
    """One per process. A database that is gone is waited for, up to `patience` seconds."""

    def __init__(
        self,
        pool: Pool,
        *,
        waits: Waits | None = None,
        probing: Backoff = PROBING,
        on_written: Callable[[Report], None] = lambda _: None,
        patience: float = 300.0,
    ) -> None:
        self._pool = pool
        self._patience = patience
        self._waits = waits or Waits()
        self._probing = probing
        self._on_written = on_written
        self._gathering: list[tuple[Report, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._days: set[date] = set()

    async def write(self, report: Report) -> None:
        """Returns once it is committed. Raises psycopg's errors where it could not be."""
        if not report:
            return
        done = asyncio.get_running_loop().create_future()
        self._gathering.append((report, done))
        if self._writer is None:
            self._writer = asyncio.create_task(self._drain(), name="fetch-ledger")
        # Whoever reported may be cancelled; what it had to tell is written all the same.
        await asyncio.shield(done)

    async def close(self) -> None:
        """Waits until what was reported is written, for a time that a stop allows."""
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=_CLOSING_SECONDS)

    async def _drain(self) -> None:
        batch: list[tuple[Report, asyncio.Future[None]]] = []
        try:
            while self._gathering:
                batch, self._gathering = self._gathering, []
                together = Report()
                for report, _ in batch:
                    together.add(report)
                error: Exception | None = None
                try:
                    await self._commit(together)
                except Exception as found:
                    error = found
                for _, done in batch:
                    if done.done():
                        continue
                    if error is None:
                        done.set_result(None)
                    else:
                        done.set_exception(error)
        finally:
            self._writer = None
            # Cut off in the middle, by a loop that closes: nobody waits for what will not be.
            for _, done in (*batch, *self._gathering):
                done.cancel()
            self._gathering = []

    async def _commit(self, report: Report) -> None:
        began = time.monotonic()
        conflicts = failures = 0
        number: str | None = None
        while True:
            try:
                async with self._pool.connection() as conn:
                    if number is None or not await _committed(conn, number):
                        number = None
                        await self._prepare(conn, report)
                        async with conn.transaction():
                            number = await self._write(conn, report)
                break
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                conflicts += 1
                if conflicts == _CONFLICTS:
                    raise
            except psycopg.OperationalError as error:
                late = time.monotonic() - began >= self._patience
                if late or isinstance(error, PoolClosed) or not gone(error):
                    raise
                if not failures:
                    log.warning(
                        "what became of requests cannot be written now; it is kept and tried again",
                        action="fetch_report_waits",
                        attempts=len(report.attempts),
                        error=f"{type(error).__name__}: {error}",
                    )
                await asyncio.sleep(_AGAIN.delay(failures, _rng))
                failures += 1
        self._on_written(report)

    async def _prepare(self, conn: AsyncConnection[Any], report: Report) -> None:
        for attempt in report.attempts:
            day = attempt.attempted_at.astimezone(UTC).date()
            if day not in self._days:
                await conn.execute(_q.ensure_attempts, {"instant": attempt.attempted_at})
                self._days = {*list(self._days)[-3:], day}

    async def _write(self, conn: AsyncConnection[Any], report: Report) -> str:
        """Returns the number of the transaction, by which one whose COMMIT was not answered is found again."""
        await hosts.record(conn, _by_host(report.news), self._waits)
        await proxies.record_all(conn, report.proxies, probing=self._probing)
        by_proxy, by_profile = added_up(report.experiences)
        async with conn.pipeline():
            if by_proxy:
                await conn.execute(
                    _q.add_proxy_scores,
                    {"half_life": HALF_LIFE, "proxies": [key[1] for key in by_proxy], **_sums(by_proxy)},
                )
                await conn.execute(
                    _q.add_profile_scores,
                    {"half_life": HALF_LIFE, "profiles": [key[1] for key in by_profile], **_sums(by_profile)},
                )
            await rows.insert(conn, report.attempts)
            await leases.end(conn, report.leases)
            number = await conn.execute(_q.transaction)
        row = await number.fetchone()
        assert row is not None, "it has a number"
        return str(row[0])


async def _committed(conn: AsyncConnection[Any], number: str) -> bool:
    """Whether that transaction went through; waits for one whose connection the server has not given up yet."""
    while True:
        try:
            row = await (await conn.execute(_q.fate, {"number": number})).fetchone()
        except psycopg.errors.InvalidParameterValue:
            return False  # a server that crashed knows nothing of it
        if row is None or row[0] != "in progress":
            return row is not None and row[0] == "committed"
        await asyncio.sleep(_AGAIN.ceiling(0))


def _sums(scores: dict[tuple[str, Any], list[float]]) -> dict[str, list[Any]]:
    return {
        "hosts": [host for host, _ in scores],
        "good": [good for good, _ in scores.values()],
        "bad": [bad for _, bad in scores.values()],
    }


def _by_host(news: list[tuple[str, News]]) -> dict[str, list[News]]:
    """In their order; answers in a row are told as one."""
    found: dict[str, list[News]] = {}
    for host, item in news:
        of_host = found.setdefault(host, [])
        if isinstance(item, LetIn) and of_host and isinstance(last := of_host[-1], LetIn):
            of_host[-1] = LetIn(last.times + item.times)
        else:
            of_host.append(item)
    return found
