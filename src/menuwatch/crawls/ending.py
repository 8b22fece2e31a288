"""How an attempt that failed ends: with another one after a while, or for good."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.telemetry import get_logger
from menuwatch.crawls import rules, store
from menuwatch.crawls.model import Item

log = get_logger(__name__)

LONGEST_ERROR = 500


async def fail(
    conn: AsyncConnection[Any],
    item: Item,
    error: str,
    *,
    now: datetime,
    rng: random.Random,
    final: bool = False,
    at_least: timedelta = timedelta(0),
    path: str | None = None,
) -> None:
    """The present attempt at a page failed, and is made again as `rules.retry_wait` has it, but not before `at_least` from now; not
    at all where that is `final`. The caller holds the job, and has it looked at."""
    error = error[:LONGEST_ERROR]
    await store.end_attempt(conn, item.id, item.attempt, ok=False, error=error, now=now, path=path)
    wait = None if final else rules.retry_wait(item.retry_count + 1, rng)
    at = None if wait is None else now + max(wait, at_least)
    if at is None:
        await store.give_up(conn, item.id, error, now)
    else:
        await store.put_back(conn, item.id, error, at)
    log.info(
        "a page could not be had",
        action="crawl_attempt_failed",
        job_id=item.job_id,
        item_id=item.id,
        attempt=item.attempt,
        error=error,
        again_at=at and at.isoformat(),
    )
