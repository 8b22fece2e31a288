"""Brings a database to the schema of this version. Safe when several processes start at once: one migrates, the others wait."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import sql as compose

from menuwatch.core.errors import Refused

TABLE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", re.MULTILINE)
_RELATION = re.compile(r"^CREATE (?:UNLOGGED )?(?:TABLE|VIEW) (\w+)", re.MULTILINE)
LOCK = 0x6D656E75  # "menu": one migrator at a time, whatever the process
FORMER_SCHEMA = "legacy"
"""Where the import looks for the tables of the former system."""
_NAMED = 5
_LEAVING_SECONDS = 2.0
"""A backend is listed a little longer than its client was connected."""

MIGRATIONS = Path(__file__).parent / "migrations"
"""Alembic's folder."""


class Migrated(Struct, frozen=True, kw_only=True):
    """The schema revision before and after; None before means an empty database."""

    before: str | None
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


def _revisions() -> dict[str, Path]:
    """The file of each revision, oldest first: files are named by their revision."""
    return {file.stem.partition("_")[0]: file for file in sorted((MIGRATIONS / "versions").glob("[0-9]*.py"))}


def newest() -> str:
    """The revision this version of the program needs."""
    return max(_revisions())


def knows(revision: str) -> bool:
    """Whether this version can migrate a database from that revision to the newest one."""
    return revision in _revisions()


def sql_files(revision_file: Path) -> list[Path]:
    """The SQL of a revision: `NNNN_name.sql` beside its `.py` file, or the files of the folder `NNNN_name`, ordered by name."""
    folder = revision_file.with_suffix("")
    return sorted(folder.glob("*.sql")) if folder.is_dir() else [revision_file.with_suffix(".sql")]


def tables() -> frozenset[str]:
    """Names of all tables that any revision makes, and of the one that holds the revision."""
    return _created(TABLE) | {"alembic_version"}


def _created(pattern: re.Pattern[str]) -> frozenset[str]:
    files = [sql for file in _revisions().values() for sql in sql_files(file)]
    return frozenset(name for file in files for name in pattern.findall(file.read_text(encoding="utf-8")))


def current(url: str) -> str | None:
    """The revision the database is at, None when it holds no schema of ours.

    Raises Refused for a database of a version before 0.2.0: its revisions were numbered differently, and nothing upgrades it.
    """
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(
            "SELECT to_regclass('alembic_version'), to_regclass('upkeep'), to_regclass('brand_descriptions')"
        ).fetchone()
        if row is None or row[0] is None:
            return None
        before_release = row[1] is not None or row[2] is None
        row = conn.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None:
        return None
    if before_release:
        raise Refused(
            f"this database was created by Menuwatch before 0.2.0 (schema {row[0]}), which cannot be upgraded: export what you need "
            "(`menuwatch export`) with that version, and start this one with an empty database"
        )
    return str(row[0])


def migrate(url: str) -> Migrated:
    """Applies what is missing, each revision in a transaction; does nothing where nothing is.

    Raises Refused for a server that is too old, and for a database of a newer version of the program or of one before 0.2.0.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise Refused("DATABASE_URL must start with postgresql://")
    after = newest()
    if current(url) == after:
        return Migrated(before=after, after=after)
    from menuwatch.db.upgrade import upgrade

    return Migrated(before=upgrade(url, after), after=after)


def require_newest(url: str) -> None:
    """Raises Refused for a database that is not at the schema of this version, with what to do."""
    revision = current(url)
    if revision is None:
        raise Refused("this database has no schema yet: run `menuwatch migrate`")
    if not knows(revision):
        raise Refused(f"unknown schema {revision}: run a newer Menuwatch")
    if revision != newest():
        raise Refused(f"this database is at schema {revision}, this version needs {newest()}: run `menuwatch migrate`")


OCCUPANTS = """
SELECT c.relname FROM pg_class c
 WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
 ORDER BY c.relname
