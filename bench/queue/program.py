"""A contestant's program as a process of its own, spoken to in JSON lines (sides/side.py has the language)."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import peers
from contestants import Contestant
from server import environment

SIDES = Path(__file__).resolve().parent / "sides"


class Failed(Exception):
    """A contestant's program ended or fell silent before it had said what was waited for."""


class Program:
    """One running program. `hear` gives what it says next."""

    def __init__(self, name: str, process: subprocess.Popen[str], errors: Path) -> None:
        self._name = name
        self._process = process
        self._errors = errors
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        assert process.stdout is not None
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()

    def _listen(self, lines: IO[str]) -> None:
        for line in lines:
            with contextlib.suppress(json.JSONDecodeError):
                self._events.put(json.loads(line))
        self._events.put(None)

    def hear(self, timeout: float) -> dict[str, Any]:
        """The next event. Raises Failed after `timeout` seconds of silence, or when the program ended."""
        try:
            event = self._events.get(timeout=max(timeout, 0.001))
        except queue.Empty:
            raise Failed(f"{self._name} said nothing for {timeout:.0f} seconds{self._said()}") from None
        if event is None:
            raise Failed(f"{self._name} ended{self._said()}")
        return event

    def tell(self) -> None:
        """The word to go."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def check(self) -> None:
        """Raises Failed when the program has ended."""
        if self._process.poll() is not None:
            raise Failed(f"{self._name} ended{self._said()}")

    def kill(self) -> None:
        """Its database goes next, so there is nothing to wind up."""
        self._process.kill()
        self._process.wait()

    def _said(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        errors = [line for line in lines if "rror" in line] or lines
        return f": {errors[-1].strip()[:300]}" if errors else ""


@contextmanager
def started(who: Contestant, verb: str, url: str, folder: Path, **options: Any) -> Iterator[Program]:
    """Runs the program until the context ends."""
    runtime = who.runtime()
    if runtime.missing:
        raise Failed(runtime.missing)
    errors = folder / f"{who.name}-{verb}-{time.monotonic_ns()}.err"
    extra = {"BENCH_NODE_MODULES": str(peers.FOLDER / "node"), "BENCH_FOLDER": str(folder), "NODE_ENV": "production"}
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [*runtime.command, str(SIDES / who.program), verb, json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
            env=os.environ | environment(url) | extra,
        )  # fmt: skip
    program = Program(who.name, process, errors)
    try:
        yield program
    finally:
        program.kill()
