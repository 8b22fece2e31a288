"""Runs migrations, by Alembic. Loaded only where something is missing: it takes longer than looking."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import sqlalchemy
import sqlalchemy.exc
from alembic import command, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext

from menuwatch.core.errors import Refused
from menuwatch.db import MINIMUM_VERSION, migrate


@contextmanager
def _connected(url: str) -> Iterator[sqlalchemy.Connection]:
    """A connection whose failures are the driver's own errors, as everywhere else."""
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{url.partition('://')[2]}", poolclass=sqlalchemy.NullPool)
    try:
        with engine.connect() as conn:
            yield conn
    except sqlalchemy.exc.DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise error.orig from None
        raise
    finally:
        engine.dispose()


@contextmanager
def _locked(conn: sqlalchemy.Connection) -> Iterator[None]:
    conn.exec_driver_sql(f"SELECT pg_advisory_lock({migrate.LOCK})")
    conn.commit()
    try:
        yield
    finally:
        conn.rollback()
        conn.exec_driver_sql(f"SELECT pg_advisory_unlock({migrate.LOCK})")
        conn.commit()


def upgrade(url: str, newest: str) -> str | None:
    """Applies what is missing up to `newest`, each revision in a transaction; returns where the database was before.

    Raises Refused for a server that is too old, for a database that a newer version of the program has migrated, and for one with
    other tables of the same names, before anything is changed.
    """
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(migrate.MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with _connected(url) as conn:
        version = int(conn.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000
        if version < MINIMUM_VERSION:
            raise Refused(f"this database is PostgreSQL {version}; Menuwatch needs {MINIMUM_VERSION} or newer")
        with _locked(conn):
            before = MigrationContext.configure(conn).get_current_revision()
            if before is not None and not migrate.knows(before):
                raise Refused(
                    f"this database is at schema {before}, which this version does not know (it knows up to {newest}): "
                    "run the newer Menuwatch that migrated it"
                )
            if before is None:
                migrate.refuse_occupied(conn.exec_driver_sql(migrate.OCCUPANTS).scalars())
            if before != newest:
                # Alembic leaves a transaction that it did not begin for others to commit: end the reading one first.
                conn.rollback()
                config.attributes["connection"] = conn
                command.upgrade(config, newest)
    return before


def run_sql(revision_file: str) -> None:
    """Runs the SQL of the revision whose `.py` file this is: whole, unparsed, in the revision's transaction."""
    for file in migrate.sql_files(Path(revision_file)):
        op.get_bind().exec_driver_sql(file.read_text(encoding="utf-8"), execution_options={"no_parameters": True})
