"""Migrations: from nothing, again, and from several processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from menuwatch.core.errors import Refused
from menuwatch.db import migrate
from tests.commands import menuwatch
from tests.conftest import NextSchema


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


def test_a_database_of_before_the_first_release_is_refused(empty_database: str) -> None:
    """Its revisions were numbered differently: neither an equal nor an unknown number is taken for one of ours."""
    with psycopg.connect(empty_database) as conn:
        conn.execute("CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)")
        conn.execute("CREATE TABLE upkeep (duty text PRIMARY KEY)")
        conn.execute("INSERT INTO alembic_version VALUES ('0025')")
    for revision in ("0025", migrate.newest()):
        with psycopg.connect(empty_database) as conn:
            conn.execute("UPDATE alembic_version SET version_num = %s", [revision])
        with pytest.raises(Refused, match=rf"before 0\.2\.0 \(schema {revision}.*export.*empty database"):
            migrate.migrate(empty_database)
    assert _tables(empty_database) == {"alembic_version", "upkeep"}


def test_a_revision_is_one_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "0001_initial").mkdir()
    for name in ("20_b.sql", "10_a.sql"):
        (tmp_path / "0001_initial" / name).touch()
    assert [file.name for file in migrate.sql_files(tmp_path / "0001_initial.py")] == ["10_a.sql", "20_b.sql"]
    assert migrate.sql_files(tmp_path / "0002_more.py") == [tmp_path / "0002_more.sql"]


@pytest.mark.parametrize("words", [("stores", "list"), ("tasks", "list"), ("hosts", "list"), ("verify",)])
def test_a_command_that_reads_does_not_migrate(empty_database: str, tmp_path: Path, words: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    env = {**os.environ, "DATABASE_URL": empty_database, "MENUWATCH_HOME": str(home)}
    refused = menuwatch(*words, env=env)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "run `menuwatch migrate`" in refused.stderr
    assert _tables(empty_database) == set()
    assert not home.exists()


def test_a_reading_command_refuses_a_newer_schema(empty_database: str) -> None:
    migrate.migrate(empty_database)
    migrate.require_newest(empty_database)
    with psycopg.connect(empty_database) as conn:
        conn.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Refused, match="run a newer Menuwatch"):
        migrate.require_newest(empty_database)


def test_a_reading_command_refuses_an_older_schema(empty_database: str, next_schema: NextSchema) -> None:
    migrate.migrate(empty_database)
    next_schema("SELECT 1;")
    with pytest.raises(Refused, match="at schema 0001, this version needs 0002: run `menuwatch migrate`"):
        migrate.require_newest(empty_database)
