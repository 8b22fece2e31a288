"""What the shell completes, and that it starts no database; stores crawled, paused and resumed by hand; top and config."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import psycopg
import pytest

from tests.commands import menuwatch

WORKER = """
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at)
VALUES ('w1', 'Ada', 'p', 'h', 'active', now())
"""
RULE = """
INSERT INTO alert_rules (name, condition, reach, brand, amount, armed_at, created_at, updated_at)
VALUES ('Cheap flower', 'price_below', 'brand', 'Acme', 20, now(), now(), now())
"""


@pytest.fixture
def env(database_url: str, tmp_path: Path) -> dict[str, str]:
    with psycopg.connect(database_url, autocommit=True) as conn:
        for slug in ("green-leaf", "green-lantern", "high-desert"):
            conn.execute(
                "INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw) "
                "VALUES ('dutchie', %(slug)s, %(slug)s, %(slug)s, %(slug)s)",
                {"slug": slug},
            )
        conn.execute(WORKER.encode())
        conn.execute(RULE.encode())
    return {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path)}


def _complete(line: str, env: dict[str, str]) -> list[str]:
    words = line.split(" ")
    shell = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_MENUWATCH_COMPLETE": "complete_bash"}
    done = menuwatch(env={**env, **shell})
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def test_values_of_the_database_complete(env: dict[str, str]) -> None:
    assert _complete("menuwatch products --store green", env) == ["green-lantern", "green-leaf"]
    assert _complete("menuwatch stores crawl h", env) == ["high-desert"]
    assert _complete("menuwatch tasks list --worker A", env) == ["Ada"]
    assert _complete("menuwatch workers pause ", env) == ["Ada"]
    assert _complete("menuwatch alerts show C", env) == ["Cheap\\ flower"]


def test_names_of_the_program_complete_without_a_database(env: dict[str, str]) -> None:
    without = env | {"DATABASE_URL": "postgresql://127.0.0.1:9/none"}
    assert _complete("menuwatch tasks list --role payload", without) == ["payload_fetch"]
    assert _complete("menuwatch tasks list --status comp", without) == ["completed"]
    assert _complete("menuwatch products --store g", without) == []


def test_completion_starts_no_database(env: dict[str, str], tmp_path: Path) -> None:
    alone = {key: value for key, value in env.items() if key != "DATABASE_URL"} | {
        "MENUWATCH_HOME": str(tmp_path / "x")
    }
    assert _complete("menuwatch products --store g", alone) == []
    assert not (tmp_path / "x").exists()


def test_a_store_is_crawled_paused_and_resumed(env: dict[str, str]) -> None:
    first = json.loads(menuwatch("stores", "crawl", "green-leaf", "--json", env=env).stdout)
    second = json.loads(menuwatch("stores", "crawl", "green-leaf", "--json", env=env).stdout)
    assert (first["created"], second) == (True, {"id": first["id"], "created": False})
    (task,) = json.loads(menuwatch("tasks", "list", "--json", env=env).stdout)
    assert (task["id"], task["role"], task["priority"]) == (first["id"], "payload_fetch", 20)
    for command, enabled in (("pause", False), ("resume", True)):
        assert menuwatch("stores", command, "green-leaf", env=env).returncode == 0
        rows = json.loads(menuwatch("stores", "list", "--search", "green-leaf", "--json", env=env).stdout)
        assert [row["crawl_enabled"] for row in rows] == [enabled]


def test_lists_take_a_limit(env: dict[str, str]) -> None:
    done = menuwatch("stores", "list", "--limit", "2", env=env)
    assert len(done.stdout.splitlines()) == 3
    assert len(json.loads(menuwatch("stores", "list", "--limit", "1", "--json", env=env).stdout)) == 1
    for words in (("workers", "list"), ("alerts", "list"), ("hosts", "list"), ("schedules", "list"), ("users", "list")):
        assert menuwatch(*words, "--limit", "1", env=env).returncode == 0, words


def test_top_shows_what_runs_waits_and_is_blocked(env: dict[str, str]) -> None:
    with psycopg.connect(env["DATABASE_URL"], autocommit=True) as conn:  # as a server does at its start
        conn.execute("""UPDATE queue_settings SET platform_hosts = '{"dutchie": ["dutchie.com"]}'""")
    assert menuwatch("tasks", "enqueue", "analytics_refresh", env=env).returncode == 0
    assert menuwatch("hosts", "pause", "dutchie.com", env=env).returncode == 0
    assert menuwatch("stores", "crawl", "green-leaf", env=env).returncode == 0
    done = json.loads(menuwatch("top", "--json", env=env).stdout)
    assert {name: done["queue"][name] for name in ("ready", "blocked", "running")} == {
        "ready": 1,
        "blocked": 1,
        "running": 0,
    }
    assert [host["host"] for host in done["closed_hosts"]] == ["dutchie.com"]
    assert [worker["friendly_name"] for worker in done["workers"]] == ["Ada"]
    shown = menuwatch("top", env=env)
    assert shown.returncode == 0, shown.stderr
    assert "dutchie.com" in shown.stdout
    assert "Ada" in shown.stdout


def test_config_says_what_is_set_and_hides_secrets(tmp_path: Path) -> None:
    secret = base64.urlsafe_b64encode(os.urandom(32)).decode()
    plain = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    env = {**plain, "MENUWATCH_HOME": str(tmp_path / "home"), "WORKERS_MAX": "3", "SECRET_KEY": secret}
    done = menuwatch("config", "--json", env=env)
    rows = {row["variable"]: row for row in json.loads(done.stdout)}
    assert (rows["WORKERS_MAX"]["value"], rows["SECRET_KEY"]["value"]) == ("3", "set")
    assert secret not in done.stdout
    table = menuwatch("config", "--changed", env=env).stdout
    assert {line.split()[0] for line in table.splitlines()[1:]} == {"MENUWATCH_HOME", "WORKERS_MAX", "SECRET_KEY"}
    assert not (tmp_path / "home").exists()
