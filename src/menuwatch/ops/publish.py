"""The database as a versioned open dataset: Parquet files, `datapackage.json` and a DuckLake catalog, in a folder or a bucket.

    data/price_history/NM/2026-03-<hash>.parquet   named after their content, never changed
    versions/7/datapackage.json, catalog.ducklake  every version, never changed
    versions/7/sources.json                        what its files were made of
    DICTIONARY.md, catalog.ducklake                those of the current version
    datapackage.json                               replaced last: from here on the version is published

What a file would be made of is compared with what it was made of (dataset_parts.py); where that is the same, it is not read again, and
a file whose content is as before is not written again. After a crash the current version is unchanged; what was left is used or
removed by the next publish. Files are removed once none of the last versions has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from menuwatch.accounts import audit
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_one, fetch_structs
from menuwatch.exports import datapackage, ducklake
from menuwatch.exports.datapackage import DataFile, Source
from menuwatch.exports.dataset import DATASET
from menuwatch.exports.destination_folder import already_running, check_folder, lock_folder
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops.dataset_parts import Part, Progress, list_parts, write_empty, write_parts
from menuwatch.ops.dictionary import list_views
from menuwatch.ops.export import ExportRequest, read_snapshot
from menuwatch.storage.base import Storage
from menuwatch.storage.local import LocalStorage
from menuwatch.storage.s3 import S3Storage
from menuwatch.storage.service import describe_failure

log = get_logger(__name__)
_q = sql.load(__package__, "publish.sql")
MANIFEST = "datapackage.json"
CATALOGUE = "catalog.ducklake"
DICTIONARY = "DICTIONARY.md"
SOURCES = "sources.json"
LOCK = ".publish.lock"
MARKER = ".menuwatch-dataset"
"""Written before anything else into an empty destination: what is there is of the dataset."""
_OURS = {"data", "versions", MANIFEST, CATALOGUE, DICTIONARY, LOCK, MARKER}
_VERSION = re.compile(rf"versions/([0-9]+)/({MANIFEST}|{CATALOGUE}|{DICTIONARY}|{SOURCES})")
_DATA = re.compile(rf"data/({'|'.join(table.name for table in DATASET)})/([^/]+/)?[^/.][^/]*-[0-9a-f]{{16}}\.parquet")
_PARTIAL = re.compile(r"((data|versions)/(.+/)?)?\.[^/]+~[0-9a-f]{32}")
"""What a write to a disk leaves that did not end (`storage/local.py`)."""
_NEVER = datetime.max.replace(tzinfo=UTC)


class NotPublished(MenuwatchError):
    """The destination failed; its current version is unchanged."""


class Destination(Struct, frozen=True, kw_only=True):
    """Where a dataset is published. `name` identifies it, `data_path` is where readers find its files by default."""

    name: str
    storage: Storage
    data_path: str
    folder: Path | None
    """None for a bucket."""


class Published(msgspec.Struct, kw_only=True, frozen=True):
    """Result. `changed`: there is a new version. `written` and `removed` count data files, `rows_read` rows read from the database."""

    destination: str
    version: int
    changed: bool
    rows: dict[str, int]
    rows_read: int
    files: int
    bytes: int
    written: int
    bytes_written: int
    removed: int
    catalogue: bool


def open_destination(where: str, endpoint: str | None) -> Destination:
    """A folder, which is created, or `s3://BUCKET/PREFIX` at the configured endpoint. Raises Refused for anything else."""
    if "://" in where:
        scheme, _, rest = where.partition("://")
        bucket, _, prefix = rest.partition("/")
        if scheme != "s3" or not bucket or not prefix.strip("/"):
            raise Refused(f"{where}: give a directory, or s3://BUCKET/PREFIX")
        name = f"s3://{bucket}/{prefix.strip('/')}"
        return Destination(
            name=name, storage=S3Storage(bucket, endpoint=endpoint, prefix=prefix), data_path=f"{name}/", folder=None
        )
    folder = Path(where).resolve()
    check_folder(folder, _OURS.__contains__, "a dataset")
    return Destination(name=str(folder), storage=LocalStorage(folder), data_path="./", folder=folder)


async def publish(
    conn: Connection,
    archived: ParquetPartitions,
    destination: Destination,
    *,
    title: str,
    licence: str | None,
    keep_versions: int,
    now: datetime,
    on_progress: Progress = lambda rows: None,
) -> Published:
    """Publishes a version, if anything differs from the last one. Raises Refused while another publish to the destination runs, and
    if it holds something else; NotPublished if it fails."""
    async with _alone(conn, destination):
        try:
            with tempfile.TemporaryDirectory(prefix="menuwatch-publish-") as scratch:
                return await _publish(
                    conn, archived, destination, Path(scratch), title=title, licence=licence, keep=keep_versions, now=now,
                    on_progress=on_progress,
                )  # fmt: skip
        except OSError as error:
            raise NotPublished(
                f"{destination.name} was not published: {describe_failure(error)}; its last version is unchanged"
            ) from error


@contextlib.asynccontextmanager
async def _alone(conn: Connection, destination: Destination) -> AsyncIterator[None]:
    """Locks out other publishes to the same destination: of this database, and for a folder those of any other."""
    row = await fetch_one(conn, _q.lock, {"destination": destination.name})
    if row is None or not row["locked"]:
        raise already_running("publish", destination.name)
    try:
        if destination.folder is None:
            yield
            return
        with lock_folder(destination.folder, LOCK, "publish"):
            yield
    finally:
        if not conn.closed:
            await conn.execute(_q.unlock, {"destination": destination.name})


async def _publish(
    conn: Connection,
    archived: ParquetPartitions,
    destination: Destination,
    scratch: Path,
    *,
    title: str,
    licence: str | None,
    keep: int,
    now: datetime,
    on_progress: Progress,
) -> Published:
    storage = destination.storage
    before = await asyncio.to_thread(_manifest, storage)
    await asyncio.to_thread(_claim, storage, is_new=before is None)
    known = await asyncio.to_thread(_known, storage, before)
    root = scratch / "dataset"
    read = 0

    def count(more: int) -> None:
        nonlocal read
        read += more
        on_progress(more)

    # Packed months are loaded once it is known which are needed.
    request = ExportRequest(what=ExportTable.STATES, fmt=Format.PARQUET, since=_NEVER)
    async with read_snapshot(conn, request, archived):
        views = {view.name: {c.name: c.meaning for c in view.columns} for view in await list_views(conn)}
        platforms = await fetch_structs(conn, Source, _q.provenance, {})
        parts = await list_parts(conn, archived)
        changed = [part for part in parts if part.source not in known.sources]
        new = await write_parts(conn, archived, changed, root, on_progress=count)
    sources: dict[str, str | None] = {}
    files: dict[str, list[DataFile]] = {table.name: [] for table in DATASET}
    for part in sorted(parts, key=_place):
        file = new.get(part.source) or known.file(part.source)
        sources[part.source] = None if file is None else file.path
        if file is not None:
            files[part.table.name].append(file)
    for table in DATASET:
        if not files[table.name]:
            files[table.name].append(await write_empty(table, root))
    texts = datapackage.meanings(views)
    catalogue = ducklake.is_installed()
    last = 0 if before is None else int(before["menuwatch"]["version"])
    version = 1 + max([last, *await asyncio.to_thread(_versions, storage)])
    published = [*(before["menuwatch"]["versions"] if before else ()), version][-keep:]
    package = datapackage.description(
        title=title, licence=licence, version=version, created=now, files=files, texts=texts, sources=platforms,
        catalogue=CATALOGUE if catalogue else None, published=published,
    )  # fmt: skip
    everything = [file for table in files.values() for file in table]
    written = [file for file in everything if known.sizes.get(file.path) != file.bytes]
    for file in written:
        with (root / file.path).open("rb") as content:
            await asyncio.to_thread(storage.put, file.path, content)
    result = Published(
        destination=destination.name, version=version, changed=True,
        rows={name: sum(file.rows for file in table) for name, table in files.items()}, rows_read=read,
        files=len(everything), bytes=sum(file.bytes for file in everything), written=len(written),
        bytes_written=sum(file.bytes for file in written), removed=0, catalogue=catalogue,
    )  # fmt: skip
    # After a crash the catalog may be that of a version which was not published: then a new one is.
    if before is not None and version == last + 1 and _content(before) == _content(package):
        if sources != known.sources:
            await asyncio.to_thread(storage.put, f"versions/{last}/{SOURCES}", msgspec.json.encode(sources))
        removed = await asyncio.to_thread(_clean, storage, before["menuwatch"]["versions"][0])
        return msgspec.structs.replace(result, version=last, changed=False, removed=removed)
    tops = {DICTIONARY: datapackage.dictionary(title, licence, texts).encode()}
    if catalogue:
        out = scratch / CATALOGUE
        await asyncio.to_thread(_copy_footers, storage, everything, root)
        await asyncio.to_thread(ducklake.write_catalogue, out, root, destination.data_path, files, texts)
        tops[CATALOGUE] = await asyncio.to_thread(out.read_bytes)
    manifest = msgspec.json.format(msgspec.json.encode(package), indent=1)
    for name, content_of in {**tops, SOURCES: msgspec.json.encode(sources), MANIFEST: manifest}.items():
        await asyncio.to_thread(storage.put, f"versions/{version}/{name}", content_of)
    if await asyncio.to_thread(_manifest, storage) != before:
        raise Refused(f"{destination.name} was published by another program in the meantime: run the command again")
    for name, content_of in {**tops, MANIFEST: manifest}.items():
        await asyncio.to_thread(storage.put, name, content_of)
    removed = 0
    try:
        if not catalogue:
            await asyncio.to_thread(storage.remove, CATALOGUE)
        removed = await asyncio.to_thread(_clean, storage, published[0])
    except OSError:  # the version is published; the next run cleans up
        log.warning("old files not removed", action="dataset_not_cleaned", version=version, exc_info=True)
    await audit.record(
        conn, "dataset_published", None, destination=destination.name, version=version, rows=sum(result.rows.values()),
        rows_read=read, files=len(everything), files_written=len(written), files_removed=removed, bytes=result.bytes,
    )  # fmt: skip
    return msgspec.structs.replace(result, removed=removed)


def _place(part: Part) -> tuple[str, str]:
    return part.month, part.state


class _Known(Struct, frozen=True, kw_only=True):
    """What the current version was made of. `sources`: the path of the file that each fingerprint gave, None if there were no rows;
    `files`: those of the version; `sizes`: of every file that is there, also of other versions."""

    sources: Mapping[str, str | None]
    files: Mapping[str, DataFile]
    sizes: Mapping[str, int]

    def file(self, source: str) -> DataFile | None:
        path = self.sources.get(source)
        return None if path is None else self.files[path]


def _known(storage: Storage, before: Mapping[str, Any] | None) -> _Known:
    sizes = {entry.path: entry.size for entry in storage.walk("data")}
    files: dict[str, DataFile] = {}
    sources: dict[str, str | None] = {}
    if before is not None:
        listed = [file for resource in before["resources"] for file in resource["files"]]
        files = {file.path: file for file in msgspec.convert(listed, list[DataFile])}
        # Without it, as after a release that wrote none, everything is read.
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError, msgspec.ValidationError):
            found = storage.get(f"versions/{before['menuwatch']['version']}/{SOURCES}")
            sources = msgspec.json.decode(found, type=dict[str, str | None])
    there = {path for path, file in files.items() if sizes.get(path) == file.bytes}
    sources = {source: path for source, path in sources.items() if path is None or path in there}
    return _Known(sources=sources, files=files, sizes=sizes)


def _copy_footers(storage: Storage, files: Sequence[DataFile], root: Path) -> None:
    """Puts stand-ins for files that are published already below `root`: of their size, with their footers, which is what the catalog
    reads of them, and holes for the rest."""
    for file in files:
        path = root / file.path
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with storage.open(file.path) as source, path.open("wb") as copy:
            source.seek(file.bytes - 8)
            size = 8 + int.from_bytes(source.read(4), "little")
            source.seek(file.bytes - size)
            copy.write(b"PAR1")
            copy.seek(file.bytes - size)
            copy.write(source.read(size))


def _manifest(storage: Storage) -> dict[str, Any] | None:
    """The current version's description. Raises Refused if it is not one of ours."""
    try:
        data = storage.get(MANIFEST)
    except FileNotFoundError:
        return None
    with contextlib.suppress(msgspec.DecodeError, TypeError, KeyError, ValueError):
        found: dict[str, Any] = msgspec.json.decode(data)
        int(found["menuwatch"]["version"])
        list(found["menuwatch"]["versions"])
        return found
    raise Refused(f"{storage.where} holds a {MANIFEST} of another dataset: choose another destination")


