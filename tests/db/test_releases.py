"""The schema of 0.2.0 is never changed again: migrations start from its dump, and this version's workers run on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from menuwatch.core.clock import SystemClock
from menuwatch.db import migrate
from menuwatch.db.pool import Pool, open_pool
from menuwatch.db.upgrade import upgrade
from menuwatch.ops.janitor import Janitor
from menuwatch.queue import store as tasks
from menuwatch.queue.claim import Claim, cycle
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask, Role, Status
from menuwatch.queue.task_list import TaskFilter, count_tasks
from menuwatch.workers import registry
from menuwatch.workers.registry import Identity
from tests.conftest import create_database, drop_database, unique
from tests.db import releases

FIRST = "0001"
"""The revision of 0.2.0."""
REVISIONS = sorted(file.stem.partition("_")[0] for file in (migrate.MIGRATIONS / "versions").glob("[0-9]*.py"))

OBJECTS = """
WITH tables AS (
  SELECT oid, relname, relkind, reloptions, relpersistence FROM pg_class
   WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S', 'v') AND NOT relispartition)
SELECT 'table', relname, relkind::text, reloptions::text, relpersistence::text FROM tables
UNION ALL
SELECT 'column', t.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod),
       concat_ws(' ', a.attnum, a.attnotnull, a.attgenerated, a.attidentity, a.attcollation::regcollation),
       pg_get_expr(d.adbin, d.adrelid)
  FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
UNION ALL
SELECT 'constraint', t.relname, c.conname, pg_get_constraintdef(c.oid), NULL
  FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype <> 'n'
UNION ALL
SELECT 'index', t.relname, i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), NULL
  FROM tables t JOIN pg_index i ON i.indrelid = t.oid
UNION ALL
SELECT 'view', relname, NULL, pg_get_viewdef(oid), NULL FROM tables WHERE relkind = 'v'
UNION ALL
SELECT 'trigger', t.relname, g.tgname, pg_get_triggerdef(g.oid), g.tgenabled::text
  FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal
UNION ALL
SELECT 'function', p.oid::regprocedure::text, NULL, pg_get_functiondef(p.oid), NULL
  FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
"""
"""What a schema consists of. Constraints of kind `n` (NOT NULL) are columns' on older servers."""
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"


def schema(url: str) -> set[tuple[Any, ...]]:
    """Every object of the schema but partitions, which depend on the day."""
    with psycopg.connect(url) as conn:
        return set(conn.execute(OBJECTS).fetchall())


def counts(url: str) -> dict[str, int]:
    """The rows of every table."""
    with psycopg.connect(url) as conn:
        names = conn.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
        return {name: conn.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for (name,) in names}


@pytest.fixture
def released(empty_database: str) -> str:
    """A database as 0.2.0 left it."""
    with psycopg.connect(empty_database) as conn:
        conn.execute(releases.dump(releases.FIRST).encode())
    return empty_database


@pytest.fixture
def database_of(server_url: str) -> Iterator[Callable[[str], str]]:
    """Makes the address of a database migrated from nothing to a revision."""
    made: list[str] = []

    def make(revision: str) -> str:
        made.append(unique("revision"))
        url = create_database(server_url, made[-1])
        upgrade(url, revision)
        return url

    yield make
    for name in made:
        drop_database(server_url, name)


@pytest.fixture
async def released_pool(released: str) -> AsyncIterator[Pool]:
    async with open_pool(released) as opened:
        yield opened


def test_the_dump_has_a_row_in_every_table_and_nothing_of_its_machine(released: str) -> None:
    found = counts(released)
    assert [name for name, rows in found.items() if rows == 0] == []
    made_by_first = {
        name
        for file in migrate.sql_files(migrate.MIGRATIONS / "versions" / "0001_initial.py")
        for name in migrate.TABLE.findall(file.read_text(encoding="utf-8"))
    }
    assert made_by_first <= found.keys()
    text = releases.dump(releases.FIRST)
    assert not [
        line for line in text.splitlines() if any(folder in line for folder in ("/home/", "/root/", "/tmp/", "/usr/"))
    ]


