"""Merging two rows of one shop, so that nothing either of them had is lost.

| catalogs | what happens to the history |
|---|---|
| only the removed store has one | products, states and crawls move as they are |
| only the store that stays has one | payloads move; the catalog is untouched |
| both have one | the catalog is rebuilt from the payloads of both, in order of time (`rebuild`) |

A rebuild needs every crawl's payload and no packed months, else the merge is refused: it would lose that part of the history. So would
payloads that are damaged or not credible. All of it is one transaction, so a refused merge changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Struct, structs

from menuwatch.accounts import audit
from menuwatch.archive.files import FileArchive
from menuwatch.catalog import apply
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Conflict, InvalidField, NotFound, Refused
from menuwatch.core.format import pluralize
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import fetch_all, fetch_struct
from menuwatch.pipeline import rebuild
from menuwatch.pipeline.context import offline_context
from menuwatch.platforms.base import Platform
from menuwatch.queue import service as tasks
from menuwatch.queue import store as queue
from menuwatch.queue.model import PRIORITY_CHAINED, NewTask, Role
from menuwatch.queue.task_list import TaskFilter
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details, Store

_q = sql.load(__package__, "store_merge.sql")


class MergeContents(Struct, kw_only=True, frozen=True):
    """What moves when a store is merged into another one."""

    payloads: int
    crawls: Annotated[int, doc("Crawls in the catalog.")]
    products: Annotated[int, doc("Products that only this store has; they keep their ids.")]
    shared_products: Annotated[int, doc("Products that both stores have; their histories are joined.")]
    past_states: Annotated[int, doc("Earlier states of its products, in the months that are not packed.")]
    alert_rules: Annotated[int, doc("Alert rules for this store or one of its products.")]
    finished_tasks: Annotated[int, doc("Tasks in the history.")]
    unfinished_tasks: Annotated[int, doc("Pending and running tasks, which are cancelled.")]
    rebuilt_from: Annotated[
        int, doc("Payloads of both stores from which the catalog is rebuilt; 0 if only one of them has a catalog.")
    ]


class MergedStore(Struct, kw_only=True, frozen=True):
    """A store that was merged into another one, or would be in a dry run."""

    id: int
    name: str
    slug: str | None
    into: Annotated[int, doc("Id of the store that stays.")]
    contents: MergeContents


class _Facts(MergeContents, kw_only=True, frozen=True):
    """`shared_instants`: payloads of the same instant. `without_payload`: crawls of both stores whose payload is gone."""

    moves: bool
    stays: bool
    shared_instants: int
    without_payload: int


async def merge_stores(
    pool: Pool,
    archive: FileArchive,
    platforms: Mapping[str, Platform],
    store_id: int,
    into: int,
    *,
    dry_run: bool = False,
    progress: rebuild.Progress = lambda done, of: None,
) -> MergedStore:
    """Moves everything of a store to `into`, another row of the same shop, and removes the store; its tasks are cancelled. `progress`
    is that of a rebuild. Raises NotFound, InvalidField, and Conflict where a part of the history would be lost.
    """
    if store_id == into:
        raise InvalidField("into", "choose another store: a store cannot be merged into itself")
    ids = {"id": store_id, "into": into}
    async with pool.connection(timeout=10) as conn:
        months = [] if dry_run else [row["month"] for row in await fetch_all(conn, _q.months, ids)]
    for month in months:
        await apply.ensure_partition(pool, month)
    async with pool.connection(timeout=10) as conn, conn.transaction():
        if not dry_run:
            await conn.execute(_q.keep_from_packing)
            await fetch_all(conn, _q.lock_stores, ids)
        store, target = await _get(conn, store_id), await _get(conn, into)
        facts = await _examine(conn, archive, store, target)
        contents = MergeContents(**{name: getattr(facts, name) for name in MergeContents.__struct_fields__})
        merged = MergedStore(id=store_id, name=store.name, slug=store.slug, into=into, contents=contents)
        if dry_run:
            return merged
        if facts.unfinished_tasks:
            reason = f"the store was merged into store {into}"
            await tasks.bulk_cancel(conn, TaskFilter(dispensary_id=store_id), reason=reason)
        await _move(conn, store, facts, ids)
        await stores.fill_in(conn, into, _details(store))
        if facts.rebuilt_from:
            await _rebuild(conn, pool, archive, platforms, into, progress)
        await _refresh_pending(conn, into)
        numbers = {name: n for name, n in structs.asdict(contents).items() if n}
        await audit.record(
            conn, "store_merged", ("store", store_id), into=into, name=store.name, slug=store.slug, **numbers
        )
    return merged


async def _get(conn: Connection, store_id: int) -> Store:
    store = await stores.get(conn, store_id)
    if store is None:
        raise NotFound(f"store {store_id} does not exist")
    return store


async def _examine(conn: Connection, archive: FileArchive, store: Store, target: Store) -> _Facts:
    """Counts what moves; raises InvalidField and Conflict if the two cannot be merged."""
    if target.platform != store.platform:
        raise InvalidField("into", f"{target.name} is on {target.platform}, {store.name} on {store.platform}")
    facts = await fetch_struct(conn, _Facts, _q.contents, {"id": store.id, "into": target.id})
    assert facts is not None, "an aggregate returns one row"
    if facts.shared_instants:
        raise Conflict(
            f"both stores have a payload of the same instant ({facts.shared_instants}): they cannot be merged"
        )
    both = facts.moves and facts.stays
    if both and facts.without_payload:
        raise Conflict(
            f"the payloads of {pluralize(facts.without_payload, 'crawl')} are no longer in the archive, so the two histories "
            "cannot be joined without losing these; disable crawling of one store instead"
        )
    holds = ParquetPartitions(archive.storage).holds
    if facts.moves and await asyncio.to_thread(holds, store.id):
        other_way = "" if both else f"; merge {target.name} into it instead"
        raise Conflict(f"{store.name} has packed months of history, which cannot be moved{other_way}")
    if both and await asyncio.to_thread(holds, target.id):
        raise Conflict(f"{target.name} has packed months of history, which cannot be joined with another history")
    return facts


async def _move(conn: Connection, store: Store, facts: _Facts, ids: Mapping[str, int]) -> None:
    """Moves all rows, and removes the store with what is left: the shared products, which the rebuild makes of both histories."""
    statements: list[Any] = [_q.mark_switches] if facts.rebuilt_from else []
    statements += [_q.move_payloads, _q.move_rules, _q.move_product_rules, _q.move_shared_matches]
    statements += [
        _q.reindex_products,
        _q.match_again,
        _q.move_links,
        _q.move_history,
        _q.move_products,
        _q.move_matches,
    ]
    statements += [_q.move_crawls] if facts.moves and not facts.stays else []
    statements += [
        _q.move_locations,
        _q.move_tasks,
        _q.move_events,
        _q.move_watches,
        _q.join_crawl_times,
        _q.delete_store,
    ]
    for statement in statements:
        await conn.execute(statement, ids)
    if store.platform_dispensary_id is not None:
        identity = {name: getattr(store, name) for name in ("platform_dispensary_id", "slug", "name")}
        await conn.execute(_q.take_identity, {**ids, **identity})


async def _rebuild(
    conn: Connection,
    pool: Pool,
    archive: FileArchive,
    platforms: Mapping[str, Platform],
    store_id: int,
    progress: Callable[[int, int], None],
) -> None:
    store = await stores.lock(conn, store_id)
    assert store is not None, "it is locked"
    context = offline_context(pool, archive, platforms)
    try:
        result = await rebuild.rebuild_locked(conn, context, store, None, progress)
    except Refused as error:
        raise Conflict(f"the histories cannot be joined: {error}") from error
    if result.damaged:
        first = result.damaged[0]
        raise Conflict(
            f"the files of {pluralize(len(result.damaged), 'payload')} are missing or damaged, the first is {first.payload_id}: "
            "run `menuwatch verify --repair` first"
        )
    if result.refused:
        number, reason = result.refused[0]
        raise Conflict(
            f"{pluralize(len(result.refused), 'payload')} would no longer be accepted, the first is {number}: {reason}. "
            "Are the two stores one shop?"
        )


async def _refresh_pending(conn: Connection, store_id: int) -> None:
    """Enqueues the refreshes of payloads that are newer than the catalog; those of the removed store were cancelled."""
    pending = await fetch_all(conn, _q.pending, {"id": store_id})
    await queue.enqueue(
        conn,
        [
            NewTask(
                role=Role.PRODUCT_REFRESH,
                dispensary_id=store_id,
                platform=row["platform"],
                priority=PRIORITY_CHAINED,
                payload={"payload_id": row["id"]},
                unique=False,
            )
            for row in pending
        ],
    )


def _details(store: Store) -> Details:
    values = {name: getattr(store, name) for name in Details.__slots__ if hasattr(store, name)}
    return Details(**{
        **values,
        "platform_dispensary_id": store.platform_dispensary_id or "",
        "slug": store.slug or "",
        "name_raw": store.name,
    })  # fmt: skip
