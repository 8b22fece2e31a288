"""How stores are crawled: when last and when next, how fresh that is, and how it went lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from itertools import takewhile

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import Row, pattern, rows
from menuwatch.operations.refusals import NotFound

_q = sql.load(__package__, "store_health.sql")

OUTCOMES = 20
"""Most crawls that are looked back on, within the last 7 days."""

NEVER = datetime(1900, 1, 1, tzinfo=UTC)
LAST = datetime(9000, 1, 1, tzinfo=UTC)
"""Where stores without a due time stand in the list: those never crawled first, those that may not be last."""


class Freshness(StrEnum):
    """How old a store's menu is. `late`: its interval is over by a quarter; `stale`: twice."""

    FRESH = "fresh"
    LATE = "late"
    STALE = "stale"
    NEVER = "never"
    OFF = "off"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """One store. `due_at` is when its interval is over (NEVER, LAST where there is none) and with the id the key of the list;
    `next_at` when its next crawl was or is due. `outcomes` are its last crawls, newest first: true where it was completed."""

    id: int
    name: str
    slug: str | None
    platform: str
    city: str | None
    state: str | None
    crawl_enabled: bool
    crawl_interval_hours: Decimal
    last_crawled_at: datetime | None
    last_attempt_at: datetime | None
    last_error: str | None
    product_count: int | None
    freshness: Freshness
    due_at: datetime
    next_at: datetime | None
    waiting_task_id: int | None
    active_task_id: int | None
    outcomes: Sequence[bool]

    @property
    def success_streak(self) -> int:
        """Crawls in a row, up to the last one, that were completed; at most OUTCOMES."""
        return len(list(takewhile(bool, self.outcomes)))

    @property
    def consecutive_failures(self) -> int:
        """Crawls in a row, up to the last one, that failed; at most OUTCOMES."""
        return len(list(takewhile(lambda good: not good, self.outcomes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFilter:
    """Which stores; None takes all. `q` is text in the name, city or slug."""

    states: Sequence[str] | None = None
    platform: str | None = None
    freshness: Sequence[Freshness] | None = None
    q: str | None = None


async def page(
    conn: Connection, where: StoreFilter, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[StoreHealth]:
    """Stores, those due longest first, after the one with that (due_at, id)."""
    return [_health(one) for one in await _read(conn, where, None, after, limit)]


async def one(conn: Connection, store_id: int) -> StoreHealth:
    """One store; raises NotFound."""
    found = await _read(conn, StoreFilter(), [store_id], None, 1)
    if not found:
        raise NotFound(f"store {store_id} does not exist")
    return _health(found[0])


async def counts(conn: Connection, *, platform: str | None = None) -> Mapping[str | None, Mapping[Freshness, int]]:
    """How many stores there are of each freshness, by state (None: not known)."""
    found: dict[str | None, dict[Freshness, int]] = {}
    for row in await rows(conn, _q.store_freshness_counts, {"platform": platform}):
        found.setdefault(row["state"], {})[Freshness(row["status"])] = row["n"]
    return found


async def _read(
    conn: Connection,
    where: StoreFilter,
    ids: Sequence[int] | None,
    after: tuple[datetime, int] | None,
    limit: int,
) -> list[Row]:
    key, number = after or (None, None)
    values = {
        "states": where.states,
        "platform": where.platform,
        "statuses": None if where.freshness is None else [str(one) for one in where.freshness],
        "q": None if where.q is None else pattern(where.q),
        "ids": ids,
        "after_key": key,
        "after_id": number,
        "limit": limit,
        "outcomes": OUTCOMES,
    }
    return await rows(conn, _q.store_health, values, prepare=False)


def _health(found: Row) -> StoreHealth:
    given = {name: found[name] for name in StoreHealth.__slots__ if name not in ("freshness", "outcomes")}
    good = [status == "completed" for status in found["outcomes"]]
    return StoreHealth(**given, freshness=Freshness(found["status"]), outcomes=good)
