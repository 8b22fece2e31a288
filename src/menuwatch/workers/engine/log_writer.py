"""Stores the log of a worker's process in the database, where dashboard, API and commands read it (`workers/logs.py`).

A line is taken in memory and written with others once a second; logging never waits for the database. What is too much is dropped
and counted, and a line says so. Lines that were not written when the process is killed are only on its standard error.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.db.items import log_refused, write_in_halves
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.workers import logs
from menuwatch.workers.engine.metrics import WorkerMetrics
from menuwatch.workers.logs import NewLine

log = get_logger(__name__)

BUFFER = 1000
"""Lines that wait for being written, at most; and that may come at once."""
RESERVED = BUFFER // 2
"""Part of it that only warnings and errors use: lines about completed tasks must not displace them."""
RATE = 50.0
"""Lines per second that are stored in the long run."""
_LONGEST = 4000
"""Longest text of a line or field, in characters. Of a longer one the end is kept: a traceback ends with the error."""
_LARGEST = 16_000
"""Longest JSON of a line's fields, in characters."""

_LOGIN = re.compile(r"//[^/?#\s]*@")
"""User and password in a URL. All users of the dashboard can read the log."""

_OWN_COLUMNS = frozenset({"event", "level", "timestamp", "action", "worker_id"})


def clean(text: str) -> str:
    """The text without logins in URLs, not too long, with only characters that the database stores."""
    if "//" in text:
        text = _LOGIN.sub("//…@", text)
    if len(text) > _LONGEST:
        text = "… " + text[-_LONGEST:]
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _clean_value(value: Any) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return clean(value)
        case Mapping():
            return {clean(str(key)): _clean_value(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean_value(item) for item in value]
        case _:
            return clean(str(value))


def new_line(event: Mapping[str, Any], at: datetime) -> NewLine:
    """A logged event as a line to store."""
    details = {key: value for key, value in event.items() if key not in _OWN_COLUMNS and value is not None}
    task_id = attempt = None
    if isinstance(details.get("task_id"), int):
        # Of lines that are not about a task, it counts something else: the tries of a mail, say.
        task_id, attempt = details.pop("task_id"), details.pop("attempt", None)
    text = msgspec.json.encode(_clean_value(details)).decode()
    if len(text) > _LARGEST:
        text = msgspec.json.encode({"omitted": f"{len(text):,} characters of fields"}).decode()
    return NewLine(
        at=at,
        level=str(event["level"]),
        action=None if (action := event.get("action")) is None else clean(str(action)),
        message=clean(str(event.get("event", ""))),
        task_id=task_id,
        attempt=attempt,
        details=text,
    )


class LogBuffer:
    """Lines of one worker that are not written yet. `add` may be called in any thread; it never waits and never raises.

    `rate` lines a second are taken, and up to BUFFER at once; lines of level info only while RESERVED more would be taken.
    """

    def __init__(self, worker_id: str, *, clock: Clock, rate: float = RATE) -> None:
        self._worker_id = worker_id
        self._clock = clock
        self._rate = rate
        self._allowed = float(BUFFER)
        """Lines that may be taken now: a bucket that fills at `rate`."""
        self._filled_at = clock.monotonic()
        self._lines: list[NewLine] = []
        self._dropped = 0
        self._dropped_since: datetime | None = None
        # Reentrant: a destructor that runs during `add` may log.
        self._lock = threading.RLock()

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes a line, or counts it as dropped. A line of another worker of this process is left to that one."""
        if event.get("worker_id", self._worker_id) != self._worker_id:
            return
        with self._lock:
            now = self._clock.monotonic()
            self._allowed = min(float(BUFFER), self._allowed + (now - self._filled_at) * self._rate)
            self._filled_at = now
            at = self._clock.now()
            reserved = RESERVED if event["level"] == "info" else 0
            if self._allowed - reserved >= 1 and len(self._lines) < BUFFER - reserved:
                try:
                    self._lines.append(new_line(event, at))
                except Exception:
                    # It cannot be logged: that would end here again.
                    self._drop(1, at)
                else:
                    self._allowed -= 1
            else:
                self._drop(1, at)

    def drop(self, lines: int) -> None:
        """Counts lines that could not be written."""
        with self._lock:
            self._drop(lines, self._clock.now())

    def _drop(self, lines: int, at: datetime) -> None:
        self._dropped += lines
        self._dropped_since = self._dropped_since or at

    def take(self) -> list[NewLine]:
        """The lines since the last call, the last of which gives the number that was dropped, if any."""
        with self._lock:
            lines, self._lines = self._lines, []
            dropped, since = self._dropped, self._dropped_since
            self._dropped, self._dropped_since = 0, None
            if dropped:
                text = f"{dropped:,} log lines dropped" if dropped > 1 else "1 log line dropped"
                lines.append(
                    NewLine(
                        at=self._clock.now(),
                        level="warning",
                        action="log_lines_dropped",
                        message=text,
                        dropped=dropped,
                        dropped_since=since,
                    )
                )
        return lines


class LogWriter(Loop):
    """Writes what is in the buffer, in one statement; none while nothing is logged. `capture` in `core/logging.py` fills it."""

    name: ClassVar[str] = "log-writer"

    def __init__(
        self, pool: Pool, *, worker_id: str, clock: Clock, measures: WorkerMetrics, interval: float = 1.0
    ) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._worker_id = worker_id
        self._measures = measures
        self.buffer = LogBuffer(worker_id, clock=clock)
        self._pending: list[NewLine] = []
        """Taken and not written yet: the database was away."""

    async def step(self) -> float | None:
        if not self._pending:
            self._pending = self.buffer.take()
            self._measures.log_lines_dropped(sum(line.dropped for line in self._pending))
        if self._pending:
            refused: list[NewLine] = []

            def refuse(line: NewLine, error: Exception) -> None:
                # The first of a batch alone is logged: a database that refuses all lines must not be sent a line about each.
                if not refused:
                    log_refused(self.name, "log line", line.action, error)
                refused.append(line)

            await write_in_halves(self._pending, self._write, refuse)
            self._pending = []
            if refused:
                self.buffer.drop(len(refused))
        return None

    async def flush(self, seconds: float) -> None:
        """Writes the last lines of a worker that stops, within that time. An unreachable database is no error here."""
        try:
            async with asyncio.timeout(seconds):
                # What was taken before, and what came since.
                await self.step()
                await self.step()
        except Exception as error:
            log.warning("log lines not stored", action="log_lines_lost", error=f"{type(error).__name__}: {error}")

    async def _write(self, lines: Sequence[NewLine]) -> None:
        async with self._pool.connection() as conn:
            await logs.insert(conn, self._worker_id, lines)
