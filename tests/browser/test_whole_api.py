"""Every operation of the description with values made up from it, right ones and wrong ones, at a running server: nothing fails on our
side, nothing answers what the description does not say, and nothing that is secret comes out."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from tests.browser.conftest import Served
from tests.conftest import ROOT, create_database, drop_database
from tests.users_fixture import bearer_at

EXAMPLES = int(os.environ.get("API_EXAMPLES", "2"))
"""Of right and of wrong values each, for every operation; `make proofs` asks for more."""
LEAKS = ("Traceback (most recent", 'File "/', "psycopg", "postgresql://", "SELECT ", "argon2", "hunter2-proxy-secret")
"""What no answer may hold: traces, statements, addresses of the database, hashes, the password of a proxy."""

OUTWARD = {"add_proxies", "test_proxy", "test_alert_rule"}
"""They talk to whatever address they are given: made-up addresses are not to be talked to. They have tests of their own."""

ENDLESS = {"stream_events"}
"""It goes on for as long as it is asked to; tests/api/test_events.py hears it."""


@pytest.fixture(scope="module")
def bare(server_url: str, template: str) -> Iterator[tuple[str, str]]:
    """A server of its own on a fresh database, to write to as one likes; gives the database and the address."""
    name = f"whole_api_{os.getpid()}"
    url = create_database(server_url, name, template)
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "DATABASE_URL": url,
            "MENUWATCH_HOME": home,
            "LOG_LEVEL": "error",
            "PASSWORD_MEMORY_KIB": "1024",
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "menuwatch.cli.main", "server", "--port", "0"],
            cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert child.stderr is not None
            line = next(line for line in child.stderr if "http://" in line)
            yield url, "http://" + line.split("http://")[1].split()[0]
        finally:
            child.terminate()
            child.wait(30)
    drop_database(server_url, name)


def _wander(address: str, database: str, *, reading: bool) -> tuple[int, list[str]]:
    """Asks; returns how many requests were made, and what was wrong."""
    found: list[str] = []
    asked = 0
    schema = schemathesis.openapi.from_path(ROOT / "openapi.json")
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        name = operation.definition.raw["operationId"]
        if name in OUTWARD | ENDLESS or (operation.method.upper() == "GET") != reading:
            continue
        # Each operation with a token of its own: some of them take tokens and users away.
        headers = bearer_at(database, name=f"for-{name}")
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            asked += _each(operation.as_strategy(generation_mode=mode), address, headers, found)
    return asked, found


def _each(strategy: Any, address: str, headers: dict[str, str], found: list[str]) -> int:
    asked = 0

    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, deadline=None, derandomize=True, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(case=strategy)
    def ask(case: schemathesis.Case) -> None:
        nonlocal asked
        asked += 1
        try:
            answer = case.call(base_url=address, headers=headers)
        except requests.exceptions.RequestException as error:
            found.append(f"{case.method} {case.formatted_path} {case.query or ''}: the answer broke off: {error}")
            return
        where = f"{case.method} {case.formatted_path} {case.query or ''} {str(case.body)[:200]}: {answer.status_code}"
        text = answer.content[:200_000].decode("utf-8", "replace")
        if answer.status_code >= 500:
            found.append(f"{where}: {text[:300]}")
        # `default` is a problem: what went well, and went elsewhere, has its own number.
        if answer.status_code < 400 and str(answer.status_code) not in case.operation.definition.raw["responses"]:
            found.append(f"{where} is not in the description")
        found.extend(f"{where} holds {leak!r}" for leak in LEAKS if leak in text)
        kind = (answer.headers.get("content-type") or [""])[0]
        if answer.status_code >= 400 and not kind.startswith("application/problem+json"):
            found.append(f"{where} is no problem+json")

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        return 0
    return asked


def test_reading(server: Served) -> None:
    server.sql("UPDATE proxies SET password = 'hunter2-proxy-secret' WHERE id = (SELECT min(id) FROM proxies)")
    asked, found = _wander(server.address, server.database, reading=True)
    assert asked > 200
    assert not found, f"{len(found)} of {asked}:\n" + "\n".join(found[:30])


def test_writing(bare: tuple[str, str]) -> None:
    url, address = bare
    asked, found = _wander(address, url, reading=False)
    assert asked > 200
    assert not found, f"{len(found)} of {asked}:\n" + "\n".join(found[:30])
