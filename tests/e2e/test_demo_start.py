"""`menuwatch demo --keep` as a newcomer runs it: what it prints works, and its progress bars end full."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

_SECONDS = 120.0


@contextlib.contextmanager
def _demo(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A running demo with its output in a pipe and its errors on a terminal; the terminal's descriptor is ours."""
    ours, theirs = os.openpty()
    words = ("demo", "--keep", "--stores", "2", "--products", "12", "--cycles", "2")
    process = subprocess.Popen(
        [sys.executable, "-m", "menuwatch.cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TMPDIR": str(home), "COLUMNS": "100", "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.send_signal(signal.SIGINT)
        # The demo blocks once the buffer of the terminal is full.
        shown: list[bytes] = []
        reader = threading.Thread(target=_drain, args=(ours, shown), daemon=True)
        reader.start()
        running: list[str] = []
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            demo = psutil.Process(process.pid)
            running = [f"{one.status()} {' '.join(one.cmdline())}" for one in (demo, *demo.children(recursive=True))]
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        reader.join(10)
        os.close(ours)
        assert not running, ("the demo did not stop within a minute of Ctrl-C", running, b"".join(shown)[-2000:])


def _drain(terminal: int, into: list[bytes]) -> None:
    # Reading a closed terminal raises OSError.
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65_536):
            into.append(data)


def _read(process: subprocess.Popen[bytes], terminal: int, until: str) -> tuple[str, str]:
    """(output, what the terminal shows) up to a line of the output with this text."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    texts = {pipe: b"", terminal: b""}
    deadline = time.monotonic() + _SECONDS
    while until.encode() not in texts[pipe]:
        ready, _, _ = select.select(list(texts), [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"no {until!r} within {_SECONDS} s: {texts}"
        for descriptor in ready:
            data = os.read(descriptor, 65_536)
            assert data, f"the demo ended: {texts}"
            texts[descriptor] += data
    return texts[pipe].decode(), texts[terminal].decode()


@pytest.mark.timeout(240)
def test_a_demo_prints_a_link_that_logs_in(tmp_path: Path) -> None:
    with _demo(tmp_path) as (process, terminal):
        out, shown = _read(process, terminal, "Ctrl-C to stop")
        assert out.index("payloads archived") < out.index("Dashboard "), "one stream, in this order"
        last = dict(
            re.findall(r"([A-Z][\w ,]+?) +[━╸╺ ]*(\d+/\d+|\d+/\?)", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown))
        )
        assert len(last) == 3, shown
        assert all(done == total for done, total in (count.split("/") for count in last.values())), last
        link = re.search(r"http://\S+token=\S+", out)
        assert link is not None
        with httpx.Client(follow_redirects=True, timeout=30) as http:
            page = http.get(link[0])
        assert (page.status_code, page.url.path) == (200, "/admin/")
