"""A database that holds the former system's tables: a migration refuses it, changes nothing, and names the command that mends it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psycopg
import pytest

from menuwatch.core.errors import Refused
from menuwatch.db import migrate
from tests.api.shop import item
from tests.commands import menuwatch

FORMER = """
CREATE TYPE task_status AS ENUM ('pending', 'running');
CREATE TABLE dispensaries (id serial PRIMARY KEY, name text NOT NULL, slug text);
CREATE TABLE store_products (
  id serial PRIMARY KEY, dispensary_id integer REFERENCES dispensaries (id), provider_product_id text, name_raw text);
CREATE TABLE worker_tasks (id serial PRIMARY KEY, status task_status NOT NULL DEFAULT 'pending');
CREATE TABLE dutchie_products (id serial PRIMARY KEY);
CREATE VIEW v_worker_capacity AS SELECT count(*) AS pending_tasks FROM worker_tasks;
CREATE FUNCTION claim_task(role text, worker text) RETURNS worker_tasks LANGUAGE sql AS 'SELECT * FROM worker_tasks LIMIT 1';
CREATE TYPE task_role AS ENUM ('product_resync', 'product_refresh');
CREATE TABLE task_schedules (id serial PRIMARY KEY, name varchar(100) NOT NULL UNIQUE, role task_role NOT NULL, enabled boolean,
  interval_hours integer NOT NULL, priority integer DEFAULT 0, state_code varchar(2), next_run_at timestamptz);
CREATE TABLE proxies (id serial PRIMARY KEY, host text, port integer, username text, password text, protocol text, is_active boolean);
CREATE TABLE raw_crawl_payloads (id serial PRIMARY KEY, dispensary_id integer REFERENCES dispensaries (id), storage_path text NOT NULL,
  product_count integer, fetched_at timestamptz NOT NULL DEFAULT '2026-03-01 00:00+00', checksum_sha256 varchar(64));
