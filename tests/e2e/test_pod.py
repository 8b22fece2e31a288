"""Pods and the commands for workers, as an operator meets them: real processes on a real database.

Three of these take some seconds each: every process of a pod loads the whole program before it works.
"""

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
from click.testing import Result

from menuwatch.core.errors import Refused
from tests.commands import run_here

MENUWATCH = [sys.executable, "-m", "menuwatch.cli.main"]

Surroundings = dict[str, str]
Workers = Callable[..., Result]


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


@pytest.fixture
def workers(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> Workers:
    """`menuwatch workers …` in this process."""
    for variable, value in surroundings.items():
        monkeypatch.setenv(variable, value)
    return lambda *arguments: run_here(["workers", *arguments])


def run(surroundings: Surroundings, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MENUWATCH, *arguments], env=surroundings, capture_output=True, text=True, timeout=60)


@contextmanager
def running(*arguments: str, env: Surroundings | None = None) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on until it is told to stop."""
    process = subprocess.Popen(
        [*MENUWATCH, *arguments],
        env=env,
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


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
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
    with running("worker", "--workers", "2", env=surroundings) as supervisor:
        first = until(lambda: (found := at_work(database_url)).keys() == {"Ada", "Bruno"} and found)
        assert rows(database_url, "SELECT DISTINCT pod FROM worker_registry") == [("Kryll",)]
        assert {pid for pid, _ in first.values()} == {
            child.pid for child in psutil.Process(supervisor.pid).children() if "--place-in-pod" in child.cmdline()
        }
        # One is killed: the registry hears of it, and another takes its place and name.
        ada = first["Ada"][1]
        with psycopg.connect(database_url) as conn:  # in one transaction: nobody else can be quicker
            held = conn.execute("INSERT INTO worker_tasks (role) VALUES ('analytics_refresh') RETURNING id").fetchall()
            assert conn.execute("SELECT id FROM claim_task('analytics_refresh', %s)", [ada]).fetchall() == held
        os.kill(first["Ada"][0], signal.SIGKILL)
        second = until(lambda: "Ada" in (found := at_work(database_url)) and found["Ada"] != first["Ada"] and found)
        assert second["Bruno"] == first["Bruno"], "the other one is left alone"
        assert rows(database_url, "SELECT retry_count FROM worker_tasks") == [(1,)], (
            "its task need not wait until it counts as silent: it is somebody else's by now"
        )
        assert rows(database_url, f"SELECT status FROM worker_registry WHERE worker_id = '{ada}'") == [("stopped",)]
        supervisor.send_signal(signal.SIGTERM)
        _, said = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 0, said
    assert not any(psutil.pid_exists(pid) for pid, _ in second.values())
    assert rows(database_url, "SELECT status, count(*) FROM worker_registry GROUP BY status") == [("stopped", 3)]


def test_a_pod_ends_when_all_have_left(database_url: str, surroundings: Surroundings, workers: Workers) -> None:
    with running("worker", env={**surroundings, "WORKERS_PER_POD": "2"}) as supervisor:
        first = until(lambda: len(found := at_work(database_url)) == 2 and found)
        said = workers("decommission", "kryll/bruno")
        assert said.stdout == f"Kryll/Bruno ({first['Bruno'][1]}): command sent; it finishes running tasks and exits.\n"
        until(lambda: not psutil.pid_exists(first["Bruno"][0]))
        assert at_work(database_url) == {"Ada": first["Ada"]}, "its place stays empty"
        assert workers("decommission", "Ada").exit_code == 0
        _, log = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 0, log
    assert rows(database_url, "SELECT status, count(*) FROM worker_registry GROUP BY status") == [("stopped", 2)]


def test_a_start_that_is_refused_is_refused_once(database_url: str, surroundings: Surroundings) -> None:
    refused = run({**surroundings, "WORKER_ROLE": "payload_fetch,dance"}, "worker", "--workers", "3")
    assert refused.returncode == 2
    assert refused.stderr.count("unknown role 'dance'; use one of: store_discovery, ") == 1, refused.stderr
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("UPDATE proxies SET is_active = false")
    refused = run(surroundings, "worker", "--workers", "3")
    assert refused.returncode == 2
    assert refused.stderr.count("menuwatch proxies add") == 1, refused.stderr
    assert rows(database_url, "SELECT count(*) FROM worker_registry") == [(0,)]


def test_a_worker_that_can_no_longer_start_ends_the_pod(database_url: str, surroundings: Surroundings) -> None:
    with running("worker", "--workers", "2", env=surroundings) as supervisor:
        first = until(lambda: len(found := at_work(database_url)) == 2 and found)
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute("UPDATE proxies SET is_active = false")
        os.kill(first["Ada"][0], signal.SIGKILL)
        _, said = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 2
    assert said.count("menuwatch proxies add") == 1, said
    assert not psutil.pid_exists(first["Bruno"][0])


def test_the_commands(database_url: str, workers: Workers) -> None:
    assert workers("list").stderr.startswith("No running workers: --all includes stopped ones.")
    assert "no workers are registered" in str(workers("pause", "Ada").exception)
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at, heartbeat) VALUES"
            " ('w-1', 'Ada', 'Kryll', 'box', 'backing_off', now(), '{\"active_task_count\": 2, \"max_concurrent_tasks\": 3,"
            '  "resources": {"memory_percent": 91.2, "cpu_percent": 93, "memory_rss_mb": 142,'
            ' "process_cpu_percent": 7, "backoff_reason": "memory is full"}}\'),'
            " ('w-2', 'Ada', 'Xylos', 'box', 'active', now() - interval '1 hour', '"
            '{"active_task_count": 1, "max_concurrent_tasks": 1}\'),'
            " ('w-3', 'Bruno', 'Xylos', 'box', 'stopped', now(), '{}')"
        )
    listed = workers("list")
    assert listed.exit_code == 0, listed.stderr
    header, one, two = listed.stdout.splitlines()
    assert header.split()[:4] == ["Name", "Pod", "Status", "Tasks"]
    assert one.split()[:8] == ["Ada", "Kryll", "backing_off", "2/3", "142", "MiB", "7", "%"]
    assert "memory is full" in one
    assert two.split()[:5] == ["Ada", "Xylos", "active", "(silent)", "-"], "what it did when it was last heard is over"
    assert "1 h ago" in two
    everyone = json.loads(workers("list", "--all", "--json").stdout)
    assert [(row["worker_id"], row["status"], row["alive"]) for row in everyone] == [
        ("w-1", "backing_off", True),
        ("w-2", "active", False),
        ("w-3", "stopped", False),
    ]
    ambiguous = workers("pause", "ada")
    assert isinstance(ambiguous.exception, Refused)
    assert "Kryll/Ada (w-1), Xylos/Ada (w-2)" in str(ambiguous.exception)
    unknown = workers("pause", "Zed")
    assert isinstance(unknown.exception, Refused)
    assert "registered: Kryll/Ada (w-1), Xylos/Ada (w-2)" in str(unknown.exception)
    stopped = workers("resume", "w-3")
    assert isinstance(stopped.exception, Refused)
    assert "stopped at" in str(stopped.exception)
    by_name = workers("pause", "bruno")
    assert isinstance(by_name.exception, Refused)
    assert "worker 'bruno' (w-3) stopped at" in str(by_name.exception)
    told = workers("pause", "w-1")
    assert (told.exit_code, told.stderr) == (0, "")
    silent = workers("resume", "xylos/ada", "--json")
    assert json.loads(silent.stdout)["command"]["command"] == "resume"
    silent = workers("resume", "xylos/ada")
    assert silent.exit_code == 0
    assert "1 h ago" in silent.stderr
    assert rows(database_url, "SELECT worker_id, command FROM worker_commands ORDER BY id") == [
        ("w-1", "pause"),
        ("w-2", "resume"),
    ]
    assert "pending: pause" in workers("list").stdout
