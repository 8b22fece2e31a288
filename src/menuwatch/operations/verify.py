"""The archive held against its rows: every file read, hashed and compared, and files that no row knows.

What can be put right without guessing is, where that is asked for:

    size        the row says another size than the file has, whose content is right    the row is corrected
    staged      a file that a crash left before it was published                       published, or removed when it has no row
    missing     a row without its file                                                 moved back, or written from equal answers
    damaged     a file that is not what was archived                                   the same
    orphaned    a file without a row                                                   gets one, in quarantine
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from hashlib import sha256
from pathlib import Path

import msgspec

from menuwatch.archive import document
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive, Incoming, Missing
from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.operations.reading import Row, rows
from menuwatch.payloads import store as payloads
from menuwatch.payloads.store import NewPayload
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores

log = get_logger(__name__)
_q = sql.load(__package__, "verify.sql")
_BATCH = 200
FOUND = "found in the archive without a row: release it if it is this store's menu"
STAGED_SECONDS = 3600.0
"""A staged file without a row that is younger may belong to a transaction that is still open."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `repaired` says what was done about it, None where nothing was."""

    kind: str
    path: str
    detail: str
    payload_id: int | None = None
    repaired: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was looked at, and what is wrong."""

    payloads: int
    bytes: int
    faults: tuple[Fault, ...]


Told = Callable[[int, int], None]
"""Told how many payloads are read, of how many."""


@dataclass(slots=True)
class _Check:
    pool: Pool
    archive: FileArchive
    platforms: Mapping[str, Platform]
    repair: bool
    strays: list[str] = field(default_factory=list)
    """Files that no row knows."""
    stray_hashes: dict[str, str] = field(default_factory=dict)
    """Of these by the hash of the document, as soon as a row lacks its file."""

    async def rows(self, told: Told) -> tuple[int, int, list[Fault]]:
        """Every row with its file."""
        faults: list[Fault] = []
        after, done = 0, 0
        async with self.pool.connection() as conn:
            (total,) = await rows(conn, _q.count_payloads, {})
        while True:
            async with self.pool.connection() as conn:
                batch = await rows(conn, _q.payloads_after, {"after": after, "limit": _BATCH})
            if not batch:
                return done, int(total["bytes"]), faults
            for row in batch:
                found = await asyncio.to_thread(_fault_of, self.archive, row)
                if found is not None:
                    faults.append(await self._looked_for(row, found))
                done += 1
                told(done, max(done, int(total["n"])))
            after = batch[-1]["id"]

    async def _looked_for(self, row: Row, fault: Fault) -> Fault:
        """The fault, put right where that is asked for. A file that only has another name is the fault of its row alone."""
        moved = await self._moved(row["sha256"]) if fault.kind in ("missing", "damaged") else None
        if moved is None:
            return await self._mended(row, fault) if self.repair else fault
        self.strays.remove(moved)
        fault = _saying(fault, f"{fault.detail}; its content lies at {moved}")
        if not self.repair:
            return fault
        await asyncio.to_thread(_move, self.archive.root / moved, self.archive.root / row["path"])
        return _repaired(fault, f"moved back from {moved}")

    async def _mended(self, row: Row, fault: Fault) -> Fault:
        if fault.kind == "size":
            size = len(await asyncio.to_thread(self.archive.packed, row["path"]))
            async with self.pool.connection() as conn:
                await conn.execute(_q.correct_size, {"id": row["id"], "bytes": size})
            return _repaired(fault, f"the row says {size} bytes")
        async with self.pool.connection() as conn:
            others = await rows(
                conn, _q.same_content_elsewhere, {k: row[k] for k in ("dispensary_id", "content_sha256", "id")}
            )
        for other in others:
            if await asyncio.to_thread(_written_again, self.archive, row, other):
                return _repaired(fault, f"written again from {other['path']}")
        return fault

    async def staged(self) -> list[Fault]:
        """Files that were left before they were published."""
        found = await asyncio.to_thread(lambda: list(self.archive.staged()))
        async with self.pool.connection() as conn:
            known = await payloads.hashes(conn, [file.path for file, _ in found])
        return [await asyncio.to_thread(self._staged, file, age, known) for file, age in found]

    def _staged(self, file: Incoming, age: float, known: Mapping[str, str]) -> Fault:
        ours = file.path in known and self.archive.holds(file, known[file.path])
        detail = "its row was committed" if ours else f"no row has it; {age / 60:.0f} minutes old"
        fault = Fault(kind="staged", path=file.name, detail=detail)
        if not self.repair or not (ours or age >= STAGED_SECONDS):
            return fault
        if ours:
            self.archive.publish(file)
            return _repaired(fault, "published")
        self.archive.discard(file)
        return _repaired(fault, "removed")

    async def look_around(self) -> None:
        """Finds the files that no row knows. A row is written before its file has its name, so none of these is only young."""
        files = await asyncio.to_thread(lambda: list(_paths(self.archive.root)))
        for start in range(0, len(files), 1000):
            batch = files[start : start + 1000]
            async with self.pool.connection() as conn:
                known = await payloads.hashes(conn, batch)
            self.strays += [path for path in batch if path not in known]

    async def _moved(self, sha256: str) -> str | None:
        """A file without a row that is the document with that hash."""
        if self.strays and not self.stray_hashes:
            self.stray_hashes = await asyncio.to_thread(
                lambda: {_hash(self.archive, path): path for path in self.strays}
            )
        return self.stray_hashes.pop(sha256, None)

    async def orphans(self) -> list[Fault]:
        """Files that no row knows, and that are not what a row lacks."""
        return [await self._orphan(path) for path in self.strays]

    async def _orphan(self, path: str) -> Fault:
        fault = Fault(kind="orphaned", path=path, detail="no row has it")
        if await asyncio.to_thread(_is_foreign, self.archive.root / path):
            return _saying(fault, "no row has it, and it is no archive file: move it elsewhere")
        try:
            doc = await asyncio.to_thread(self.archive.read, path)
        except Refused as error:
            return _saying(fault, f"no row has it, and it cannot be read: {error}")
        fault = _saying(fault, f"no row has it; a menu of {doc.fetched_at:%Y-%m-%d %H:%M:%S} UTC")
        platform = self.platforms.get(doc.platform)
        async with self.pool.connection() as conn, conn.transaction():
            found = await stores.by_platform_id(conn, doc.platform, doc.platform_dispensary_id)
            if found is not None and self.repair:
                found = await stores.lock(conn, found.id)
            if found is None or platform is None:
                return _saying(fault, f"{fault.detail}; its store {doc.platform_dispensary_id!r} is not known")
            if await payloads.at(conn, found.id, doc.fetched_at) is not None:
                return _saying(fault, f"{fault.detail}; store {found.id} has a payload of that instant already")
            if not self.repair:
                return fault
            new = await asyncio.to_thread(_row_of, self.archive, platform, path, doc, found.id)
            payload_id = await payloads.insert(conn, new)
        return _repaired(fault, f"payload {payload_id}, {new.status}")


def _saying(fault: Fault, detail: str) -> Fault:
    return msgspec.structs.replace(fault, detail=detail)


def _repaired(fault: Fault, how: str) -> Fault:
    log.info("archive repaired", action="archive_repaired", kind=fault.kind, path=fault.path, how=how)
    return msgspec.structs.replace(fault, repaired=how)


def _fault_of(archive: FileArchive, row: Row) -> Fault | None:
    def fault(kind: str, detail: str) -> Fault:
        return Fault(kind=kind, path=row["path"], payload_id=row["id"], detail=detail)

    try:
        data = archive.unpacked(row["path"], row["sha256"])
        size = len(archive.packed(row["path"], row["sha256"]))
        doc = document.decode(data)
    except Missing:
        return fault("missing", "it has no file")
    except Refused as error:
        return fault("damaged", str(error))
    if doc.content_sha256 != row["content_sha256"]:
        return fault("damaged", "its answers are not those that the row has the hash of (content_sha256)")
    if size != row["bytes"]:
        return fault("size", f"the file has {size} bytes, the row says {row['bytes']}")
    return None


def _written_again(archive: FileArchive, row: Row, other: Row) -> bool:
    """Whether the row's document could be made of another one's answers, to the last byte, and lies in its place now."""
    try:
        doc = archive.read(other["path"], other["sha256"])
    except Refused:
        return False
    for whole in (True, False):
        again = msgspec.structs.replace(doc, fetched_at=row["fetched_at"].astimezone(UTC), whole=whole)
        staged = archive.stage(row["dispensary_id"], again)
        if staged.sha256 == row["sha256"] and staged.path == row["path"]:
            archive.publish(staged)
            return True
        archive.discard(staged)
    return False


def _paths(root: Path) -> Iterator[str]:
    for file in sorted(root.glob("payloads/**/*")):
        # What waits to be published lies in a hidden folder.
        path = file.relative_to(root)
        if not path.parts[1].startswith(".") and file.is_file():
            yield path.as_posix()


def _is_foreign(file: Path) -> bool:
    """Whether it is nothing of ours: a file of ours that is damaged at its very beginning still has our kind of name."""
    if file.name.endswith(".json.gz"):
        return False
    try:
        with file.open("rb") as opened:
            return opened.read(2) != b"\x1f\x8b"
    except OSError:
        return False


def _hash(archive: FileArchive, path: str) -> str:
    """Of the document in a file; nothing for a file that holds none."""
    try:
        return sha256(archive.unpacked(path)).hexdigest()
    except Refused:
        return ""


def _move(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    file.replace(place)
    for folder in {place.parent, file.parent}:
        sync_folder(folder)


def _row_of(archive: FileArchive, platform: Platform, path: str, doc: Document, store_id: int) -> NewPayload:
    data, packed = archive.unpacked(path), archive.packed(path)
    status, reason = "quarantined", FOUND
    count = 0
    try:
        items = [item for page in doc.pages for item in platform.split(page)]
        count = len({platform.identity(item) for item in items})
        if doc.broken or not doc.pages:
            status, reason = "rejected", "found in the archive without a row; it is no menu"
    except BadPayload as error:
        status, reason = "rejected", f"found in the archive without a row; {error.kind}: {error}"
    return NewPayload(
        task_id=None, dispensary_id=store_id, platform=doc.platform, status=status, reason=reason, product_count=count,
        page_count=len(doc.pages) + len(doc.broken), fetched_at=doc.fetched_at, path=path, bytes=len(packed), raw_bytes=len(data),
        sha256=sha256(data).hexdigest(), content_sha256=doc.content_sha256, notes=("found by verify",),
    )  # fmt: skip


async def verify(
    pool: Pool,
    archive: FileArchive,
    platforms: Mapping[str, Platform],
    *,
    repair: bool = False,
    told: Told = lambda done, of: None,
) -> Verified:
    """Reads the whole archive. Runs beside whatever else goes on: what is being written meanwhile is no fault."""
    check = _Check(pool, archive, platforms, repair)
    staged = await check.staged()
    await check.look_around()
    done, size, faults = await check.rows(told)
    orphans = await check.orphans()
    return Verified(payloads=done, bytes=size, faults=(*staged, *faults, *orphans))
