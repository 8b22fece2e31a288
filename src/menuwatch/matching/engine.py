"""Keeps canonical products in step with the catalog. The changed listings of each applied menu are taken in shortly after, and the
blocks that they change are grouped again, in transactions of their own:

    new menu ─► take in: sign, link, mark blocks ─► group blocks: links, numbers, events, pairs for review
    correction ─► marks blocks ──────────────────────┘

A refresh does not wait for it and shares no lock with it. What a crash leaves undone is marked, and the next run does it. Blocks are
grouped when no store waits, so that many new menus group each block once.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from psycopg import AsyncConnection

from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.items import Aside, described, log_refused, write_in_halves
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.db.query import fetch_all, fetch_one
from menuwatch.matching import correction_keys, groups
from menuwatch.matching.blocks import BlockRun, batches, group_blocks, waiting_blocks
from menuwatch.matching.brands import BrandIndex, Spellings
from menuwatch.matching.judging import Grouper
from menuwatch.matching.names import RULES
from menuwatch.matching.taking import TakenIn, take_stores_in

log = get_logger(__name__)
_q = sql.load(__package__, "engine.sql")

STORES_AT_ONCE = 50
_STORES_IN_TRANSACTION = 10
_LARGE = 2_000
"""Listings from which a run is a large one."""


@dataclass(slots=True)
class MatchRun:
    """Result of one run."""

    taken: TakenIn = field(default_factory=TakenIn)
    blocks: BlockRun = field(default_factory=BlockRun)
    failed: int = 0
    """Stores and blocks that failed, which are tried again later."""
    more: bool = False
    """More stores are waiting."""

    @property
    def changed(self) -> bool:
        return bool(self.taken.stores or self.blocks.blocks)


@dataclass(slots=True)
class Memory:
    """What a process knows from its former runs: failed stores and blocks, and for what state correction keys were renewed, and
    spellings of brands."""

    stores: Aside = field(default_factory=Aside)
    blocks: Aside = field(default_factory=Aside)
    brands: BrandIndex = field(default_factory=BrandIndex)
    spellings: Spellings = field(default_factory=Spellings)
    corrections: str | None = None
    analyzed: bool = False
    """Whether the tables were analyzed for a large run."""


async def match_changed_stores(
    pool: Pool,
    *,
    group: Grouper = groups.group,
    limit: int = STORES_AT_ONCE,
    memory: Memory | None = None,
    wait: bool = False,
) -> MatchRun:
    """Takes in the stores that changed, at most `limit` of them, and groups the blocks that wait if no more stores do. No-op while
    another process is matching, unless `wait`, which waits for it.
    """
    run = MatchRun()
    memory = memory or Memory()
    started = time.perf_counter()
    async with pool.connection() as conn, _lock(conn, wait=wait) as locked:
        if not locked:
            return run
        values = {"rules": RULES, "limit": limit, "exclude": list(memory.stores.now())}
        stores = await fetch_all(conn, _q.changed_stores, values)
        if stores:
            await memory.brands.load(conn)
            await _cover(conn, {row["id"]: row["last_crawled_at"] for row in stores}, memory)
        for batch in batches(((row["id"], row["products"]) for row in stores), most=_STORES_IN_TRANSACTION):
            await _take_in(conn, batch, run, memory)
        # A brand that became known may have outdated listings of stores that were taken in before.
        run.more = run.taken.stores > 0 and bool(await fetch_all(conn, _q.changed_stores, {**values, "limit": 1}))
        if not run.more:
            memory.spellings = Spellings()
            await _renew_corrections(conn, memory)
            await _group_waiting(conn, group, run, memory)
    if run.changed:
        log.info(
            "products matched",
            action="products_matched",
            stores=run.taken.stores,
            listings=run.taken.listings,
            removed=run.taken.removed,
            blocks=run.blocks.blocks,
            products=run.blocks.products,
            merged=run.blocks.merged,
            split=run.blocks.split,
            ms=round((time.perf_counter() - started) * 1000),
        )
    return run


class ProductMatcher(Loop):
    """Matches the listings of new menus. Any number of instances may run; one works at a time."""

    name: ClassVar[str] = "product_matcher"

    def __init__(self, pool: Pool, *, group: Grouper = groups.group, interval: float = 3.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._group = group
        self._memory = Memory()

    async def step(self) -> float | None:
        run = await match_changed_stores(self._pool, group=self._group, memory=self._memory)
        return 0.0 if run.more else None


async def match_all(pool: Pool, *, group: Grouper = groups.group) -> MatchRun:
    """Works off everything that waits, after other processes that are matching; returns the sums."""
    total, memory = MatchRun(more=True), Memory()
    while total.more:
        run = await match_changed_stores(pool, group=group, memory=memory, wait=True)
        total.more = run.more
        total.failed += run.failed
        total.taken.add(run.taken)
        total.blocks.add(run.blocks)
    return total


@asynccontextmanager
async def _lock(conn: AsyncConnection[Any], *, wait: bool) -> AsyncIterator[bool]:
    if wait:
        await conn.execute(_q.await_lock)
    elif not (await fetch_one(conn, _q.take_lock, {}) or {}).get("locked"):
        yield False
        return
    try:
        yield True
    finally:
        if not conn.closed:
            await conn.execute(_q.free_lock)


async def _cover(conn: AsyncConnection[Any], stores: Mapping[int, datetime | None], memory: Memory) -> None:
    """Has spellings of brands counted again if one of these stores has a menu that they do not cover."""
    if not memory.spellings.cover({number: at for number, at in stores.items() if at is not None}):
        waiting = await (await conn.execute(_q.waiting_stores, {"rules": RULES})).fetchall()
        memory.spellings = Spellings(dict(waiting))


async def _take_in(conn: AsyncConnection[Any], store_ids: Sequence[int], run: MatchRun, memory: Memory) -> None:
    def put_aside(store_id: int, error: Exception) -> None:
        run.failed += 1
        log_refused("product_matcher", "store", store_id, error, trace=True)
        log.warning(
            "matching of a store failed",
            action="match_store_failed",
            dispensary_id=store_id,
            again_in_seconds=round(memory.stores.put(store_id), 1),
            error=described(error),
        )

    async def take(batch: Sequence[int]) -> None:
        known = memory.brands.known
        try:
            await take_stores_in(conn, batch, memory.brands, memory.spellings, run.taken)
        except Exception:
            memory.brands.known = known
            raise
        for store_id in batch:
            memory.stores.clear(store_id)

    await write_in_halves(store_ids, take, put_aside)


async def _renew_corrections(conn: AsyncConnection[Any], memory: Memory) -> None:
    state = await correction_keys.state(conn)
    if state != memory.corrections:
        await correction_keys.renew_keys(conn)
        memory.corrections = await correction_keys.state(conn)


async def _group_waiting(conn: AsyncConnection[Any], group: Grouper, run: MatchRun, memory: Memory) -> None:
    def refuse(component: Sequence[str], error: Exception) -> None:
        run.failed += 1
        for block in component:
            memory.blocks.put(block)
        log_refused("product_matcher", "blocks", ", ".join(component[:5]), error)
        log.warning(
            "grouping of blocks failed",
            action="match_blocks_failed",
            blocks=list(component[:5]),
            error=described(error),
        )

    async def write(components: Sequence[Sequence[str]]) -> None:
        await group_blocks(conn, components, group, run.blocks)

    waiting = await waiting_blocks(conn, list(memory.blocks.now()))
    # A first index fills empty tables faster than PostgreSQL's own upkeep looks at them, and plans made for few rows are slow.
    is_large = waiting.listings > _LARGE and not memory.analyzed
    for at, batch in enumerate(batches(waiting.components)):
        if is_large and at & (at - 1) == 0:
            await conn.execute(_q.analyze)
        await write_in_halves(batch, write, refuse)
    memory.analyzed = memory.analyzed or is_large
