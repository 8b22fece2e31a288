"""What is wrong with an installation, and how to mend it: the checks of `menuwatch doctor` and of the dashboard."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec

from menuwatch.archive.files import FileArchive
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.settings import Settings
from menuwatch.db import MINIMUM_VERSION, migrate, sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.fetch import profiles
from menuwatch.geo.database import GeoDatabase
from menuwatch.operations import alert_secrets, hosts, proxies
from menuwatch.operations.figures import SILENT_SECONDS
from menuwatch.operations.hosts import CLOSED
from menuwatch.operations.reading import row, rows
from menuwatch.operations.wording import at, many

_q = sql.load(__package__, "doctor.sql")

_LOW_DISK = 1_000_000_000
_OLD_PLACES = 180
"""Days after which a geography database is old: addresses move."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check. `level` is ok, warning (it works, but) or problem (it does not); `mend` is what to do."""

    check: str
    level: str
    detail: str
    mend: str | None = None


def machine(settings: Settings, today: date | None = None) -> Iterator[Finding]:
    """What does not need the database: disk, storage, profiles, places of addresses (`today` tells which are old). Reads and writes
    files."""
    yield _disk(settings.home)
    yield _attempt(
        "storage",
        lambda: FileArchive(settings.storage).check(),
        f"{settings.storage} can be written",
        "make the folder writable for this user, or set STORAGE_PATH to one that is",
    )
    yield _profiles(settings)
    if settings.geoip_database is not None:
        yield _places(settings.geoip_database, today or datetime.now(UTC).date())


def server(version: str, *, where: str) -> Finding:
    """Whether that PostgreSQL will do. `where` it runs: DATABASE_URL or embedded."""
    major = int(version.split(".")[0].split()[0])
    if major < MINIMUM_VERSION:
        return Finding(
            check="database",
            level="problem",
            detail=f"{where}: PostgreSQL {version}",
            mend=f"use PostgreSQL {MINIMUM_VERSION} or newer",
        )
    return Finding(check="database", level="ok", detail=f"{where}: PostgreSQL {version}")


def schema(revision: str | None) -> Finding:
    """Whether the database is at the revision that this version needs."""
    newest = migrate.newest()
    if revision == newest:
        return Finding(check="schema", level="ok", detail=f"at {revision}")
    return Finding(
        check="schema",
        level="warning",
        detail=f"at {revision or 'nothing'}, this version needs {newest}",
        mend="menuwatch migrate (server and worker do it by themselves)",
    )


async def work(pool: Pool, settings: Settings) -> list[Finding]:
    """How proxies, hosts, alerts, workers and tasks are, of a database at the newest schema."""
    found = [await _proxies(pool, settings)]
    async with pool.connection() as conn:
        found += await _hosts(conn)
        found += await _alerts(conn, settings)
        found.append(await _workers(conn))
        found.append(await _tasks(conn))
    return found


async def everything(pool: Pool, settings: Settings) -> list[Finding]:
    """All of it, for a server that runs."""
    found = list(await asyncio.to_thread(lambda: list(machine(settings))))
    async with pool.connection() as conn:
        about = await row(conn, _q.server, {})
    assert about is not None, "a SELECT without FROM gives a row"
    found.append(server(about["version"], where="DATABASE_URL" if settings.database_url else "embedded"))
    found.append(schema(about["revision"]))
    return found + await work(pool, settings)


def _profiles(settings: Settings) -> Finding:
    try:
        found = profiles.load(settings.profiles_file)
    except MenuwatchError as error:
        mend = "correct that file, or unset PROFILES_FILE; `menuwatch profiles` shows the built-in ones then"
        return Finding(check="profiles", level="problem", detail=str(error), mend=mend)
    where = "built in" if settings.profiles_file is None else f"of {found.source}"
    return Finding(check="profiles", level="ok", detail=f"{many(len(found.profiles), 'browser')}, {where}")


def _places(path: Path, today: date) -> Finding:
    """Where visitors are is looked up in that file. Old ones know fewer and fewer addresses."""
    try:
        geo = GeoDatabase(path)
    except Refused as error:
        mend = "name a file that can be read, or unset GEOIP_DATABASE: visitors are counted without their places then"
        return Finding(check="places", level="problem", detail=str(error), mend=mend)
    try:
        about, built = geo.about, geo.built
    finally:
        geo.close()
    age = (today - built).days if built is not None else 0
    if age > _OLD_PLACES:
        mend = f"replace {path} by a newer edition; a server that runs takes it within seconds"
        return Finding(check="places", level="warning", detail=f"{about}: {age} days old", mend=mend)
    return Finding(check="places", level="ok", detail=about)


