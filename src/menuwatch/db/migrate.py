"""Brings a database to the schema of this version. Safe when several processes start at once: one migrates, the others wait."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import psycopg

from menuwatch.core.errors import Refused

_TABLE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", re.MULTILINE)
_VERSIONS = Path(__file__).parent / "migrations" / "versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """The schema revision before and after; None before means an empty database."""

    before: str | None
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


def newest() -> str:
    """The revision this version of the program needs: files are named by their revision, in order."""
    return max(file.stem for file in _VERSIONS.glob("[0-9]*.sql")).partition("_")[0]


def knows(revision: str) -> bool:
    """Whether this version can bring a database from that revision to the newest one."""
    return any(file.stem.partition("_")[0] == revision for file in _VERSIONS.glob("[0-9]*.sql"))


def tables() -> frozenset[str]:
    """Names of all tables that any revision makes, and of the one that holds the revision."""
    found = {name for file in _VERSIONS.glob("[0-9]*.sql") for name in _TABLE.findall(file.read_text(encoding="utf-8"))}
    return frozenset(found | {"alembic_version"})


def current(url: str) -> str | None:
    """The revision the database is at, None when it holds no schema of ours."""
    with psycopg.connect(url, autocommit=True) as conn:
        there = conn.execute("SELECT to_regclass('alembic_version')").fetchone()
        if there is None or there[0] is None:
            return None
        row = conn.execute("SELECT version_num FROM alembic_version").fetchone()
        return None if row is None else str(row[0])


def migrate(url: str) -> Migrated:
    """Applies what is missing, each revision in a transaction; does nothing where nothing is.

    Raises Refused for a server that is too old, and for a database that a newer version of the program has migrated.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise Refused("DATABASE_URL must start with postgresql://")
    after = newest()
    if current(url) == after:
        return Migrated(before=after, after=after)
    from menuwatch.db.upgrade import upgrade

    return Migrated(before=upgrade(url, after), after=after)