"""
"""Tables and views of the schema that a migration writes to."""


def refuse_occupied(names: Iterable[str]) -> None:
    """Raises Refused if any of these relations, in a database without a schema of ours, has a name that a migration would create."""
    if taken := sorted(_created(_RELATION) & set(names)):
        more = f" and {len(taken) - _NAMED} more" if len(taken) > _NAMED else ""
        raise Refused(
            f"this database already has tables that Menuwatch would create ({', '.join(taken[:_NAMED])}{more}), probably those of "
            "the legacy system; nothing was changed. Stop the legacy system, then move its tables to the schema "
            f"`{FORMER_SCHEMA}` with `menuwatch migrate-legacy move-tables`; then run this command again"
        )


def move_tables(url: str, into: str = FORMER_SCHEMA, *, force: bool = False) -> list[str]:
    """Renames the schema that a migration would write to, and creates an empty one in its place; returns the names of its tables and
    views. Everything in it is kept, with its data, indexes and functions.

    Raises Refused if nothing is in the way of a migration, if Menuwatch's own schema is there, if the name is taken, if the user may
    not rename the schema, and, without `force`, while other clients are connected: a running system would write to the new schema.
    """
    if current(url) is not None:
        raise Refused("this database already has Menuwatch's schema: there is nothing to move")
    with psycopg.connect(url) as conn:
        conn.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        names = [str(name) for (name,) in conn.execute(OCCUPANTS).fetchall()]
        if not _created(_RELATION) & set(names):
            raise Refused(
                "no table in this database conflicts with Menuwatch's: there is nothing to move; run `menuwatch migrate`"
            )
        schema, user, taken, others = _around(conn, into)
        if taken:
            raise Refused(f"the schema {into!r} exists already: choose another name with --schema")
        if others and not force:
            raise Refused(
                f"other clients are connected to this database ({others}): stop the legacy system first, because it would write to "
                "Menuwatch's tables; --force moves the tables anyway"
            )
        move = compose.SQL("ALTER SCHEMA {} RENAME TO {}; CREATE SCHEMA {}").format(
            compose.Identifier(schema), compose.Identifier(into), compose.Identifier(schema)
        )
        open_to_all = conn.execute("SELECT has_schema_privilege('public', %s, 'USAGE')", [schema]).fetchone() == (True,)
        grant = compose.SQL("GRANT USAGE ON SCHEMA {} TO PUBLIC").format(compose.Identifier(schema))
        try:
            conn.execute(move)
            if open_to_all:
                conn.execute(grant)
        except psycopg.errors.ReservedName:
            raise Refused(f"the name {into!r} is reserved by PostgreSQL: choose another one with --schema") from None
        except psycopg.errors.InsufficientPrivilege:
            also = f" {grant.as_string(conn)};" if open_to_all else ""
            raise Refused(
                f"the database user {user!r} may not rename the schema {schema!r}. Run this as the owner of the database: "
                f'{move.as_string(conn)} AUTHORIZATION "{user}";{also}'
            ) from None
    return names


_AROUND = """
SELECT current_schema(), current_user, to_regnamespace(quote_ident(%s)) IS NOT NULL,
       (SELECT string_agg(DISTINCT coalesce(nullif(application_name, ''), 'without a name'), ', ') FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend')
"""


def _around(conn: psycopg.Connection[Any], into: str) -> tuple[str, str, bool, str | None]:
    """The schema, the user, whether the name is taken, and the names of other clients; those that are just leaving are waited for."""
    until = time.monotonic() + _LEAVING_SECONDS
    while True:
        conn.execute("SELECT pg_stat_clear_snapshot()")
        row: tuple[str, str, bool, str | None] | None = conn.execute(_AROUND, [into]).fetchone()
        assert row is not None, "SELECT gives a row"
        if row[3] is None or time.monotonic() > until:
            return row
        time.sleep(0.05)
