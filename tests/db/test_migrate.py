"""Migrations: from nothing, again, and from several processes at once."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest

from menuwatch.core.errors import Refused
from menuwatch.db import migrate


def _tables(url: str) -> set[str]:
    with psycopg.connect(url) as conn:
        rows = conn.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'").fetchall()
    return {str(name) for (name,) in rows}


def test_from_empty_to_newest_and_again(empty_database: str) -> None:
    assert migrate.current(empty_database) is None
    first = migrate.migrate(empty_database)
    assert (first.before, first.after, first.changed) == (None, migrate.newest(), True)
    assert {
        "dispensaries",
        "proxies",
        "raw_crawl_payloads",
        "worker_tasks",
        "store_products",
        "store_product_snapshots",
    } <= _tables(empty_database)
    before = _tables(empty_database)
    second = migrate.migrate(empty_database)
    assert not second.changed
    assert _tables(empty_database) == before


def test_four_processes_at_once(empty_database: str) -> None:
    code = "import sys; from menuwatch.db import migrate; print(migrate.migrate(sys.argv[1]).changed)"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, empty_database], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    said = []
    for process in started:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        said.append(out.strip())
    assert sorted(said) == ["False", "False", "False", "True"]


def test_a_newer_schema_is_refused(empty_database: str) -> None:
    migrate.migrate(empty_database)
    with psycopg.connect(empty_database) as conn:
        conn.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Refused, match="9999"):
        migrate.migrate(empty_database)


def test_other_schemes_are_refused() -> None:
    with pytest.raises(Refused, match="postgresql://"):
        migrate.migrate("mysql://localhost/x")
