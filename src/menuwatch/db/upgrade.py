"""Runs migrations, by Alembic. Loaded only where something is missing: it takes longer than looking."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import sqlalchemy
import sqlalchemy.exc
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from menuwatch.core.errors import Refused
from menuwatch.db import MINIMUM_VERSION

LOCK = 0x6D656E75  # "menu": one migrator at a time, whatever the process


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def _sqlalchemy_url(url: str) -> str:
    """The same address for the psycopg 3 dialect."""
    return "postgresql+psycopg://" + url.partition("://")[2]


@contextmanager
def _connected(url: str) -> Iterator[sqlalchemy.Connection]:
    """A connection whose failures are the driver's own errors, as everywhere else."""
    engine = sqlalchemy.create_engine(_sqlalchemy_url(url), poolclass=sqlalchemy.NullPool)
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


def upgrade(url: str, newest: str) -> str | None:
    """Applies what is missing up to `newest`, each revision in a transaction; returns where the database was before.

    Raises Refused for a server that is too old, and for a database that a newer version of the program has migrated.
    """
    found: list[str | None] = []

    def work(conn: sqlalchemy.Connection) -> None:
        before = MigrationContext.configure(conn).get_current_revision()
        found.append(before)
        known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
        if before is not None and before not in known:
            raise Refused(
                f"this database is at schema {before}, which this version does not know (it knows up to {newest}): "
                "run the newer Menuwatch that migrated it"
            )
        if before == newest:
            return
        # Alembic leaves a transaction that it did not begin for others to commit: end the reading one first.
        conn.rollback()
        config = _config()
        config.attributes["connection"] = conn
        command.upgrade(config, newest)

    _locked(url, work)
    return found[0]
