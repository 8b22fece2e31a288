"""What an installation consists of, looked at without any of the code that backs it up."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

FORGOTTEN = {"visitor_salts", "visitor_marks", "login_failures"}
LOGIN_KEY = "name = 'login_failures'"


def rows(url: str) -> dict[str, list[str]]:
    """Every row of every table as text, in the order of that text; and sequences, views and parts by name."""
    found: dict[str, list[str]] = {}
    with psycopg.connect(url, options="-c timezone=UTC -c extra_float_digits=3") as conn:
        listed = conn.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' UNION ALL "
            "SELECT relname FROM pg_class WHERE relkind = 'v' AND relname LIKE 'store_product%'"
        )
        for (name,) in listed.fetchall():
            if name not in FORGOTTEN:
                kept = f"NOT {LOGIN_KEY}" if name == "app_secrets" else "true"
                asked = sql.SQL('SELECT t::text COLLATE "C" FROM {} t WHERE {} ORDER BY 1').format(
                    sql.Identifier(name), sql.SQL(kept)
                )
                found[name] = [row[0] for row in conn.execute(asked)]
        found["sequences"] = [
            str(row) for row in conn.execute("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1")
        ]
        found["triggers"] = [
            str(row)
            for row in conn.execute(
                "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"
            )
        ]
    return found


def files(storage: Path) -> dict[str, Any]:
    """Every file below it: hash and time."""
    found = {}
    for place, _, names in os.walk(storage):
        for name in names:
            file = Path(place, name)
            found[str(file.relative_to(storage))] = (
                hashlib.sha256(file.read_bytes()).hexdigest(),
                file.stat().st_mtime_ns,
            )
    return {path: about for path, about in found.items() if not path.startswith("cache/")}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of what is not the same; a failing test prints these rather than megabytes."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
