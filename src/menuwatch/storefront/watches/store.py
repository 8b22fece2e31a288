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
    CHANNELS,
    KEPT,
    UNCONFIRMED,
    Channel,
    Event,
    Named,
    NewWatch,
    Phase,
    Watch,
    WatchedSearch,
    WatchTerms,
)

_q = sql.load(__package__)


def hash_of(token: str) -> bytes:
    """The hash by which a token is stored."""
    return sha256(token.encode()).digest()


async def mark_of(conn: AsyncConnection[Any], address: str) -> bytes:
    """A keyed hash of an address, to count its watches."""
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
    new: NewWatch,
    *,
    currency: str,
    token_hash: bytes,
    phase: Phase,
    reference: Decimal | None,
    now: datetime,
    confirmed: bool,
    address: str | None = None,
    token: str | None = None,
    address_mark: bytes | None = None,
    ends_at: datetime | None = None,
) -> int:
    """Inserts a watch, with `address` and `token` as they are stored. One that is not confirmed has a message due."""
    values = {
        **asdict(new.scope),
        "token_hash": token_hash,
        "channel": new.channel,
        "address": address,
        "token": token,
        "address_mark": address_mark,
        "subject": new.subject,
        "item_id": new.item_id,
        "brand_id": new.brand_id,
        "search_id": None if new.search is None else await _put_search(conn, new.search),
        "size": new.size,
        "condition": new.condition,
        "currency": currency,
        "amount": new.amount,
        "phase": phase,
        "reference": reference,
        "now": now,
        "confirmed_at": now if confirmed else None,
        "due_at": None if confirmed else now,
        "ends_at": ends_at,
    }
    row = await (await conn.execute(_q.insert, values)).fetchone()
    assert row is not None, "an insert returns its row"
    return int(row[0])


async def _put_search(conn: AsyncConnection[Any], search: WatchedSearch) -> int:
    values = {
        name: (list(value) or None) if isinstance(value, tuple) else value for name, value in asdict(search).items()
    }
    row = await (await conn.execute(_q.put_search, values)).fetchone()
    assert row is not None, "an insert returns its row"
    return int(row[0])


async def by_token(conn: AsyncConnection[Any], token: str) -> Watch | None:
    return await fetch_struct(conn, Watch, _q.by_token, {"hash": hash_of(token)})


async def of_items(
    conn: AsyncConnection[Any], items: Sequence[int], store_id: int, *, after: int = 0, limit: int = 5_000
) -> list[WatchTerms]:
    """Confirmed watches of the states of these items that may be about that store, by id, locked until the transaction ends."""
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


async def add_events(conn: AsyncConnection[Any], events: Mapping[int, str], *, now: datetime) -> None:
    """Inserts events (watch id → facts); a message is due at once, or when the pace of the channel allows the next one."""
    if events:
        sent = [name for name in CHANNELS if name != "feed"]
        paces = [CHANNELS[name].pace for name in sent]
        values = {"ids": list(events), "facts": list(events.values()), "now": now, "channels": sent, "paces": paces}
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
    """Events that no message contained yet, oldest first."""
    return await _events(conn, _q.unsent_events, watch_id, limit)


async def lease_due(
    conn: AsyncConnection[Any], now: datetime, n: int, *, channels: Sequence[Channel], lease_seconds: float
) -> list[Watch]:
    """Leases watches with a due message."""
    values = {"now": now, "n": n, "channels": list(channels), "lease_seconds": lease_seconds}
    return await fetch_structs(conn, Watch, _q.lease_due, values)


async def sent(conn: AsyncConnection[Any], watch_id: int, events: Sequence[int], *, now: datetime, pace: float) -> None:
    """Records an accepted message with these events; later ones go into the next message."""
    # An evaluation locks the watch until its events are committed: a statement that began before that would not see them.
    async with conn.transaction():
        await conn.execute(_q.lock, {"id": watch_id})
        await conn.execute(_q.sent, {"id": watch_id, "events": list(events), "now": now, "pace": pace})


async def not_sent(conn: AsyncConnection[Any], watch_id: int, again_at: datetime | None) -> None:
    """Records a failed message; the next attempt is at `again_at`, None for none."""
    await conn.execute(_q.not_sent, {"id": watch_id, "again_at": again_at})


async def was_used(conn: AsyncConnection[Any], watch_id: int, ends_at: datetime) -> None:
    """A watch was used: it expires at `ends_at`, unless it is used again."""
    await conn.execute(_q.was_used, {"id": watch_id, "ends_at": ends_at})


async def names_of(conn: AsyncConnection[Any], watch: Watch) -> Named:
    """The names of what a watch is about, as far as it is still there."""
    return await names(conn, item_id=watch.item_id, brand_id=watch.brand_id, store_id=watch.store_id)


async def names(
    conn: AsyncConnection[Any], *, item_id: int | None, brand_id: int | None, store_id: int | None
) -> Named:
    """The names of an item, a brand and a store, as far as they are still there."""
    values = {"item_id": item_id, "brand_id": brand_id, "store_id": store_id}
    named = await fetch_struct(conn, Named, _q.names, values)
    assert named is not None, "a select without a table returns a row"
    return named


async def usual_currency(conn: AsyncConnection[Any]) -> str:
    """The currency of most stores on the site; USD without stores."""
    row = await (await conn.execute(_q.usual_currency)).fetchone()
    return "USD" if row is None else str(row[0])


async def push_key(conn: AsyncConnection[Any]) -> str | None:
    """The private key of web push as it is stored; None if none was made."""
    row = await (await conn.execute(_q.push_key)).fetchone()
    return None if row is None else str(row[0])


async def put_push_key(conn: AsyncConnection[Any], stored: str) -> None:
    """Stores the private key of web push, unless there is one."""
    await conn.execute(_q.put_push_key, {"key": stored})


async def prune(conn: AsyncConnection[Any], now: datetime) -> int:
    """Deletes unconfirmed and expired watches and old events; returns how many rows."""
    values = {"now": now, "unconfirmed": now - UNCONFIRMED, "events": now - KEPT}
    row = await (await conn.execute(_q.prune, values)).fetchone()
    return int(row[0]) if row is not None else 0
