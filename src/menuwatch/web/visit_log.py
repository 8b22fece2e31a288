"""Buffers visits offered by requests; a background loop writes them to the sums in batches."""

from __future__ import annotations

import asyncio
import collections
import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import ClassVar

import psycopg
from prometheus_client import CollectorRegistry, Counter

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.logging import get_logger
from menuwatch.db.items import log_refused, write_in_halves
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.geo.database import GeoDatabase
from menuwatch.visitors import anonymous_marks as model
from menuwatch.visitors import store
from menuwatch.visitors.anonymous_marks import Counted, Visit, Where

log = get_logger(__name__)

ROOM = 10_000
"""Visits that wait at most, a few MB; what comes beyond that is not counted."""
BATCH = 500
"""Visits that are written in one transaction."""
STALE = timedelta(hours=1)
"""A visit that could not be written for so long is given up: an address stays no longer than that, in memory neither."""
_SECONDS = 5.0
"""Longest wait for a connection, and at a stop for what is left."""


def results(registry: CollectorRegistry) -> Counter:
    """The metric of what became of visits."""
    return Counter(
        "menuwatch_visits",
        "Page views of the public site: counted, lost, or the reason for exclusion.",
        ("result",),
        registry=registry,
    )


class VisitLog(Loop):
    """A bounded queue, in memory. A request only puts something into it; at a crash what is in it is lost."""

    name: ClassVar[str] = "visits"

    def __init__(
        self,
        pool: Pool,
        geo: GeoDatabase | None = None,
        *,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
        interval: float = 2.0,
        room: int = ROOM,
    ) -> None:
        """`geo` locates visitors; None disables it. `interval` in seconds. `registry` counts visits by result."""
        super().__init__(interval=interval)
        self._pool = pool
        self._geo = geo
        self.clock = clock or SystemClock()
        self._room = room
        self._waiting: deque[Visit] = deque()
        self._salts: dict[date, bytes] = {}
        self._noted: collections.Counter[str] = collections.Counter()
        self._results = results(registry or CollectorRegistry())

    def offer(self, visit: Visit) -> bool:
        """Takes a visit to be counted; False where there is no room, and it is lost."""
        if len(self._waiting) >= self._room:
            self.note("lost")
            return False
        self._waiting.append(visit)
        if len(self._waiting) == BATCH:
            self.wake()
        return True

    def note(self, result: str, times: int = 1) -> None:
        """Counts what became of visits."""
        self._noted[result] += times
        self._results.labels(result).inc(times)

    def noted(self, result: str) -> int:
        """How often that became of one, since the start."""
        return self._noted[result]

    @property
    def waiting(self) -> int:
        """Visits that are not written yet."""
        return len(self._waiting)

    async def run(self) -> None:
        """Writes until `stop`, and then what is left, if that is quick."""
        await super().run()
        try:
            async with asyncio.timeout(_SECONDS):
                await self.step()
        except Exception as error:
            log.warning(
                "last visits were not counted", action="visits_lost", count=self.waiting, error=type(error).__name__
            )

    async def step(self) -> float | None:
        """Writes everything that waits, in order. Visits stay while the database is unreachable; one that cannot be written for
        another reason is lost, and no other with it."""
        self._give_up_stale()
        yesterday = self.clock.now().date() - timedelta(days=1)
        self._salts = {day: salt for day, salt in self._salts.items() if day >= yesterday}
        while batch := list(itertools.islice(self._waiting, BATCH)):
            await write_in_halves(batch, self._count, self._lose)
        return None

    async def _count(self, batch: Sequence[Visit]) -> None:
        try:
            await self._write(batch)
        except Exception:
            self._salts = {}  # a salt that is no longer in the database is useless
            raise
        self._leave(batch, "counted")

    def _lose(self, visit: Visit, error: Exception) -> None:
        log_refused(self.name, "visit", visit.page[:200], error)
        self._leave([visit], "lost")

    async def _write(self, batch: Sequence[Visit]) -> None:
        async with self._pool.connection(timeout=_SECONDS) as conn, conn.transaction():
            salts = {day: await self._salt_of(conn, day) for day in sorted({visit.day for visit in batch})}
            # Hundreds of hashes and look-ups: requests go on meanwhile.
            counted = await asyncio.to_thread(self._counted, salts, batch)
            await store.record(conn, counted)
        self._salts = salts  # only once they are committed

    async def _salt_of(self, conn: psycopg.AsyncConnection[object], day: date) -> bytes:
        return self._salts.get(day) or await store.salt_of(conn, day)

    def _counted(self, salts: Mapping[date, bytes], batch: Sequence[Visit]) -> list[Counted]:
        return [
            Counted(
                day=visit.day,
                kind=visit.kind,
                page=visit.page,
                where=self._where(visit),
                marks=model.marks(salts[visit.day], visit),
            )
            for visit in batch
        ]

    def _where(self, visit: Visit) -> Where:
        found = None if self._geo is None else self._geo.locate(visit.address)
        return Where() if found is None else Where(found.country, found.region or "", found.city or "")

    def _leave(self, batch: Sequence[Visit], result: str) -> None:
        for _ in batch:
            self._waiting.popleft()
        self.note(result, len(batch))

    def _give_up_stale(self) -> None:
        before = self.clock.now() - STALE
        stale = list(itertools.takewhile(lambda visit: visit.at < before, self._waiting))
        if stale:
            self._leave(stale, "lost")
            log.warning("visits waited too long and were dropped", action="visits_lost", count=len(stale))