def test_the_first_revision_makes_what_was_released(released: str, database_of: Callable[[str], str]) -> None:
    fresh = database_of(FIRST)
    assert schema(released) ^ schema(fresh) == set()


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_migration_runs_from_the_release(revision: str, released: str, database_of: Callable[[str], str]) -> None:
    before = counts(released)
    assert migrate.current(released) == FIRST
    upgrade(released, revision)
    assert migrate.current(released) == revision
    after = counts(released)
    assert [name for name, rows in after.items() if rows == 0 and before.get(name)] == [], (
        "no migration drops rows unsaid"
    )
    assert schema(released) ^ schema(database_of(revision)) == set(), "from a release as from nothing"


async def test_workers_of_this_version_run_on_the_release(released_pool: Pool) -> None:
    """A rolling upgrade in which a worker is newer than the schema: it registers, claims, ends attempts, and keeps house."""
    tomorrow = SystemClock().now() + timedelta(days=1)
    who = Identity(worker_id="new", friendly_name="Ada", host="box", pid=1, version="9.9.9")
    async with released_pool.connection() as conn:
        assert await registry.register(conn, who)
        assert {row.worker_id for row in await registry.list_workers(conn)} >= {"new"}
        await tasks.ensure_partitions(conn)
        made = await tasks.enqueue(conn, [NewTask(role=Role.STORE_DISCOVERY, payload={"n": n}) for n in range(5)])
        claimed = await tasks.claim(conn, "new", None, 6)
        assert len(claimed) == 6, "five of its own, and the one that was there"
        first, second, third, fourth, fifth, sixth = claimed
        held = [tasks.Held(task_id=task.id, attempt=task.attempt) for task in claimed]
        assert len(await tasks.mark_running(conn, "new", held)) == 6
        assert len(await tasks.heartbeat(conn, "new", held)) == 6
        ends = [
            Ending(task_id=first.id, attempt=first.attempt, verb="done", result={"ok": True}),
            Ending(task_id=second.id, attempt=second.attempt, verb="fail", reason="it broke"),
            Ending(task_id=third.id, attempt=third.attempt, verb="retry", reason="again", wait=60),
            Ending(task_id=fourth.id, attempt=fourth.attempt, verb="postpone", reason="later", due=tomorrow),
            Ending(task_id=fifth.id, attempt=fifth.attempt, verb="release"),
        ]  # fmt: skip
        follow_up = (first.id, NewTask(role=Role.ANALYTICS_REFRESH))
        cycled = await cycle(conn, "new", ends, [follow_up], Claim(roles=list(Role), n=5))
        assert not cycled.lost
        assert {one.task.id for one in cycled.claimed} >= {fifth.id}, "what was released, and the follow-up"
        assert len(cycled.claimed) == 2
        assert await tasks.cancel(conn, [sixth.id]) == [sixth.id]
        assert await tasks.recover_stale(conn, 0) == 2
        ended = {task.id: task.status for task in [await tasks.get(conn, one.id) or one for one in claimed]}
        assert (ended[first.id], ended[second.id], ended[sixth.id]) == (
            Status.COMPLETED,
            Status.FAILED,
            Status.CANCELLED,
        )
        assert {one.id for one in made} <= ended.keys()
        assert await count_tasks(conn, TaskFilter())
        # It ran until now: else its clock would be in doubt, and nothing would be deleted.
        await conn.execute("UPDATE retention_clock SET trusted_at = now(), seen_at = now()")
    await Janitor(released_pool).step()
    async with released_pool.connection() as conn:
        failed = await (
            await conn.execute("SELECT job, error FROM maintenance_runs WHERE error IS NOT NULL")
        ).fetchall()
        assert failed == []
        await registry.deregister(conn, "new")
