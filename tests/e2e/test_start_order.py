"""What a server does at its start, in the order in which it must happen, read from its log; and a worker's own metrics."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

MENUWATCH = [sys.executable, "-m", "menuwatch.cli.main"]

ORDER = [
    "start_migrated",
    "start_storage_checked",
    "start_orphans_cleaned",
    "start_tasks_recovered",
    "start_schedules_ready",
    "schedule_fired",
    "schedule_fired",
    "start_schedules_fired",
    "start_scheduling",
    "start_listening",
]


@contextmanager
def _process(*arguments: str, url: str, home: Path, **settings: str) -> Iterator[Iterator[dict[str, Any]]]:
    """A process of ours, and the lines of its log as they come; it is ended and must end well."""
    env = {
        **os.environ,
        "DATABASE_URL": url,
        "MENUWATCH_HOME": str(home),
        "LOG_FORMAT": "json",
        "PYTHONUNBUFFERED": "1",
        **settings,
    }
    process = subprocess.Popen(
        [*MENUWATCH, *arguments], env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        yield (json.loads(line) for line in process.stderr if line.startswith("{"))
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0


def _until(lines: Iterator[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    seen = []
    for line in lines:
        seen.append(line)
        if line["action"] == action:
            return seen
    raise AssertionError(f"it ended without {action}: {seen}")


def test_the_order_of_a_start(empty_database: str, tmp_path: Path) -> None:
    with _process("server", "--port", "0", url=empty_database, home=tmp_path) as lines:
        seen = _until(lines, "start_listening")
        assert [line["action"] for line in seen if line["action"] in ORDER] == ORDER
        assert seen[0]["action"] == "migrated", "from nothing"
        with urllib.request.urlopen(seen[-1]["address"] + "/readyz", timeout=10) as answer:
            assert json.load(answer)["status"] == "ready"
            assert answer.headers["Server"] is None, "the software is not named"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    # What a dead worker left is taken back, and what is due is fired, before anybody is let in.
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute("DELETE FROM task_live")
        conn.execute("INSERT INTO worker_tasks (role) VALUES ('store_discovery')")
        conn.execute("SELECT claim_tasks(NULL, 'dead', 1)")
        conn.execute("UPDATE task_live SET claimed_at = now() - interval '11 minutes'")
        conn.execute("UPDATE task_schedules SET next_run_at = now() - interval '1 hour' WHERE role = 'payload_fetch'")
    with _process("server", "--port", "0", url=empty_database, home=tmp_path) as lines:
        seen = _until(lines, "start_listening")
        by_action = {line["action"]: line for line in seen}
        assert [line["action"] for line in seen if line["action"] in ORDER] == [*ORDER[:6], *ORDER[7:]]
        assert by_action["start_tasks_recovered"]["count"] == 1
        assert by_action["start_schedules_ready"]["created"] == 0
        assert by_action["schedule_fired"]["schedule"] == "payload_fetch_all"
        assert "migrated" not in by_action
        with psycopg.connect(empty_database) as conn:
            assert conn.execute("SELECT status, retry_count FROM worker_tasks").fetchall() == [("pending", 1)]


def test_a_taken_port_is_found_out_before_anything_is_done(database_url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, psycopg.connect(database_url, autocommit=True) as conn:
        port = taken.getsockname()[1]
        env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "PORT": str(port)}
        conn.execute("INSERT INTO worker_tasks (role) VALUES ('store_discovery')")
        conn.execute("SELECT claim_tasks(NULL, 'dead', 1)")
        conn.execute("UPDATE task_live SET claimed_at = now() - interval '11 minutes'")
        ended = subprocess.run([*MENUWATCH, "server"], env=env, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 2
        assert ended.stderr.splitlines() == [
            f"menuwatch: cannot listen on 127.0.0.1:{port}: Address already in use; choose another with --port or PORT"
        ]
        assert conn.execute("SELECT count(*) FROM task_schedules").fetchone() == (0,), "no schedule fired"
        assert conn.execute("SELECT count(*) FROM users").fetchone() == (0,), "no first admin"
        assert conn.execute("SELECT status FROM worker_tasks").fetchall() == [("stale",)], "no task recovered"


@pytest.fixture
def proxied(database_url: str) -> str:
    with psycopg.connect(database_url) as conn:
        conn.execute("INSERT INTO proxies (host, port) VALUES ('proxy.test', 8080)")
    return database_url


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()  # type: ignore[no-any-return]


def test_a_worker_shows_its_own_metrics_and_a_taken_port_is_no_misfortune(proxied: str, tmp_path: Path) -> None:
    port = _free_port()
    with _process("worker", url=proxied, home=tmp_path, METRICS_PORT=str(port), MAX_CONCURRENT_TASKS="7") as lines:
        assert _until(lines, "metrics_listening")[-1]["port"] == port
        _until(lines, "worker_started")
        deadline = time.monotonic() + 10
        while "menuwatch_worker_heartbeats_total 0.0" in (text := _metrics(port)):
            assert time.monotonic() < deadline
        assert "menuwatch_worker_slots 7.0" in text
        assert "process_resident_memory_bytes" in text
        with _process("worker", url=proxied, home=tmp_path, METRICS_PORT=str(port)) as others:
            warned = _until(others, "worker_started")
            assert [(line["level"], line["port"]) for line in warned if line["action"] == "metrics_unavailable"] == [
                ("warning", port)
            ]
