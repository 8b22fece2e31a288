"""The database as a versioned open dataset: Parquet files, `datapackage.json` and a DuckLake catalogue, in a folder or a bucket.

    data/price_history/NM/2026-03-<hash>.parquet   named after their content, never changed
    versions/7/datapackage.json, catalog.ducklake  every version, never changed
    DICTIONARY.md, catalog.ducklake                those of the current version
    datapackage.json                               replaced last: from here on the version is published

A file whose content is as before is not written again. After a crash the current version is unchanged; what was left is used or
removed by the next publish. Files are removed once none of the last versions has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import hashlib
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote

import msgspec
from psycopg import AsyncClientCursor

from menuwatch.catalog import cold_storage
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_one, fetch_structs
from menuwatch.exports import datapackage, ducklake
from menuwatch.exports.datapackage import DataFile, Source
from menuwatch.exports.dataset import DATASET, DatasetTable
from menuwatch.exports.destination_folder import already_running, check_folder, lock_folder
from menuwatch.exports.encoders import Parquet, expression
from menuwatch.exports.tables import ExportTable, Format
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
LOCK = ".publish.lock"
MARKER = ".menuwatch-dataset"
"""Written before anything else into an empty destination: what is there is of the dataset."""
_OURS = {"data", "versions", MANIFEST, CATALOGUE, DICTIONARY, LOCK, MARKER}
_VERSION = re.compile(rf"versions/([0-9]+)/({MANIFEST}|{CATALOGUE}|{DICTIONARY})")
_DATA = re.compile(rf"data/({'|'.join(table.name for table in DATASET)})/([^/]+/)?[^/.][^/]*-[0-9a-f]{{16}}\.parquet")
_PARTIAL = re.compile(r"((data|versions)/(.+/)?)?\.[^/]+~[0-9a-f]{32}")
"""What a write to a disk leaves that did not end (`storage/local.py`)."""
_HISTORY = {view.rpartition(".")[2] for view in cold_storage.VIEWS if view.startswith("analyst.")}
_UNKNOWN = "unknown"
"""Folder of stores whose state is not known."""
Progress = Callable[[int], None]
"""Called with how many rows more were read."""


class NotPublished(MenuwatchError):
    """The destination failed; its current version is unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a dataset is published. `name` identifies it, `data_path` is where readers find its files by default."""

    name: str
    storage: Storage
    data_path: str
    folder: Path | None
    """None for a bucket."""


class Published(msgspec.Struct, kw_only=True, frozen=True):
    """Result. `changed`: there is a new version. `written` and `removed` count data files."""

    destination: str
    version: int
    changed: bool
    rows: dict[str, int]
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
    root = scratch / "dataset"
    async with read_snapshot(conn, ExportRequest(what=ExportTable.STATES, fmt=Format.PARQUET), archived):
        views = {view.name: {c.name: c.meaning for c in view.columns} for view in await list_views(conn)}
        sources = await fetch_structs(conn, Source, _q.provenance, {})
        packed = await cold_storage.has_archived_views(conn)
        files = {
            table.name: await _write(conn, table, root, packed=packed, on_progress=on_progress) for table in DATASET
        }
    texts = datapackage.meanings(views)
    catalogue = ducklake.is_installed()
    last = 0 if before is None else int(before["menuwatch"]["version"])
    version = 1 + max([last, *await asyncio.to_thread(_versions, storage)])
    published = [*(before["menuwatch"]["versions"] if before else ()), version][-keep:]
    package = datapackage.description(
        title=title, licence=licence, version=version, created=now, files=files, texts=texts, sources=sources,
        catalogue=CATALOGUE if catalogue else None, published=published,
    )  # fmt: skip
    everything = [file for table in files.values() for file in table]
    result = Published(
        destination=destination.name, version=version, changed=True,
        rows={name: sum(file.rows for file in table) for name, table in files.items()},
        files=len(everything), bytes=sum(file.bytes for file in everything), written=0, bytes_written=0, removed=0,
        catalogue=catalogue,
    )  # fmt: skip
    # After a crash the catalogue may be that of a version which was not published: then a new one is.
    if before is not None and version == last + 1 and _content(before) == _content(package):
        removed = await asyncio.to_thread(_clean, storage, before["menuwatch"]["versions"][0])
        return msgspec.structs.replace(result, version=last, changed=False, removed=removed)
    new = [file for file in everything if not await asyncio.to_thread(_is_there, storage, file)]
    for file in new:
        with (root / file.path).open("rb") as content:
            await asyncio.to_thread(storage.put, file.path, content)
    tops = {DICTIONARY: datapackage.dictionary(title, licence, texts).encode()}
    if catalogue:
        out = scratch / CATALOGUE
        await asyncio.to_thread(
            ducklake.write_catalogue, out, root, destination.data_path, files, texts, scratch / "extensions"
        )
        tops[CATALOGUE] = await asyncio.to_thread(out.read_bytes)
    manifest = msgspec.json.format(msgspec.json.encode(package), indent=1)
    for name, content_of in {**tops, MANIFEST: manifest}.items():
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
    log.info("dataset published", action="dataset_published", version=version, files=len(new), removed=removed)
    return msgspec.structs.replace(
        result, written=len(new), bytes_written=sum(file.bytes for file in new), removed=removed
    )


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


def _is_there(storage: Storage, file: DataFile) -> bool:
    entry = storage.stat(file.path)
    return entry is not None and entry.size == file.bytes


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


async def _write(
    conn: Connection, table: DatasetTable, root: Path, *, packed: bool, on_progress: Progress
) -> list[DataFile]:
    """Writes the files of a table below `root`."""
    inner: str = _q[table.name]
    if packed and table.view in _HISTORY:  # the views that `read_snapshot` made of the same names
        inner = inner.replace("FROM analyst.", "FROM pg_temp.")
    columns = ", ".join(expression(column, Format.PARQUET) for column in table.columns)
    order = ", ".join(f"x.{name}" for name in table.order)
    query = f"COPY (SELECT {columns} FROM ({inner}) x ORDER BY {order}) TO STDOUT (FORMAT csv)"  # noqa: S608  # names of our own
    files: list[DataFile] = []
    part: _Part | None = None
    async with AsyncClientCursor(conn) as cursor, cursor.copy(query) as copy:
        async for row in copy:
            line = bytes(row)
            if part is None or (table.monthly and not line.startswith(part.prefix)):
                month, state = _part_of(line) if table.monthly else ("", "")
                if part is None or (month, state) != (part.month, part.state):
                    if part is not None:
                        files.append(await asyncio.to_thread(part.finish))
                    part = await asyncio.to_thread(_Part, table, root, month, state)
                part.prefix = _prefix(month, state)
            part.lines.append(line)
            if len(part.lines) == Parquet.batch:
                on_progress(len(part.lines))
                await asyncio.to_thread(part.flush)
    if part is None:
        part = _Part(table, root, "empty" if table.monthly else "", "")
    on_progress(len(part.lines))
    files.append(await asyncio.to_thread(part.finish))
    return files


def _part_of(line: bytes) -> tuple[str, str]:
    month, state = next(csv.reader([line.decode()]))[:2]
    return month, state


def _prefix(month: str, state: str) -> bytes:
    """How the lines of a part begin; lines that are quoted begin otherwise, and are read by `_part_of`."""
    return f"{month},{state},".encode()


class _Part:
    """One file that is being written."""

    def __init__(self, table: DatasetTable, root: Path, month: str, state: str) -> None:
        self.month, self.state = month, state
        self.prefix = b""
        self.lines: list[bytes] = []
        self._rows = 0
        self._root = root
        self._folder = f"data/{table.name}"
        if table.monthly and month != "empty":
            self._folder += "/" + (quote(state, safe=" ") or _UNKNOWN)
        (root / self._folder).mkdir(parents=True, exist_ok=True)
        self._path = root / self._folder / f"{month or 'all'}.part"
        self._file: IO[bytes] = self._path.open("xb")
        self._encoder = Parquet(table.columns)
        self._file.write(self._encoder.begin())

    def flush(self) -> None:
        """Encodes the lines."""
        if self.lines:
            self._file.write(self._encoder.lines(self.lines))
            self._rows += len(self.lines)
            self.lines = []

    def finish(self) -> DataFile:
        """Ends the file and names it after its content."""
        self.flush()
        self._file.write(self._encoder.end())
        self._file.close()
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name = f"{self._folder}/{self._path.stem}-{digest[:16]}.parquet"
        self._path.rename(self._root / name)
        size = (self._root / name).stat().st_size
        return DataFile(path=name, rows=self._rows, bytes=size, hash=f"sha256:{digest}")
