"""`menuwatch doctor`: what is wrong with an installation, and how to mend it."""

from __future__ import annotations

import asyncio
import platform as machine
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import psycopg
import typer

import menuwatch
from menuwatch.archive.files import FileArchive
from menuwatch.cli.output import console, plural, print_json
from menuwatch.cli.process import settings as process_settings
from menuwatch.core import telemetry
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.settings import Settings
from menuwatch.db import address, embedded, migrate
from menuwatch.db.pool import connect, open_pool
from menuwatch.fetch import profiles
from menuwatch.operations import alert_secrets
from menuwatch.operations import hosts as host_operations
from menuwatch.operations import proxies as proxy_operations
from menuwatch.operations.figures import SILENT_SECONDS
from menuwatch.operations.hosts import CLOSED
from menuwatch.operations.wording import at

_LOW_DISK = 1_000_000_000


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check. `level` is ok, warning (it works, but) or problem (it does not); `mend` is what to do."""

    check: str
    level: str
    detail: str
    mend: str | None = None


def doctor(json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Check this installation. Exit code 1 when something does not work."""
    findings = list(_examine())
    if json:
        print_json({"ok": all(f.level != "problem" for f in findings), "findings": findings})
    else:
        _print(findings)
    if any(f.level == "problem" for f in findings):
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    marks = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "problem": "[red]problem[/]"}
    width = max(len(f.check) for f in findings)
    for finding in findings:
        console.print(f"{marks[finding.level]}  {finding.check:{width}}  ", end="")
        console.print(finding.detail, markup=False, soft_wrap=True)
        if finding.mend:
            console.print(f"         {'':{width}}  → {finding.mend}", markup=False, soft_wrap=True)
    bad = sum(f.level == "problem" for f in findings)
    odd = sum(f.level == "warning" for f in findings)
    if bad:
        console.print(f"{plural(bad, 'problem')} to mend.")
    else:
        console.print(f"It works; {plural(odd, 'warning')}." if odd else "Nothing is wrong.")


def _examine() -> Iterator[Finding]:
    yield Finding(
        check="version", level="ok", detail=f"Menuwatch {menuwatch.__version__}, Python {machine.python_version()}"
    )
    try:
        settings = process_settings()
    except Refused as error:
        telemetry.configure()
        yield Finding(check="settings", level="problem", detail=str(error), mend="correct or unset that variable")
        return
    yield Finding(check="settings", level="ok", detail=f"data folder {settings.home.resolve()}")
    yield from _disk(settings.home)
    yield _attempt(
        "storage",
        lambda: FileArchive(settings.storage).check(),
        f"{settings.storage} can be written",
        "make the folder writable for this user, or set STORAGE_PATH to one that is",
    )
    yield _profiles(settings)
    yield from _database(settings)


def _profiles(settings: Settings) -> Finding:
    try:
        found = profiles.load(settings.profiles_file)
    except MenuwatchError as error:
        mend = "correct that file, or unset PROFILES_FILE; `menuwatch profiles` shows the built-in ones then"
        return Finding(check="profiles", level="problem", detail=str(error), mend=mend)
    where = "built in" if settings.profiles_file is None else f"of {found.source}"
    return Finding(check="profiles", level="ok", detail=f"{plural(len(found.profiles), 'browser')}, {where}")


