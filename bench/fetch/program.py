"""A contestant's program as a process on its own core, spoken to in JSON lines (sides/side.py has the language)."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from fetch.contestants import SIDES, Contestant


class Failed(Exception):
    """A contestant could not be measured; the message says why."""


class Program:
    """One run of a contestant's program."""

    def __init__(self, who: Contestant, job: dict[str, Any], folder: Path, core: set[int] | None) -> None:
        runtime = who.runtime()
        if runtime.missing:
            raise Failed(runtime.missing)
        self._name = who.name
        self._errors = folder / f"{who.name}.err"
        path = folder / f"{who.name}.json"
        path.write_text(json.dumps(job))
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [runtime.python, str(SIDES / who.program), str(path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=clean, cwd=folder,
            )  # fmt: skip
        if core:
            os.sched_setaffinity(self._process.pid, core)

    def hear(self, key: str, timeout: float) -> dict[str, Any]:
        """The next event, which has that key. Raises Failed when the program says that it failed, ends or takes too long."""
        guard = threading.Timer(timeout, self._process.kill)
        guard.start()
        try:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict) and "failed" in event:
                    raise Failed(str(event["failed"]))
                if isinstance(event, dict) and key in event:
                    return event
        finally:
            late = not guard.is_alive()
            guard.cancel()
        raise Failed(f"{self._name} took over {timeout:.0f} seconds" if late else f"{self._name} ended{self._said()}")

    def tell(self) -> None:
        """The word to go."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Lets it end by itself for a moment."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _said(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        telling = [line for line in lines if "rror" in line] or lines
        return f": {telling[-1].strip()[:300]}" if telling else ""
