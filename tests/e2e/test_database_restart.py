"""The embedded database is killed under `menuwatch up`: server and worker go on with it, and at the end it is stopped."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

import psycopg

from menuwatch.db import postmaster
from tests.e2e.test_pod import at_work, rows, running, until


def test_up_goes_on_after_a_kill_of_its_database(new_home: Path) -> None:
    folder = new_home / "postgres"
    env = {
        **{name: text for name, text in os.environ.items() if name != "DATABASE_URL"},
        "MENUWATCH_HOME": str(new_home),
        "PORT": "0",
        "LOG_FORMAT": "json",
        "PASSWORD_MEMORY_KIB": "1024",
        "WORKER_ROLE": "analytics_refresh",
        "HEARTBEAT_INTERVAL_MS": "200",
        "CPU_BACKOFF_THRESHOLD": "1",
        "MEMORY_BACKOFF_THRESHOLD": "1",
        "EVENT_LOOP_LAG_BACKOFF_MS": "60000",
    }
    with running("up", "--workers", "1", env=env) as up:
        assert up.stderr is not None
        address = next(json.loads(line)["address"] for line in up.stderr if '"start_listening"' in line)
        url = f"postgresql://postgres@/postgres?host={folder}"
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9)")
        until(lambda: at_work(url), seconds=60)
        server = postmaster.read(folder)
        assert server is not None
        assert server.pid is not None
        began = time.monotonic()
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: _ready(address), seconds=30)
        took = time.monotonic() - began
        beaten = "SELECT 1 FROM worker_registry WHERE last_heartbeat_at > pg_postmaster_start_time()"
        until(lambda: rows(url, beaten), seconds=30)
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=60)
    assert up.returncode == 0
    assert (folder / "log").read_text().count("starting PostgreSQL") == 2, "three processes noticed, one started it"
    assert postmaster.read(folder) is None
    assert took < 20


def _ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=30) as answer:
            status: int = answer.status
            return status == 200
    except urllib.error.HTTPError:
        return False
