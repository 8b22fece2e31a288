"""Opens the storage that the settings name."""

from __future__ import annotations

import errno
from pathlib import Path

from menuwatch.config.settings import Settings
from menuwatch.storage.base import Storage, StorageUnavailable
from menuwatch.storage.local import LocalStorage


def open_storage(settings: Settings, driver: str | None = None) -> Storage:
    """The storage of that driver, by default of the configured one. Makes no request."""
    if (driver or settings.storage_driver) == "local":
        return LocalStorage(settings.storage)
    from menuwatch.storage.s3 import S3Storage

    return S3Storage(settings.s3_bucket or "", endpoint=settings.s3_endpoint, prefix=settings.s3_prefix)


def as_storage(storage: Storage | Path) -> Storage:
    """The storage itself, or a local one for a folder."""
    return LocalStorage(storage) if isinstance(storage, Path) else storage


def describe_failure(error: OSError) -> str:
    """What failed, for a message."""
    if isinstance(error, StorageUnavailable):
        return str(error)
    return "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
