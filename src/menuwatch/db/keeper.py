"""Restarts the embedded PostgreSQL server when it dies under a long-running process.

    up ──(its process is gone)──► stopped ──(a try is due)──► starting ──► up
                                     ▲                           │
                                     └──(it did not come up)─────┘

Each long-running process has one Keeper, in its own thread. Restarts are attempted under the lock of `embedded`, so one process
starts the server and the others find it running. The mtime of the lock file shows each process the attempts of the others, so that
together they try as often as one would. A server that its last user stops normally is not restarted: a Keeper ends before its
process stops using the server."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import embedded, postmaster, server_log
from menuwatch.db.server_log import Cause, CauseCode

log = get_logger(__name__)

_LOOK_SECONDS = 0.5
_SETTLED_SECONDS = 30.0
"""A server that was up this long starts again at once when it dies; one that dies sooner waits as after a failed try."""
_BACKOFF = Backoff(base=1.0, cap=30.0, jitter=0.0)


class OutageCode(StrEnum):
    """What is known of a server that is not up."""

    STOPPED = "stopped"
    STARTING = "starting"
    DISK_FULL = "disk_full"


class Outage(Struct, frozen=True, kw_only=True):
    """The server is not up. `tries` were made since; the next is due in `next_try_seconds`, or under way (None)."""

    code: OutageCode
    folder: Path
    tries: int
    next_try_seconds: float | None


class Keeper:
    """Monitors the server in `folder` until `stop`. Its process must use the server for that time."""

    def __init__(self, folder: Path, *, backoff: Backoff = _BACKOFF) -> None:
        self._folder = folder.expanduser().resolve()
        self._backoff = backoff
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="embedded-database", daemon=True)
        self._down = self._starting = False
        self._cause: Cause | None = None
        self._tries = 0
        self._last_try = embedded.last_try(self._folder)
        self._due = 0.0
        self._up_since = time.monotonic()

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Returns once nothing more will be started; an attempt in progress ends first."""
        self._ended.set()
        self._thread.join()

    def outage(self) -> Outage | None:
        """What keeps the server from working; None while it is up. Asks neither disk nor server."""
        if not self._down:
            return None
        code = OutageCode.STARTING if self._starting else OutageCode.STOPPED
        if self._cause is not None and self._cause.code == CauseCode.DISK_FULL:
            code = OutageCode.DISK_FULL
        wait = None if self._starting else max(0.0, self._due - time.monotonic())
        return Outage(code=code, folder=self._folder, tries=self._tries, next_try_seconds=wait)

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self._look()
            except Exception as error:
                log.warning("embedded database check failed", action="database_look_failed", error=str(error))

    def _look(self) -> None:
        server = postmaster.read(self._folder)
        now = time.monotonic()
        if server is not None and server.runs_here():
            self._starting = self._down and not server.ready
            if server.ready:
                self._is_up(now)
            return
        self._starting = False
        if not self._down:
            self._down = True
            self._due = now + (self._backoff.ceiling(self._tries - 1) if self._tries else 0.0)
            self._cause = server_log.cause(self._folder / "log")
            log.error("embedded database stopped", action="database_stopped", reason=self._reason())
        if self._counted(now) or now < self._due:
            return
        self._starting = True
        try:
            if not embedded.restart(self._folder):
                return
        except (Refused, OSError) as error:
            self._cause = error.cause if isinstance(error, embedded.NotStarted) else None
            log.error("embedded database did not start", action="database_restart_failed", error=str(error))
        finally:
            self._counted(time.monotonic())
            self._starting = False
        self._look_after_try()

    def _look_after_try(self) -> None:
        server = postmaster.read(self._folder)
        if server is not None and server.runs_here() and server.ready:
            self._is_up(time.monotonic())

    def _counted(self, now: float) -> bool:
        """Whether a try was made since the last look, by this process or another one: the next one is due after a wait then."""
        last = embedded.last_try(self._folder)
        if last == self._last_try:
            return False
        self._last_try = last
        self._tries += 1
        self._due = now + self._backoff.ceiling(self._tries - 1)
        return True

    def _is_up(self, now: float) -> None:
        if self._down:
            self._counted(now)
            self._down = self._starting = False
            self._cause = None
            self._up_since = now
            log.warning("embedded database restarted", action="database_restarted", tries=self._tries)
        elif self._tries and now - self._up_since >= _SETTLED_SECONDS:
            self._tries = 0

    def _reason(self) -> str | None:
        return self._cause.text if self._cause is not None else None


@contextmanager
def keeping(settings: Settings) -> Iterator[Keeper | None]:
    """A Keeper of the embedded server of these settings; None where DATABASE_URL names another server."""
    if settings.database_url:
        yield None
        return
    keeper = Keeper(settings.home / "postgres")
    keeper.start()
    # Should the process end without leaving the context, the server must not be started after its last user has stopped it.
    atexit.register(keeper.stop)
    with contextlib.ExitStack() as stack:
        stack.callback(atexit.unregister, keeper.stop)
        stack.callback(keeper.stop)
        yield keeper
