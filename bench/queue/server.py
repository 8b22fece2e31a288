"""The PostgreSQL server of a run: one for all, and a fresh database for each measurement."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from menuwatch.db import embedded

_SHOWN = ("server_version", "fsync", "synchronous_commit", "shared_buffers", "max_wal_size", "autovacuum")
_PREFIX = "menuwatch_bench_"


class Server:
    """Makes databases; every one of them is gone when the run ends."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._admin = psycopg.connect(url, autocommit=True)
        self._made: list[str] = []

    def url(self, database: str) -> str:
        """The address of that database."""
        scheme, _, rest = self._url.partition("://")
        place, mark, options = rest.partition("?")
        return f"{scheme}://{place.rpartition('/')[0] if '/' in place else place}/{database}{mark}{options}"

    def create(self, name: str, template: str | None = None) -> str:
        """A new database, or a copy of one that this made; returns its name."""
        name = f"{_PREFIX}{name}".replace("-", "_")
        self.drop(name)
        statement = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template or "template0"))
        self._admin.execute(statement)
        self._made.append(name)
        return name

    def drop(self, name: str) -> None:
        """Ends all sessions of the database, and the database."""
        self._admin.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
        if name in self._made:
            self._made.remove(name)

    @contextmanager
    def fresh(self, name: str, template: str) -> Iterator[str]:
        """A copy of the template for one measurement."""
        made = self.create(name, template)
        try:
            yield made
        finally:
            self.drop(made)

    def checkpoint(self) -> None:
        """So that no measurement pays for the writes of the one before."""
        self._admin.execute("CHECKPOINT")

    def settings(self) -> dict[str, Any]:
        """What a reader needs to know of the server."""
        return {name: self._admin.execute(f"SHOW {name}").fetchone()[0] for name in _SHOWN}  # type: ignore[index]

    def close(self) -> None:
        """Drops what is left."""
        for name in list(self._made):
            with contextlib.suppress(psycopg.Error):
                self.drop(name)
        self._admin.close()


@contextmanager
def started(folder: Path) -> Iterator[Server]:
    """The server that BENCH_DATABASE_URL names, or an embedded one with its default durability."""
    with contextlib.ExitStack() as stack:
        url = os.environ.get("BENCH_DATABASE_URL")
        if not url:
            url, server = embedded.start(folder / "postgres")
            stack.enter_context(server)
        made = Server(url)
        stack.callback(made.close)
        yield made


def environment(url: str) -> dict[str, str]:
    """How libpq, and whoever follows it, is told of the database."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    parts = conninfo_to_dict(url)
    return {"DATABASE_URL": url} | {
        variable: str(parts[name]) for name, variable in names.items() if parts.get(name) is not None
    }
