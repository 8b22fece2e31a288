"""A bucket of any S3-compatible object store, through obstore.

An object is whole or missing, so a staged object is written to its final path at once, beside an empty note in `.incoming` that its
row may be missing. Publishing removes the note. If something is at that path already, the content is staged instead of the note, and
copied when published: whose row is committed decides. See docs/decisions/0025-object-storage.md.
"""

from __future__ import annotations

import configparser
import contextlib
import io
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from menuwatch.core.errors import Refused
from menuwatch.storage.base import Entry, Incoming, StorageUnavailable, flat, place_of, staged_path, staging_folder

if TYPE_CHECKING:
    from obstore.store import S3Store

_REQUEST_SECONDS = 60.0
_CONNECT_SECONDS = 5.0
_RETRIES = 4
_RETRY_SECONDS = 30.0
_ONE_REQUEST_BYTES = 64_000_000
"""Larger objects are uploaded in parts."""
_BUFFER_BYTES = 1 << 20


class S3Storage:
    """Objects below `prefix` of a bucket. Credentials and region are taken from the usual AWS variables and files."""

    setting = "S3_BUCKET"

    def __init__(self, bucket: str, *, endpoint: str | None = None, prefix: str = "", **options: Any) -> None:
        """`options` are passed on to obstore; only tests need them."""
        self._bucket = bucket
        self._endpoint = endpoint
        self._prefix = prefix.strip("/")
        self._options = options
        self.retries = _RETRIES

    @property
    def where(self) -> str:
        place = f"s3://{self._bucket}/{self._prefix}".rstrip("/")
        return f"the bucket {place}" + (f" at {self._endpoint}" if self._endpoint else "")

    @cached_property
    def _store(self) -> S3Store:
        from obstore.store import S3Store  # loading it takes longer than most commands

        given: dict[str, Any] = _credentials_of_files(os.environ) | self._options
        if self._endpoint:
            given["endpoint"] = self._endpoint
        try:
            return S3Store(
                self._bucket,
                prefix=self._prefix or None,
                client_options={
                    "allow_http": bool(self._endpoint and self._endpoint.startswith("http://")),
                    "timeout": timedelta(seconds=_REQUEST_SECONDS),
                    "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
                },
                retry_config={"max_retries": self.retries, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)},
                **given,
            )
        except Exception as error:
            raise Refused(f"{self.where} cannot be used: {_reason(error)}") from None

    @contextlib.contextmanager
    def _requests(self) -> Iterator[S3Store]:
        from obstore.exceptions import BaseError

        try:
            yield self._store
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.where} has no such object") from None
        except (BaseError, OSError) as error:
            # The original text may hold the request's signature.
            raise StorageUnavailable(f"{self.where} failed: {_reason(error)}") from None

    def check(self) -> None:
        probe = f"payloads/.incoming/probe-{uuid.uuid4().hex}"
        try:
            self.put(probe, b"probe")
            self.remove(probe)
        except OSError as error:
            raise Refused(f"{error}; check S3_ENDPOINT, S3_BUCKET and the AWS credentials") from error

    def get(self, path: str, limit: int | None = None, *, evict: bool = False) -> bytes:
        import obstore

        with self._requests() as store:
            found = obstore.get(store, path)
            if limit is None or found.meta["size"] <= limit:
                return bytes(found.bytes())
            data = b""
            for piece in found.stream(min_chunk_size=1):
                data += bytes(piece)
                if len(data) >= limit:
                    break
            return data[:limit]

    def open(self, path: str) -> IO[bytes]:
        import obstore

        with self._requests() as store:
            found = obstore.head(store, path)
            if found["size"] <= _BUFFER_BYTES:
                return io.BytesIO(self.get(path))
            try:
                obstore.get_range(store, path, start=0, length=1)
            except obstore.exceptions.GenericError:
                return self._download(path)  # a store without ranges
            reader = obstore.open_reader(store, path, buffer_size=_BUFFER_BYTES, size=found["size"])
        return cast("IO[bytes]", io.BufferedReader(_Raw(self, reader), _BUFFER_BYTES))

    def _download(self, path: str) -> IO[bytes]:
        import obstore

        file = cast("IO[bytes]", tempfile.TemporaryFile())  # noqa: SIM115  # the caller closes it
        with self._requests() as store:
            for piece in obstore.get(store, path).stream():
                file.write(piece)
        file.seek(0)
        return file

    def put(self, path: str, data: bytes | IO[bytes]) -> None:
        import obstore

        parts = not isinstance(data, bytes) or len(data) > _ONE_REQUEST_BYTES
        with self._requests() as store:
            obstore.put(store, path, data, use_multipart=parts)

    def copy(self, source: str, path: str) -> None:
        import obstore

        with self._requests() as store:
            obstore.copy(store, source, path)

    def move(self, source: str, path: str) -> None:
        self.copy(source, path)
        self.remove(source)

    def remove(self, path: str) -> None:
        import obstore

        with contextlib.suppress(FileNotFoundError), self._requests() as store:
            obstore.delete(store, path)

    def remove_all(self, paths: Sequence[str]) -> None:
        import obstore

        if not paths:
            return
        try:
            with self._requests() as store:
                obstore.delete(store, list(paths))  # 1000 per request
        except (FileNotFoundError, StorageUnavailable):
            # Some stores do not know DeleteObjects, or take a missing object for an error.
            for path in paths:
                self.remove(path)

    def remove_folder(self, folder: str) -> int:
        paths = [entry.path for entry in self._list(folder)]
        self.remove_all(paths)
        return len(paths)

    def stat(self, path: str) -> Entry | None:
        import obstore

        with contextlib.suppress(FileNotFoundError), self._requests() as store:
            return _entry(obstore.head(store, path))
        return None

    def walk(self, folder: str, *, hidden: bool = False) -> Iterator[Entry]:
        for entry in self._list(folder):
            parts = entry.path.split("/")
            if hidden or not any(part.startswith(".") for part in parts):
                yield entry

    def _list(self, folder: str, after: str = "") -> Iterator[Entry]:
        import obstore

        with self._requests() as store:
            for batch in obstore.list(store, folder or None, offset=after or None):
                yield from (_entry(one) for one in batch)

    def stage(self, path: str, data: bytes) -> Incoming:
        name = f"{flat(path)}~{uuid.uuid4().hex}"
        if self.stat(path) is not None:
            file = Incoming(path=path, name=name)
            self.put(place_of(file), data)
            return file
        # The note comes first: an object that a crash leaves without its row must be found.
        self.put(f"{staging_folder(path)}/{name}", b"")
        file = Incoming(path=path, name=name, placed=True)
        self.put(path, data)
        return file

    def publish(self, file: Incoming) -> None:
        if not file.placed:
            try:
                self.copy(place_of(file), file.path)
            except FileNotFoundError:
                if self.stat(file.path) is None:
                    raise
                return
        self.remove(f"{staging_folder(file.path)}/{file.name}")

    def discard(self, file: Incoming, *, unused: bool = False) -> None:
        if file.placed:
            if not unused:
                # Another attempt at that path may have replaced the object: the clean-up knows the rows.
                return
            self.remove(file.path)
        self.remove(f"{staging_folder(file.path)}/{file.name}")

    def staged(self, folder: str) -> Iterator[tuple[Incoming, float]]:
        now = time.time()
        for entry in self._list(staging_folder(folder)):
            name = entry.path.rpartition("/")[2]
            if "~" in name:
                yield Incoming(path=staged_path(name), name=name, placed=entry.size == 0), now - entry.changed

    def staged_at(self, path: str) -> list[Entry]:
        start = f"{staging_folder(path)}/{flat(path)}~"
        # An offset ends right before the first of them: prefixes of obstore are whole folders.
        found: list[Entry] = []
        for entry in self._list(staging_folder(path), start):
            if not entry.path.startswith(start):
                break
            if entry.size:
                found.append(entry)
        return found


