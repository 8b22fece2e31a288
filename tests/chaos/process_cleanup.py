"""Outlives the crash test by a moment: when that ends, however it ends, this ends what it started and removes its folder.

Reads lines: `+pid` started, `-pid` gone, `folder path`. The end of the input is the end of the test.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pids: set[int] = set()
    folders: list[str] = []
    for line in sys.stdin:
        text = line.strip()
        if text.startswith("+"):
            pids.add(int(text[1:]))
        elif text.startswith("-"):
            pids.discard(int(text[1:]))
        elif text:
            folders.append(text.removeprefix("folder "))
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for folder in folders:
        for _ in range(50):  # the server's own children notice its death, and may still be writing
            shutil.rmtree(folder, ignore_errors=True)
            if not Path(folder).exists():
                break
            time.sleep(0.1)


if __name__ == "__main__":
    main()
