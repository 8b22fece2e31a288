"""What the hot statements touch when there is much of everything and the planner knows nothing of it.

The statistics say that the table is empty, as after a bulk load; a plan that scans then costs a hundred thousand rows, one that probes
costs a handful. Counted are the rows and pages that PostgreSQL itself says it read.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

from menuwatch.db.pool import Connection, connect
from menuwatch.queue import store as tasks
from menuwatch.queue.claim import Claim, cycle
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask, Role, Task
from tests.conftest import create_database, drop_database

BACKLOG = 120_000
STORES = 3_000
BUSY = 400
HISTORY = 60_000
TABLES = ("task_live", "task_history")

_FILL = f"""
ALTER TABLE task_live SET (autovacuum_enabled = off);
-- Ready: without a store, and one head per store and role; parked behind them; scheduled for later; running.
INSERT INTO task_live (role, priority, created_at)
  SELECT (ARRAY['payload_fetch', 'product_refresh'])[1 + g % 2], g % 3 * 10, now() - make_interval(secs => g)
    FROM generate_series(1, {BACKLOG // 2}) g;
INSERT INTO task_live (role, dispensary_id, state, worker_id, claimed_at, attempt, created_at)
  SELECT 'payload_fetch', s, CASE WHEN s <= {BUSY} THEN 'a' ELSE 'r' END, CASE WHEN s <= {BUSY} THEN 'busy' END,
         CASE WHEN s <= {BUSY} THEN now() END, (s <= {BUSY})::integer, now() - make_interval(hours => 2)
    FROM generate_series(1, {STORES}) s;
INSERT INTO task_live (role, dispensary_id, state, created_at)
  SELECT 'product_refresh', s, 'r', now() - make_interval(hours => 3) FROM generate_series(1, {STORES}) s;
INSERT INTO task_live (role, dispensary_id, state, priority)
  SELECT 'payload_fetch', 1 + g % {STORES}, 'p', g % 20 FROM generate_series(1, {BACKLOG // 4}) g;
INSERT INTO task_live (role, dispensary_id, state, scheduled_for)
  SELECT 'payload_fetch', 1 + g % {STORES}, 's', now() + make_interval(hours => 1 + g % 50) FROM generate_series(1, {BACKLOG // 4}) g;
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,
                          postpone_count, role, platform, status, worker_id, payload)
  SELECT nextval('task_ids'), now(), now(), now(), now(), 0, 1, 0, 3, 0, 'payload_fetch', 'dutchie', 'completed', 'w', '{{}}'
    FROM generate_series(1, {HISTORY});
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read: whole scans of a table, index entries, rows fetched, pages."""

    scans: int
    entries: int
    rows: int
    pages: int


@pytest.fixture(scope="module")
def crowded(server_url: str, template: str) -> Iterator[str]:
    """A database with much in the queue and in its history, and with statistics from when it was empty."""
    name = f"plans_{os.getpid()}"
    url = create_database(server_url, name, template)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("ANALYZE task_live")
        conn.execute("ANALYZE task_history")
        # Pages that a vacuum or an analyze in the background reads would count as the statement's.
        for (table,) in conn.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relname ~ '^task_(live|history)'"
        ).fetchall():
            conn.execute(sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = false)").format(sql.SQL(table)))
        conn.execute(_FILL)
        ((said,),) = conn.execute("SELECT reltuples FROM pg_class WHERE relname = 'task_live'").fetchall()
        assert said <= 0, "the planner must not know"
    yield url
    drop_database(server_url, name)


@pytest.fixture
async def conn(crowded: str) -> Any:
    opened = await connect(crowded)
    yield opened
    await opened.close()


async def _counters(watch: Connection) -> Read:
    cursor = await watch.execute(
        "SELECT sum(coalesce(s.seq_scan, 0))::bigint, sum(coalesce(i.entries, 0))::bigint,"
        "       sum(coalesce(s.idx_tup_fetch, 0) + coalesce(s.seq_tup_read, 0))::bigint,"
        "       sum(io.heap_blks_read + io.heap_blks_hit + coalesce(io.idx_blks_read, 0) + coalesce(io.idx_blks_hit, 0))::bigint"
        "  FROM pg_stat_user_tables s JOIN pg_statio_user_tables io USING (relid)"
        "  LEFT JOIN LATERAL (SELECT sum(x.idx_tup_read) AS entries FROM pg_stat_user_indexes x WHERE x.relid = s.relid) i ON true"
        " WHERE s.relname LIKE 'task\\_live' OR s.relname LIKE 'task\\_history%%'"
    )
    row = await cursor.fetchone()
    assert row is not None
    return Read(scans=row[0], entries=row[1], rows=row[2], pages=row[3])


async def _cost(url: str, conn: Connection, work: Callable[[], Awaitable[Any]]) -> tuple[Any, Read]:
    """Does the work, and says what it read. The counters are flushed by the connection that works, and read by another."""
    watch = await connect(url)
    try:
        await conn.execute("SELECT pg_stat_force_next_flush()")
        before = await _counters(watch)
        answer = await work()
        await conn.execute("SELECT pg_stat_force_next_flush()")
        after = await _counters(watch)
    finally:
        await watch.close()
    return answer, Read(
        scans=after.scans - before.scans,
        entries=after.entries - before.entries,
        rows=after.rows - before.rows,
        pages=after.pages - before.pages,
    )


def _modest(read: Read, *, per: int) -> None:
    """A handful of probes for each of so many tasks: an index descent is some four pages, a plan gone wrong reads all."""
    assert read.scans == 0, read
    assert read.entries <= 60 * per + 100, read
    assert read.rows <= 60 * per + 100, read
    assert read.pages <= 250 * per + 500, read


ROLES = {"one role": [Role.PAYLOAD_FETCH], "two roles": [Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH], "any": None}


@pytest.mark.parametrize("n", [1, 10])
@pytest.mark.parametrize("roles", ROLES)
async def test_a_claim_touches_what_it_claims(crowded: str, conn: Connection, roles: str, n: int) -> None:
    claimed, read = await _cost(crowded, conn, lambda: tasks.claim(conn, "w", ROLES[roles], n))
    assert len(claimed) == n
    _modest(read, per=n)


@pytest.mark.parametrize("verb", ["done", "fail", "retry", "postpone", "release"])
async def test_an_end_touches_what_it_ends(crowded: str, conn: Connection, verb: Any) -> None:
    """Of stores with parked tasks behind, one of which moves up."""
    cursor = await conn.execute(
        "UPDATE task_live SET worker_id = %s WHERE id IN (SELECT id FROM task_live WHERE state = 'a' AND worker_id = 'busy' LIMIT 10)"
        " RETURNING id, attempt",
        (verb,),
    )
    ends = [Ending(task_id=row[0], attempt=row[1], verb=verb, reason="x", wait=60.0) for row in await cursor.fetchall()]
    ended, read = await _cost(crowded, conn, lambda: tasks.finish(conn, verb, ends))
    assert len(ended) == 10
    _modest(read, per=10)


async def test_a_cycle_touches_what_it_ends_and_claims(crowded: str, conn: Connection) -> None:
    held: list[Task] = await tasks.claim(conn, "c", None, 10)
    ends = [Ending(task_id=task.id, attempt=task.attempt, verb="done") for task in held]
    then = [
        (task.id, NewTask(role=Role.PRODUCT_REFRESH, dispensary_id=7 * n + 1_000, unique=False))
        for n, task in enumerate(held)
    ]
    wanted = Claim(roles=list(Role), n=10, fair=2)
    cycled, read = await _cost(crowded, conn, lambda: cycle(conn, "c", ends, then, wanted))
    assert (len(cycled.claimed), cycled.lost) == (10, frozenset())
    _modest(read, per=30)


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("store", ["none", "busy", "idle", "new"])
async def test_an_enqueue_touches_what_it_adds(crowded: str, conn: Connection, store: str, unique: bool) -> None:
    first = {"none": None, "busy": 1, "idle": 2_000, "new": 900_000 + unique * 1_000}[store]
    new = [
        NewTask(
            role=Role.PAYLOAD_FETCH,
            dispensary_id=None if first is None else first + n,
            payload={"n": n, "unique": unique},
            priority=1,
            unique=unique,
        )
        for n in range(50)
    ]
    made, read = await _cost(crowded, conn, lambda: tasks.enqueue(conn, new))
    assert len(made) == 50
    _modest(read, per=50)


async def test_what_runs_all_the_time_touches_only_what_is_active(crowded: str, conn: Connection) -> None:
    cursor = await conn.execute(
        "SELECT id, attempt, worker_id FROM task_live WHERE state = 'a' AND worker_id = 'busy' LIMIT 20"
    )
    held = [tasks.Held(task_id=row[0], attempt=row[1]) for row in await cursor.fetchall()]
    owned, read = await _cost(crowded, conn, lambda: tasks.heartbeat(conn, "busy", held))
    assert len(owned) == 20
    _modest(read, per=20)
    found, read = await _cost(crowded, conn, lambda: tasks.recover_stale(conn, 10))
    assert found == 0
    _modest(read, per=BUSY)
    none, read = await _cost(crowded, conn, lambda: cycle(conn, "w", claim=Claim(roles=[Role.ANALYTICS_REFRESH], n=1)))
    assert none.next_due is not None
    _modest(read, per=1)
    cancelled, read = await _cost(crowded, conn, lambda: tasks.cancel(conn, [held[0].task_id]))
    assert len(cancelled) == 1
    _modest(read, per=1)


async def test_what_comes_due_touches_what_has_come_due(crowded: str, conn: Connection) -> None:
    await conn.execute(
        "UPDATE task_live SET scheduled_for = now()"
        " WHERE id IN (SELECT id FROM task_live WHERE state = 's' ORDER BY id DESC LIMIT 100)"
    )
    (task,), read = await _cost(crowded, conn, lambda: tasks.claim(conn, "w", [Role.PAYLOAD_FETCH], 1))
    assert task.role == Role.PAYLOAD_FETCH
    _modest(read, per=100)


def test_the_measure_sees_a_scan() -> None:
    with pytest.raises(AssertionError):
        _modest(Read(scans=1, entries=0, rows=BACKLOG, pages=3_000), per=1)
    with pytest.raises(AssertionError):
        _modest(Read(scans=0, entries=BACKLOG, rows=0, pages=900), per=50)
