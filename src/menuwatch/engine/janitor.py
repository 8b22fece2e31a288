"""Keeps the database in shape: drops what is past its time, renews statistics, and says who holds old rows back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import psycopg

from menuwatch.accounts import repeats
from menuwatch.accounts import store as accounts
from menuwatch.alerts import store as alerts
from menuwatch.catalog import store as catalog
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.telemetry import get_logger
from menuwatch.db import partitions, sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.engine.loop import Loop
from menuwatch.hosts import store as hosts
from menuwatch.schedules import store as schedules
from menuwatch.tasks import store as tasks
from menuwatch.visitors import store as visitors
from menuwatch.workers import registry

log = get_logger(__name__)
_q = sql.load(__package__)

HISTORY = "task_history"
ATTEMPTS = "fetch_attempts"
STATES = "past_states"
LOCK_SECONDS = 1.0
"""How long it waits for a lock. Nobody queues behind it for longer; where an open transaction is in the way, it comes again."""
STATEMENT_SECONDS = 120.0

LONG_TRANSACTION = timedelta(minutes=15)
LONG_IDLE_TRANSACTION = timedelta(minutes=5)
"""Ages from which a transaction that holds the horizon back is worth a warning: each claim then steps over all that ended since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How long things are kept."""

    history: timedelta = timedelta(days=30)
    attempts: timedelta = timedelta(days=14)
    states: timedelta | None = None
    """Past states of products; None keeps them for good."""
    runs: timedelta = timedelta(days=90)
    workers: timedelta = timedelta(days=7)
    audit: timedelta | None = timedelta(days=730)
    """Who changed what; None keeps it for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Duty:
    every: timedelta
    do: Callable[[Connection], Awaitable[Mapping[str, Any] | None]]


class Janitor(Loop):
    """Any number of them may run: each duty is done by whoever comes first when it is due. What fails is tried at the next step."""

    name: ClassVar[str] = "janitor"

    def __init__(
        self, pool: Pool, *, keep: Keep | None = None, clock: Clock | None = None, interval: float = 300.0
    ) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._keep = keep or Keep()
        self._clock = clock or SystemClock()
        self.duties: Mapping[str, _Duty] = {
            "names": _Duty(every=timedelta(seconds=interval * 0.9), do=self._fold_names),
            "totals": _Duty(every=timedelta(minutes=15), do=self._count_totals),
            "horizon": _Duty(every=timedelta(seconds=interval * 0.9), do=self._watch_horizon),
            "history": _Duty(every=timedelta(hours=1), do=self._drop_history),
            "records": _Duty(every=timedelta(hours=1), do=self._prune_records),
            # Twice an hour: a salt may not become 48 hours old.
            "visitors": _Duty(every=timedelta(minutes=30), do=self._forget_visitors),
            "statistics": _Duty(every=timedelta(days=1), do=self._analyze),
        }

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            if not await _said_yes(conn, _q.lock_upkeep):
                return None
            try:
                await self._do_what_is_due(conn)
            finally:
                if not conn.closed:
                    await conn.execute(_q.unlock_upkeep)
        return None

    async def _do_what_is_due(self, conn: Connection) -> None:
        names = list(self.duties)
        every = [self.duties[name].every.total_seconds() for name in names]
        await conn.execute(_q.enter_duties, {"duties": names})
        cursor = await conn.execute(_q.due_duties, {"duties": names, "every": every})
        due = {row[0] for row in await cursor.fetchall()}
        for name in names:
            if name in due and not self.stopping:
                await self._do(conn, name)

    async def _do(self, conn: Connection, name: str) -> None:
        try:
            async with partitions.patience(conn, lock_seconds=LOCK_SECONDS, statement_seconds=STATEMENT_SECONDS):
                found = await self.duties[name].do(conn)
        except psycopg.Error as error:
            if conn.closed:
                raise
            reason = f"{type(error).__name__}: {error.diag.message_primary or error}"
            await conn.execute(_q.duty_failed, {"duty": name, "error": reason})
            log.warning(
                "upkeep could not be done now; it is tried again",
                action="upkeep_failed",
                duty=name,
                again_in_seconds=self.interval,
                error=reason,
            )
            return
        await conn.execute(_q.duty_done, {"duty": name})
        if found:
            log.info("upkeep done", action="upkeep_done", duty=name, **found)

    async def _fold_names(self, conn: Connection) -> Mapping[str, Any] | None:
        names = await catalog.fold_names(conn)
        return {"new": names} if names else None

    async def _count_totals(self, conn: Connection) -> Mapping[str, Any] | None:
        await catalog.count_totals(conn)
        return None

    async def _drop_history(self, conn: Connection) -> Mapping[str, Any] | None:
        now = self._clock.now()
        gone = await partitions.drop_expired(conn, HISTORY, now - self._keep.history)
        gone += await partitions.drop_expired(conn, ATTEMPTS, now - self._keep.attempts)
        if self._keep.states is not None:
            gone += await partitions.drop_expired(conn, STATES, now - self._keep.states)
        days = await tasks.count_days(conn)
        return {"dropped": gone, "days_counted": days} if gone or days else None

    async def _prune_records(self, conn: Connection) -> Mapping[str, Any] | None:
        runs = await schedules.prune(conn, self._clock.now() - self._keep.runs)
        workers = await registry.prune(conn, self._keep.workers)
        events = await hosts.prune(conn, self._clock.now() - self._keep.runs)
        told = await alerts.prune(conn, self._clock.now() - self._keep.runs)
        sessions = await accounts.prune(conn)
        keys = await repeats.prune(conn)
        deeds = await accounts.prune_audit(conn, self._clock.now() - self._keep.audit) if self._keep.audit else 0
        found = {
            "runs": runs,
            "workers": workers,
            "host_events": events,
            "alerts": told,
            "sessions": sessions,
            "idempotency_keys": keys,
            "audit": deeds,
        }
        return found if any(found.values()) else None

    async def _forget_visitors(self, conn: Connection) -> Mapping[str, Any] | None:
        salts, pages = await visitors.prune(conn, self._clock.now())
        return {"salts": salts, "pages": pages} if salts or pages else None

    async def _analyze(self, conn: Connection) -> Mapping[str, Any] | None:
        return {"analyzed": await partitions.analyze_parents(conn)}

    async def _watch_horizon(self, conn: Connection) -> None:
        for holder in await partitions.horizon(conn):
            idle = holder.state.startswith("idle in transaction")
            limit = LONG_IDLE_TRANSACTION if idle else LONG_TRANSACTION
            if holder.seconds >= limit.total_seconds():
                log.warning(
                    "an open transaction keeps ended tasks from being cleaned away; claims get slower until it ends",
                    action="horizon_held",
                    pid=holder.pid,
                    state=holder.state,
                    application=holder.application,
                    age_seconds=round(holder.seconds),
                )


async def _said_yes(conn: Connection, statement: Any) -> bool:
    row = await (await conn.execute(statement)).fetchone()
    return row is not None and bool(row[0])
