"""A store's products and history made anew from its archive: what they would be had today's normalizer read every menu.

One transaction, so there is never half of it, and a dry run is the same one rolled back. Products keep their numbers and pictures.
From a time on, what came before stays as it is, and need not be in the archive: `rewind` puts the products back to what they
were then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.catalog import apply
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.exports.packs import Packs
from menuwatch.images import store as images
from menuwatch.payloads.store import Payload
from menuwatch.pipeline.parts import Parts
from menuwatch.pipeline.product_refresh import apply_payload
from menuwatch.pipeline.rewind import Rewinding
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

log = get_logger(__name__)
_q = sql.load(__package__, "rebuild.sql")
_SHOWN = 20

Told = Callable[[int, int], None]
"""Told how many payloads are applied, of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many rows differ from those before."""

    added: int
    removed: int
    changed: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What rebuilding one store came to. `examples` are some of the products that differ; `refused` are payloads that were applied
    before and are not taken any more, with the reason. `guessed` counts products whose words before `since` no payload tells any more,
    so that one or the other change of their name may be dated wrong."""

    store: Store
    since: datetime | None = None
    guessed: int = 0
    payloads: int
    products: Counts
    states: Counts
    crawls: Counts
    examples: tuple[dict[str, Any], ...]
    refused: tuple[tuple[int, str], ...]

    @property
    def same(self) -> bool:
        """Whether everything is as it was."""
        return not (self.products or self.states or self.crawls)


async def rebuild(
    parts: Parts,
    store_id: int,
    *,
    since: datetime | None = None,
    dry_run: bool = False,
    told: Told = lambda done, of: None,
) -> Rebuilt:
    """Rebuilds one store, or what was crawled at `since` or later, or only says what that would change.

    Raises Refused where the archive lacks what that history was made of: nothing is changed then.
    """
    if since is not None and since > parts.clock.now():
        raise Refused(f"{since:%Y-%m-%d %H:%M} UTC is still to come: there is nothing to rebuild since then")
    async with parts.pool.connection() as conn:
        found = await stores.get(conn, store_id)
        if found is None:
            raise Refused(f"store {store_id} does not exist")
        payloads = await _payloads(conn, found, since)
    for month in {payload.fetched_at.replace(day=1) for payload in payloads}:
        await apply.ensure_partition(parts.pool, month)
    async with parts.pool.connection() as conn, conn.transaction(force_rollback=dry_run):
        await conn.execute(_q.keep_from_packing)
        if await asyncio.to_thread(Packs(parts.archive.root).holds, store_id, since):
            which = (
                "months of its history" if since is None else f"months of its history since {since:%Y-%m-%d %H:%M} UTC"
            )
            raise Refused(f"store {store_id}: {which} are packed in files, which a rebuilding cannot change")
        store = await stores.lock(conn, store_id)
        if store is None:
            raise Refused(f"store {store_id} was removed meanwhile")
        rebuilt = await _rebuilt(conn, parts, store, since, told)
    if not dry_run:
        log.info(
            "store rebuilt",
            action="store_rebuilt",
            dispensary_id=store_id,
            since=since,
            payloads=rebuilt.payloads,
            same=rebuilt.same,
        )
    return rebuilt


async def _payloads(conn: AsyncConnection[Any], store: Store, since: datetime | None) -> list[Payload]:
    async with conn.cursor(row_factory=class_row(Payload)) as cursor:
        values = {"id": store.id, "last": store.last_crawled_at, "since": since}
        await cursor.execute(_q.payloads_to_apply, values)
        return await cursor.fetchall()


async def _rebuilt(
    conn: AsyncConnection[Any], parts: Parts, store: Store, since: datetime | None, told: Told
) -> Rebuilt:
    which = {"id": store.id, "since": since}
    (gone,) = await _rows(conn, _q.without_payload, which)
    if gone["crawls"]:
        raise Refused(
            f"store {store.id}: the archive has no payload of {gone['crawls']} of its crawls ({gone['first']:%Y-%m-%d} to "
            f"{gone['last']:%Y-%m-%d}); their history would be lost"
        )
    payloads = await _payloads(conn, store, since)
    for statement in (_q.create_products_before, _q.create_states_before, _q.create_crawls_before, _q.create_renamed):
        await conn.execute(statement)
    for statement in (_q.keep_products, _q.keep_states, _q.keep_crawls):
        await conn.execute(statement, which)
    rewinding = await _cleared(conn, parts, store, since, payloads)
    refused = []
    for number, payload in enumerate(payloads):
        told(number, len(payloads))
        platform, items = await _read(parts, payload)
        await apply.make_room(conn)
        result = await apply_payload(conn, payload, platform, items, anew=True)
        if "quarantined" in result:
            refused.append((payload.id, str(result["quarantined"])))
    told(len(payloads), len(payloads))
    if rewinding is not None:
        await rewinding.date_changes()
    await conn.execute(_q.match, which)
    await conn.execute(_q.unqueue_images)
    await conn.execute(_q.free_numbers, which)
    await conn.execute(_q.rename_products)
    await conn.execute(_q.rename_states)
    await conn.execute(_q.remove_aside, which)
    await images.queue_products(conn, store.id)
    known = [payload for payload in payloads if payload.applied_at is not None]
    times = {"ids": [payload.id for payload in known], "times": [payload.applied_at for payload in known]}
    await conn.execute(_q.restore_applied, times)
    return Rebuilt(
        store=store,
        since=since,
        guessed=0 if rewinding is None else len(rewinding.guessed),
        payloads=len(payloads),
        products=await _counts(conn, _q.compare_products, store.id),
        states=await _counts(conn, _q.compare_states, store.id),
        crawls=await _counts(conn, _q.compare_crawls, store.id),
        examples=tuple(await _rows(conn, _q.differing_products, {**which, "limit": _SHOWN})),
        refused=tuple(refused),
    )


async def _cleared(
    conn: AsyncConnection[Any], parts: Parts, store: Store, since: datetime | None, payloads: list[Payload]
) -> Rewinding | None:
    """Takes away what is to be made anew, down to the last crawl before `since` where there is one."""
    which = {"id": store.id, "since": since}
    before = await _rows(conn, _q.crawl_before, which)
    rewinding = Rewinding(conn, parts, store.id, before[0]["crawled_at"]) if before else None
    if rewinding is not None:
        await rewinding.look_back()
    for statement in (_q.clear_states, _q.clear_crawls, _q.set_aside, _q.forget_applied):
        await conn.execute(statement, which)
    if rewinding is None:
        await conn.execute(_q.forget_crawls, which)
    else:
        await conn.execute(_q.forget_later_crawls, {**which, **before[0]})
        await rewinding.put_back(payloads)
    return rewinding


async def _read(parts: Parts, payload: Payload) -> tuple[Platform, list[msgspec.Raw]]:
    try:
        platform = parts.platforms[payload.platform]
    except KeyError:
        raise Refused(f"payload {payload.id} is of platform {payload.platform!r}, which is not known here") from None
    document = await asyncio.to_thread(parts.archive.read, payload.path, payload.sha256)
    try:
        return platform, [item for page in document.pages for item in platform.split(page)]
    except BadPayload as error:
        raise Refused(f"payload {payload.id} is no menu: {error}") from error


async def _rows(conn: AsyncConnection[Any], query: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def _counts(conn: AsyncConnection[Any], query: Any, store_id: int) -> Counts:
    (row,) = await _rows(conn, query, {"id": store_id})
    return Counts(**row)
