"""Replays recorded answers through archive, normalizer and catalog: raw files as crawled now, archive files at their own time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.archive import document
from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import Staged
from menuwatch.archive.store import NewPayload, Payload
from menuwatch.catalog import store as catalog
from menuwatch.catalog.apply import Applied
from menuwatch.core.errors import Refused
from menuwatch.geo.states import CODES
from menuwatch.pipeline.archive_transaction import ArchiveTransaction, archive_transaction
from menuwatch.pipeline.context import HandlerContext, store_details
from menuwatch.pipeline.product_refresh import refresh
from menuwatch.pipeline.quarantine import size_anomaly
from menuwatch.pipeline.recorded_files import NoMenu, RecordedMenu, collect
from menuwatch.pipeline.recording_reader import LeftOut
from menuwatch.platforms.base import Platform
from menuwatch.queue.outcome import Fail
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details, Store

_REPLAYED = "replayed from a file"
_PLATFORM_ID = re.compile(r"[0-9a-f]{24}")
"""Format of a platform's store id, when entered by a person; slugs have no fixed format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Result for one menu. `refused` says why it was archived but not applied, `part` which part of the menu the files held
    (None if complete), `undated` whether it was archived with the time of the replay, since the files have none.
    """

    store: Store
    payload_id: int
    counts: dict[str, Any]
    warnings: tuple[dict[str, Any], ...] = ()
    refused: str | None = None
    part: str | None = None
    undated: bool = False


class Outcome(Struct, frozen=True, kw_only=True):
    """Result of a replay: menus, and what was left out: members of tar archives, and empty menus among other files."""

    menus: tuple[Replayed, ...]
    left_out: tuple[LeftOut, ...]
    files: int
    repeated: int


Progress = Callable[[int, int], None]
"""Called with the number of menus done and the total."""


def _silent(done: int, of: int) -> None:
    pass


async def replay(
    context: HandlerContext,
    platform: Platform | None,
    files: Sequence[Path],
    *,
    store: str | None = None,
    state: str | None = None,
    progress: Progress = _silent,
) -> Outcome:
    """Replays files. Raw ones of one store are pages of one menu, and identical bytes change nothing; each archive file is a menu; a
    tar archive is replayed as the files in it. `store` names the store if the files do not, or gives the slug of a new store;
    `state` (two letters) is the state of stores without a known one; raw answers are of `platform`, or of the one whose format
    matches.

    Raises Refused in one line for an unusable file, unless it is one of several in a tar archive, or an empty menu among others; a raw
    answer that is not a menu is archived as rejected if the store is known.
    """
    try:
        found = await asyncio.to_thread(collect, context.platforms, platform, files, store=store)
    except NoMenu as error:
        if store is not None:
            await _keep_rejected(context, error.platform, error, store)
        raise
    left_out = list(found.left_out)
    done: list[Replayed] = []
    for number, menu in enumerate(found.menus):
        progress(number, len(found.menus))
        try:
            done.append(await _replay_menu(context, menu, store, state))
        except Refused as error:
            if not menu.member:
                raise
            left_out.append(LeftOut(source=menu.source, reason=str(error).removeprefix(f"{menu.source}: ")))
    progress(len(found.menus), len(found.menus))
    return Outcome(menus=tuple(done), left_out=tuple(left_out), files=found.files, repeated=found.repeated)


async def _replay_menu(context: HandlerContext, menu: RecordedMenu, text: str | None, state: str | None) -> Replayed:
    store, payload, added = await _archived(context, menu, text, state)
    done = await _applied(context, menu, store, payload)
    return replace(done, undated=added and menu.fetched_at is None)


async def _applied(context: HandlerContext, menu: RecordedMenu, store: Store, payload: Payload) -> Replayed:
    part = menu.shortfall
    if payload.applied_at is not None:
        counts, warnings = await _unchanged(context, payload), await _warnings(context, payload)
        return Replayed(store=store, payload_id=payload.id, counts=counts, warnings=warnings, part=part)
    if payload.status != "ok":
        return Replayed(store=store, payload_id=payload.id, counts={}, refused=payload.reason, part=part)
    outcome = await refresh(context, payload)
    async with context.pool.connection() as conn, conn.transaction():
        assert outcome.writes is not None, "a refresh writes"
        wrote = await outcome.writes(conn)
    if isinstance(outcome, Fail) or wrote is None or wrote.result is None:
        reason = outcome.reason if isinstance(outcome, Fail) else "failed"
        return Replayed(store=store, payload_id=payload.id, counts={}, refused=reason, part=part)
    counts = dict(wrote.result)
    counts.pop("warnings", None)
    refused = counts.get("quarantined")
    if counts.get("already_applied"):
        counts = await _unchanged(context, payload)
    elif counts.get("superseded"):
        refused, counts = f"superseded: the catalog shows a newer crawl of the store than {_said(payload)}", {}
    warnings = await _warnings(context, payload)
    return Replayed(store=store, payload_id=payload.id, counts=counts, warnings=warnings, refused=refused, part=part)


async def _warnings(context: HandlerContext, payload: Payload) -> tuple[dict[str, Any], ...]:
    """All warnings of the crawl; a task's result has the first ones only."""
    async with context.pool.connection() as conn:
        return tuple(await catalog.crawl_warnings(conn, payload.id))