class _Raw(io.RawIOBase):
    """obstore's reader as a file that Python and Arrow can read."""

    def __init__(self, storage: S3Storage, reader: Any) -> None:
        self._storage = storage
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return int(self._reader.seek(offset, whence))

    def readinto(self, buffer: Any, /) -> int:
        with self._storage._requests():
            data = bytes(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def _entry(meta: Any) -> Entry:
    changed = meta["last_modified"].timestamp()
    return Entry(
        path=meta["path"], size=meta["size"], mtime_ns=int(changed * 1000) * 1_000_000, changed=changed,
        identity=meta["e_tag"] or meta["path"],
    )  # fmt: skip


def _reason(error: BaseException) -> str:
    """The first line without the server's document, which may hold an access key."""
    text, _, document = str(error).partition(": <")
    text = text.partition("\n")[0]
    code = document.partition("<Code>")[2].partition("</Code>")[0]
    return f"{text} ({code})" if code else text


def _credentials_of_files(environ: Mapping[str, str]) -> dict[str, str]:
    """Credentials and region of the profile AWS_PROFILE in AWS's files; obstore reads only the variables, which take precedence.

    https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html
    """
    profile = environ.get("AWS_PROFILE", "default")
    found: dict[str, str] = {}
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        place = Path(environ.get(variable) or Path.home() / ".aws" / name)
        parser = configparser.RawConfigParser()
        try:
            parser.read(place, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise Refused(f"{place} is not a file of AWS settings: {type(error).__name__}") from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    chosen = {} if "AWS_ACCESS_KEY_ID" in environ else {name: found[name] for name in names if name in found}
    if "region" in found and not environ.keys() & {"AWS_REGION", "AWS_DEFAULT_REGION"}:
        chosen["region"] = found["region"]
    return chosen
