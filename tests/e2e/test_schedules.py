"""Schedules as an operator meets them: a server that fires them, and the commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.commands import menuwatch

Run = Callable[..., subprocess.CompletedProcess[str]]
MENUWATCH = [sys.executable, "-m", "menuwatch.cli.main"]


@pytest.fixture
def surroundings(database_url: str, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def run(surroundings: dict[str, str]) -> Run:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return menuwatch("schedules", *arguments, env=surroundings, timeout=60)

    return command


def _rows(url: str, query: str) -> list[Any]:
    with psycopg.connect(url) as conn:
        return conn.execute(query.encode()).fetchall()


def test_a_server_makes_the_defaults_and_fires_what_is_due_before_it_listens(
    database_url: str, surroundings: dict[str, str]
) -> None:
    server = subprocess.Popen(
        [*MENUWATCH, "server", "--port", "0"],
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert any("/admin/" in line for line in server.stdout), "it ended without serving"
        names = (
            "SELECT s.name, r.error FROM schedule_runs r JOIN task_schedules s ON s.id = r.schedule_id ORDER BY s.id"
        )
        assert _rows(database_url, names) == [
            ("payload_fetch_all", None), ("analytics_refresh", None),
        ], "discovery is off until states are chosen"  # fmt: skip
        assert _rows(database_url, "SELECT role, priority FROM worker_tasks ORDER BY id") == [("analytics_refresh", 0)]
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert server.returncode == 0, "it ends when it is told to"


def test_the_commands(database_url: str, run: Run) -> None:
    listed = run("list", "--format", "json")
    assert listed.returncode == 0, listed.stderr
    assert [(one["name"], one["enabled"]) for one in json.loads(listed.stdout)] == [
        ("payload_fetch_all", True),
        ("store_discovery_dutchie", False),
        ("analytics_refresh", True),
    ]
    assert run("list", "--json").stdout == listed.stdout
    disagreeing = run("list", "--json", "--format", "csv")
    assert (disagreeing.returncode, disagreeing.stdout) == (2, "")
    assert run("disable", "2").stdout == "store_discovery_dutchie is disabled.\n"
    assert run("trigger", "store_discovery_dutchie").stdout == "store_discovery_dutchie: 1 new task.\n"
    assert _rows(database_url, "SELECT enabled, last_task_count FROM task_schedules ORDER BY id") == [
        (True, None),
        (False, 1),
        (True, None),
    ]
    again = json.loads(run("trigger", "2", "--json").stdout)
    assert (again["tasks_created"], again["schedule"]["name"]) == (0, "store_discovery_dutchie")
    assert run("enable", "store_discovery_dutchie").stdout.startswith("store_discovery_dutchie is enabled; next run: ")
    unknown = run("trigger", "nightly")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "'nightly' does not exist; existing schedules: payload_fetch_all, store_discovery_dutchie" in unknown.stderr


def test_the_list_says_when_what_is_late_and_what_went_wrong(database_url: str, run: Run) -> None:
    run("list")
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "UPDATE task_schedules SET next_run_at = now() - interval '26 hours 5 minutes',"
            " last_error = 'Boom: [b]why[/b]' WHERE id = 1"
        )
        conn.execute("UPDATE task_schedules SET next_run_at = now() + interval '3 hours 12 minutes' WHERE id = 3")
    listed = run("list")
    first, discovery, analytics = listed.stdout.splitlines()[1:4]
    assert first.rstrip().endswith("late by 1 d 2 h")
    assert discovery.rstrip().endswith("disabled"), "until states are chosen"
    assert analytics.rstrip().endswith("in 3 h 12 min")
    assert "payload_fetch_all failed and is retried every minute: Boom: [b]why[/b]" in listed.stderr
    one, _, two = json.loads(run("list", "--format", "json").stdout)
    assert one["late_seconds"] >= 26 * 3600
    assert (one["last_error"], two["late_seconds"]) == ("Boom: [b]why[/b]", 0)
    run("disable", "1")
    assert run("list").stdout.splitlines()[1].rstrip().endswith("disabled")


def test_a_schedule_per_state_is_added_and_removed(database_url: str, run: Run) -> None:
    made = run("add", "fetch_az", "--role", "product_resync", "--every", "2.5", "--state", "az", "--disabled")
    assert (made.returncode, made.stdout) == (0, "Schedule fetch_az created (id 4): every 2 h 30 min.\n"), made.stderr
    row = (
        "SELECT role, interval_hours::float8, state_code, enabled, priority, platform FROM task_schedules WHERE id = 4"
    )
    assert _rows(database_url, row) == [("payload_fetch", 2.5, "AZ", False, 0, "dutchie")]
    for wrong, says in (
        (("fetch_az", "--role", "payload_fetch", "--every", "4"), "'fetch_az' exists already"),
        (("7", "--role", "payload_fetch", "--every", "4"), "could be mistaken for the id"),
        (("x", "--role", "product_refresh", "--every", "4"), "cannot be scheduled"),
        (("x", "--role", "payload_fetch", "--every", "0"), "--every"),
        (("x", "--role", "payload_fetch", "--every", "4", "--state", "ZZ"), "unknown state 'ZZ'"),
        (("x", "--role", "payload_fetch", "--every", "4", "--platform", "none"), "unknown platform 'none'"),
    ):
        refused = run("add", *wrong)
        assert (refused.returncode, says in refused.stderr) == (2, True), (wrong, refused.stderr)
    default = run("remove", "payload_fetch_all")
    assert default.returncode != 0
    assert "payload_fetch_all is a default schedule" in default.stderr
    assert run("remove", "fetch_az").stdout == "Schedule fetch_az is removed.\n"
    assert len(_rows(database_url, "SELECT id FROM task_schedules")) == 3


def test_discovery_is_chosen_by_state(database_url: str, surroundings: dict[str, str]) -> None:
    def discovery(*arguments: str) -> subprocess.CompletedProcess[str]:
        return menuwatch("discovery", *arguments, env=surroundings)

    assert "off" in discovery().stdout
    chosen = json.loads(discovery("az", "NV", "--json").stdout)
    assert [one["code"] for one in chosen["states"] if one["chosen"]] == ["AZ", "NV"]
    enabled = "SELECT name, state_code FROM task_schedules WHERE role = 'store_discovery' AND enabled ORDER BY name"
    assert _rows(database_url, enabled) == [("store_discovery_dutchie_az", "AZ"), ("store_discovery_dutchie_nv", "NV")]
    wrong = discovery("AZ", "--all")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert discovery("--off").returncode == 0
    assert _rows(database_url, enabled) == []
