"""Pictures as people look after them: what there is, asking for what is missing, comparing rows with files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection

from menuwatch.catalog import store as catalog
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.images import store as images
from menuwatch.imaging import vips
from menuwatch.imaging.files import ImageFiles
from menuwatch.imaging.transform import decodes
from menuwatch.operations import audit

STATUSES = ("queued", "waiting", "stored", "failed")
_PAGE = 200
YOUNG_SECONDS = 3600.0
"""A file without a row that is younger may be somebody's who is about to write the row."""
_SHOWN = 20


async def counts(conn: AsyncConnection[Any]) -> dict[str, int]:
    """`queued`, `waiting`, `stored`, `failed` products and brands; `images` that differ, and their `bytes`."""
    return await images.counts(conn)


async def page(
    conn: AsyncConnection[Any], *, status: str | None = None, dispensary_id: int | None = None, limit: int = 50
) -> list[dict[str, Any]]:
    """Who wants which picture and what came of it, newest first. Raises Refused for a status that does not exist."""
    if status is not None and status not in STATUSES:
        raise Refused(f"status {status!r} does not exist: it is one of {', '.join(STATUSES)}")
    return await images.page(conn, status=status, dispensary_id=dispensary_id, limit=limit)


async def backfill(
    pool: Pool,
    *,
    dispensary_id: int | None = None,
    failed: bool = False,
    report: Callable[[int, int], object] = lambda done, total: None,
) -> dict[str, int]:
    """Asks for every picture that nobody asked for yet, of one store or of all; with `failed` also for those that were given up.
    Returns how many are `queued` and `retried`. `report` is told (stores done, stores in all)."""
    async with pool.connection() as conn:
        stores = await images.stores_without(conn, dispensary_id)
        await audit.record(conn, "images_asked", store=dispensary_id, failed_too=failed)
    queued = 0
    for done, store in enumerate(stores):
        report(done, len(stores))
        async with pool.connection() as conn, conn.transaction():
            queued += await images.queue_products(conn, store)
    report(len(stores), len(stores))
    retried = 0
    if failed:
        async with pool.connection() as conn:
            retried = await images.try_failed(conn, dispensary_id)
    return {"queued": queued, "retried": retried}


@dataclass(slots=True)
class Verified:
    """What a comparison of rows and files found. The lists hold the first paths of each kind."""

    checked: int = 0
    missing: int = 0
    damaged: int = 0
    unlisted: int = 0
    """Products whose row does not name the file that they have."""
    orphaned: int = 0
    orphaned_bytes: int = 0
    repaired: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether rows and files agree."""
        return not (self.missing or self.damaged or self.unlisted or self.orphaned)

    def note(self, kind: str, path: str) -> None:
        """Remembers one of the first paths of a kind."""
        shown = self.examples.setdefault(kind, [])
        if len(shown) < _SHOWN:
            shown.append(path)


async def verify(
    pool: Pool,
    files: ImageFiles,
    *,
    deep: bool = False,
    repair: bool = False,
    young_seconds: float = YOUNG_SECONDS,
    report: Callable[[int], object] = lambda checked: None,
) -> Verified:
    """Compares rows with files: each file that is named is there and begins as a picture (`deep`: it is decoded), each that is there
    is named by somebody. With `repair` what is missing or damaged is downloaded again, and files that nobody names are removed; only
    those older than `young_seconds` count."""
    found = Verified()
    after = 0
    if repair:
        async with pool.connection() as conn:
            await audit.record(conn, "images_repaired")
    while True:
        async with pool.connection() as conn:
            uses = await images.stored_uses(conn, after=after, limit=_PAGE)
        if not uses:
            break
        after = uses[-1]["id"]
        states = await asyncio.to_thread(_states, files, [use["path"] for use in uses], deep)
        bad = [(use, state) for use, state in zip(uses, states, strict=True) if state]
        for use, state in bad:
            setattr(found, state, getattr(found, state) + 1)
            found.note(state, use["path"])
        unlisted = [
            use
            for use, state in zip(uses, states, strict=True)
            if not state and use["product_id"] is not None and use["local_image_path"] != use["path"]
        ]
        found.unlisted += len(unlisted)
        for use in unlisted:
            found.note("unlisted", use["path"])
        if repair and (bad or unlisted):
            await _mend(pool, files, [use for use, _ in bad], unlisted)
            found.repaired += len(bad) + len(unlisted)
        found.checked += len(uses)
        report(found.checked)
    await _orphans(pool, files, found, repair=repair, young=young_seconds)
    return found


def _states(files: ImageFiles, paths: list[str], deep: bool) -> list[str | None]:
    return [_state(files, path, deep) for path in paths]


def _state(files: ImageFiles, path: str, deep: bool) -> str | None:
    """`missing`, `damaged`, or None for what is as it should be."""
    try:
        data = files.place(path).read_bytes()
    except FileNotFoundError:
        return "missing"
    try:
        vips.header(data)
        if deep:
            decodes(data)
    except vips.NoImage:
        return "damaged"
    return None


async def _mend(pool: Pool, files: ImageFiles, bad: list[dict[str, Any]], unlisted: list[dict[str, Any]]) -> None:
    for use in bad:
        # A damaged file would be taken for the picture; its other names are looked at as well, each in its turn.
        await asyncio.to_thread(files.remove, use["path"])
    async with pool.connection() as conn, conn.transaction():
        await catalog.clear_local_images(conn, await images.uses_lost(conn, [use["id"] for use in bad]))
        await catalog.set_local_images(conn, {use["product_id"]: use["path"] for use in unlisted})


async def _orphans(pool: Pool, files: ImageFiles, found: Verified, *, repair: bool, young: float) -> None:
    listed = await asyncio.to_thread(lambda: list(files.every()))
    for start in range(0, len(listed), _PAGE):
        some = dict(listed[start : start + _PAGE])
        async with pool.connection() as conn:
            known = await images.known_paths(conn, list(some))
        for path, size in some.items():
            if path in known or not path.startswith(("images/products/", "images/brands/")):
                continue
            place = files.root.parent / path
            if time.time() - place.lstat().st_ctime < young:
                continue
            found.orphaned += 1
            found.orphaned_bytes += size
            found.note("orphaned", path)
            if repair:
                await asyncio.to_thread(place.unlink, missing_ok=True)
                found.repaired += 1
