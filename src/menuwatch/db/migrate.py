"""Brings a database to the schema of this version. Safe when several processes start at once: one migrates, the others wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import sqlalchemy
import sqlalchemy.exc
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from menuwatch.core.errors import Refused

LOCK = 0x6D656E75  # "menu": one migrator at a time, whatever the process
MINIMUM_VERSION = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """The schema revision before and after; None before means an empty database."""

    before: str | None
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def sqlalchemy_url(url: str) -> str:
    """The same address for the psycopg 3 dialect."""
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    raise Refused("DATABASE_URL must start with postgresql://")


def newest() -> str:
    """The revision this version of the program needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None, "the package ships its migrations"
    return head


@contextmanager
def _connected(url: str) -> Iterator[sqlalchemy.Connection]:
    """A connection whose failures are the driver's own errors, as everywhere else."""
    engine = sqlalchemy.create_engine(sqlalchemy_url(url), poolclass=sqlalchemy.NullPool)
    try:
        with engine.connect() as conn:
            yield conn
    except sqlalchemy.exc.DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise error.orig from None
        raise
    finally:
        engine.dispose()


def _locked(url: str, work: Callable[[sqlalchemy.Connection], None]) -> None:
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with _connected(url) as conn:
        version = conn.exec_driver_sql("SHOW server_version_num").scalar_one()
        if int(version) < MINIMUM_VERSION * 10_000:
            raise Refused(
                f"this database is PostgreSQL {int(version) // 10_000}; Menuwatch needs {MINIMUM_VERSION} or newer"
            )
        conn.exec_driver_sql(f"SELECT pg_advisory_lock({LOCK})")
        conn.commit()
        try:
            work(conn)
        finally:
            conn.rollback()
            conn.exec_driver_sql(f"SELECT pg_advisory_unlock({LOCK})")
            conn.commit()


def current(url: str) -> str | None:
    """The revision the database is at, None when it holds no schema of ours."""
    with _connected(url) as conn:
        return MigrationContext.configure(conn).get_current_revision()


def migrate(url: str) -> Migrated:
    """Applies what is missing, each revision in a transaction; does nothing where nothing is.

    Raises Refused for a server that is too old, and for a database that a newer version of the program has migrated.
    """
    found: list[str | None] = []

    def work(conn: sqlalchemy.Connection) -> None:
        before = MigrationContext.configure(conn).get_current_revision()
        found.append(before)
        known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
        if before is not None and before not in known:
            raise Refused(
                f"this database is at schema {before}, which this version does not know (it knows up to {newest()}): "
                "run the newer Menuwatch that migrated it"
            )
        if before == newest():
            return
        # Alembic leaves a transaction that it did not begin for others to commit: end the reading one first.
        conn.rollback()
        config = _config()
        config.attributes["connection"] = conn
        command.upgrade(config, "head")

    _locked(url, work)
    return Migrated(before=found[0], after=newest())
