"""Whether what the server stands on is as it must be. Checks never raise: they say what they found, without internals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

import psycopg
from msgspec import Struct

from menuwatch.archive.files import FileArchive
from menuwatch.core.errors import Refused
from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import doc
from menuwatch.db import migrate, server_log, sql
from menuwatch.db.keeper import Keeper, Outage, OutageCode
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import fetch_one
from menuwatch.hosts import store as hosts
from menuwatch.ops.assessment import Level, assess
from menuwatch.ops.overview import overview
from menuwatch.platforms.base import Platform
from menuwatch.proxies import store as proxies
from menuwatch.proxies.model import ProxyCounts

_q = sql.load(__package__, "health.sql")
_PATIENCE_SECONDS = 2.0


class Check(Struct, kw_only=True, frozen=True):
    """Result of one check."""

    ok: Annotated[bool, doc("Whether the check passed.")]
    detail: Annotated[str, doc("Result as a sentence, with the fix if the check failed.")]


class Checks(Struct, kw_only=True, frozen=True):
    """Results of all checks."""

    database: Annotated[Check, doc("The database responds.")]
    migrations: Annotated[Check, doc("The database schema matches this version.")]
    storage: Annotated[Check, doc("The archive directory is writable.")]
    proxies: Annotated[
        Check,
        doc(
            "At least one proxy is active. Without one, workers do not start, running workers wait for a probe to reactivate "
            "one, and the server keeps working."
        ),
    ]
    hosts: Annotated[
        Check,
        doc(
            "Each platform has an available host. If an operator paused it or its circuit is open, tasks wait, and the server "
            "keeps working."
        ),
    ]


class WorkHealth(Struct, kw_only=True, frozen=True):
    """State of the work, as the overview and the doctor show it."""

    level: Annotated[Level, doc("The worst level of the findings; `ok` without any.")]
    findings: Annotated[dict[str, Level], doc("Each check that found something, with its worst level.")]


class Readiness(Struct, kw_only=True, frozen=True):
    """Whether the server is ready."""

    status: Annotated[
        Literal["ready", "not_ready"], doc("`not_ready` if the database, migrations or storage check failed.")
    ]
    checks: Checks
    warnings: Annotated[list[str], doc("Problems that should be fixed but do not affect readiness.")]
    health: Annotated[WorkHealth | None, doc("Does not affect readiness; null if not known in time.")]

    @property
    def ready(self) -> bool:
        return self.status == "ready"


class AwayCode(StrEnum):
    """Why the database cannot be used."""

    DISK_FULL = "disk_full"
    STOPPED = "stopped"
    STARTING = "starting"
    UNREACHABLE = "unreachable"


class Away(Struct, frozen=True, kw_only=True):
    """The database cannot be used: why, what is being done about it, and after how many seconds to try again."""

    code: AwayCode
    detail: str
    retry_after: int = 5


_FULL = "the disk of the database is full, so nothing was changed: free space on it and try again"


def away(error: BaseException, keeper: Keeper | None) -> Away:
    """What it means that the database failed with `error`; `keeper` restarts it where it is embedded."""
    if isinstance(error, psycopg.Error) and server_log.says_disk_full(str(error)):
        return Away(code=AwayCode.DISK_FULL, detail=_FULL, retry_after=30)
    outage = keeper.outage() if keeper is not None else None
    if outage is None:
        return Away(code=AwayCode.UNREACHABLE, detail="the database cannot be reached or is overloaded")
    if outage.next_try_seconds is None:
        when, retry = f"restart attempt {max(outage.tries, 1)} in progress", 5
    else:
        retry = int(outage.next_try_seconds) + 1
        when = f"restart attempt {outage.tries + 1} in {retry} s"
    return Away(
        code=AwayCode(outage.code), detail=f"the embedded database stopped; {when}{_remedy(outage)}", retry_after=retry
    )


def _remedy(outage: Outage) -> str:
    if outage.code == OutageCode.DISK_FULL:
        return f". The disk is full: free space on {outage.folder}, Menuwatch then restarts the database automatically"
    if outage.tries >= _MANY_TRIES:
        return "; run `menuwatch doctor` for the reason"
    return ""


_MANY_TRIES = 2
"""Tries after which a restart alone does not seem to help."""


async def _database(
    pool: Pool, platforms: Mapping[str, Platform], keeper: Keeper | None
) -> tuple[Check, Check, Check, Check]:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS), pool.connection(timeout=_PATIENCE_SECONDS) as conn:
            database = Check(ok=True, detail="answers")
            try:
                row = await fetch_one(conn, _q.schema_revision, {})
            except psycopg.errors.UndefinedTable:
                row = None
            newest = await asyncio.to_thread(migrate.newest)
            if row is None or row["version_num"] != newest:
                at = "empty" if row is None else f"at schema {row['version_num']}"
                wrong = Check(
                    ok=False, detail=f"the database is {at}, this version needs {newest}: run `menuwatch migrate`"
                )
                later = Check(ok=False, detail="unknown until the database is migrated")
                return database, wrong, later, later
            schema = Check(ok=True, detail=f"at schema {newest}")
            return database, schema, _proxies(await proxies.count(conn)), await _hosts(conn, platforms)
    except (psycopg.Error, OSError, TimeoutError) as error:
        unknown = Check(ok=False, detail="unknown while the database cannot be reached")
        return Check(ok=False, detail=away(error, keeper).detail), unknown, unknown, unknown


def _proxies(counts: ProxyCounts) -> Check:
    if counts.active:
        more = [
            f"{count:,} {what}"
            for count, what in (
                (counts.failing, "of them failing"),
                (counts.inactive, "inactive"),
                (counts.untested, "untested"),
                (counts.disabled, "disabled"),
            )
            if count
        ]
        return Check(ok=True, detail=", ".join([f"{counts.active:,} active", *more]))
    if counts.next_probe_seconds is not None:
        what = "network roles wait until a probe succeeds"
    elif counts.known:
        what = "network roles wait, and none is retried automatically: `menuwatch proxies enable` or"
    else:
        what = "workers do not start; add one with"
    how = "" if counts.next_probe_seconds is not None else " `menuwatch proxies add`"
    return Check(ok=False, detail=f"{counts.shortage}; {what}{how}")


async def _hosts(conn: Connection, platforms: Mapping[str, Platform]) -> Check:
    """Whether each platform has a host that gets requests. One that is only cooling down resumes soon without action."""
    closed = []
    for name, platform in platforms.items():
        shut = [one for one in await hosts.availability(conn, platform.hosts) if one.code is not None]
        if shut and len(shut) == len(platform.hosts) and any(one.code != "cooling" for one in shut):
            reasons = "; ".join(
                f"{one.host} is blocked ({PostponeCode(one.code).label}: {one.reason})" for one in shut if one.code
            )
            remedy = next(PostponeCode(one.code).remedy(one.host) for one in shut if one.code and one.code != "cooling")
            closed.append(f"{reasons}; tasks for {name} wait: {remedy}")
    return Check(ok=not closed, detail=". ".join(closed) or "no required host is blocked")


async def _work(pool: Pool) -> WorkHealth | None:
    """What anybody may know: the checks, without their details."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS), pool.connection(timeout=_PATIENCE_SECONDS) as conn:
            assessed = assess(await overview(conn))
    except (psycopg.Error, OSError, TimeoutError):
        return None
    # The worst comes first.
    return WorkHealth(level=assessed.level, findings={one.check: one.level for one in reversed(assessed.findings)})


async def _storage(archive: FileArchive) -> Check:
    try:
        await asyncio.to_thread(archive.check)
    except Refused as error:
        return Check(ok=False, detail=str(error))
    return Check(ok=True, detail="writable")


async def check(
    pool: Pool, archive: FileArchive, platforms: Mapping[str, Platform], keeper: Keeper | None = None
) -> Readiness:
    """Runs all checks, within a few seconds. The server works without proxies and available hosts: only workers do not."""
    (database, migrations, active, asked), storage = await asyncio.gather(
        _database(pool, platforms, keeper), _storage(archive)
    )
    known = database.ok and migrations.ok
    return Readiness(
        status="ready" if known and storage.ok else "not_ready",
        checks=Checks(database=database, migrations=migrations, storage=storage, proxies=active, hosts=asked),
        warnings=[check.detail for check in (active, asked) if known and not check.ok],
        health=await _work(pool) if known else None,
    )
