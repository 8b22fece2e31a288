"""What an installation is: versions, sizes, maintenance, and its settings as they may be shown."""

from __future__ import annotations

import asyncio
import platform
import shlex
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

import menuwatch
from menuwatch.config import environment
from menuwatch.config.platforms import prefix
from menuwatch.config.settings import Settings
from menuwatch.core.shapes import doc
from menuwatch.db import migrate, sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one
from menuwatch.ops.backup import log as backups
from menuwatch.platforms import registry

_q = sql.load(__package__, "installation.sql")

TABLES = 12
"""The largest tables that are listed."""
_SAMPLE = 1000


class Files(Struct, frozen=True, kw_only=True):
    """Files of one kind in the storage: how many and how many bytes. Not `exact`: both are estimates."""

    count: int
    bytes: int
    exact: bool


class Installation(Struct, frozen=True, kw_only=True):
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
    maintenance: Sequence[Row]
    versions: Sequence[Row]
    """Of the software that workers run, with how many do; None where they do not say."""
    backups: Sequence[Row]
    """The newest of each folder, newest first."""

    @property
    def mixed(self) -> bool:
        """Whether something else is at work than this version."""
        return any(one["version"] not in (None, self.version) for one in self.versions)


class Setting(Struct, frozen=True, kw_only=True):
    """One setting."""

    variable: Annotated[str, doc("Environment variable.")]
    group: str
    restart: Annotated[str, doc("Processes that read it at their start.")]
    value: Annotated[str, doc("Value as it may be shown: of a secret `set`, or empty if it is not set.")]
    default: Annotated[str, doc("Default as it may be shown.")]
    meaning: str
    secret: Annotated[bool, doc("Whether the value is never shown.")]
    changed: Annotated[bool, doc("Whether it differs from the default.")]


async def about(conn: Connection, settings: Settings) -> Installation:
    """The installation now."""
    server, files = await fetch_one(conn, _q.server, {}), await fetch_one(conn, _q.files, {})
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
        tables=await fetch_all(conn, _q.tables, {"limit": TABLES}),
        payloads=_files(files["payloads"], files["payloads_seen"], files["payload_mean"]),
        images=_files(files["images"], files["images_seen"], files["image_mean"]),
        storage=str(settings.storage),
        free_bytes=await asyncio.to_thread(_free, settings.storage),
        maintenance=await fetch_all(conn, _q.maintenance, {}),
        versions=await fetch_all(conn, _q.versions, {}),
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


_EVERY = "server and workers"
_GROUPS = {
    "MENUWATCH_HOME": ("Data and storage", _EVERY),
    "HOST": ("Server", "server"),
    "LOG_FORMAT": ("Logs", _EVERY),
    "WORKER_ROLE": ("Workers", "workers"),
    "WORKERS_PER_POD": ("Scaling", _EVERY),
    "MEMORY_BACKOFF_THRESHOLD": ("Back-off and recovery", _EVERY),
    "METRICS_PORT": ("Metrics", _EVERY),
    "TASK_HISTORY_DAYS": ("Retention and analytics", _EVERY),
    "DUTCHIE_BASE_URL": ("Platforms", _EVERY),
    "SERPWATCH_TOKEN": ("Search crawls", _EVERY),
    "FETCH_TIMEOUT_SECONDS": ("Requests, hosts and proxies", _EVERY),
    "SECRET_KEY": ("Encryption", _EVERY),
    "IMAGE_HOSTS": ("Images", _EVERY),
    "MAIL_URL": ("Mail and alerts", _EVERY),
    "SUSPECT_SHARE": ("Quarantine", _EVERY),
}
"""Groups of settings by the first setting of each, in the order of the class: name, and the processes that read them."""


def _values(settings: Settings) -> Iterator[tuple[str, Any, Any, Any]]:
    """(variable, default, value, metadata) of every setting: in the order of the class, those of platforms after Dutchie's."""
    for variable, default, spec in environment.fields(type(settings)):
        yield variable, default, getattr(settings, spec.name), spec.metadata
        if variable != "DUTCHIE_ROBOTS":
            continue
        for adapter in registry.with_settings():
            checked = registry.settings_of(settings, adapter)
            for name, usual, own in environment.fields(type(checked), prefix(adapter.name)):
                yield name, usual, getattr(checked, own.name), own.metadata


def settings_shown(settings: Settings) -> list[Setting]:
    """Every setting by group. Of what is secret only whether it is set, of an address no password."""
    shown = []
    group, restart = "", ""
    for variable, default, value, metadata in _values(settings):
        group, restart = _GROUPS.get(variable, (group, restart))
        secret = bool(metadata["secret"])
        shown.append(
            Setting(
                variable=variable,
                group=group,
                restart=restart,
                value=("set" if value else "") if secret else _text(value),
                default="" if secret else _text(default),
                meaning=metadata["doc"],
                secret=secret,
                changed=value != default,
            )
        )
    return shown


def settings_as_env(settings: Settings) -> list[str]:
    """Lines of an `.env` file for the settings that are not at their default. What is secret or holds a password is a comment."""
    lines = []
    for variable, default, value, metadata in _values(settings):
        if value != default:
            text = environment.format_value(value)
            hidden = metadata["secret"] or without_login(text) != text
            lines.append(f"# {variable}= is set and not shown" if hidden else f"{variable}={shlex.quote(text)}")
    return lines


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
