"""The rows of `shop_watches` and `shop_watch_events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.db import sql
from menuwatch.shoppers.model import Condition, Event, Judged, Kind, Phase, Scope, Watch

_q = sql.load(__package__)


def hash_of(token: str) -> bytes:
    """What a token is known by."""
    return sha256(token.encode()).digest()


async def mark_of(conn: AsyncConnection[Any], address: str) -> bytes:
    """What stands for an e-mail address where it is counted."""
    found = await (await conn.execute(_q.mark, {"address": address})).fetchone()
    assert found is not None, "the pepper is there since the table is"
    return bytes(found[0])


async def counts(conn: AsyncConnection[Any], mark: bytes, now: datetime) -> tuple[int, int, int]:
    """Watches of an address, those it has not confirmed, and those that nobody at all has confirmed in the last hour. Until the
    transaction ends, nobody else counts those of the address."""
    await conn.execute(_q.hold_mark, {"mark": mark})
    found = await (await conn.execute(_q.counts, {"mark": mark, "now": now})).fetchone()
    assert found is not None, "an aggregate gives a row"
    return found[0], found[1], found[2]


async def insert(
    conn: AsyncConnection[Any],
    *,
    token_hash: bytes,
    kind: Kind,
    item_id: int,
    scope: Scope,
    condition: Condition,
    amount: Decimal | None,
    phase: Phase,
    reference: Decimal | None,
    now: datetime,
    address: str | None = None,
    token: str | None = None,
    address_mark: bytes | None = None,
    ends_at: datetime | None = None,
) -> int:
    """Stores a watch. A feed is confirmed and has an end, a mail is to be confirmed."""
    values = {
        **asdict(scope),
        "token_hash": token_hash,
        "kind": kind,
        "address": address,
        "token": token,
        "address_mark": address_mark,
        "item_id": item_id,
        "condition": condition,
        "amount": amount,
        "phase": phase,
        "reference": reference,
        "now": now,
        "confirmed_at": now if kind == "feed" else None,
        "mail_due_at": now if kind == "mail" else None,
        "ends_at": ends_at,
    }
    found = await (await conn.execute(_q.insert, values)).fetchone()
    assert found is not None, "an insert returns its row"
    return int(found[0])


async def _watches(conn: AsyncConnection[Any], query: Any, values: dict[str, Any]) -> list[Watch]:
    async with conn.cursor(row_factory=class_row(Watch)) as cur:
        await cur.execute(query, values)
        return await cur.fetchall()


async def by_token(conn: AsyncConnection[Any], token: str) -> Watch | None:
    """The watch that a token opens."""
    found = await _watches(conn, _q.by_token, {"hash": hash_of(token)})
    return found[0] if found else None


async def of_items(
    conn: AsyncConnection[Any], items: Sequence[int], store_id: int, *, after: int = 0, most: int = 5_000
) -> list[Judged]:
    """Confirmed watches of these items that may be about that store, by their numbers, locked until the transaction ends."""
    async with conn.cursor(row_factory=class_row(Judged)) as cur:
        await cur.execute(_q.of_items, {"items": list(items), "store_id": store_id, "after": after, "most": most})
        return await cur.fetchall()


async def confirm(
    conn: AsyncConnection[Any], watch_id: int, *, phase: Phase, reference: Decimal | None, now: datetime
) -> None:
    """From now on it is watched; does nothing where it was already."""
    await conn.execute(_q.confirm, {"id": watch_id, "phase": phase, "reference": reference, "now": now})


async def stand(
    conn: AsyncConnection[Any], moved: Sequence[tuple[int, Phase, Decimal | None, datetime | None]]
) -> None:
    """Notes where watches stand: of each its number, phase, reference and when it fired."""
    if moved:
        ids, phases, references, fired = zip(*moved, strict=True)
        values = {"ids": list(ids), "phases": list(phases), "references": list(references), "fired": list(fired)}
        await conn.execute(_q.stand, values)


async def tell(conn: AsyncConnection[Any], news: Mapping[int, str], *, now: datetime, pace: float) -> None:
    """Notes what is to be told, by the number of the watch; a mail goes out at once, or `pace` seconds after the one before."""
    if news:
        values = {"ids": list(news), "facts": list(news.values()), "now": now, "pace": pace}
        await conn.execute(_q.tell, values)


async def end(conn: AsyncConnection[Any], token: str) -> bool:
    """Deletes a watch with all that is known of it; says whether there was one."""
    return (await conn.execute(_q.end, {"hash": hash_of(token)})).rowcount > 0


async def remove(conn: AsyncConnection[Any], watch_id: int) -> None:
    """Deletes a watch."""
    await conn.execute(_q.remove, {"id": watch_id})


async def _events(conn: AsyncConnection[Any], query: Any, watch_id: int, limit: int) -> list[Event]:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, {"id": watch_id, "limit": limit})
        return [msgspec.convert(row, Event) for row in await cur.fetchall()]


async def events(conn: AsyncConnection[Any], watch_id: int, limit: int = 50) -> list[Event]:
    """What was found for a watch, the latest first."""
    return await _events(conn, _q.events, watch_id, limit)


async def untold(conn: AsyncConnection[Any], watch_id: int, limit: int = 50) -> list[Event]:
    """What was found and no mail has told yet, the first one first."""
    return await _events(conn, _q.untold, watch_id, limit)


async def take_due(conn: AsyncConnection[Any], now: datetime, n: int, *, hold: float) -> list[Watch]:
    """Watches of which a mail is due, held for so many seconds."""
    return await _watches(conn, _q.take_due, {"now": now, "n": n, "hold": hold})


async def mailed(conn: AsyncConnection[Any], watch_id: int, told: Sequence[int], *, now: datetime, pace: float) -> None:
    """A mail with these events was taken; what came meanwhile goes into the next one."""
    # Who judges a menu holds the watch until what was found is committed: a statement that began before that would not see it.
    async with conn.transaction():
        await conn.execute(_q.lock, {"id": watch_id})
        await conn.execute(_q.mailed, {"id": watch_id, "events": list(told), "now": now, "pace": pace})


async def not_mailed(conn: AsyncConnection[Any], watch_id: int, again_at: datetime | None) -> None:
    """A mail was not taken: when it is tried again, None for never."""
    await conn.execute(_q.not_mailed, {"id": watch_id, "again_at": again_at})


async def was_read(conn: AsyncConnection[Any], watch_id: int, ends_at: datetime) -> None:
    """A feed was read: it ends then, unless it is read again."""
    await conn.execute(_q.was_read, {"id": watch_id, "ends_at": ends_at})


async def prune(conn: AsyncConnection[Any], *, now: datetime, unconfirmed: datetime, events: datetime) -> int:
    """Removes watches that were asked for before `unconfirmed` and not confirmed, feeds whose end has come, and events from before
    `events`."""
    values = {"now": now, "unconfirmed": unconfirmed, "events": events}
    found = await (await conn.execute(_q.prune, values)).fetchone()
    return int(found[0]) if found is not None else 0
