"""What an installation is: versions, sizes, upkeep, and its settings as they may be shown."""

from __future__ import annotations

import asyncio
import dataclasses
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import menuwatch
from menuwatch.core.settings import Settings
from menuwatch.db import migrate, sql
from menuwatch.db.pool import Connection
from menuwatch.operations import backups
from menuwatch.operations.reading import Row, row, rows

_q = sql.load(__package__, "installation.sql")

TABLES = 12
"""The largest tables that are listed."""
_SAMPLE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files of one kind in the storage: how many and how many bytes. Not `exact`: both are estimates."""

    count: int
    bytes: int
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Versions and sizes. `revision` is what the database is at, `newest` what this version needs; `free_bytes` on the disk of the
    storage."""

    version: str
    python: str
    postgres: str
    revision: str | None
    newest: str
    database_bytes: int
    database_since: datetime
    connections: int
    connections_most: int
    tables: Sequence[Row]
    payloads: Files
    images: Files
    storage: str
    free_bytes: int | None
    duties: Sequence[Row]
    versions: Sequence[Row]
    """Of the software that workers run, with how many do; None where they do not say."""
    backups: Sequence[Row]
    """The newest of each folder, newest first."""

    @property
    def mixed(self) -> bool:
        """Whether something else is at work than this version."""
        return any(one["version"] not in (None, self.version) for one in self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. `value` as it may be shown; `changed`: it is not the default."""

    variable: str
    value: str
    default: str
    meaning: str
    secret: bool
    changed: bool


async def about(conn: Connection, settings: Settings) -> Installation:
    """The installation now."""
    server, files = await row(conn, _q.server, {}), await row(conn, _q.files, {})
    assert server is not None, "a SELECT without FROM gives a row"
    assert files is not None, "a SELECT without FROM gives a row"
    return Installation(
        version=menuwatch.__version__,
        python=platform.python_version(),
        postgres=server["postgres"],
        revision=server["revision"],
        newest=migrate.newest(),
        database_bytes=server["bytes"],
        database_since=server["started_at"],
        connections=server["connections"],
        connections_most=server["connections_most"],
        tables=await rows(conn, _q.tables, {"limit": TABLES}),
        payloads=_files(files["payloads"], files["payloads_seen"], files["payload_mean"]),
        images=_files(files["images"], files["images_seen"], files["image_mean"]),
        storage=str(settings.storage),
        free_bytes=await asyncio.to_thread(_free, settings.storage),
        duties=await rows(conn, _q.duties, {}),
        versions=await rows(conn, _q.versions, {}),
        backups=await backups.newest(conn),
    )


def _files(estimate: int, seen: int, mean: float | None) -> Files:
    # Few are counted; of many there is the estimate, which an ANALYZE may not have made yet.
    exact = seen < _SAMPLE
    count = seen if exact else max(estimate, seen)
    return Files(count=count, bytes=round(count * (mean or 0.0)), exact=exact)


def _free(folder: Path) -> int | None:
    place = next((p for p in (folder.resolve(), *folder.resolve().parents) if p.exists()), None)
    return None if place is None else shutil.disk_usage(place).free


def settings_shown(settings: Settings) -> list[Setting]:
    """Every setting in the order of the class. Of what is secret only whether it is set, of an address no password."""
    found = []
    for spec in dataclasses.fields(settings):
        value = getattr(settings, spec.name)
        default = spec.default_factory() if spec.default_factory is not dataclasses.MISSING else spec.default
        secret = bool(spec.metadata["secret"])
        text = ("set" if value else "") if secret else _text(value)
        found.append(
            Setting(
                variable=spec.metadata["variable"],
                value=text,
                default="" if secret else _text(default),
                meaning=spec.metadata["doc"],
                secret=secret,
                changed=value != default,
            )
        )
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple | list):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(one)}" for name, one in value.items())
    return without_login(f"{value:g}" if isinstance(value, float) else str(value))


def without_login(text: str) -> str:
    """The text; of an address with a user or a password, or of a database's in words, only that it is set."""
    if "://" in text:
        try:
            parts = urlsplit(text)
            kept = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="")
        except ValueError:
            return "set"
        return urlunsplit(kept)
    return "set" if "password=" in text.lower() else text