def _claim(storage: Storage, *, is_new: bool) -> None:
    """Marks the destination as one of datasets. Raises Refused for a new one that is not empty."""
    if storage.stat(MARKER) is not None:
        return
    if is_new and (other := next((one.path for one in storage.walk("", hidden=True) if one.path != LOCK), None)):
        raise Refused(f"{storage.where} holds {other} and no dataset: choose an empty destination")
    storage.put(MARKER, b"A dataset that Menuwatch publishes: see datapackage.json.\n")


def _content(package: Mapping[str, Any]) -> list[Any]:
    """What makes a version differ from another one."""
    own = {key: value for key, value in package.items() if key not in ("version", "created", "menuwatch")}
    return cast("list[Any]", msgspec.json.decode(msgspec.json.encode([own, package["menuwatch"]["catalogue"]])))


def _versions(storage: Storage) -> list[int]:
    """Every version of which something is there, published or not."""
    return sorted({int(found[1]) for entry in storage.walk("versions") if (found := _VERSION.fullmatch(entry.path))})


def _clean(storage: Storage, oldest: int) -> int:
    """Removes versions before `oldest`, what interrupted writes left, and the data files that no other version has; returns how many
    of these. Touches nothing that is not named as a publish names it."""
    kept: set[str] = set()
    old: list[str] = []
    data: list[str] = []
    for entry in storage.walk("", hidden=True):
        version = _VERSION.fullmatch(entry.path)
        if _PARTIAL.fullmatch(entry.path) or (version and int(version[1]) < oldest):
            old.append(entry.path)
        elif version and version[2] == MANIFEST:
            package = msgspec.json.decode(storage.get(entry.path))
            if "menuwatch" not in package:
                continue
            kept |= {file["path"] for resource in package["resources"] for file in resource["files"]}
        elif _DATA.fullmatch(entry.path):
            data.append(entry.path)
    storage.remove_all(old)
    unused = [path for path in data if path not in kept]
    storage.remove_all(unused)
    return len(unused)
