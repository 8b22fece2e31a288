"""Keys of what people decided. A correction names two listings by the keys of their signatures, which change with the parser and with
the aliases of brands; its stored texts do not."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.matching.blocks import mark_dirty
from menuwatch.matching.brands import BrandIndex
from menuwatch.matching.model import Listing, Signature

log = get_logger(__name__)
_q = sql.load(__package__, "correction_keys.sql")
_listing = msgspec.json.Decoder(Listing).decode


async def sign_listings(conn: AsyncConnection[Any], listings: Sequence[Listing]) -> list[Signature]:
    """Signatures as the matcher gives them to these listings, with the aliases of their brands resolved."""
    index = BrandIndex()
    await index.load(conn)
    return await asyncio.to_thread(lambda: [index.sign(one)[1] for one in listings])


async def state(conn: AsyncConnection[Any]) -> str:
    """Changes when keys may have to be renewed."""
    row = await (await conn.execute(_q.state)).fetchone()
    assert row is not None, "an aggregate returns one row"
    return str(row[0])


async def renew_keys(conn: AsyncConnection[Any]) -> int:
    """Renews the keys of corrections whose listings are signed otherwise now; returns how many. Of two corrections that are of one
    pair then, the newer one holds. One whose listings are signed alike now has nothing to say, and keeps its former keys."""
    async with conn.transaction():
        rows = await (await conn.execute(_q.valid)).fetchall()
        signed = await sign_listings(conn, [_listing(text) for row in rows for text in (row[3], row[4])])
        pairs: dict[tuple[UUID, UUID], int] = {}
        changed: dict[int, tuple[UUID, UUID]] = {}
        replaced: list[int] = []
        blocks: set[str] = set()
        for at, (number, a_key, b_key, _, _) in enumerate(rows):
            a, b = signed[2 * at : 2 * at + 2]
            pair = (a.key, b.key) if a.key < b.key else (b.key, a.key)
            if a.key == b.key:
                pair = (a_key, b_key)
            elif pair != (a_key, b_key):
                changed[number] = pair
                blocks |= {a.block, b.block}
            if (older := pairs.get(pair)) is not None:
                replaced.append(older)
                changed.pop(older, None)
            pairs[pair] = number
        await _write(conn, changed, replaced)
        await mark_dirty(conn, blocks, "rules")
    if changed or replaced:
        log.info(
            "correction keys renewed", action="match_corrections_renewed", count=len(changed), replaced=len(replaced)
        )
    return len(changed)


async def _write(conn: AsyncConnection[Any], changed: dict[int, tuple[UUID, UUID]], replaced: Iterable[int]) -> None:
    if ids := list(replaced):
        await conn.execute(_q.withdraw, {"ids": ids})
    if not changed:
        return
    # Keys are unique while they hold, and two pairs may have exchanged theirs.
    free = [sorted((uuid.uuid4(), uuid.uuid4())) for _ in changed]
    for pairs in (free, list(changed.values())):
        values = {"ids": list(changed), "a": [a for a, _ in pairs], "b": [b for _, b in pairs]}
        await conn.execute(_q.set_keys, values)
