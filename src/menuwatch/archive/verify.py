"""Verifies the archive against its rows: reads, hashes and compares every file, and finds files without a row.

With `repair`, faults with an unambiguous fix are repaired:

    size        the row has a wrong size, the file's content is correct                the row is corrected
    staged      a file that a crash left before it was published                       published, or removed if it has no row
    missing     a row without its file                                                 moved back, or rebuilt from equal answers
    damaged     a file that is not what was archived                                   the same
    orphaned    a file without a row                                                   gets one, in quarantine
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC
from hashlib import sha256

import msgspec
from msgspec import Struct

from menuwatch.archive import document
from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FOLDER, ORPHAN_SECONDS, FileArchive, Missing
from menuwatch.archive.store import NewPayload
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.db.query import Row, fetch_all
from menuwatch.platforms.base import Platform
from menuwatch.storage.base import Incoming
from menuwatch.stores import store as stores

log = get_logger(__name__)
_q = sql.load(__package__, "verify.sql")
_BATCH = 200
FOUND = "found in the archive without a row: release it if it is this store's menu"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `repaired` says what was done about it, None where nothing was."""

    kind: str
    path: str
    detail: str
    payload_id: int | None = None
    repaired: str | None = None


class VerifyResult(Struct, frozen=True, kw_only=True):
    """Number of files checked, and the faults."""

    payloads: int
    bytes: int
    faults: tuple[Fault, ...]


Progress = Callable[[int, int], None]
"""Called with the number of payloads read and the total."""


