"""The rows of `price_watches` and `price_watch_events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_struct, fetch_structs
from menuwatch.storefront.watches.model import (
    KEPT,
    UNCONFIRMED,
    Condition,
    Event,
    Kind,
    Phase,
    Scope,
    Watch,
    WatchTerms,
)

_q = sql.load(__package__)


def hash_of(token: str) -> bytes:
    """The hash by which a token is stored."""
    return sha256(token.encode()).digest()


async def mark_of(conn: AsyncConnection[Any], address: str) -> bytes:
    """A keyed hash of an e-mail address, to count its watches."""
    row = await (await conn.execute(_q.mark, {"address": address})).fetchone()
    assert row is not None, "the migration made the key"
    return bytes(row[0])


async def counts(conn: AsyncConnection[Any], mark: bytes, now: datetime) -> tuple[int, int, int]:
    """Watches of an address, its unconfirmed ones, and all unconfirmed ones of the last hour. Locks the address until the transaction
    ends."""
    await conn.execute(_q.hold_mark, {"mark": mark})
    row = await (await conn.execute(_q.counts, {"mark": mark, "now": now})).fetchone()
    assert row is not None, "an aggregate gives a row"
    return row[0], row[1], row[2]


async def insert(
    conn: AsyncConnection[Any],
    *,
    token_hash: bytes,
    kind: Kind,
    item_id: int,
    size: str | None = None,
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
    """Inserts a watch. A feed is confirmed and expires, a mail must be confirmed."""
    values = {
        **asdict(scope),
        "token_hash": token_hash,
        "kind": kind,
        "address": address,
        "token": token,
        "address_mark": address_mark,
        "item_id": item_id,
        "size": size,
        "condition": condition,
        "amount": amount,
        "phase": phase,
        "reference": reference,
        "now": now,
        "confirmed_at": now if kind == "feed" else None,
        "mail_due_at": now if kind == "mail" else None,
        "ends_at": ends_at,
    }
    row = await (await conn.execute(_q.insert, values)).fetchone()
    assert row is not None, "an insert returns its row"
    return int(row[0])


async def by_token(conn: AsyncConnection[Any], token: str) -> Watch | None:
    return await fetch_struct(conn, Watch, _q.by_token, {"hash": hash_of(token)})


async def of_items(
    conn: AsyncConnection[Any], items: Sequence[int], store_id: int, *, after: int = 0, limit: int = 5_000
) -> list[WatchTerms]:
    """Confirmed watches of these items that may be about that store, by id, locked until the transaction ends."""
    values = {"items": list(items), "store_id": store_id, "after": after, "most": limit}
    return await fetch_structs(conn, WatchTerms, _q.of_items, values)


async def confirm(
    conn: AsyncConnection[Any], watch_id: int, *, phase: Phase, reference: Decimal | None, now: datetime
) -> None:
    """Activates a watch that is not active."""
    await conn.execute(_q.confirm, {"id": watch_id, "phase": phase, "reference": reference, "now": now})


async def save_states(
    conn: AsyncConnection[Any], changes: Sequence[tuple[int, Phase, Decimal | None, datetime | None]]
) -> None:
    """Stores states of watches: id, phase, reference, time of firing."""
    if changes:
        ids, phases, references, fired = zip(*changes, strict=True)
        values = {"ids": list(ids), "phases": list(phases), "references": list(references), "fired": list(fired)}
        await conn.execute(_q.save_states, values)


async def add_events(conn: AsyncConnection[Any], events: Mapping[int, str], *, now: datetime, pace: float) -> None:
    """Inserts events (watch id → facts); a mail is due at once, or `pace` seconds after the last one."""
    if events:
        values = {"ids": list(events), "facts": list(events.values()), "now": now, "pace": pace}
        await conn.execute(_q.add_events, values)


async def end(conn: AsyncConnection[Any], token: str) -> bool:
    """Deletes a watch with its events; returns whether it existed."""
    return (await conn.execute(_q.end, {"hash": hash_of(token)})).rowcount > 0


async def remove(conn: AsyncConnection[Any], watch_id: int) -> None:
    await conn.execute(_q.remove, {"id": watch_id})


async def _events(conn: AsyncConnection[Any], query: Any, watch_id: int, limit: int) -> list[Event]:
    rows = await fetch_all(conn, query, {"id": watch_id, "limit": limit})
    return [Event(**row | {"facts": msgspec.json.decode(row["facts"])}) for row in rows]


async def events(conn: AsyncConnection[Any], watch_id: int, limit: int = 50) -> list[Event]:
    """Events of a watch, newest first."""
    return await _events(conn, _q.events, watch_id, limit)


async def unsent_events(conn: AsyncConnection[Any], watch_id: int, limit: int = 50) -> list[Event]:
    """Events that no mail contained yet, oldest first."""
    return await _events(conn, _q.unsent_events, watch_id, limit)


async def lease_due(conn: AsyncConnection[Any], now: datetime, n: int, *, lease_seconds: float) -> list[Watch]:
    """Leases watches with a due mail."""
    return await fetch_structs(conn, Watch, _q.lease_due, {"now": now, "n": n, "lease_seconds": lease_seconds})


async def mailed(
    conn: AsyncConnection[Any], watch_id: int, events: Sequence[int], *, now: datetime, pace: float
) -> None:
    """Records an accepted mail with these events; later ones go into the next mail."""
    # An evaluation locks the watch until its events are committed: a statement that began before that would not see them.
    async with conn.transaction():
        await conn.execute(_q.lock, {"id": watch_id})
        await conn.execute(_q.mailed, {"id": watch_id, "events": list(events), "now": now, "pace": pace})


async def not_mailed(conn: AsyncConnection[Any], watch_id: int, again_at: datetime | None) -> None:
    """Records a failed mail; the next attempt is at `again_at`, None for none."""
    await conn.execute(_q.not_mailed, {"id": watch_id, "again_at": again_at})


async def was_read(conn: AsyncConnection[Any], watch_id: int, ends_at: datetime) -> None:
    """A feed was read: it expires at `ends_at`, unless it is read again."""
    await conn.execute(_q.was_read, {"id": watch_id, "ends_at": ends_at})


async def prune(conn: AsyncConnection[Any], now: datetime) -> int:
    """Deletes unconfirmed watches, expired feeds and old events; returns how many rows."""
    values = {"now": now, "unconfirmed": now - UNCONFIRMED, "events": now - KEPT}
    row = await (await conn.execute(_q.prune, values)).fetchone()
    return int(row[0]) if row is not None else 0
