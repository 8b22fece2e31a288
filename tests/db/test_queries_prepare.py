"""Every statement in a file beside its owner is one that the migrated schema understands."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from importlib import resources

import psycopg
import pytest
from psycopg import pq

import menuwatch
from menuwatch.db import sql
from tests.conftest import create_database, drop_database, unique

_TEMPORARY = re.compile(r"^\s*CREATE TEMP", re.IGNORECASE | re.MULTILINE)
_PARAMETER = re.compile(r"%\((\w+)\)s")


def _files() -> list[tuple[str, str]]:
    """(package, file) of all statements; `queries.sql`, and others where a subject has a file of its own."""
    names = [info.name for info in pkgutil.walk_packages(menuwatch.__path__, "menuwatch.") if info.ispkg]
    found = [
        (name, file.name) for name in names for file in resources.files(name).iterdir() if file.name.endswith(".sql")
    ]
    return sorted((name, file) for name, file in found if not name.startswith("menuwatch.db.migrations"))


def _numbered(statement: str) -> str:
    """The statement as the server gets it: `%(name)s` as $1, $2 …, `%%` as `%`."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

    numbered = _PARAMETER.sub(number, statement)
    return numbered.replace("%%", "%") if numbers else numbered


@pytest.fixture(scope="module")
def migrated(server_url: str, template: str) -> Iterator[str]:
    """One database for all of them: none leaves anything in it."""
    name = unique("prepared")
    yield create_database(server_url, name, template)
    drop_database(server_url, name)


@pytest.mark.parametrize(("package", "file"), _files())
def test_every_statement_prepares(migrated: str, package: str, file: str) -> None:
    importlib.import_module(package)
    queries = sql.load(package, file)
    assert len(queries) > 0
    wrong = []
    with psycopg.connect(migrated, autocommit=True) as conn:
        for beside in [other for owner, other in _files() if owner == package]:
            for statement in sql.load(package, beside).values():
                # Tables that others of the package work on; views stand in for what the file itself reads.
                if _TEMPORARY.search(statement) and (beside == file or "TEMPORARY TABLE" in statement):
                    conn.execute(statement)
        for name, statement in queries.items():
            if _TEMPORARY.search(statement):
                continue
            answer = conn.pgconn.prepare(b"", _numbered(statement).encode())
            if answer.status != pq.ExecStatus.COMMAND_OK:
                wrong.append(f"{name}: {answer.error_message.decode(errors='replace')}")
    assert not wrong, "\n".join(wrong)


def test_the_queue_is_among_them() -> None:
    assert ("menuwatch.queue", "queries.sql") in _files()
