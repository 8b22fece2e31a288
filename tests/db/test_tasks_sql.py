"""The queue from other people's SQL, and the constraints under it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from menuwatch.core.errors import Permanent
from menuwatch.db.pool import Pool
from menuwatch.pipeline.store_discovery import searched_state
from menuwatch.queue.model import Task
from tests.db.queue_calls import claim


@pytest.fixture
def sync(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


def test_plain_sql_of_other_people(sync: psycopg.Connection[Any]) -> None:
    row = sync.execute(
        "INSERT INTO worker_tasks (role, dispensary_id, priority, payload) VALUES ('product_resync', 7, 10, '{\"a\": 1}')"
        " RETURNING id, role, status, priority, max_retries, payload"
    ).fetchone()
    assert row is not None
    assert row[1:] == ("payload_fetch", "pending", 10, 3, {"a": 1})
    again = sync.execute(
        "INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 7) RETURNING id, priority"
    ).fetchone()
    assert again == (row[0], 10)
    claimed = sync.execute("SELECT id, status, worker_id FROM claim_task('product_resync', 'psql')").fetchall()
    assert claimed == [(row[0], "claimed", "psql")]
    assert sync.execute("SELECT id FROM claim_task(NULL, 'psql')").fetchall() == []
    assert sync.execute("SELECT recover_stale_tasks(10)").fetchone() == (0,)
    columns = [column.name for column in sync.execute("SELECT * FROM worker_tasks").description or ()]
    assert columns[:19] == [
        "id", "role", "dispensary_id", "platform", "status", "priority", "scheduled_for", "worker_id",
        "claimed_at", "started_at",
        "completed_at", "last_heartbeat_at", "result", "error_message", "retry_count", "max_retries", "payload",
        "created_at", "updated_at",
    ]  # fmt: skip


def test_plain_sql_keeps_every_payload_to_be_refreshed(sync: psycopg.Connection[Any]) -> None:
    sync.execute(
        "INSERT INTO worker_tasks (role, dispensary_id, payload) SELECT 'product_refresh', 1, jsonb_build_object('payload_id', n)"
        " FROM generate_series(1, 3) n"
    )
    assert sync.execute("SELECT count(*) FROM worker_tasks WHERE status = 'pending'").fetchone() == (3,)


def test_plain_sql_may_say_when_a_task_was_created(sync: psycopg.Connection[Any]) -> None:
    for store, age in ((1, 1), (2, 3), (3, 2)):
        sync.execute(
            "INSERT INTO worker_tasks (role, dispensary_id, created_at)"
            " VALUES ('payload_fetch', %s, now() - make_interval(hours => %s))",
            (store, age),
        )
    order = sync.execute("SELECT dispensary_id FROM claim_tasks(NULL, 'w', 3)").fetchall()
    assert order == [(2,), (3,), (1,)]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "INSERT INTO worker_tasks (role) VALUES ('dance')",
            'role "dance" does not exist: it is one of store_discovery, ',
        ),
        ("INSERT INTO worker_tasks (role) VALUES (NULL)", "does not exist"),
        ("INSERT INTO worker_tasks (role, status) VALUES ('payload_fetch', 'completed')", "starts as pending"),
        ("INSERT INTO worker_tasks (role, priority) VALUES ('payload_fetch', 5000)", "task_live_priority"),
        ("INSERT INTO worker_tasks (role, max_retries) VALUES ('payload_fetch', -1)", "task_live_retries"),
        ("INSERT INTO worker_tasks (role, payload) VALUES ('payload_fetch', '[1]')", "task_live_payload"),
        ("SELECT claim_task('dance', 'w')", "product_resync"),
        ("SELECT claim_task('payload_fetch', '')", "needs the id of a worker"),
        ("SELECT recover_stale_tasks(-1)", "must not be negative"),
        ("INSERT INTO task_live (role, state) VALUES ('payload_fetch', 'a')", "task_live_owner"),
        ("INSERT INTO task_live (role, worker_id) VALUES ('payload_fetch', 'w')", "task_live_owner"),
        ("INSERT INTO task_live (role, started_at) VALUES ('payload_fetch', now())", "task_live_running"),
        ("INSERT INTO task_live (role, state) VALUES ('payload_fetch', 's')", "task_live_scheduled"),
        ("INSERT INTO task_live (role, state) VALUES ('payload_fetch', 'p')", "task_live_parked"),
        ("INSERT INTO task_live (role, state) VALUES ('payload_fetch', 'x')", "task_live_state"),
    ],
)
def test_what_breaks_a_rule_is_refused(sync: psycopg.Connection[Any], statement: Any, says: str) -> None:
    with pytest.raises(psycopg.Error, match=says):
        sync.execute(statement)
    assert sync.execute("SELECT count(*) FROM worker_tasks").fetchone() == (0,)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ("'completed', NULL, 'w', now(), now()", None),
        ("'completed', 'but why', 'w', now(), now()", "task_history_reason"),
        ("'failed', NULL, 'w', now(), now()", "task_history_reason"),
        ("'completed', NULL, NULL, now(), now()", "task_history_worked"),
        ("'completed', NULL, 'w', now(), NULL", "task_history_worked"),
        ("'completed', NULL, 'w', now(), now() - interval '1 s'", "task_history_order"),
        ("'running', 'x', 'w', now(), now()", "task_history_status"),
    ],
)
def test_history_is_consistent(sync: psycopg.Connection[Any], values: str, says: str | None) -> None:
    statement: Any = (
        "INSERT INTO task_history (id, created_at, priority, attempt, retry_count, max_retries, postpone_count, role,"
        " platform, payload,"
        " completed_at, status, error_message, worker_id, claimed_at, started_at)"
        f" VALUES (1, now(), 0, 1, 0, 3, 0, 'payload_fetch', 'dutchie', '{{}}', now(), {values})"
    )
    if says is None:
        sync.execute(statement)
    else:
        with pytest.raises(psycopg.errors.CheckViolation, match=says):
            sync.execute(statement)


def test_two_active_tasks_of_a_store_are_impossible(sync: psycopg.Connection[Any]) -> None:
    insert: Any = (
        "INSERT INTO task_live (role, dispensary_id, state, worker_id, claimed_at) VALUES (%s, 1, 'a', 'w', now())"
    )
    sync.execute(insert, ("payload_fetch",))
    with pytest.raises(psycopg.errors.UniqueViolation, match="task_active"):
        sync.execute(insert, ("product_refresh",))


@pytest.mark.parametrize(
    ("payload", "state"),
    [
        ('{"state_code": "AZ"}', "AZ"),
        ('{"state": "AZ"}', "AZ"),
        ('{"state": "AZ", "state_code": "AZ"}', "AZ"),
        ('{"city": "Phoenix"}', None),
    ],
)
async def test_a_search_for_stores_names_its_state_either_way(pool: Pool, payload: str, state: str | None) -> None:
    assert searched_state(await _inserted_discovery(pool, payload)) == state


@pytest.mark.parametrize(
    ("payload", "says"),
    [('{"state": "AZ", "state_code": "NV"}', "'NV'.*omit one"), ('{"state_code": 4}', "state_code .*must be a string")],
)
async def test_a_search_for_stores_with_a_wrong_state_fails(pool: Pool, payload: str, says: str) -> None:
    task = await _inserted_discovery(pool, payload)
    with pytest.raises(Permanent, match=says):
        searched_state(task)


async def _inserted_discovery(pool: Pool, payload: str) -> Task:
    """The task as its worker gets it, inserted with plain SQL."""
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO worker_tasks (role, payload) VALUES ('store_discovery', %s::jsonb)", [payload])
    (task,) = await claim(pool)
    return task
