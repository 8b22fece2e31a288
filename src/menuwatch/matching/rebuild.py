"""Rebuilds the index of matches: all signatures and links are dropped and made again."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.db.query import fetch_one
from menuwatch.matching import groups
from menuwatch.matching.engine import match_all
from menuwatch.matching.judging import Grouper

_q = sql.load(__package__, "rebuild.sql")

_REBUILT = -1
"""`match_stores.rules_version` of stores whose index is rebuilt."""


class RebuildResult(Struct, kw_only=True, frozen=True):
    """Result of a rebuild of the index of matches."""

    listings: Annotated[int, doc("Listings that are matched.")]
    changed: Annotated[int, doc("Listings that have another canonical product than before.")]
    products: Annotated[int, doc("New canonical products.")]
    merged: Annotated[int, doc("Canonical products that were merged into another one.")]
    failed: Annotated[int, doc("Stores and blocks that failed; they are tried again later.")]


async def rebuild_index(pool: Pool, *, group: Grouper = groups.group) -> RebuildResult:
    """Drops all links and signatures and makes them again. Numbers and corrections stay. The next run of the matcher continues
    an interrupted rebuild."""
    async with pool.connection() as conn:
        await conn.execute(_q.note_numbers)
        try:
            async with conn.transaction():
                for statement in (_q.mark_blocks, _q.drop_signatures, _q.drop_links):
                    await conn.execute(statement)
                await conn.execute(_q.drop_stores, {"mark": _REBUILT})
            run = await match_all(pool, group=group)
            row = await fetch_one(conn, _q.compare, {})
        finally:
            if not conn.closed:
                await conn.execute(_q.drop_numbers)
    assert row is not None, "an aggregate returns one row"
    return RebuildResult(**row, products=run.blocks.products, merged=run.blocks.merged, failed=run.failed)
