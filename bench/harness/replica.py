"""A replica: an adapter's process and the records that it writes."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from systems import System

GRACE = 10.0
"""Seconds from SIGTERM to SIGKILL, as in the benchmark."""
_START = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of one replica; `at` is when it arrived (monotonic), `tick` the second of the clock that it was taken at."""

    at: float
    tick: int
    instance: int
    metric: str
    value: float


class Replica:
    """Started at once; a killed one is started again by `start`."""

    def __init__(self, system: System, instance: int, environment: dict[str, str], log: Path) -> None:
        self.instance = instance
        self.samples: list[Sample] = []
        self.descriptor: dict[str, Any] | None = None
        self.malformed: list[str] = []
        self._system = system
        self._environment = system.environment | environment | {"BENCH_INSTANCE_ID": str(instance)}
        self._log = log
        self._described = threading.Event()
        self.start()

    def start(self) -> None:
        """Starts its process; `wait_ready` waits for the descriptor."""
        self._described.clear()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._system.command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def wait_ready(self) -> None:
        """Returns once it has described itself; raises RuntimeError with the end of its log if it does not."""
        deadline = time.monotonic() + _START
        while not self._described.wait(0.05):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the adapter {self._system.name} did not start:\n{self._log.read_text()[-2000:]}")

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> int | None:
        """SIGTERM; the exit status, None if it had to be killed."""
        self._process.terminate()
        try:
            return self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            at = time.monotonic()
            try:
                record = json.loads(line)
                if record["kind"] == "descriptor":
                    self.descriptor = record
                    self._described.set()
                else:
                    self.samples.append(
                        Sample(at, round(time.time()), self.instance, record["metric"], record["value"])
                    )
            except (ValueError, KeyError, TypeError):
                self.malformed.append(line)
