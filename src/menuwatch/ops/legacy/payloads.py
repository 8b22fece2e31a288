"""Takes over former payload rows with their files, in the archive's own form; equal menus of a store share one file."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.archive import document
from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.archive.store import NewPayload
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.ops.legacy import fields
from menuwatch.ops.legacy.columns import PAYLOADS, Record
from menuwatch.ops.legacy.fields import Bad
from menuwatch.ops.legacy.staging import Staging, read, skip
from menuwatch.pipeline.archive_transaction import DeduplicatedFile, commit_refused
from menuwatch.pipeline.recorded_files import RecordedMenu
from menuwatch.pipeline.recording_reader import LeftOut, read_file
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

HERE = "the store already has a payload of that time"
NO_FOLDER = "--storage was not given: the folder that holds the legacy system's payloads/ and images/"
_NOTE = "imported from the legacy system"
_UNKNOWN = "its form is not known; kept as a rejected payload"


class _Merged(msgspec.Struct):
    """A file of the former system: all products of a menu in one list, or its pages."""

    products: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    pages: list[msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET


class Payloads(Struct):
    """One import of payloads; `folder` is the former storage root."""

    conn: AsyncConnection[Any]
    staging: Staging
    archive: FileArchive
    folder: Path | None
    dry_run: bool
    _stores: dict[int, Store] = {}
    _seen: set[tuple[int, datetime]] = set()

    async def take(self) -> None:
        """Takes each row in a transaction of its own; those that are here are skipped without reading their files."""
        tally = self.staging.report.payloads
        if PAYLOADS not in self.staging.source.has:
            return
        async for line in self.staging.source.lines(PAYLOADS):
            record = read(line, tally)
            if record is None:
                continue
            try:
                reason = await self._take(record)
            except (Bad, Refused) as error:
                skip(tally, line, error)
                continue
            if reason is None:
                tally.taken += 1
            else:
                tally.skip(reason, f"{line.place}: {fields.text(record, 'path')}")

    async def _take(self, record: Record) -> str | None:
        store = await self._store(record)
        path, at = fields.text(record, "path", 1000), fields.instant(record, "at")
        if path is None or at is None:
            raise Bad("it has no path or no time", path or "")
        self.staging.report.without_zone += not at[1]
        if (why := document.implausible(at[0])) is not None or at[0] > self.staging.now:
            raise Bad(why or "its time is in the future", at[0].isoformat())
        if (store.id, at[0]) in self._seen or await payloads.at(self.conn, store.id, at[0]) is not None:
            return HERE
        if self.folder is None:
            raise Bad(NO_FOLDER, "")
        platform = self.staging.platforms[store.platform]
        bodies = await asyncio.to_thread(_read, _place(self.folder, path), fields.text(record, "sha256"))
        menu = RecordedMenu(platform=platform, source=path, store=None)
        try:
            pages, notes = await asyncio.to_thread(_pages, platform, bodies, menu)
        except BadPayload as error:
            reason = f"{_NOTE}: {error.kind}: {error}"
            good, bad = document.bodies(bodies)
            await self._insert(store, at[0], good, bad, "rejected", reason, menu, ())
            return _UNKNOWN
        await self._insert(store, at[0], pages, (), "ok", None, menu, notes)
        return None

    async def _store(self, record: Record) -> Store:
        number = await self.staging.store_of(record)
        if number is None:
            raise Bad("its store is not known", "")
        if number not in self._stores:
            store = await stores.get(self.conn, number)
            if store is None:
                raise Bad("its store was removed meanwhile", str(number))
            self._stores[number] = store
        return self._stores[number]

    async def _insert(
        self,
        store: Store,
        at: datetime,
        pages: tuple[bytes, ...],
        broken: tuple[bytes, ...],
        status: str,
        reason: str | None,
        menu: RecordedMenu,
        notes: tuple[str, ...],
    ) -> None:
        self._seen.add((store.id, at))
        if self.dry_run:
            return
        part = None if reason else menu.shortfall
        doc = Document(
            platform=store.platform,
            platform_dispensary_id=store.platform_dispensary_id or "",
            fetched_at=at,
            whole=part is None,
            pages=pages,
            broken=broken,
        )
        staged = await asyncio.to_thread(self.archive.stage, store.id, doc)
        file = DeduplicatedFile(self.archive, staged)
        new = NewPayload(
            task_id=None,
            dispensary_id=store.id,
            platform=store.platform,
            status=status,
            reason=reason,
            product_count=0 if reason else menu.product_count,
            total_count=menu.total_count,
            page_count=len(pages) + len(broken),
            is_partial=part is not None,
            fetched_at=at,
            path=staged.path,
            bytes=staged.size,
            raw_bytes=staged.raw_size,
            sha256=staged.sha256,
            content_sha256=staged.content_sha256,
            notes=(_NOTE, *notes, *([part] if part else [])),
        )
        committing = False
        try:
            async with self.conn.transaction():
                await file.insert(self.conn, new)
                committing = True
        except BaseException as error:
            # Where the outcome of COMMIT is unknown, the file stays and the next start decides.
            if not committing or commit_refused(error):
                await asyncio.to_thread(file.settle, False)
            raise
        await asyncio.to_thread(file.settle, True)


def _place(folder: Path, text: str) -> Path:
    """Where a former path lies: what follows `payloads` in it, below the folder."""
    parts = PurePosixPath(text.replace("\\", "/")).parts
    if ".." in parts:
        raise Bad("its path leaves the folder", text)
    if "payloads" not in parts:
        raise Bad("its path is not below payloads/", text)
    place = folder.joinpath(*parts[len(parts) - 1 - parts[::-1].index("payloads") :])
    try:
        with place.open("rb"):
            return place
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise Bad("its file is missing", text) from None
    except OSError as error:
        raise Bad("its file cannot be read", f"{text[:200]}: {error.strerror}") from None


def _read(place: Path, sha256: str | None) -> tuple[bytes, ...]:
    """The answers in a file, which is checked against its hash: of the bytes before or after compression. Raises Bad, Refused."""
    found = list(read_file(place))
    bodies: list[bytes] = []
    for _, content in found:
        if isinstance(content, LeftOut):
            raise Bad("its file cannot be read", f"{place.name}: {content.reason}")
        bodies += content.pages if isinstance(content, Document) else [content]
    if sha256 is not None and len(found) == 1 and isinstance(found[0][1], bytes):
        wanted = sha256.lower().removeprefix("sha256:")
        if wanted not in (hashlib.sha256(data).hexdigest() for data in (bodies[0], place.read_bytes())):
            raise Bad("its file differs from its checksum", place.name)
    return tuple(bodies)


def _pages(
    platform: Platform, bodies: tuple[bytes, ...], menu: RecordedMenu
) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """The pages of a menu and notes about their form, added to `menu`. Raises BadPayload for a form that is not known."""
    try:
        if len(bodies) == 1 and platform.read_page(bodies[0]).partial:
            # A bare list of products, which elsewhere is part of a menu: the former system wrote whole menus so.
            raise BadPayload("schema", "the response is a list of products", bodies[0])
        for body in bodies:
            menu.add(body)
        return bodies, ()
    except BadPayload as error:
        if len(bodies) != 1 or error.kind not in ("schema", "no_data"):
            raise
        pages, note = _unmerged(platform, bodies[0], error)
    for page in pages:
        menu.add(page)
    return pages, (note,)


def _unmerged(platform: Platform, body: bytes, error: BadPayload) -> tuple[tuple[bytes, ...], str]:
    """The pages in a file that holds several, or a page around a list of products, which stay as they are to the byte."""
    try:
        listed = msgspec.json.decode(body, type=list[msgspec.Raw] | _Merged)
    except (msgspec.DecodeError, RecursionError):
        raise error from None
    if isinstance(listed, _Merged) and listed.pages is not msgspec.UNSET:
        listed = listed.pages
    if isinstance(listed, list) and listed:
        try:
            for page in listed:
                platform.split(bytes(page))
            return tuple(bytes(page) for page in listed), "its pages were in one list"
        except BadPayload:
            products = body
    elif isinstance(listed, _Merged) and listed.products is not msgspec.UNSET:
        products = bytes(listed.products)
    else:
        raise error
    if platform.name != "dutchie":
        raise error
    return (b'{"data":{"filteredProducts":{"products":%b}}}' % products.strip(),), "its products were in one list"