def _disk(home: Path) -> Iterator[Finding]:
    place = next(p for p in (home.resolve(), *home.resolve().parents) if p.exists())
    free = shutil.disk_usage(place).free
    low = free < _LOW_DISK
    yield Finding(
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


def _database(settings: Settings) -> Iterator[Finding]:
    where = "DATABASE_URL" if settings.database_url else "embedded"
    mend = (
        "check DATABASE_URL (host, port, user, password) and that the server runs"
        if settings.database_url
        else "read the log in the data folder's postgres/log; moving the folder postgres/ away starts with an empty database"
    )
    try:
        with embedded.database_url(settings) as url:
            with psycopg.connect(url, connect_timeout=10) as conn:
                row = conn.execute("SHOW server_version").fetchone()
            version = str(row[0]) if row else "unknown"
            major = int(version.split(".")[0].split()[0])
            if major < migrate.MINIMUM_VERSION:
                yield Finding(
                    check="database",
                    level="problem",
                    detail=f"{where}: PostgreSQL {version}",
                    mend=f"use PostgreSQL {migrate.MINIMUM_VERSION} or newer",
                )
                return
            yield Finding(check="database", level="ok", detail=f"{where}: PostgreSQL {version}")
            yield _schema(url)
            if migrate.current(url) == migrate.newest():
                yield asyncio.run(_proxies(url, settings))
                yield from asyncio.run(_hosts(url))
                yield from asyncio.run(_alerts(url, settings))
                yield asyncio.run(_workers(url))
                yield asyncio.run(_tasks(url))
    except (Refused, psycopg.Error) as error:
        detail = address.safe_reason(error)
        yield Finding(check="database", level="problem", detail=f"{where}: {detail}", mend=mend)


def _schema(url: str) -> Finding:
    at, newest = migrate.current(url), migrate.newest()
    if at == newest:
        return Finding(check="schema", level="ok", detail=f"at {at}")
    return Finding(
        check="schema",
        level="warning",
        detail=f"at {at or 'nothing'}, this version needs {newest}",
        mend="menuwatch migrate (server and worker do it by themselves)",
    )


async def _proxies(url: str, settings: Settings) -> Finding:
    async with open_pool(url, max_size=1) as pool:
        found = await proxy_operations.examine(pool, settings)
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


async def _alerts(url: str, settings: Settings) -> list[Finding]:
    """Nothing where nobody is told of anything."""
    async with await connect(url) as conn:
        total, locked = await alert_secrets.locked(conn, settings)
    if locked is not None:
        mend = "set SECRET_KEY as it was when they were sealed, older keys behind it"
        return [Finding(check="alerts", level="problem", detail=str(locked), mend=mend)]
    return [Finding(check="alerts", level="ok", detail=plural(total, "channel"))] if total else []


_HOSTS = 5


async def _hosts(url: str) -> list[Finding]:
    """A line for each host that nobody asks, else one for all."""
    async with await connect(url) as conn:
        found = await host_operations.all_of(conn)
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
        detail = f"{plural(len(found), 'host')} asked so far" if found else "none was asked yet"
        if slow:
            detail += f"; more slowly for now: {', '.join(host.host for host in slow[:_HOSTS])}"
        said.append(Finding(check="hosts", level="ok", detail=detail))
    return said


_CLOSED = {"paused": "an operator paused it", "circuit": "its circuit is open", "cooling": "it cools down"}


async def _workers(url: str) -> Finding:
    async with await connect(url) as conn:
        cursor = await conn.execute(_WORKERS, {"silent": SILENT_SECONDS})
        live, silent, waiting = await cursor.fetchone() or (0, 0, 0)
    lost = f"{plural(silent, 'worker')} fell silent" if silent else ""
    if not live:
        wait = f"{plural(waiting, 'task')} {'waits' if waiting == 1 else 'wait'}" if waiting else ""
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


_WORKERS = """
SELECT count(*) FILTER (WHERE last_heartbeat_at >= now() - make_interval(secs => %(silent)s)) AS live,
       count(*) FILTER (WHERE last_heartbeat_at < now() - make_interval(secs => %(silent)s)) AS silent,
       (SELECT count(*) FROM task_live WHERE state = 'r' OR (state = 's' AND scheduled_for <= now())) AS waiting
  FROM worker_registry WHERE status <> 'stopped'
"""


async def _tasks(url: str) -> Finding:
    async with await connect(url) as conn:
        cursor = await conn.execute("SELECT status, count(*) FROM worker_tasks GROUP BY status ORDER BY status")
        counts = {str(status): int(n) for status, n in await cursor.fetchall()}
    detail = ", ".join(f"{n} {status}" for status, n in counts.items()) or "none"
    stuck = counts.get("stale", 0)
    return Finding(
        check="tasks",
        level="warning" if stuck else "ok",
        detail=detail,
        mend="start a worker: it takes back what a dead one left" if stuck else None,
    )
