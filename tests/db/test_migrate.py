"""Migrations: from nothing, again, and from several processes at once."""

from __future__ import annotations

import json
import subprocess
import sys

import psycopg
import pytest

from menuwatch.core.errors import Refused
from menuwatch.db import migrate
from menuwatch.db.upgrade import upgrade


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


def _options(status: str, quantity: int) -> str:
    return json.dumps([{"option": "1g", "price_rec": 12.5, "quantity": quantity, "stock_status": status}])


def test_states_that_last_become_the_product_row(empty_database: str) -> None:
    """Of the states that were stored for every product, those that ended stay history, and the last of each is the product's own."""
    upgrade(empty_database, "0013")
    every = (
        "SELECT product_id, seen_from, seen_to, present, quantity_capped, quantity, stock_status, price_rec, prices, stock"
        "  FROM product_states ORDER BY 1, 2"
    )
    first, crawl, later = "2026-03-01Z", "2026-04-01Z", "2026-04-02Z"
    with psycopg.connect(empty_database) as conn:
        conn.execute("SELECT ensure_product_states_partition(t) FROM unnest(%s::timestamptz[]) t", [[first, crawl]])
        # One that changed, one that is absent, one that is out of stock since its third miss.
        for number, since, misses, status in (
            (1, later, 0, "in_stock"),
            (2, first, 1, "in_stock"),
            (3, later, 3, "oos"),
        ):
            quantity = 0 if status == "oos" else 4
            conn.execute(
                "INSERT INTO catalog_products (id, dispensary_id, provider, provider_product_id, content_hash, consecutive_misses,"
                " first_seen_at, last_seen_at, state_from, changed_at, name_raw, name, stock_status, is_in_stock, quantity,"
                " price_rec, variants, extra)"
                " VALUES (%s, 1, 'dutchie', %s, '', %s, %s, %s, %s, %s, 'n', 'n', %s, %s, %s, 12.5, %s, '{}')",
                [
                    *(number, str(number), misses, first, crawl if misses else None, since, since),
                    *(status, status != "oos", quantity, _options(status, quantity)),
                ],
            )  # fmt: skip
        for number, since, until, present, price, status in (
            (1, first, crawl, True, 10, "in_stock"),
            (1, later, None, True, 12.5, "in_stock"),
            (2, first, crawl, True, 12.5, "in_stock"),
            (3, first, crawl, True, 12.5, "in_stock"),
            (3, later, None, False, 12.5, "oos"),
        ):
            quantity = 0 if status == "oos" else 4
            conn.execute(
                "INSERT INTO product_states (product_id, seen_from, seen_to, present, quantity_capped, quantity, stock_status,"
                " price_rec, prices, stock) VALUES (%s, %s, %s, %s, false, %s, %s, %s, %s, %s)",
                [
                    *(number, since, until, present, quantity, status, price),
                    *(json.dumps([["1g", price, None, None, None]]), json.dumps([["1g", status, quantity, False]])),
                ],
            )
        before = conn.execute(every).fetchall()
        changes = conn.execute("SELECT * FROM product_changes ORDER BY product_id").fetchall()
        assert (len(before), len(changes)) == (5, 2)
    migrate.migrate(empty_database)
    with psycopg.connect(empty_database) as conn:
        assert conn.execute(every).fetchall() == before
        assert conn.execute("SELECT * FROM product_changes ORDER BY product_id").fetchall() == changes
        past = conn.execute("SELECT product_id, ended_at = %s FROM past_states ORDER BY 1", [later]).fetchall()
        assert past == [(1, True), (3, True)]


