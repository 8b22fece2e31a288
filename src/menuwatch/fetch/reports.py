"""Collect and write the results of requests: attempts, effects on hosts, scores of proxies and browsers, released leases.

These hold regardless of the task's outcome, so they are written in transactions of their own. Sessions that report at the same
time share one: reports that arrive during a transaction are collected for the next (group commit).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg_pool import PoolClosed

from menuwatch.core.backoff import Backoff
from menuwatch.core.logging import get_logger, outside_attempt
from menuwatch.db import sql
from menuwatch.db.items import is_outage
from menuwatch.db.pool import Pool, gone
from menuwatch.fetch import attempts as rows
from menuwatch.fetch import leases
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.classify import REFUSALS, Blame, Classification, Verdict
from menuwatch.fetch.request_history import RequestHistory
from menuwatch.fetch.retry_policy import REACTIONS
from menuwatch.hosts import store as hosts
from menuwatch.hosts.rules import Accepted, Delays, HostSignal, IdentityBlocked, RateLimited, ServerError
from menuwatch.hosts.scores import HALF_LIFE, Observation, aggregate
from menuwatch.proxies import store as proxies
from menuwatch.proxies.health import PROBING, ProxyEvent, ProxyOutcome

log = get_logger(__name__)

_q = sql.load(__package__)
_NOTHING_IN_IT = ("empty", "no_data")
LONGEST_ERROR = 500
"""Longest error kept, in characters."""
_CONFLICTS = 3
"""Attempts at a transaction that fails because of conflicts."""
_CLOSING_SECONDS = 5.0
_RETRY_BACKOFF = Backoff(base=0.1, cap=5.0)
_rng = random.Random()  # noqa: S311 - jitter, no secret


class Report(Struct):
    """Report of one session. `leases` are those that it releases."""

    attempts: list[Attempt] = []
    signals: list[tuple[str, HostSignal]] = []
    proxies: list[ProxyEvent] = []
    observations: list[Observation] = []
    leases: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.attempts or self.signals or self.proxies or self.observations or self.leases)

    def add(self, other: Report) -> None:
        """Append another report."""
        self.attempts += other.attempts
        self.signals += other.signals
        self.proxies += other.proxies
        self.observations += other.observations
        self.leases += other.leases


def host_signal(classification: Classification) -> HostSignal | None:
    """What a result means for the host, regardless of the identity; None for refusals, and faults of proxies."""
    reaction = REACTIONS[classification.verdict]
    if reaction.identity == "good":
        return Accepted()
    if reaction.triggers_cooldown:
        return RateLimited(classification.retry_after, classification.reason)
    return ServerError(classification.reason) if reaction.reduces_rate else None


class ReportBuffer:
    """A session's unwritten reports: what each request means for the attempts, the host, the proxy and the browser. What was added
    since the last `drain` is not saved anywhere else yet."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self._new = Report()
        self._drained_at = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since the last drain."""
        return time.monotonic() - self._drained_at

    @property
    def figures(self) -> Mapping[str, int]:
        """Totals so far: `requests`, `blocked` among them, `rotations` of the identity, `bytes` received."""
        return {
            "requests": len(self.attempts),
            "blocked": sum(attempt.verdict in REFUSALS for attempt in self.attempts),
            "rotations": sum(attempt.rotated for attempt in self.attempts),
            "bytes": sum(attempt.bytes for attempt in self.attempts),
        }

    def note(self, attempt: Attempt, classification: Classification) -> None:
        """Add what one request means."""
        self.attempts.append(attempt)
        self._new.attempts.append(attempt)
        if attempt.verdict is not Verdict.OK:
            log.info(
                "request failed",
                action="fetch_attempt",
                task_id=attempt.task_id,
                dispensary_id=attempt.dispensary_id,
                proxy_id=attempt.proxy_id,
                profile=attempt.profile,
                host=attempt.host,
                verdict=attempt.verdict,
                blame=attempt.blame,
                reaction=attempt.reaction,
                reason=classification.reason,
            )
        self._note_for_host(attempt, classification)
        self._note_for_proxy(attempt, classification)

    def _note_for_host(self, attempt: Attempt, classification: Classification) -> None:
        new, host, reaction = self._new, attempt.host, REACTIONS[classification.verdict]
        if reaction.identity == "bad":
            new.signals.append((host, IdentityBlocked(attempt.proxy_id, attempt.profile, classification.reason)))
        elif (signal := host_signal(classification)) is not None:
            new.signals.append((host, signal))
        if reaction.identity == "good":
            good = Observation(host, attempt.proxy_id, attempt.profile, proxy_good=1.0, profile_good=1.0)
            new.observations.append(good)

    def _note_for_proxy(self, attempt: Attempt, classification: Classification) -> None:
        proxy_id = attempt.proxy_id
        if classification.blame is Blame.PROXY:
            self._new.proxies.append(
                ProxyEvent(proxy_id=proxy_id, event=ProxyOutcome.FAULT, error=classification.reason)
            )
        elif REACTIONS[classification.verdict].proxy_event is ProxyOutcome.SUCCESS and attempt.status is not None:
            self._new.proxies.append(
                ProxyEvent(proxy_id=proxy_id, event=ProxyOutcome.SUCCESS, elapsed_ms=attempt.elapsed_ms)
            )

    def mark_unusable(self, kind: str, reason: str) -> None:
        """Record that the last response was unusable; `kind` is a BadPayload's. Corrects its attempt unless that is written
        already."""
        last = self.attempts[-1] if self.attempts else None
        if last is None or last.verdict is not Verdict.OK or last not in self._new.attempts:
            return
        verdict = Verdict.EMPTY_SUSPECT if kind in _NOTHING_IN_IT else Verdict.SCHEMA_CHANGED
        seen = replace(last, verdict=verdict, blame=Blame.TARGET, error=reason[:LONGEST_ERROR])
        self.attempts[-1] = seen
        self._new.attempts[self._new.attempts.index(last)] = seen

    def settle(self, host: str, history: RequestHistory, accepted: int | None, *, host_refuses: bool = False) -> None:
        """Add what is known only at the end of a request: who caused the refusals, and the ambiguous faults."""
        self._new.proxies += history.events(accepted, host_refuses=host_refuses or history.probing)
        self._new.observations += history.observations(host, accepted)

    def release_lease(self, lease_id: int) -> None:
        """The lease is no longer needed."""
        self._new.leases.append(lease_id)

    def drain(self) -> Report:
        """Return what is new; the caller must write it."""
        report, self._new = self._new, Report()
        self._drained_at = time.monotonic()
        return report


class ReportWriter:
    """One per process. While the database is unreachable it waits, up to `patience` seconds."""

    def __init__(
        self,
        pool: Pool,
        *,
        delays: Delays | None = None,
        probing: Backoff = PROBING,
        on_written: Callable[[Report], None] = lambda _: None,
        patience: float = 300.0,
    ) -> None:
        self._pool = pool
        self._patience = patience
        self._delays = delays or Delays()
        self._probing = probing
        self._on_written = on_written
        self._gathering: list[tuple[Report, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._days: set[date] = set()

    async def write(self, report: Report) -> None:
        """Return once the report is committed. Raises psycopg's errors if it could not be written."""
        if not report:
            return
        done = asyncio.get_running_loop().create_future()
        self._gathering.append((report, done))
        if self._writer is None:
            # It writes for other sessions too, so its log lines are not those of one task.
            context = outside_attempt()
            self._writer = asyncio.create_task(self._drain(), name="fetch-report-writer", context=context)
        # The report is written even if the session that waits for it is cancelled.
        await asyncio.shield(done)

    async def close(self) -> None:
        """Wait until all reports are written, for at most the time that shutdown allows."""
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=_CLOSING_SECONDS)

    async def _drain(self) -> None:
        batch: list[tuple[Report, asyncio.Future[None]]] = []
        try:
            while self._gathering:
                batch, self._gathering = self._gathering, []
                await self._write_batch(batch)
        finally:
            self._writer = None
            # Cancelled by a closing event loop: release those who wait, since nothing more will be written.
            for _, done in (*batch, *self._gathering):
                done.cancel()
            self._gathering = []

    async def _write_batch(self, batch: Sequence[tuple[Report, asyncio.Future[None]]]) -> None:
        """Write reports together; if one cannot be written, each separately, so that the others are saved."""
        together = Report()
        for report, _ in batch:
            together.add(report)
        error: Exception | None = None
        try:
            await self._commit(together)
        except Exception as failure:
            if len(batch) > 1 and not is_outage(failure):
                for item in batch:
                    await self._write_batch([item])
                return
            error = failure
        for _, done in batch:
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

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
                        "writing request reports failed, retrying",
                        action="fetch_report_waits",
                        attempts=len(report.attempts),
                        error=f"{type(error).__name__}: {error}",
                    )
                await asyncio.sleep(_RETRY_BACKOFF.delay(failures, _rng))
                failures += 1
        self._on_written(report)

    async def _prepare(self, conn: AsyncConnection[Any], report: Report) -> None:
        for attempt in report.attempts:
            day = attempt.attempted_at.astimezone(UTC).date()
            if day not in self._days:
                await conn.execute(_q.ensure_attempts, {"instant": attempt.attempted_at})
                self._days = {*list(self._days)[-3:], day}

    async def _write(self, conn: AsyncConnection[Any], report: Report) -> str:
        """Returns the transaction id, which tells later whether a COMMIT without a response succeeded."""
        await hosts.record(conn, _by_host(report.signals), self._delays)
        await proxies.record_all(conn, report.proxies, probing=self._probing)
        by_proxy, by_profile = aggregate(report.observations)
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
    """Whether that transaction was committed; waits for one whose connection the server still holds."""
    while True:
        try:
            row = await (await conn.execute(_q.fate, {"number": number})).fetchone()
        except psycopg.errors.InvalidParameterValue:
            return False  # after a crash the server no longer knows the transaction
        if row is None or row[0] != "in progress":
            return row is not None and row[0] == "committed"
        await asyncio.sleep(_RETRY_BACKOFF.ceiling(0))


def _sums(scores: dict[tuple[str, Any], list[float]]) -> dict[str, list[Any]]:
    return {
        "hosts": [host for host, _ in scores],
        "good": [good for good, _ in scores.values()],
        "bad": [bad for _, bad in scores.values()],
    }


def _by_host(signals: list[tuple[str, HostSignal]]) -> dict[str, list[HostSignal]]:
    """Signals by host, in order; consecutive successes are merged."""
    by_host: dict[str, list[HostSignal]] = {}
    for host, item in signals:
        of_host = by_host.setdefault(host, [])
        if isinstance(item, Accepted) and of_host and isinstance(last := of_host[-1], Accepted):
            of_host[-1] = Accepted(last.times + item.times)
        else:
            of_host.append(item)
    return by_host
