"""Copies all objects from one storage to the other and verifies them. Resumable: objects that are equal already are not written."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

import msgspec

from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.storage.base import Entry, Storage
from menuwatch.storage.service import describe_failure

log = get_logger(__name__)
_q = sql.load(__package__, "storage_move.sql")
_PIECE = 1 << 20


class MoveFailed(MenuwatchError):
    """The move stopped; what was copied stays, and the next run continues."""


class MoveResult(msgspec.Struct, frozen=True, kw_only=True):
    """Objects in the target now, how many of them this run copied, and how many it removed from the source; sizes in bytes."""

    source: str
    target: str
    objects: int
    bytes: int
    copied: int
    copied_bytes: int
    removed: int


async def move(
    conn: Connection, source: Storage, target: Storage, *, delete: bool = False, progress: Callable[[int, int], object]
) -> MoveResult:
    """Copies every object of `source` to `target` and reads it back, also objects that are written meanwhile. With `delete`, the
    source's objects are removed once all are equal. `progress` gets the number of objects done and the total.

    Raises Refused while workers run, also if they start before the end, or another move does; MoveFailed if a storage fails.
    """
    await _check_workers(conn)
    (lock,) = await fetch_all(conn, _q.begin_move, {})
    if not lock["taken"]:
        raise Refused("another `menuwatch storage move` is running: wait until it has ended")
    try:
        entries, copied = await asyncio.to_thread(_copy, source, target, progress)
        await _check_workers(conn)
        if delete:
            await asyncio.to_thread(_remove, source, entries)
    except OSError as error:
        raise MoveFailed(f"the move stopped: {describe_failure(error)}. Run it again to continue") from error
    finally:
        await conn.execute(_q.end_move)
    log.info("storage moved", action="storage_moved", target=target.where, objects=len(entries), copied=len(copied))
    return MoveResult(
        source=source.where,
        target=target.where,
        objects=len(entries),
        bytes=sum(entry.size for entry in entries),
        copied=len(copied),
        copied_bytes=sum(entry.size for entry in copied),
        removed=len(entries) if delete else 0,
    )


async def _check_workers(conn: Connection) -> None:
    (workers,) = await fetch_all(conn, _q.live_workers, {})
    if workers["n"]:
        raise Refused(
            f"workers are running ({workers['n']}): stop them first, so that nothing is written meanwhile, and run it again"
        )


def _copy(source: Storage, target: Storage, progress: Callable[[int, int], object]) -> tuple[list[Entry], list[Entry]]:
    """Copies until the source has nothing new. Returns its objects, and those that were not in the target before."""
    source.check()
    target.check()
    done: dict[str, tuple[int, int]] = {}
    copied: list[Entry] = []
    while True:
        entries = list(source.walk(""))
        new = [entry for entry in entries if done.get(entry.path) != (entry.size, entry.mtime_ns)]
        if not new:
            return entries, copied
        total = len(done.keys() | {entry.path for entry in new})
        for entry in new:
            wanted = _hash(source, entry.path)
            if not _is_equal(target, entry, wanted):
                with source.open(entry.path) as content:
                    target.put(entry.path, content)
                if not _is_equal(target, entry, wanted):
                    raise MoveFailed(
                        f"{entry.path} differs after writing it to {target.where}: one of the two is damaged"
                    )
                copied.append(entry)
            done[entry.path] = (entry.size, entry.mtime_ns)
            progress(len(done), total)


def _remove(source: Storage, entries: list[Entry]) -> None:
    for entry in entries:
        source.remove(entry.path)


def _is_equal(target: Storage, entry: Entry, wanted: str) -> bool:
    there = target.stat(entry.path)
    return there is not None and there.size == entry.size and _hash(target, entry.path) == wanted


def _hash(storage: Storage, path: str) -> str:
    digest = hashlib.sha256()
    with storage.open(path) as content:
        while piece := content.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
