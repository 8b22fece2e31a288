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