def _said(payload: Payload) -> str:
    return f"the one of {payload.fetched_at:%Y-%m-%d %H:%M:%S} UTC"


async def _unchanged(context: HandlerContext, payload: Payload) -> dict[str, Any]:
    """The counts of a menu that was applied before: all products known, none changed."""
    async with context.pool.connection() as conn:
        applied = await payloads.products_applied(conn, payload.id)
    products = payload.product_count if applied is None else applied
    return {**Applied(products=products, unchanged=products).counts(), "already_applied": True}


async def _archived(
    context: HandlerContext, menu: RecordedMenu, text: str | None, state: str | None
) -> tuple[Store, Payload, bool]:
    """The menu's store and payload row, and whether the row is new. Locks the store's row, so that concurrent replays find each
    other's payloads and never share a fetch time.
    """
    async with archive_transaction(context.pool, context.archive) as (conn, transaction):
        store_id = await _store(conn, menu, text)
        await stores.fill_in(conn, store_id, _said_of(menu, state))
        store = await stores.lock(conn, store_id)
        assert store is not None, "it was found or added in this transaction"
        doc = Document(
            platform=menu.platform.name,
            platform_dispensary_id=store.platform_dispensary_id or "",
            fetched_at=menu.fetched_at or await _instant(conn, store, context.clock.now()),
            whole=menu.shortfall is None,
            pages=tuple(menu.pages),
        )
        known = await _known(conn, store, menu, doc)
        return store, known or await _insert(conn, transaction, context, store, menu, doc), known is None


def _said_of(menu: RecordedMenu, state: str | None) -> Details:
    """The store data in the recording, with `state` if it has none that is known. (Names are ignored.)"""
    if menu.found is not None and menu.found.platform_dispensary_id == menu.store:
        known = store_details(menu.found)
    else:
        known = Details(platform_dispensary_id=menu.store or "", slug="", name="", name_raw="")
    return known if known.state in CODES else replace(known, state=state or known.state)


async def _store(conn: AsyncConnection[Any], menu: RecordedMenu, text: str | None) -> int:
    """Id of the menu's store, added if it is new; `text` is the store as a person named it."""
    chosen = await _chosen(conn, text, menu.platform) if text is not None else None
    if chosen is not None and chosen.platform != menu.platform.name:
        raise Refused(f"--store {text}: is a store of {chosen.platform}, {menu.source} is of {menu.platform.name}")
    if menu.store is None:
        assert text is not None, "files that name no store were refused"
        return chosen.id if chosen is not None else await _added(conn, menu.platform, text)
    found = await stores.by_platform_id(conn, menu.platform.name, menu.store)
    if chosen is not None and chosen.id != (found or chosen).id:
        raise Refused(
            f"--store {text}: is store {chosen.id}, the file is of store {(found or chosen).id}, {menu.store}"
        )
    if found is not None:
        if text is not None and chosen is None:
            raise Refused(
                f"--store {text}: no such store; the file belongs to store {found.id} ({found.slug or menu.store})"
            )
        return found.id
    if chosen is None:
        name = text or menu.store
        known = Details(platform_dispensary_id=menu.store, slug=name, name=stores.name_from_slug(name), name_raw=name)
        if menu.found is not None and menu.found.platform_dispensary_id == menu.store:
            found_name = known.name if menu.found.name == menu.store else menu.found.name
            known = replace(store_details(menu.found), slug=text or menu.found.slug, name=found_name)
        return await _promoted(conn, menu.platform, known)
    if chosen.platform_dispensary_id is not None:
        raise Refused(f"--store {text}: is store {chosen.platform_dispensary_id}, the file is of {menu.store}")
    slug = chosen.slug or menu.store
    known = Details(platform_dispensary_id=menu.store, slug=slug, name=chosen.name, name_raw=chosen.name)
    await stores.update_details(conn, chosen.id, known)
    return chosen.id


async def _chosen(conn: AsyncConnection[Any], text: str, platform: Platform) -> Store | None:
    """The store that a person named; if several match, the one on that platform."""
    return await stores.find(conn, text, platform.name) or await stores.find(conn, text)


