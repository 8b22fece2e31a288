"""The page for people of the legacy system: the commands, calls, settings and sections that it names exist."""

from __future__ import annotations

import json
import re

import psycopg
import pytest

from tests.unit.test_docs import ROOT, _commands, variables

PAGE = ROOT / "docs" / "how-to" / "coming-from-the-old-system.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", TEXT)
NO_SETTINGS = {"TOKEN", "URL", "FOLDER", "USER", "STORE", "DELETE", "UPDATE", "INSERT", "CURRENT_DATE", "SIGTERM"}


def _replacements() -> str:
    """The right-hand cells: what the page tells the reader to use."""
    rows = [re.split(r"(?<!\\)\|", line) for line in TEXT.splitlines() if line.startswith("| ")]
    return "\n".join(row[2] for row in rows if len(row) > 3)


def test_commands_exist() -> None:
    named = {code.removeprefix("menuwatch ") for code in CODE if code.startswith("menuwatch ")}
    assert named
    known = _commands()
    missing = [words for words in named if not {words.split()[0], " ".join(words.split()[:2])} & known]
    assert missing == []


def test_calls_exist() -> None:
    paths = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))["paths"]
    known = {(method.upper(), re.sub(r"\{\w+\}", "{}", path)) for path, methods in paths.items() for method in methods}
    named = re.findall(r"(GET|POST|PUT|PATCH|DELETE) (/api/[\w{}/-]+)", _replacements())
    assert named
    assert {(method, re.sub(r"\{\w+\}|(?<=/)\d+(?=/|$)", "{}", path)) for method, path in named} - known == set()


def test_settings_exist() -> None:
    named = {code.partition("=")[0] for code in CODE if re.fullmatch(r"[A-Z][A-Z0-9_]+(?:=.*)?", code)}
    # The old name of a setting may be the new one, so both columns count.
    assert {name for name in named if "_" in name} - {name for name, _, _ in variables()} - NO_SETTINGS == set()


def test_sections_exist() -> None:
    links = re.findall(r"\]\(([^)#]+)#([^)]+)\)", TEXT)
    assert links
    for target, anchor in links:
        headings = re.findall(r"^#+ (.+)$", (PAGE.parent / target).read_text(encoding="utf-8"), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in slugs, f"{target} has no section {anchor}"


def test_statements_run(database_url: str) -> None:
    statements = [code for code in re.findall(r"`(SELECT [^`\n]+)`", _replacements()) if "…" not in code]
    assert statements
    with psycopg.connect(database_url) as conn:
        for statement in statements:
            conn.execute(statement.encode())


def test_tasks_and_schedules_in_sql(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 7)")
        conn.execute("INSERT INTO task_schedules (name, role, interval_hours) VALUES ('arizona', 'payload_fetch', 4)")
        with pytest.raises(psycopg.errors.CheckViolation, match="task_schedules_role"):
            conn.execute("INSERT INTO task_schedules (name, role, interval_hours) VALUES ('x', 'product_refresh', 4)")
        assert conn.execute("SELECT next_run_at <= now() FROM task_schedules").fetchall() == [(True,)]
        foreign = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = 'task_live'::regclass"
        assert conn.execute(foreign).fetchone() == (0,)