def test_what_was_there_before_people_came_is_kept_and_can_be_asked(empty_database: str) -> None:
    """From the last schema without accounts, site and dashboard, with rows in what their migrations change: history gets causes and is
    counted by its days, names of the catalogue can be looked for, workers that never said a version or their slots count as one."""
    upgrade(empty_database, "0017")
    day, worker = "2026-11-01", "w-1"
    filled = (
        "dispensaries", "catalog_products", "task_history", "task_live", "worker_registry", "raw_crawl_payloads", "alert_rules",
        "image_uses",
    )  # fmt: skip

    def rows(conn: psycopg.Connection) -> list[int]:
        return [conn.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in filled]

    with psycopg.connect(empty_database) as conn:
        conn.execute("INSERT INTO dispensaries (name, name_raw, slug, state) VALUES ('Green', 'Green', 'green', 'AZ')")
        for number, name, special in ((1, "Blue Fern", 9), (2, "BLUE FERN", None), (3, "Öl", 11)):
            conn.execute(
                "INSERT INTO catalog_products (id, dispensary_id, provider, provider_product_id, content_hash, first_seen_at,"
                " state_from, changed_at, name_raw, name, stock_status, is_in_stock, price_rec, price_rec_special, variants, extra)"
                " VALUES (%s, 1, 'dutchie', %s, '', now(), now(), now(), %s, %s, 'in_stock', true, 10, %s, '[]', '{}')",
                [number, str(number), name, name, special],
            )
        conn.execute("SELECT ensure_task_history_partition(%s::timestamptz)", [f"{day}Z"])
        for number, status, reason in (
            (1, "failed", 'store 17 answered "no": HTTP 403'),
            (2, "failed", 'store 9 answered "never": HTTP 403'),
            (3, "failed", "store 9 answered: HTTP 500"),
            (4, "completed", None),
        ):
            conn.execute(
                "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count,"
                " max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)"
                " SELECT %s, t, t, t, t, 0, 1, 0, 3, 0, 'payload_fetch', 'dutchie', %s, %s, %s, '{}'"
                " FROM (SELECT %s::timestamptz) x(t)",
                [number, status, worker, reason, f"{day} 12:00Z"],
            )
        conn.execute("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 1)")
        for name, heartbeat in ((worker, '{"max_concurrent_tasks": 4}'), ("w-2", '{"max_concurrent_tasks": "four"}')):
            conn.execute(
                "INSERT INTO worker_registry (worker_id, friendly_name, host, pid, status, heartbeat)"
                " VALUES (%s, %s, 'box', 1, 'active', %s::jsonb)",
                [name, name, heartbeat],
            )
        conn.execute(
            "INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, reason, fetched_at, path, bytes, raw_bytes, sha256,"
            " content_sha256) VALUES (1, 'dutchie', 'rejected', 'not JSON', now(), 'a', 1, 1, 'a', 'a')"
        )
        conn.execute(
            "INSERT INTO alert_rules (name, condition, reach, armed_at, created_at, updated_at)"
            " VALUES ('r', 'proxies_down', 'operations', now(), now(), now())"
        )
        conn.execute("INSERT INTO image_uses (product_id, url) VALUES (1, 'https://pictures.example/1.jpg')")
        before = rows(conn)
        assert before == [1, 3, 4, 1, 2, 1, 1, 1]
    assert migrate.migrate(empty_database).before == "0017"
    with psycopg.connect(empty_database) as conn:
        assert rows(conn) == before
        causes = [cause for (cause,) in conn.execute("SELECT cause FROM task_history ORDER BY id").fetchall()]
        assert causes[0] == causes[1] != causes[2]
        assert (len(causes[2]), causes[3]) == (12, None)
        conn.execute("SELECT count_task_days()")
        counted = "SELECT status, n FROM task_day_counts WHERE day = %s ORDER BY 1"
        assert conn.execute(counted, [day]).fetchall() == [("completed", 1), ("failed", 3)]
        assert conn.execute("SELECT worker_id, day::text FROM task_day_workers").fetchall() == [(worker, day)]
        assert conn.execute("SELECT name FROM catalog_names ORDER BY 1").fetchall() == [("blue fern",), ("öl",)]
        special = "SELECT id FROM catalog_products WHERE on_special(price_rec, price_rec_special, price_med, price_med_special)"
        assert conn.execute(special).fetchall() == [(1,)]
        workers = "SELECT worker_id, worker_slots(heartbeat), version FROM worker_registry ORDER BY 1"
        assert conn.execute(workers).fetchall() == [(worker, 4, None), ("w-2", 1, None)]
        capacity = "SELECT pending_tasks, active_workers FROM v_worker_capacity WHERE role = 'payload_fetch'"
        assert conn.execute(capacity).fetchall() == [(1, 2)]
        assert conn.execute("SELECT wanted, holder FROM worker_supervision").fetchall() == [(None, None)]
        # A day that comes after has the column as well.
        conn.execute("SELECT ensure_task_history_partition('2027-01-01Z')")
        made = "SELECT attgenerated FROM pg_attribute WHERE attrelid = 'task_history_20270101'::regclass AND attname = 'cause'"
        assert conn.execute(made).fetchall() == [("s",)]
