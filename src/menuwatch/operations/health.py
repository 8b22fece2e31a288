"""Whether what the server stands on is as it must be. Checks never raise: they say what they found, without internals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from menuwatch.archive.files import FileArchive
from menuwatch.core.errors import Refused
from menuwatch.db import migrate, sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.fetch.leases import WORDS
from menuwatch.hosts import store as hosts
from menuwatch.operations.hosts import advice
from menuwatch.operations.reading import row
from menuwatch.platforms.base import Platform
from menuwatch.proxies import store as proxies
from menuwatch.proxies.model import Standing

_q = sql.load(__package__)
_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    ok: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Everything that was looked at."""

    database: Check
    migrations: Check
    storage: Check
    proxies: Check
    hosts: Check

    @property
    def ready(self) -> bool:
        """Whether the server can work. It can without proxies, and where no host wants to be asked: only workers cannot."""
        return self.database.ok and self.migrations.ok and self.storage.ok

    @property
    def warnings(self) -> list[str]:
        """What does not keep the server from working, but should be mended."""
        known = self.database.ok and self.migrations.ok
        return [check.detail for check in (self.proxies, self.hosts) if known and not check.ok]


async def _database(pool: Pool, platforms: Mapping[str, Platform]) -> tuple[Check, Check, Check, Check]:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS), pool.connection(timeout=_PATIENCE_SECONDS) as conn:
            database = Check(ok=True, detail="answers")
            try:
                found = await row(conn, _q.schema_revision, {})
            except psycopg.errors.UndefinedTable:
                found = None
            newest = await asyncio.to_thread(migrate.newest)
            if found is None or found["version_num"] != newest:
                at = "empty" if found is None else f"at schema {found['version_num']}"
                wrong = Check(
                    ok=False, detail=f"the database is {at}, this version needs {newest}: run `menuwatch migrate`"
                )
                later = Check(ok=False, detail="unknown until the database is migrated")
                return database, wrong, later, later
            schema = Check(ok=True, detail=f"at schema {newest}")
            return database, schema, _proxies(await proxies.standing(conn)), await _hosts(conn, platforms)
    except (psycopg.Error, OSError, TimeoutError):
        unknown = Check(ok=False, detail="unknown while the database cannot be reached")
        return Check(ok=False, detail="the database cannot be reached"), unknown, unknown, unknown


def _proxies(found: Standing) -> Check:
    if found.active:
        more = [
            f"{count:,} {what}"
            for count, what in (
                (found.failing, "of them failing"),
                (found.inactive, "inactive"),
                (found.disabled, "disabled"),
            )
            if count
        ]
        return Check(ok=True, detail=", ".join([f"{found.active:,} active", *more]))
    if found.next_probe_seconds is not None:
        what = "network roles wait and go on by themselves once a probe gets through"
    elif found.known:
        what = "network roles wait, and none is tried again by itself: `menuwatch proxies enable` or"
    else:
        what = "workers do not start; add one with"
    how = "" if found.next_probe_seconds is not None else " `menuwatch proxies add`"
    return Check(ok=False, detail=f"{found.shortage}; {what}{how}")


async def _hosts(conn: Connection, platforms: Mapping[str, Platform]) -> Check:
    """Whether each platform has a host that is asked. One that only cools down is asked again by itself, and soon."""
    closed = []
    for name, platform in platforms.items():
        outlooks = await hosts.outlook(conn, platform.hosts)
        shut = [one for one in outlooks if one.code is not None]
        if shut and len(shut) == len(platform.hosts) and any(one.code != "cooling" for one in shut):
            said = "; ".join(f"{one.host} is not asked ({WORDS[one.code or '']}: {one.reason})" for one in shut)
            told = next(advice(one.code or "", one.host) for one in shut if one.code != "cooling")
            closed.append(f"{said}; work for {name} waits: {told}")
    return Check(ok=not closed, detail=". ".join(closed) or "none that is needed is closed")


async def _storage(archive: FileArchive) -> Check:
    try:
        await asyncio.to_thread(archive.check)
    except Refused as error:
        return Check(ok=False, detail=str(error))
    return Check(ok=True, detail="can be written")


async def check(pool: Pool, archive: FileArchive, platforms: Mapping[str, Platform]) -> Health:
    """Looks at everything, within a few seconds."""
    (database, migrations, active, asked), storage = await asyncio.gather(_database(pool, platforms), _storage(archive))
    return Health(database=database, migrations=migrations, storage=storage, proxies=active, hosts=asked)
