"""Pods and the commands for workers, as an operator meets them: real processes on a real database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

MENUWATCH = [sys.executable, "-m", "menuwatch.cli.main"]

Surroundings = dict[str, str]


@pytest.fixture
def surroundings(database_url: str, tmp_path: Path) -> Surroundings:
    """For workers that beat often and do not mind a busy machine."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9)")
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "MENUWATCH_HOME": str(tmp_path),
        "HEARTBEAT_INTERVAL_MS": "200",
        "CPU_BACKOFF_THRESHOLD": "1",
        "MEMORY_BACKOFF_THRESHOLD": "1",
        "EVENT_LOOP_LAG_BACKOFF_MS": "60000",
        "POD_ORDINAL": "2",
    }


def run(surroundings: Surroundings, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MENUWATCH, *arguments], env=surroundings, capture_output=True, text=True, timeout=60)


@contextmanager
def pod(surroundings: Surroundings, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*MENUWATCH, "worker", *arguments],
        env=surroundings,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=30)


def rows(url: str, query: str) -> list[Any]:
    with psycopg.connect(url) as conn:
        return conn.execute(query.encode()).fetchall()


def until(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)
    return found


def at_work(url: str) -> dict[str, tuple[int, str]]:
    """Name to process and id, of those that have not stopped."""
    found = rows(url, "SELECT friendly_name, pid, worker_id FROM worker_registry WHERE status = 'active'")
    return {name: (pid, worker_id) for name, pid, worker_id in found}


def test_a_pod_from_its_start_to_its_end(database_url: str, surroundings: Surroundings) -> None:
    with pod(surroundings, "--workers", "2") as supervisor:
        first = until(lambda: (found := at_work(database_url)).keys() == {"Ada", "Bruno"} and found)
        assert rows(database_url, "SELECT DISTINCT pod FROM worker_registry") == [("Kryll",)]
        assert {pid for pid, _ in first.values()} == {
            child.pid for child in psutil.Process(supervisor.pid).children() if "--place-in-pod" in child.cmdline()
        }
        # One is killed: the registry hears of it, and another takes its place and name.
        os.kill(first["Ada"][0], signal.SIGKILL)
        second = until(lambda: "Ada" in (found := at_work(database_url)) and found["Ada"] != first["Ada"] and found)
        assert second["Bruno"] == first["Bruno"], "the other one is left alone"
        assert rows(database_url, f"SELECT status FROM worker_registry WHERE worker_id = '{first['Ada'][1]}'") == [
            ("stopped",)
        ]
        # One is decommissioned: it leaves, and its place stays empty.
        said = run(surroundings, "workers", "decommission", "kryll/bruno")
        assert said.returncode == 0, said.stderr
        assert said.stdout == f"Kryll/Bruno ({first['Bruno'][1]}) was told: it finishes what it runs and leaves.\n"
        until(lambda: not psutil.pid_exists(first["Bruno"][0]))
        assert at_work(database_url) == {"Ada": second["Ada"]}
        supervisor.send_signal(signal.SIGTERM)
        _, said_at_last = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 0, said_at_last
    assert not psutil.pid_exists(second["Ada"][0])
    assert set(rows(database_url, "SELECT status FROM worker_registry")) == {("stopped",)}
    assert rows(database_url, "SELECT count(*) FROM worker_registry") == [(3,)], "nobody took Bruno's place"


def test_a_pod_ends_when_all_have_left(database_url: str, surroundings: Surroundings) -> None:
    with pod({**surroundings, "WORKERS_PER_POD": "2"}) as supervisor:
        until(lambda: len(at_work(database_url)) == 2)
        for name in ("Ada", "Bruno"):
            assert run(surroundings, "workers", "decommission", name).returncode == 0
        supervisor.communicate(timeout=30)
    assert supervisor.returncode == 0


