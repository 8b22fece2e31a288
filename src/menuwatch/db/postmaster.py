"""Reads `postmaster.pid` of a PostgreSQL server, and checks whether it is still true."""

from __future__ import annotations

import socket
from pathlib import Path

import psutil
from msgspec import Struct


class Postmaster(Struct, frozen=True, kw_only=True):
    """The server that the file names. `pid` and `socket` are None where the file was cut off or names none."""

    folder: Path
    pid: int | None
    socket: Path | None
    ready: bool

    def runs_here(self) -> bool:
        """Whether that process is there, as far as this process can see, and serves this folder: ids are used again."""
        if self.pid is None:
            return False
        try:
            process = psutil.Process(self.pid)
            return process.name().startswith("postgres") and str(self.folder) in process.cmdline()
        except psutil.AccessDenied:
            return self.answers()
        except psutil.NoSuchProcess:
            return False

    def answers(self) -> bool:
        """Whether a server listens on the socket."""
        if self.socket is None:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return True


def read(folder: Path) -> Postmaster | None:
    """The server that runs, or ran, on this data folder; None when it was stopped in good order or never ran."""
    try:
        lines = (folder / "postmaster.pid").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    # pid, data folder, start time, port, socket folder, address, shared memory, status
    lines = [line.strip() for line in lines] + [""] * 8
    pid, port, socket_folder = lines[0], lines[3], lines[4]
    return Postmaster(
        folder=folder,
        pid=int(pid) if pid.isdecimal() else None,
        socket=Path(socket_folder) / f".s.PGSQL.{port}" if socket_folder and port.isdecimal() else None,
        ready=lines[7] == "ready",
    )


def forget(folder: Path) -> None:
    """Removes the pid file of a dead server. Its pid may have been reused, or belong to a zombie: PostgreSQL takes either for a
    running server."""
    server = read(folder)
    if server is not None and server.socket is not None:
        server.socket.with_name(f"{server.socket.name}.lock").unlink(missing_ok=True)
    (folder / "postmaster.pid").unlink(missing_ok=True)
