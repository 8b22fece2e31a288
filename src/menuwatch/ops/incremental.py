"""Exports of what is new since the last run to the same folder.

Crawls of one store are applied one after the other, each with a later time than the one before, and every row has the time of the
crawl that made it. So what is new is what is later than the last crawl of its store that the run before saw. Times of different
stores are never compared: a crawl that is committed late, after an export of later crawls of other stores, is in the next run.

The folder has `part-000001.parquet` and so on, and `export.json` with the last crawl of each store. A part is written before
`export.json` is replaced; one that `export.json` does not list is left from an interrupted run, and replaced by the next one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.exports.atomic_files import atomic_file
from menuwatch.exports.destination_folder import check_folder, lock_folder
from menuwatch.exports.tables import ExportTable
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest, Progress, RowExport, read_snapshot

_q = sql.load(__package__, "export.sql")
MANIFEST = "export.json"
_LOCK = ".export.lock"
TIMES: Mapping[ExportTable, str] = {
    ExportTable.SNAPSHOTS: "crawled_at",
    ExportTable.CHANGES: "changed_at",
    ExportTable.PRODUCTS: "updated_at",
    ExportTable.OFFERS: "updated_at",
}
"""The time of the crawl that made a row, of each table that can be exported in increments."""


class Part(msgspec.Struct, kw_only=True, frozen=True):
    """One file."""

    file: str
    rows: int
    bytes: int


class Manifest(msgspec.Struct, kw_only=True):
    """What was exported. `last_crawls`: by store."""

    what: str
    format: str
    filters: dict[str, Any]
    parts: list[Part] = []
    last_crawls: dict[int, datetime] = {}


async def to_folder(
    conn: AsyncConnection[Any],
    request: ExportRequest,
    folder: Path,
    archived: ParquetPartitions,
    *,
    on_progress: Progress,
) -> Part | None:
    """Writes what is new, None if nothing is; the first run writes everything. Raises Refused for a table that has no such time, and
    for a folder of another export; NotWritten if the disk fails: the folder is then as it was."""
    if request.what not in TIMES:
        raise Refused(f"--incremental is for {', '.join(TIMES)}: export {request.what} as a whole")
    check_folder(folder, _is_own, "an incremental export")
    with lock_folder(folder, _LOCK, "export"):
        manifest = _read(folder, request)
        async with read_snapshot(conn, request, archived):
            cursor = await conn.execute(_q.last_crawls, {**request.values()})
            last = dict(await cursor.fetchall())
            new = [
                store
                for store, at in last.items()
                if store not in manifest.last_crawls or at > manifest.last_crawls[store]
            ]
            if not new:
                return None
            rows = size = 0

            def count(more: int, more_bytes: int) -> None:
                nonlocal rows, size
                rows += more
                size += more_bytes
                on_progress(more, more_bytes)

            name = f"part-{len(manifest.parts) + 1:06}.{request.fmt}"
            later = _later(replace(request, stores=new), manifest.last_crawls)
            with contextlib.suppress(_Nothing), atomic_file(folder / name, overwrite=True) as file:
                async for piece in export.stream(conn, later, on_progress=count):
                    file.write(piece)
                if not rows:
                    raise _Nothing
        if not rows:
            return None
        part = Part(file=name, rows=rows, bytes=size)
        manifest.parts.append(part)
        manifest.last_crawls |= last
        with atomic_file(folder / MANIFEST, overwrite=True) as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        return part


class _Nothing(Exception):
    """No row is new: the file is given up."""


def _later(request: ExportRequest, last_crawls: Mapping[int, datetime]) -> RowExport:
    inner, time = _q[request.what.value], TIMES[request.what]
    statement = (
        f"SELECT e.* FROM ({inner}) e LEFT JOIN jsonb_each_text(%(last_crawls)s::jsonb) l ON l.key::integer = e.dispensary_id"  # noqa: S608
        f" WHERE l.value IS NULL OR e.{time} > l.value::timestamptz"
    )
    known = msgspec.json.encode({str(store): at for store, at in last_crawls.items()}).decode()
    return RowExport(
        columns=request.columns,
        statement=statement,
        parameters={**request.values(), "last_crawls": known},
        fmt=request.fmt,
    )


_PART = re.compile(r"part-[0-9]{6}\.[a-z]+")


def _is_own(name: str) -> bool:
    return name == MANIFEST or _PART.fullmatch(name) is not None


def _read(folder: Path, request: ExportRequest) -> Manifest:
    filters = {name: sorted(getattr(request, name) or ()) for name in ("stores", "states", "platforms")}
    empty = Manifest(what=request.what, format=request.fmt, filters=filters)
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return empty
    except msgspec.MsgspecError as error:
        raise Refused(f"{folder / MANIFEST} is damaged ({error}): choose another directory") from None
    for name in ("what", "format", "filters"):
        if getattr(found, name) != getattr(empty, name):
            raise Refused(
                f"{folder} holds an export with {name} {getattr(found, name)}, not {getattr(empty, name)}: choose another directory"
            )
    return found
