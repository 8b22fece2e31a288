"""`menuwatch up` as a person runs it: scaled by hand, killed, and followed by another one. Real processes on a real database.

It takes some seconds: every process loads the whole program before it works.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from pathlib import Path

import psutil
import psycopg
import pytest

from menuwatch.core.errors import Refused
from tests.commands import run_here
from tests.e2e.test_pod import at_work, rows, running, until


@pytest.fixture
def surroundings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this process and all that it starts. Nobody may use the one proxy, so that workers have nothing to do but to be there."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9)")
    for variable, value in {
        "DATABASE_URL": database_url,
        "MENUWATCH_HOME": str(tmp_path),
        "PORT": "0",
        "POD_ORDINAL": "2",
        "WORKERS_MAX": "3",
        "PASSWORD_MEMORY_KIB": "1024",
        "WORKER_ROLE": "product_refresh",
        "CPU_BACKOFF_THRESHOLD": "1",
        "MEMORY_BACKOFF_THRESHOLD": "1",
        "EVENT_LOOP_LAG_BACKOFF_MS": "60000",
    }.items():
        monkeypatch.setenv(variable, value)


def test_the_addresses_and_the_first_login_come_after_the_log(surroundings: None, tmp_path: Path) -> None:
    with running("up", "--workers", "1") as up:
        assert up.stderr is not None
        lines: list[str] = []
        watch = threading.Timer(120, up.kill)
        watch.start()
        for line in up.stderr:
            lines.append(line.rstrip())
            if line.startswith("Press Ctrl-C"):
                break
        watch.cancel()
    text = "\n".join(lines[next(i for i, line in enumerate(lines) if "is listening on" in line) :])
    address = re.search(r"http://127\.0\.0\.1:\d+", text)
    assert address is not None
    for place in ("/admin/", "/", "/docs"):
        assert f"{address[0]}{place}" in text.split()
    assert str(tmp_path / "first-login") in text
    assert "[info" not in text
    password = (tmp_path / "first-login").read_text().partition("password=")[2].strip()
    assert password not in "".join(lines)


def test_scaled_killed_and_followed(database_url: str, surroundings: None, tmp_path: Path) -> None:
    for number in ("2", "up", "down"):
        nobody = run_here(["workers", "scale", number])
        assert isinstance(nobody.exception, Refused)
        assert "run `menuwatch up` or `menuwatch supervisor`" in str(nobody.exception), number
    with running("up", "--workers", "2") as up:
        first = until(lambda: (found := at_work(database_url)).keys() == {"Ada", "Bruno"} and found, seconds=90)
        for wrong in ("-1", "0", "1000", "9" * 5000):
            refused = run_here(["workers", "scale", wrong])
            assert isinstance(refused.exception, Refused)
            assert "allowed are 1 to 3" in str(refused.exception)
        done = run_here(["workers", "scale", "down", "--wait", "--json"])
        assert done.exit_code == 0, done.exception
        assert {name: json.loads(done.stdout)[name] for name in ("current", "desired", "high", "backend")} == {
            "current": 1, "desired": 1, "high": 3, "backend": "local",
        }  # fmt: skip
        assert at_work(database_url).keys() == {"Ada"}, "the youngest left"
        up.kill()
        up.communicate(timeout=30)
    held = (tmp_path / "first-login").read_text()
    password = held.removeprefix("user=admin\npassword=").rstrip("\n")
    assert len(password) == 23
    until(lambda: not any(psutil.pid_exists(pid) for pid, _ in first.values()))
    with running("supervisor") as supervisor:
        second = until(lambda: at_work(database_url), seconds=90)
        assert second.keys() == {"Ada"}, "one was ordered last"
        os.kill(supervisor.pid, signal.SIGINT)
        _, said = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 0, said
    assert at_work(database_url) == {}
    assert rows(database_url, "SELECT desired, holder FROM supervisor_lease") == [(1, None)]
    assert rows(database_url, "SELECT details ->> 'wanted' FROM audit_log WHERE action = 'workers_scaled'") == [("1",)]
