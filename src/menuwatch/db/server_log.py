"""Why a PostgreSQL server did not start or stopped, read from its own log."""

from __future__ import annotations

import re
import shutil
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

_TAIL = 65_536
"""Bytes at the end of the log that are read: a start or a crash writes far less."""
_ROOM = 32_000_000
"""Free bytes below which a server that stopped without a word has run out of disk: it needs 16 MB for its next WAL segment, and a full
disk keeps it from writing its log as well."""

_LINE = re.compile(r"\b(LOG|ERROR|FATAL|PANIC|DETAIL|HINT):\s+(.*)")
_START = "starting PostgreSQL"
_ROUTINE = ("terminating connection", "the database system is", "canceling statement", "aborting startup due to")
"""Beginnings of FATAL lines that tell clients about a stop, and are not its cause."""
_FULL = ("no space left on device", "disk quota exceeded")


class CauseCode(StrEnum):
    """What programs need to know about a cause."""

    DISK_FULL = "disk_full"
    OTHER = "other"


class Cause(Struct, frozen=True, kw_only=True):
    """Why the server does not run; `text` is in the server's words, in one line."""

    code: CauseCode
    text: str


def says_disk_full(text: str) -> bool:
    """Whether a message of the server or the operating system reports a full disk. A lack of shared memory is not one."""
    lowered = text.lower()
    return any(words in lowered for words in _FULL) and "shared memory" not in lowered


def size(log: Path) -> int:
    """Bytes that the log has now, for `cause`."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def cause(log: Path, *, since: int | None = None) -> Cause | None:
    """The cause of the last stop or failed start. `since` skips what the log held before; else the last start is where to begin.

    None where the log gives none: a server that was killed writes nothing.
    """
    found = _of_lines(_lines(log, since))
    if found is None and _disk_is_full(log.parent):
        return Cause(code=CauseCode.DISK_FULL, text=f"no space left on the disk of {log.parent}")
    return found


def of_text(text: str) -> Cause | None:
    """The same for output of one of the server's programs."""
    return _of_lines(text.splitlines())


def _disk_is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _ROOM
    except OSError:
        return False


def _lines(log: Path, since: int | None) -> list[str]:
    try:
        with log.open("rb") as file:
            end = file.seek(0, 2)
            # A log that has shrunk is a new one.
            begin = 0 if since is None or since > end else since
            file.seek(max(begin, end - _TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    if since is None:
        starts = [number for number, line in enumerate(lines) if _START in line]
        return lines[starts[-1] :] if starts else lines
    return lines


def _of_lines(lines: list[str]) -> Cause | None:
    """The first serious message, with its detail and hint. What is wrong in the configuration stands in a LOG line before it. A
    backend's crash is a LOG line too, and its detail, a query, is left out. An ERROR stops no server.
    """
    said: list[str] = []
    setting = ""
    for line in lines:
        match = _LINE.search(line)
        if match is None:
            continue
        level, text = match.group(1), match.group(2).strip()
        if said and level in ("DETAIL", "HINT"):
            said.append(text)
        elif said:
            break
        elif level == "LOG" and (".conf" in text or 'parameter "' in text):
            setting = setting or text
        elif level == "LOG" and "was terminated by signal" in text:
            said.append(text)
            break
        elif level in ("FATAL", "PANIC") and not text.startswith(_ROUTINE):
            said.append(text)
    if not said:
        return None
    if "configuration file" in said[0] and setting:
        said.insert(0, setting)
    whole = "; ".join(text.rstrip(".") for text in said)
    return Cause(code=CauseCode.DISK_FULL if says_disk_full(whole) else CauseCode.OTHER, text=whole)