def test_a_start_that_is_refused_is_refused_once(database_url: str, surroundings: Surroundings) -> None:
    for workers in ("1", "3"):
        refused = run({**surroundings, "WORKER_ROLE": "payload_fetch,dance"}, "worker", "--workers", workers)
        assert refused.returncode == 2
        assert refused.stderr.count("'dance' does not exist: it is one of store_discovery, ") == 1
    rows_before = rows(database_url, "SELECT count(*) FROM worker_registry")
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("UPDATE proxies SET is_active = false")
    for workers in ("1", "3"):
        refused = run(surroundings, "worker", "--workers", workers)
        assert refused.returncode == 2
        assert refused.stderr.count("menuwatch proxies add") == 1, refused.stderr
    assert rows(database_url, "SELECT count(*) FROM worker_registry") == rows_before == [(0,)]


def test_a_worker_that_can_no_longer_start_ends_the_pod(database_url: str, surroundings: Surroundings) -> None:
    with pod(surroundings, "--workers", "2") as supervisor:
        first = until(lambda: len(found := at_work(database_url)) == 2 and found)
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute("UPDATE proxies SET is_active = false")
        os.kill(first["Ada"][0], signal.SIGKILL)
        _, said = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 2
    assert said.count("menuwatch proxies add") == 1, said
    assert not psutil.pid_exists(first["Bruno"][0])


def test_the_commands(database_url: str, surroundings: Surroundings) -> None:
    assert run(surroundings, "workers", "list").stderr.startswith("No workers at work")
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at, heartbeat) VALUES"
            " ('w-1', 'Ada', 'Kryll', 'box', 'backing_off', now(), '{\"active_task_count\": 2, \"max_concurrent_tasks\": 3,"
            '  "resources": {"memory_percent": 91.2, "cpu_percent": 7, "backoff_reason": "memory is full"}}\'),'
            " ('w-2', 'Ada', 'Xylos', 'box', 'active', now() - interval '1 hour', '{}'),"
            " ('w-3', 'Bruno', 'Xylos', 'box', 'stopped', now(), '{}')"
        )
    listed = run(surroundings, "workers", "list")
    assert listed.returncode == 0, listed.stderr
    header, one, two = listed.stdout.splitlines()
    assert header.split()[:4] == ["Name", "Pod", "Status", "Tasks"]
    assert one.split()[:8] == ["Ada", "Kryll", "backing_off", "2/3", "91", "%", "7", "%"]
    assert "memory is full" in one
    assert "active (silent)" in two
    assert "1 hour ago" in two
    everyone = json.loads(run(surroundings, "workers", "list", "--all", "--json").stdout)
    assert [(row["worker_id"], row["status"], row["alive"]) for row in everyone] == [
        ("w-1", "backing_off", True),
        ("w-2", "active", False),
        ("w-3", "stopped", False),
    ]
    ambiguous = run(surroundings, "workers", "pause", "ada")
    assert ambiguous.returncode == 2
    assert "Kryll/Ada (w-1)" in ambiguous.stderr
    assert "Xylos/Ada (w-2)" in ambiguous.stderr
    unknown = run(surroundings, "workers", "pause", "Zed")
    assert (unknown.returncode, "there is Kryll/Ada (w-1)" in unknown.stderr) == (2, True)
    stopped = run(surroundings, "workers", "resume", "w-3")
    assert (stopped.returncode, "stopped at" in stopped.stderr) == (2, True)
    told = run(surroundings, "workers", "pause", "w-1")
    assert (told.returncode, told.stderr) == (0, "")
    silent = run(surroundings, "workers", "resume", "xylos/ada")
    assert silent.returncode == 0
    assert "1 hour ago" in silent.stderr
    assert rows(database_url, "SELECT worker_id, command FROM worker_commands ORDER BY id") == [
        ("w-1", "pause"),
        ("w-2", "resume"),
    ]
    assert "told to pause" in run(surroundings, "workers", "list").stdout
