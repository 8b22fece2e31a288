"""The buffer of log lines that are not stored yet: its bounds, what it cannot store, and threads."""

from __future__ import annotations

import io
import json
import threading
from datetime import UTC, datetime, timedelta

import pytest

from menuwatch.core import logging as telemetry
from menuwatch.core.clock import ManualClock
from menuwatch.core.logging import capture, get_logger
from menuwatch.workers.engine.log_writer import BUFFER, RESERVED, LogBuffer, clean

T0 = datetime(2026, 3, 1, tzinfo=UTC)
log = get_logger(__name__)


def test_the_buffer_is_bounded_and_fills_again() -> None:
    clock = ManualClock(T0)
    buffer = LogBuffer("w", clock=clock, rate=10.0)
    for n in range(BUFFER + 100):
        buffer.add({"event": f"line {n}", "level": "info"})
    for n in range(BUFFER):
        buffer.add({"event": f"error {n}", "level": "error"})
    taken = buffer.take()
    assert [line.message for line in taken[:-1]] == [
        *(f"line {n}" for n in range(BUFFER - RESERVED)),
        *(f"error {n}" for n in range(RESERVED)),
    ]
    assert (taken[-1].action, taken[-1].dropped, taken[-1].dropped_since) == ("log_lines_dropped", 1100, T0)
    assert taken[-1].message == "1,100 log lines dropped"
    buffer.add({"event": "too early", "level": "error"})
    assert [line.dropped for line in buffer.take()] == [1]
    clock.advance(timedelta(seconds=1))
    for _ in range(11):
        buffer.add({"event": "late", "level": "error"})
    assert [line.dropped for line in buffer.take()] == [0] * 10 + [1]
    assert buffer.take() == []


def test_odd_lines_are_stored_or_counted_never_raised() -> None:
    buffer = LogBuffer("w", clock=ManualClock(T0))

    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    buffer.add({"event": "nul \0 and half \ud800", "level": "info", "task_id": "seven", "path": "a\0b"})
    buffer.add({"event": "long", "level": "error", "exception": "x" * 10_000 + " end"})
    buffer.add({"event": "wide", "level": "info", "rows": ["y" * 3000] * 100})
    buffer.add({"event": "odd", "level": "info", "value": Odd()})
    buffer.add({"event": "mail not sent", "level": "info", "attempt": 3})
    buffer.add({"event": "of another worker", "level": "info", "worker_id": "other"})
    first, long, wide, mail, dropped = buffer.take()
    assert (mail.attempt, mail.details) == (None, '{"attempt":3}')
    assert (first.message, first.task_id) == ("nul \ufffd and half ?", None)
    assert json.loads(first.details) == {"task_id": "seven", "path": "a\ufffdb"}
    trace = json.loads(long.details)["exception"]
    assert trace.endswith("x end")
    assert len(trace) < 5000
    assert "characters of fields" in json.loads(wide.details)["omitted"]
    assert dropped.dropped == 1


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("http://u:p@h:1/x", "http://…@h:1/x"),
        ("socks5://u:p%40q@h:1, then http://h2/y", "socks5://…@h:1, then http://h2/y"),
        ("http://u:p@ss@h:1", "http://…@h:1"),
        ("mail to a@b.example about http://h/x", "mail to a@b.example about http://h/x"),
        ("http://h/@scope/path?q=a@b", "http://h/@scope/path?q=a@b"),
    ],
)
def test_logins_of_addresses_are_removed(text: str, stored: str) -> None:
    assert clean(text) == stored


def test_threads_lose_no_line() -> None:
    telemetry.configure("json", "error", io.StringIO())
    buffer = LogBuffer("w", clock=ManualClock(T0))

    def speak(name: int) -> None:
        for n in range(40):
            log.warning(f"{name} {n}", action="spoken")

    with capture(buffer.add):
        threads = [threading.Thread(target=speak, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    log.warning("after the end", action="spoken")
    assert sorted(line.message for line in buffer.take()) == sorted(f"{a} {n}" for a in range(8) for n in range(40))
