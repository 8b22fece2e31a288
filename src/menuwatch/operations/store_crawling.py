"""Whether and how often a store is crawled, as people set it, and a look at what its crawls were lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from menuwatch.core.errors import MenuwatchError
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.refusals import NotFound

_q = sql.load(__package__, "store_crawling.sql")

SHORTEST_HOURS, LONGEST_HOURS = Decimal("0.25"), Decimal(24 * 30)
"""What may be set as the time between two crawls."""
LOOK_BACK = 60
"""Crawls that are looked back on, within the last 30 days."""
MOST_COUNTED = 10_000
"""Products that are counted at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawling:
    """Whether a store is crawled, and how many hours lie between two crawls."""

    enabled: bool
    interval_hours: Decimal

    @property
    def version(self) -> str:
        """What an edit was made from. Crawls, which change the row all the time, do not change it."""
        return f"{'on' if self.enabled else 'off'}:{self.interval_hours.normalize():f}"


class Stale(MenuwatchError):
    """The store was set otherwise by somebody else meanwhile; `now` is how."""

    def __init__(self, now: Crawling) -> None:
        super().__init__("somebody else has changed how this store is crawled since this page was opened")
        self.now = now


async def change(conn: Connection, store_id: int, wanted: Crawling, *, version: str) -> None:
    """Sets it, if it still is what `version` says. Raises Stale, and NotFound."""
    found = await row(conn, _q.lock_crawling, {"id": store_id})
    if found is None:
        raise NotFound(f"store {store_id} does not exist")
    now = Crawling(**found)
    if now.version != version:
        raise Stale(now)
    if now.version == wanted.version:
        return
    await conn.execute(
        _q.set_crawling, {"id": store_id, "enabled": wanted.enabled, "interval_hours": wanted.interval_hours}
    )
    if now.enabled != wanted.enabled:
        await audit.record(conn, "store_enabled" if wanted.enabled else "store_disabled", ("store", store_id))
    if now.interval_hours != wanted.interval_hours:
        await audit.record(
            conn,
            "store_interval_set",
            ("store", store_id),
            before=str(now.interval_hours),
            after=str(wanted.interval_hours),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """One crawl that ended. `outcome` is the status of its payload (ok, partial, quarantined, rejected), or `failed` where it
    brought none; `number` is the payload's or the task's. `bytes` is what the archive keeps of it."""

    at: datetime
    outcome: str
    number: int
    products: int | None
    bytes: int | None
    reason: str | None


async def recent(conn: Connection, store_id: int) -> Sequence[Crawl]:
    """The store's crawls of the last 30 days, oldest first, at most LOOK_BACK."""
    found = await rows(conn, _q.recent_crawls, {"id": store_id, "limit": LOOK_BACK})
    return [Crawl(**one) for one in reversed(found)]


async def summary(conn: Connection, store_id: int) -> list[Row]:
    """The store's products by category of all platforms: `category`, `products`, `in_stock`, `specials`, `cheapest`. Products that
    are gone from the menu do not count; of a store with more than MOST_COUNTED so many are looked at."""
    return await rows(conn, _q.products_by_category, {"id": store_id, "limit": MOST_COUNTED})


async def platforms_and_states(conn: Connection) -> tuple[list[str], list[str]]:
    """(platforms, states) that there are stores of."""
    found = await row(conn, _q.platforms_and_states, {})
    assert found is not None, "an aggregate gives a row"
    return found["platforms"], found["states"]