class _Check(Struct):
    pool: Pool
    archive: FileArchive
    platforms: Mapping[str, Platform]
    repair: bool
    strays: list[str] = []
    """Files without a row."""
    stray_hashes: dict[str, str] = {}
    """The same by the hash of the document, filled when a row lacks its file."""

    async def check_rows(self, progress: Progress) -> tuple[int, int, list[Fault]]:
        """Checks every row's file."""
        faults: list[Fault] = []
        after, done = 0, 0
        async with self.pool.connection() as conn:
            (total,) = await fetch_all(conn, _q.count_payloads, {})
        while True:
            async with self.pool.connection() as conn:
                batch = await fetch_all(conn, _q.payloads_after, {"after": after, "limit": _BATCH})
            if not batch:
                return done, int(total["bytes"]), faults
            for row in batch:
                found = await asyncio.to_thread(_check_row, self.archive, row)
                if found is not None:
                    faults.append(await self._resolve(row, found))
                done += 1
                progress(done, max(done, int(total["n"])))
            after = batch[-1]["id"]

    async def _resolve(self, row: Row, fault: Fault) -> Fault:
        """The fault, repaired if requested. A file that only has a wrong name is a fault of its row alone."""
        moved = await self._find_moved(row["sha256"]) if fault.kind in ("missing", "damaged") else None
        if moved is None:
            return await self._repair(row, fault) if self.repair else fault
        self.strays.remove(moved)
        fault = _with_detail(fault, f"{fault.detail}; its content is at {moved}")
        if not self.repair:
            return fault
        await asyncio.to_thread(self.archive.storage.move, moved, row["path"])
        return _repaired(fault, f"moved back from {moved}")

    async def _repair(self, row: Row, fault: Fault) -> Fault:
        if fault.kind == "size":
            size = len(await asyncio.to_thread(self.archive.packed, row["path"]))
            async with self.pool.connection() as conn:
                await conn.execute(_q.correct_size, {"id": row["id"], "bytes": size})
            return _repaired(fault, f"the row has {size} bytes")
        async with self.pool.connection() as conn:
            others = await fetch_all(
                conn, _q.same_content_elsewhere, {k: row[k] for k in ("dispensary_id", "content_sha256", "id")}
            )
        for other in others:
            if await asyncio.to_thread(_rewrite_from, self.archive, row, other):
                return _repaired(fault, f"restored from {other['path']}")
        return fault

    async def check_staged(self) -> list[Fault]:
        """Checks staged files left by a crash."""
        found = await asyncio.to_thread(lambda: list(self.archive.staged()))
        async with self.pool.connection() as conn:
            known = await payloads.hashes(conn, [file.path for file, _ in found])
        return [await asyncio.to_thread(self._check_staged_file, file, age, known) for file, age in found]

    def _check_staged_file(self, file: Incoming, age: float, known: Mapping[str, str]) -> Fault:
        ours = file.path in known and self.archive.holds(file, known[file.path])
        detail = "its row was committed" if ours else f"no row refers to it; {age / 60:.0f} minutes old"
        fault = Fault(kind="staged", path=file.name, detail=detail)
        if not self.repair or not (ours or age >= ORPHAN_SECONDS):
            return fault
        if ours:
            self.archive.publish(file)
            return _repaired(fault, "published")
        self.archive.discard(file, unused=file.path not in known)
        return _repaired(fault, "removed")

    async def find_strays(self) -> None:
        """Finds files without a row, apart from those in progress."""
        files = await asyncio.to_thread(lambda: _paths(self.archive))
        for start in range(0, len(files), 1000):
            batch = files[start : start + 1000]
            async with self.pool.connection() as conn:
                known = await payloads.hashes(conn, batch)
            self.strays += [path for path in batch if path not in known]

    async def _find_moved(self, sha256: str) -> str | None:
        """A file without a row whose document has that hash."""
        if self.strays and not self.stray_hashes:
            self.stray_hashes = await asyncio.to_thread(
                lambda: {_hash(self.archive, path): path for path in self.strays}
            )
        return self.stray_hashes.pop(sha256, None)

    async def check_strays(self) -> list[Fault]:
        """Checks files without a row that are not the missing file of another one."""
        return [await self._adopt_stray(path) for path in self.strays]

    async def _adopt_stray(self, path: str) -> Fault:
        fault = Fault(kind="orphaned", path=path, detail="no row refers to it")
        if await asyncio.to_thread(_is_foreign, self.archive, path):
            return _with_detail(fault, "no row refers to it, and it is not an archive file: move it elsewhere")
        try:
            doc = await asyncio.to_thread(self.archive.read, path)
        except Refused as error:
            return _with_detail(fault, f"no row refers to it, and it cannot be read: {error}")
        if (why := document.implausible(doc.fetched_at)) is not None:
            return _with_detail(fault, f"no row refers to it; {why}")
        fault = _with_detail(fault, f"no row refers to it; a menu of {doc.fetched_at:%Y-%m-%d %H:%M:%S} UTC")
        platform = self.platforms.get(doc.platform)
        async with self.pool.connection() as conn, conn.transaction():
            found = await stores.by_platform_id(conn, doc.platform, doc.platform_dispensary_id)
            if found is not None and self.repair:
                found = await stores.lock(conn, found.id)
            if found is None or platform is None:
                return _with_detail(fault, f"{fault.detail}; its store {doc.platform_dispensary_id!r} is not known")
            if await payloads.at(conn, found.id, doc.fetched_at) is not None:
                return _with_detail(fault, f"{fault.detail}; store {found.id} already has a payload with that time")
            if not self.repair:
                return fault
            new = await asyncio.to_thread(_new_row, self.archive, platform, path, doc, found.id)
            payload_id = await payloads.insert(conn, new)
        return _repaired(fault, f"payload {payload_id}, {new.status}")


def _with_detail(fault: Fault, detail: str) -> Fault:
    return msgspec.structs.replace(fault, detail=detail)


def _repaired(fault: Fault, how: str) -> Fault:
    log.info("archive repaired", action="archive_repaired", kind=fault.kind, path=fault.path, how=how)
    return msgspec.structs.replace(fault, repaired=how)