def _disk(home: Path) -> Finding:
    place = next(p for p in (home.resolve(), *home.resolve().parents) if p.exists())
    free = shutil.disk_usage(place).free
    low = free < _LOW_DISK
    return Finding(
        check="disk",
        level="warning" if low else "ok",
        detail=f"{free / 1e9:.1f} GB free at {place}",
        mend="free some space, or move MENUWATCH_HOME" if low else None,
    )


def _attempt(check: str, act: Callable[[], object], good: str, mend: str) -> Finding:
    try:
        act()
    except MenuwatchError as error:
        return Finding(check=check, level="problem", detail=str(error), mend=mend)
    return Finding(check=check, level="ok", detail=good)


async def _proxies(pool: Pool, settings: Settings) -> Finding:
    found = await proxies.examine(pool, settings)
    standing = found.standing
    if found.locked is not None:
        return Finding(
            check="proxies",
            level="problem",
            detail=str(found.locked),
            mend="set SECRET_KEY as it was when they were sealed, older keys behind it",
        )
    if standing.active == 0:
        comes = standing.next_probe_seconds is not None
        return Finding(
            check="proxies",
            level="warning",
            detail=f"{standing.shortage}; " + ("network roles wait" if comes else "workers will not start"),
            mend="menuwatch proxies list --inactive"
            if standing.known
            else "menuwatch proxies add http://USER:PASSWORD@HOST:PORT",
        )
    parts = [f"{standing.active:,} of {standing.known:,} active"]
    parts += [f"{standing.inactive:,} inactive"] if standing.inactive else []
    parts += [f"{standing.disabled:,} disabled"] if standing.disabled else []
    parts += [f"failing: {found.failing}"] if found.failing else []
    bad = bool(standing.inactive or found.failing)
    return Finding(
        check="proxies",
        level="warning" if bad else "ok",
        detail="; ".join(parts),
        mend="menuwatch proxies list --inactive says why; menuwatch proxies test tries them" if bad else None,
    )


async def _alerts(conn: Connection, settings: Settings) -> list[Finding]:
    """Nothing where nobody is told of anything."""
    total, locked = await alert_secrets.locked(conn, settings)
    if locked is not None:
        mend = "set SECRET_KEY as it was when they were sealed, older keys behind it"
        return [Finding(check="alerts", level="problem", detail=str(locked), mend=mend)]
    return [Finding(check="alerts", level="ok", detail=many(total, "channel"))] if total else []


_HOSTS = 5


async def _hosts(conn: Connection) -> list[Finding]:
    """A line for each host that nobody asks, else one for all."""
    found = await hosts.all_of(conn)
    closed = [host for host in found if host.state in CLOSED]
    said = [
        Finding(
            check="hosts",
            level="warning",
            detail=f"{host.host} is not asked"
            + (f" until {at(host.until)}" if host.until is not None else "")
            + f" ({_CLOSED[host.state]}): {host.reason}",
            mend=host.advice,
        )
        for host in closed[:_HOSTS]
    ]
    if len(closed) > _HOSTS:
        more = f"{len(closed) - _HOSTS} more are not asked"
        said.append(Finding(check="hosts", level="warning", detail=more, mend="menuwatch hosts list"))
    slow = [host for host in found if host.state in ("slow", "trying")]
    if not said:
        detail = f"{many(len(found), 'host')} asked so far" if found else "none was asked yet"
        if slow:
            detail += f"; more slowly for now: {', '.join(host.host for host in slow[:_HOSTS])}"
        said.append(Finding(check="hosts", level="ok", detail=detail))
    return said


_CLOSED = {"paused": "an operator paused it", "circuit": "its circuit is open", "cooling": "it cools down"}


async def _workers(conn: Connection) -> Finding:
    found = await row(conn, _q.workers, {"silent": SILENT_SECONDS})
    assert found is not None, "an aggregate gives a row"
    live, silent, waiting = found["live"], found["silent"], found["waiting"]
    lost = f"{many(silent, 'worker')} fell silent" if silent else ""
    if not live:
        wait = f"{many(waiting, 'task')} {'waits' if waiting == 1 else 'wait'}" if waiting else ""
        return Finding(
            check="workers",
            level="warning",
            detail="; ".join(filter(None, ["no worker is alive", lost, wait])),
            mend="menuwatch worker (or menuwatch up, which starts a server and a worker)",
        )
    return Finding(
        check="workers",
        level="warning" if silent else "ok",
        detail="; ".join(filter(None, [f"{live:,} alive", lost])),
        mend="menuwatch workers list says which; what they were at is taken back by itself" if silent else None,
    )


async def _tasks(conn: Connection) -> Finding:
    counts = {found["status"]: found["n"] for found in await rows(conn, _q.tasks, {})}
    detail = ", ".join(f"{n:,} {status}" for status, n in counts.items()) or "none waits or runs"
    stuck = counts.get("stale", 0)
    return Finding(
        check="tasks",
        level="warning" if stuck else "ok",
        detail=detail,
        mend="start a worker: it takes back what a dead one left" if stuck else None,
    )
