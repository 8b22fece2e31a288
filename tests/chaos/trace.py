"""What the workers' own side saw: lines in a file per process, written past all buffers, so that a killed process leaves them too."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Trace:
    """Appends. Times are of CLOCK_MONOTONIC, which all processes of a machine share."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def put(self, event: str, **facts: Any) -> None:
        """One line, in one write."""
        line = json.dumps({"event": event, "at": time.monotonic(), **facts}, separators=(",", ":"), default=str)
        os.write(self._file, line.encode() + b"\n")


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """All lines of all files; the last one of a file may have been cut off by a kill."""
    for path in sorted(folder.glob("*.trace")):
        for line in path.read_bytes().split(b"\n"):
            try:
                facts = json.loads(line)
            except ValueError:
                continue
            yield facts
