"""Which machine this is, as far as processes and their numbers go, and how many of them it runs at once."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path


def here() -> str:
    """This machine since it was started, and the processes of it that can be seen from here."""
    found = [socket.gethostname()]
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        found.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(found)


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