INSERT INTO task_schedules (name, role, interval_hours) VALUES ('arizona', 'product_resync', 2);
INSERT INTO proxies (host, port, username, password, protocol, is_active) VALUES ('203.0.113.1', 8080, 'bob', 's3cr3t', 'http', true);
INSERT INTO dispensaries (name, slug) VALUES ('Green Leaf', 'green-leaf');
INSERT INTO store_products (dispensary_id, name_raw) VALUES (1, 'Blue Dream');
INSERT INTO raw_crawl_payloads (dispensary_id, storage_path) VALUES (1, '/storage/payloads/2026/03/01/store_1_0.json');
"""
"""Tables, a view and a function with names that Menuwatch uses too, and one table (`dutchie_products`) that it does not."""


def _former(url: str) -> None:
    with psycopg.connect(url) as conn:
        conn.execute(FORMER)


def _relations(url: str) -> list[tuple[str, str]]:
    with psycopg.connect(url) as conn:
        return conn.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema)' ORDER BY 1, 2"
        ).fetchall()


def _env(url: str, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": url, "MENUWATCH_HOME": str(tmp_path / "home")}


@pytest.mark.parametrize("words", [("migrate",), ("up", "--port", "0"), ("proxies", "add", "127.0.0.1:9")])
def test_start_is_refused_and_changes_nothing(empty_database: str, tmp_path: Path, words: tuple[str, ...]) -> None:
    _former(empty_database)
    before = _relations(empty_database)
    done = menuwatch(*words, env=_env(empty_database, tmp_path))
    assert done.returncode == 2, done.stderr
    assert "dispensaries, proxies, raw_crawl_payloads, store_products, task_schedules and 2 more" in done.stderr
    assert "dutchie_products" not in done.stderr
    assert "menuwatch migrate-legacy move-tables" in done.stderr
    assert _relations(empty_database) == before


def test_the_named_command_mends_it(empty_database: str, tmp_path: Path) -> None:
    _former(empty_database)
    env = _env(empty_database, tmp_path)
    moved = menuwatch("migrate-legacy", "move-tables", env=env)
    assert (moved.returncode, moved.stdout) == (0, "8 tables and views moved to the schema legacy.\n"), moved.stderr
    migrated = menuwatch("migrate", env=env)
    assert migrated.returncode == 0, migrated.stderr
    assert migrate.current(empty_database) == migrate.newest()
    with psycopg.connect(empty_database) as conn:
        assert conn.execute("SELECT name FROM legacy.dispensaries").fetchall() == [("Green Leaf",)]
        assert conn.execute("SELECT count(*) FROM public.dispensaries").fetchone() == (0,)
    payload = tmp_path / "former" / "payloads/2026/03/01/store_1_0.json"
    payload.parent.mkdir(parents=True)
    payload.write_bytes(json.dumps({"products": [item("p1")]}).encode())
    missing = menuwatch("migrate-legacy", "import", "--storage", str(tmp_path / "nowhere"), env=env)
    assert (missing.returncode, "nowhere is not a folder" in missing.stderr) == (2, True)
    imported = menuwatch("migrate-legacy", "import", "--storage", str(tmp_path / "former"), env=env)
    for line in (
        "1 store read, 1 imported.",
        "1 proxy read, 1 imported.",
        "1 schedule read, 1 imported.",
        "1 payload read, 1 imported.",
    ):
        assert f"{line}\n" in imported.stdout, imported.stdout + imported.stderr
    assert "s3cr3t" not in imported.stdout + imported.stderr
    with psycopg.connect(empty_database) as conn:
        assert conn.execute("SELECT role, interval_hours FROM task_schedules WHERE name = 'arizona'").fetchall() == [
            ("payload_fetch", 2)
        ]
    again = menuwatch("migrate-legacy", "move-tables", env=env)
    assert (again.returncode, "already has Menuwatch's schema" in again.stderr) == (2, True)


def test_bad_moves_are_refused(empty_database: str) -> None:
    with pytest.raises(Refused, match="run `menuwatch migrate`"):
        migrate.move_tables(empty_database)
    _former(empty_database)
    with psycopg.connect(empty_database) as conn:
        conn.execute("CREATE SCHEMA legacy")
    before = _relations(empty_database)
    with pytest.raises(Refused, match="'legacy' exists already: choose another name with --schema"):
        migrate.move_tables(empty_database)
    with psycopg.connect(empty_database, application_name="former worker"):
        with pytest.raises(Refused, match=r"\(former worker\): stop the legacy system first.*--force"):
            migrate.move_tables(empty_database, "old")
        assert _relations(empty_database) == before
        assert "dispensaries" in migrate.move_tables(empty_database, "old", force=True)
    assert {schema for schema, _ in _relations(empty_database)} == {"old"}


def test_who_might_use_the_schema_still_may(empty_database: str) -> None:
    _former(empty_database)
    with pytest.raises(Refused, match="'pg_old' is reserved by PostgreSQL"):
        migrate.move_tables(empty_database, "pg_old")
    migrate.move_tables(empty_database)
    with psycopg.connect(empty_database) as conn:
        assert conn.execute("SELECT has_schema_privilege('public', 'public', 'USAGE')").fetchone() == (True,)


def test_without_the_right_to_rename_the_statement_is_given(empty_database: str, server_url: str) -> None:
    _former(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute("DROP ROLE IF EXISTS former_guest")
        conn.execute("CREATE ROLE former_guest LOGIN PASSWORD 'guest'")
    try:
        guest = psycopg.conninfo.make_conninfo(empty_database, user="former_guest", password="guest")
        with pytest.raises(Refused) as refused:
            migrate.move_tables(guest)
        statement = str(refused.value).partition("owner of the database: ")[2]
        assert statement == (
            'ALTER SCHEMA "public" RENAME TO "legacy"; CREATE SCHEMA "public" AUTHORIZATION "former_guest"; '
            'GRANT USAGE ON SCHEMA "public" TO PUBLIC;'
        )
        with psycopg.connect(empty_database) as conn:
            conn.execute(statement.encode())
            conn.execute("SELECT count(*) FROM legacy.dispensaries")
    finally:
        with psycopg.connect(empty_database, autocommit=True) as conn:
            conn.execute("DROP OWNED BY former_guest CASCADE; DROP ROLE former_guest")
