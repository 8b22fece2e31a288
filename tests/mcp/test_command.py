"""`menuwatch mcp` as a process: it ends with its client, and on a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


@contextmanager
def _command(url: str, home: Path, *signals: str) -> Iterator[subprocess.Popen[str]]:
    """`signals` are options of `env`: the tests may run with signals ignored."""
    env = {**os.environ, "DATABASE_URL": url, "MENUWATCH_HOME": str(home)}
    program = ["env", *(signals or ["--default-signal"]), str(Path(sys.executable).with_name("menuwatch")), "mcp"]
    with subprocess.Popen(
        program, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _ask(process: subprocess.Popen[str], message: dict[str, Any]) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_the_client_is_there(database_url: str, tmp_path: Path, number: int) -> None:
    with _command(database_url, tmp_path) as process:
        assert _ask(process, INITIALIZE)["result"]["serverInfo"]["name"] == "menuwatch"
        process.send_signal(number)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_it_can_be_ended_where_interrupts_are_ignored(database_url: str, tmp_path: Path) -> None:
    """Shells ignore them for commands that a script starts in the background, and `nohup` ignores hang-ups."""
    with _command(database_url, tmp_path, "--ignore-signal=INT", "--ignore-signal=HUP") as process:
        _ask(process, INITIALIZE)
        for number in (signal.SIGINT, signal.SIGHUP):
            process.send_signal(number)
            assert _ask(process, {"jsonrpc": "2.0", "id": 2, "method": "ping"})["id"] == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130


def test_it_ends_when_the_client_closes_its_input(database_url: str, tmp_path: Path) -> None:
    with _command(database_url, tmp_path) as process:
        _ask(process, INITIALIZE)
        assert process.stdin is not None
        process.stdin.write("no JSON\n")
        process.stdin.close()
        assert process.wait(20) == 0


def test_it_refuses_a_database_without_a_schema(empty_database: str, tmp_path: Path) -> None:
    with _command(empty_database, tmp_path) as process:
        assert process.wait(60) == 2
        assert process.stderr is not None
        assert "menuwatch migrate" in process.stderr.read()
