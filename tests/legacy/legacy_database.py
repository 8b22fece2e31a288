"""A database of the former system, as far as coming from it needs one."""

from __future__ import annotations

from typing import Any

from menuwatch.db.pool import Pool

JOB_TABLES = """
CREATE TABLE job_schedules (id serial PRIMARY KEY, job_name text UNIQUE NOT NULL, description text,
  enabled boolean NOT NULL DEFAULT true, base_interval_minutes integer NOT NULL, jitter_minutes integer NOT NULL DEFAULT 30,
  last_run_at timestamptz, next_run_at timestamptz, job_config jsonb, updated_at timestamptz DEFAULT now());
CREATE TABLE job_run_logs (id serial PRIMARY KEY, schedule_id integer REFERENCES job_schedules (id), job_name text,
  status text NOT NULL, started_at timestamptz, completed_at timestamptz);
CREATE TABLE dispensary_crawl_jobs (id serial PRIMARY KEY, dispensary_id integer, job_type text,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'completed', 'failed')),
  completed_at timestamptz, error_message text);
INSERT INTO job_schedules (job_name, enabled, base_interval_minutes) VALUES
  ('menu_detection', true, 1440), ('product_crawl', true, 240), ('analytics', false, 360);
INSERT INTO job_run_logs (schedule_id, job_name, status) VALUES
  (1, 'menu_detection', 'success'), (2, 'product_crawl', 'running');
INSERT INTO dispensary_crawl_jobs (dispensary_id, job_type, status) VALUES
  (1, 'crawl', 'pending'), (2, 'crawl', 'pending'), (3, 'crawl', 'running'), (4, 'crawl', 'completed'), (5, 'crawl', 'failed');
"""
"""The status of a job has a check that does not know `cancelled`, as one installation had it."""

OURS = """
INSERT INTO dispensaries (platform_dispensary_id, slug, name, name_raw, state, crawl_enabled) VALUES
  ('a1', 'one', 'One', 'One', 'AZ', true), ('a2', 'two', 'Two', 'Two', 'AZ', true), ('a3', 'three', 'Three', 'Three', 'CA', true),
  ('a4', 'four', 'Four', 'Four', 'CA', false), (NULL, 'five', 'Five', 'Five', 'CA', true);
"""

_TABLES = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^(pg_|information_schema)' ORDER BY 1
"""


async def fingerprint(pool: Pool) -> dict[str, Any]:
    """A hash of every row of every table: two that are equal are of databases that hold the same."""
    found = {}
    async with pool.connection() as conn:
        for (name,) in await (await conn.execute(_TABLES)).fetchall():
            cursor = await conn.execute(
                f"SELECT count(*), md5(string_agg(md5(t::text), '' ORDER BY t::text)) FROM {name} t"
            )
            found[name] = await cursor.fetchone()
    return found


async def rows(pool: Pool, query: str) -> list[tuple[Any, ...]]:
    """What the database answers."""
    async with pool.connection() as conn:
        return await (await conn.execute(query)).fetchall()