def _check_row(archive: FileArchive, row: Row) -> Fault | None:
    def fault(kind: str, detail: str) -> Fault:
        return Fault(kind=kind, path=row["path"], payload_id=row["id"], detail=detail)

    try:
        packed = archive.packed(row["path"], row["sha256"], row["raw_bytes"])
        doc = document.decode(archive.unpack(row["path"], packed, row["sha256"], row["raw_bytes"]))
    except Missing:
        return fault("missing", "it has no file")
    except Refused as error:
        return fault("damaged", str(error))
    if doc.content_sha256 != row["content_sha256"]:
        return fault("damaged", "its responses do not match content_sha256 of the row")
    if len(packed) != row["bytes"]:
        return fault("size", f"the file has {len(packed)} bytes, the row has {row['bytes']}")
    return None


def _rewrite_from(archive: FileArchive, row: Row, other: Row) -> bool:
    """Rebuilds the row's document from another payload's answers; returns whether the bytes match and the file was replaced."""
    try:
        doc = archive.read(other["path"], other["sha256"], other["raw_bytes"])
    except Refused:
        return False
    for whole in (True, False):
        again = msgspec.structs.replace(doc, fetched_at=row["fetched_at"].astimezone(UTC), whole=whole)
        staged = archive.stage(row["dispensary_id"], again)
        if staged.sha256 == row["sha256"] and staged.path == row["path"]:
            archive.publish(staged)
            return True
        archive.discard(staged, unused=True)
    return False


def _paths(archive: FileArchive) -> list[str]:
    """Paths of all files whose row is committed, if it ever will be."""
    files = [entry.path for entry in archive.storage.walk(FOLDER)]
    # Listed afterwards: a file that is placed later is not among the files.
    placed = {file.path for file, _ in archive.staged() if file.placed}
    return sorted(path for path in files if path not in placed)


def _is_foreign(archive: FileArchive, path: str) -> bool:
    """Whether the file is not ours by name: one of ours whose first bytes are damaged still has the name format."""
    if path.endswith(".json.gz"):
        return False
    try:
        return archive.storage.get(path, 2) != b"\x1f\x8b"
    except OSError:
        return False


def _hash(archive: FileArchive, path: str) -> str:
    """Hash of a file's document; empty if the file holds none."""
    try:
        return sha256(archive.unpacked(path)).hexdigest()
    except Refused:
        return ""


def _new_row(archive: FileArchive, platform: Platform, path: str, doc: Document, store_id: int) -> NewPayload:
    packed = archive.packed(path)
    data = archive.unpack(path, packed)
    status, reason = "quarantined", FOUND
    count = 0
    try:
        items = [item for page in platform.split_menu(doc.pages) for item in page]
        count = len({platform.identity(item) for item in items})
        if doc.broken or not doc.pages:
            status, reason = "rejected", "found in the archive without a row; not a menu"
    except BadPayload as error:
        status, reason = "rejected", f"found in the archive without a row; {error.kind}: {error}"
    return NewPayload(
        task_id=None, dispensary_id=store_id, platform=doc.platform, status=status, reason=reason, product_count=count,
        page_count=len(doc.pages) + len(doc.broken), fetched_at=doc.fetched_at, path=path, bytes=len(packed), raw_bytes=len(data),
        sha256=sha256(data).hexdigest(), content_sha256=doc.content_sha256, is_partial=not doc.whole, notes=("found by verify",),
    )  # fmt: skip


async def verify(
    pool: Pool,
    archive: FileArchive,
    platforms: Mapping[str, Platform],
    *,
    repair: bool = False,
    progress: Progress = lambda done, of: None,
) -> VerifyResult:
    """Verifies the whole archive. Safe while crawls run: files in progress are not faults."""
    check = _Check(pool, archive, platforms, repair)
    staged = await check.check_staged()
    await check.find_strays()
    done, size, faults = await check.check_rows(progress)
    orphans = await check.check_strays()
    return VerifyResult(payloads=done, bytes=size, faults=(*staged, *faults, *orphans))
