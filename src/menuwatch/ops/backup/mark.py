"""The mark of a restore that was begun, in the storage. Every start reads it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from menuwatch.core.errors import Refused
from menuwatch.storage.base import Storage, StorageUnavailable
from menuwatch.storage.service import as_storage

MARK = ".restore.json"


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that was begun: of which backup, from which folder."""

    backup: str
    folder: str


def read_mark(storage: Storage | Path) -> Mark | None:
    """The mark in the storage."""
    storage = as_storage(storage)
    try:
        return msgspec.json.decode(storage.get(MARK), type=Mark)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.DecodeError as error:
        raise Refused(f"{MARK} in {storage.where} is damaged: remove it if no restore was begun there") from error
    except StorageUnavailable as error:
        raise Refused(f"{error}; check S3_ENDPOINT, S3_BUCKET and the AWS credentials") from error


def refuse_unfinished(storage: Storage | Path) -> None:
    """Raises Refused for an unfinished restore."""
    storage = as_storage(storage)
    mark = read_mark(storage)
    if mark is not None:
        raise Refused(
            f"a restore into {storage.where} is unfinished: run `menuwatch restore {mark.folder}` to continue"
        )