async def _added(conn: AsyncConnection[Any], platform: Platform, text: str) -> int:
    """Adds the store that a person named, for files that name none."""
    if text.isdecimal():
        raise Refused(f"--store {text}: no store has that ID")
    if _PLATFORM_ID.fullmatch(text):
        known = Details(platform_dispensary_id=text, slug=text, name=stores.name_from_slug(text), name_raw=text)
        return await _promoted(conn, platform, known)
    try:
        # A slug is not an id: the platform's own is resolved before the first crawl.
        store_id = (await stores.add_by_url(conn, platform=platform.name, slug=text)).id
    except Refused:
        found = await stores.find(conn, text, platform.name)
        if found is None:
            raise
        return found.id
    return await _uncrawled(conn, platform, store_id)


async def _promoted(conn: AsyncConnection[Any], platform: Platform, known: Details) -> int:
    """Adds a store."""
    return await _uncrawled(conn, platform, (await stores.promote(conn, platform.name, known))[0])


async def _uncrawled(conn: AsyncConnection[Any], platform: Platform, store_id: int) -> int:
    """The id of a new store. Crawling stays disabled on platforms that are not requested until a person enables it."""
    if not platform.requested:
        await stores.set_crawl_enabled(conn, store_id, False)
    return store_id


async def _instant(conn: AsyncConnection[Any], store: Store, now: datetime) -> datetime:
    """Now, or the first later instant after the last crawl that no other payload has. The caller holds the store's row."""
    step = timedelta(microseconds=1)
    if store.last_crawled_at is not None:
        now = max(now, store.last_crawled_at + step)
    taken = await payloads.instants(conn, store.id, now)
    while now in taken:
        now += step
    return now


async def _known(conn: AsyncConnection[Any], store: Store, menu: RecordedMenu, doc: Document) -> Payload | None:
    """The menu's payload if it is archived already."""
    if menu.fetched_at is None:
        return await payloads.same_content(conn, store.id, doc.content_sha256, crawled_at=store.last_crawled_at)
    found = await payloads.at(conn, store.id, menu.fetched_at)
    if found is not None and found.content_sha256 != doc.content_sha256:
        raise Refused(
            f"{menu.source}: store {store.id} already has a different menu with that time, payload {found.id}"
        )
    return found


async def _insert(
    conn: AsyncConnection[Any],
    transaction: ArchiveTransaction,
    context: HandlerContext,
    store: Store,
    menu: RecordedMenu,
    doc: Document,
) -> Payload:
    reason = None
    if doc.whole:
        # A partial menu is expected to be small, and products that it lacks get no miss.
        usual = await payloads.usual_counts(conn, store.id)
        reason = size_anomaly(menu.product_count, usual, context.suspect_share)
    part = menu.shortfall
    staged = await transaction.put(store.id, doc)
    payload_id = await payloads.insert(
        conn,
        _row(
            store,
            doc,
            staged,
            status="quarantined" if reason else "ok",
            reason=reason,
            product_count=menu.product_count,
            total_count=menu.total_count,
            is_partial=part is not None,
            notes=(_REPLAYED, part) if part else (_REPLAYED,),
        ),
    )
    row = await payloads.get(conn, payload_id)
    assert row is not None, "it was added a moment ago"
    return row


def _row(store: Store, doc: Document, staged: Staged, **more: Any) -> NewPayload:
    return NewPayload(
        task_id=None,
        dispensary_id=store.id,
        platform=doc.platform,
        page_count=len(doc.pages) + len(doc.broken),
        is_first=store.first_crawled_at is None,
        fetched_at=doc.fetched_at,
        path=staged.path,
        bytes=staged.size,
        raw_bytes=staged.raw_size,
        sha256=staged.sha256,
        content_sha256=staged.content_sha256,
        **more,
    )


async def _keep_rejected(context: HandlerContext, platform: Platform, error: NoMenu, text: str) -> None:
    good, bad = document.bodies((error.body,))
    async with archive_transaction(context.pool, context.archive) as (conn, transaction):
        found = await _chosen(conn, text, platform)
        store = await stores.lock(conn, found.id) if found is not None else None
        if store is None:
            return
        doc = Document(
            platform=platform.name,
            platform_dispensary_id=store.platform_dispensary_id or "",
            fetched_at=await _instant(conn, store, context.clock.now()),
            pages=good,
            broken=bad,
        )
        if await payloads.same_rejected(conn, store.id, doc.content_sha256) is None:
            staged = await transaction.put(store.id, doc)
            await payloads.insert(
                conn, _row(store, doc, staged, status="rejected", reason=error.reason, notes=(_REPLAYED,))
            )
