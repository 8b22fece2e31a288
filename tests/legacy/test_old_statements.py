"""Statements and calls that programs of the former system make, on a fresh installation: the effect of each, or the replacement that
its error names. docs/how-to/coming-from-the-old-system.md says the same in words."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from menuwatch.stores import store as stores
from tests.api.conftest import app, archive, platforms, shop  # noqa: F401
from tests.api.shop import Shop, at, item

STORE = """
INSERT INTO dispensaries (name, slug, city, state, menu_url, platform_dispensary_id)
VALUES ('Green Leaf', 'green-leaf', 'Phoenix', 'AZ', 'https://dutchie.com/embedded-menu/green-leaf', '5f0000000000000000000001')
"""
FAILED = f"""{STORE};
INSERT INTO worker_tasks (role, dispensary_id, max_retries) VALUES ('product_resync', 1, 0);
SELECT claim_task('payload_fetch', 'w1');
UPDATE task_live SET claimed_at = now() - interval '1 hour', started_at = now() - interval '1 hour', last_heartbeat_at = NULL;
SELECT recover_stale_tasks(10)
"""
"""Task 1 is out of retries, because its worker fell silent."""
JOB = """
INSERT INTO crawl_jobs (site, provider, keywords, max_pages, next_submit_after, next_submission_at, created_at)
VALUES ('s', 'p', '{lamp}', 1, now() - interval '1 minute', now() + interval '1 hour', now())
"""
PAGE = f"{JOB}; INSERT INTO crawl_queue (job_id, url, url_type, keyword) VALUES (1, 'https://a/1', 'product', 'lamp')"

WORK: list[tuple[str, str, str, str, list[tuple[Any, ...]]]] = [
    # name, before, statement, query, what the query then answers
    ("a store by one name", "", STORE, "SELECT id, name_raw, platform, crawl_enabled FROM dispensaries",
     [(1, "Green Leaf", "dutchie", True)]),
    ("former times of a store", STORE,
     "UPDATE dispensaries SET last_crawled_at = '2026-03-01Z' WHERE id = 1",
     "SELECT last_crawl_at = '2026-03-01Z', last_fetch_at FROM dispensaries WHERE last_crawl_at < now() AND last_fetch_at IS NULL",
     [(True, None)]),
    ("disable a store", STORE, "UPDATE dispensaries SET crawl_enabled = false WHERE state = 'AZ'",
     "SELECT crawl_enabled FROM dispensaries", [(False,)]),
    ("a task under the former role", STORE,
     "INSERT INTO worker_tasks (role, dispensary_id, priority) VALUES ('product_resync'::task_role, 1, 10)",
     "SELECT role, dispensary_id, status, priority FROM worker_tasks WHERE status = 'pending'::task_status",
     [("payload_fetch", 1, "pending", 10)]),
    ("an array of the former type", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')",
     "SELECT id FROM worker_tasks WHERE status = ANY (ARRAY['pending', 'failed']::task_status[])",
     "SELECT count(*) FROM worker_tasks WHERE role = ANY (ARRAY['analytics_refresh']::task_role[])", [(1,)]),
    ("the view of capacity", STORE, "INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 1)",
     "SELECT pending_tasks, ready_tasks FROM v_worker_capacity WHERE role = 'payload_fetch'", [(1, 1)]),
    ("claim_task", f"{STORE}; INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 1)",
     "SELECT claim_task('product_resync', 'resync-1')",
     "SELECT id, status, worker_id FROM worker_tasks WHERE worker_id = 'resync-1'", [(1, "claimed", "resync-1")]),
    ("recover_stale_tasks", FAILED, "SELECT recover_stale_tasks(10)", "SELECT status FROM worker_tasks", [("failed",)]),
    ("generate_resync_tasks", STORE, "SELECT generate_resync_tasks(6, CURRENT_DATE)",
     "SELECT role, dispensary_id, priority FROM worker_tasks", [("payload_fetch", 1, 0)]),
    # A retried task is a new one; the failed one stays in the history.
    ("retry failed tasks", FAILED,
     ("UPDATE worker_tasks SET status = 'pending', worker_id = NULL, claimed_at = NULL, started_at = NULL, retry_count = 0,"
     " error_message = NULL WHERE status = 'failed'"),
     "SELECT id, role, dispensary_id, status, priority, max_retries FROM worker_tasks ORDER BY id",
     [(1, "payload_fetch", 1, "failed", 0, 0), (2, "payload_fetch", 1, "pending", 10, 0)]),
    ("retry failed tasks twice", f"{FAILED}; UPDATE worker_tasks SET status = 'pending' WHERE status = 'failed'",
     "UPDATE worker_tasks SET status = 'pending' WHERE status = 'failed'",
     "SELECT count(*) FROM worker_tasks WHERE status = 'pending'", [(1,)]),
    ("a heartbeat", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh'); SELECT claim_task(NULL, 'w')",
     "UPDATE worker_tasks SET last_heartbeat_at = now(), updated_at = now() WHERE id = 1 AND worker_id = 'w'",
     "SELECT status, last_heartbeat_at > claimed_at FROM worker_tasks", [("claimed", True)]),
    ("cancel waiting tasks", f"{STORE}; INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 1)",
     "UPDATE worker_tasks SET status = 'cancelled', error_message = 'no longer wanted' WHERE status = 'pending'",
     "SELECT status, error_message FROM worker_tasks", [("cancelled", "no longer wanted")]),
    # The lower one is behind the head of its store: raised above it, it is claimed first.
    ("a task made urgent",
     ("INSERT INTO worker_tasks (role, dispensary_id, priority, payload) VALUES ('product_refresh', 1, 5, '{\"payload_id\": 1}'),"
     " ('product_refresh', 1, 0, '{\"payload_id\": 2}')"),
     "UPDATE worker_tasks SET priority = 50 WHERE payload ->> 'payload_id' = '2'",
     "SELECT id, priority FROM claim_task(NULL, 'w')", [(2, 50)]),
    ("a task brought forward",
     "INSERT INTO worker_tasks (role, dispensary_id, scheduled_for) VALUES ('payload_fetch', 1, now() + interval '1 day')",
     "UPDATE worker_tasks SET scheduled_for = NULL WHERE dispensary_id = 1",
     "SELECT id FROM claim_task(NULL, 'w')", [(1,)]),
    ("old tasks deleted", FAILED, "DELETE FROM worker_tasks WHERE status IN ('completed', 'failed')",
     "SELECT count(*) FROM worker_tasks", [(0,)]),
    ("a waiting task deleted", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')", "DELETE FROM worker_tasks",
     "SELECT status, error_message, (SELECT count(*) FROM task_live) FROM worker_tasks", [("cancelled", "deleted", 0)]),
    ("a page of a search crawl", JOB,
     "INSERT INTO crawl_queue (job_id, url, url_type, keyword) VALUES (1, 'https://a/1', 'product', 'lamp')",
     ("SELECT q.priority, q.status, q.retry_count, q.created_at = now(), q.next_attempt_at <= now(), j.next_submission_at <= now()"
     " FROM crawl_queue q JOIN crawl_jobs j ON j.id = q.job_id"),
     [(2, "pending", 0, False, True, True)]),
    ("a page without a keyword", JOB,
     "INSERT INTO crawl_queue (job_id, url, url_type, priority, next_attempt_at) VALUES (1, 'https://a/1', 'search', 1, NULL)",
     "SELECT keyword, priority FROM crawl_queue", [("lamp", 1)]),
    ("a page deleted", PAGE, "DELETE FROM crawl_queue WHERE status = 'pending'", "SELECT count(*) FROM crawl_queue", [(0,)]),
]  # fmt: skip

REFUSED: list[tuple[str, str, str, str]] = [
    # name, before, statement, what its error names
    ("last_crawl_at by hand", STORE, "UPDATE dispensaries SET last_crawl_at = now() WHERE id = 1", "INSERT INTO worker_tasks"),
    ("a store without a name", "", "INSERT INTO dispensaries (slug) VALUES ('x')", '"name"'),
    ("an unknown role", "", "INSERT INTO worker_tasks (role) VALUES ('sync_all')", "product_resync"),
    ("an unknown role, cast", "", "SELECT 'sync_all'::task_role", "task_role"),
    ("a task that runs elsewhere", (f"{STORE}; INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 1);"
     "SELECT claim_task(NULL, 'w')"),
     "UPDATE worker_tasks SET status = 'pending', worker_id = NULL WHERE status = 'claimed'", "recover_stale_tasks(minutes)"),
    ("claim by UPDATE", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')",
     "UPDATE worker_tasks SET status = 'claimed', worker_id = 'w', claimed_at = now()", "claim_task(role, worker_id)"),
    ("completion by UPDATE", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh'); SELECT claim_task(NULL, 'w')",
     "UPDATE worker_tasks SET status = 'completed', completed_at = now(), result = '{}'", "worker_complete"),
    ("a result by UPDATE", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh'); SELECT claim_task(NULL, 'w')",
     "UPDATE worker_tasks SET result = '{}'", "worker_complete"),
    ("another role for a task", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')",
     "UPDATE worker_tasks SET role = 'store_discovery'", "insert a new one"),
    ("a task delayed", "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')",
     "UPDATE worker_tasks SET scheduled_for = now() + interval '1 day'", "cancel the task and insert a new one"),
    ("a product inserted", "", ("INSERT INTO store_products (dispensary_id, provider, provider_product_id, name_raw)"
     " VALUES (1, 'dutchie', 'p', 'x')"), "menuwatch migrate-legacy import"),
    ("a product upserted", "", ("INSERT INTO store_products (dispensary_id, provider, provider_product_id, name_raw) VALUES"
     " (1, 'd', 'p', 'x') ON CONFLICT (dispensary_id, provider, provider_product_id) DO UPDATE SET name_raw = 'x'"), "ON CONFLICT"),
    ("a task upserted", "", ("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 1)"
     " ON CONFLICT (id) DO NOTHING"), "ON CONFLICT"),
    ("a product updated", "", "UPDATE store_products SET is_in_stock = false, stock_status = 'oos' WHERE consecutive_misses >= 3",
     "derived from crawls"),
    ("a product deleted", "", "DELETE FROM store_products WHERE dispensary_id = 1", "menuwatch rebuild"),
    ("a snapshot inserted", "", "INSERT INTO store_product_snapshots (dispensary_id) VALUES (1)", "menuwatch migrate-legacy import"),
    ("a page of a job that is over", f"{JOB}; UPDATE crawl_jobs SET status = 'completed', next_submission_at = NULL",
     "INSERT INTO crawl_queue (job_id, url, url_type, keyword) VALUES (1, 'https://a/2', 'product', 'lamp')", "POST /api/crawl/jobs"),
    ("a page submitted by hand", PAGE, "UPDATE crawl_queue SET status = 'submitted', submitted_at = now()",
     "The server submits pages"),
    ("failed pages retried", f"{PAGE}; UPDATE crawl_queue SET status = 'failed', completed_at = now()",
     "UPDATE crawl_queue SET status = 'pending', retry_count = 0 WHERE status = 'failed'", "menuwatch crawl retry"),
    ("a page due now", PAGE, "UPDATE crawl_queue SET next_attempt_at = NULL", "/api/crawl/jobs/<job>/retry"),
]  # fmt: skip


def names(cases: list[Any]) -> list[str]:
    return [case[0] for case in cases]


@pytest.mark.parametrize(("name", "before", "statement", "query", "expected"), WORK, ids=names(WORK))
def test_a_former_statement_works(
    database_url: str, name: str, before: str, statement: str, query: str, expected: list[tuple[Any, ...]]
) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        if before:
            conn.execute(before.encode())
        conn.execute(statement.encode())
        assert conn.execute(query.encode()).fetchall() == expected


@pytest.mark.parametrize(("name", "before", "statement", "named"), REFUSED, ids=names(REFUSED))
def test_a_former_statement_names_its_replacement(
    database_url: str, name: str, before: str, statement: str, named: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        if before:
            conn.execute(before.encode())
        with pytest.raises(psycopg.Error) as refused:
            conn.execute(statement.encode())
        assert named in f"{refused.value} {refused.value.diag.message_hint}"


def test_a_deleted_task_is_no_longer_in_the_counts(database_url: str) -> None:
    """Days that are over are counted once; a deletion has its day counted again."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(FAILED.encode())
        conn.execute("INSERT INTO task_days (day) SELECT (now() AT TIME ZONE 'UTC')::date")
        conn.execute("DELETE FROM worker_tasks")
        assert conn.execute("SELECT count(*) FROM task_days").fetchone() == (0,)


async def test_last_fetch_is_the_last_that_succeeded(shop: Shop) -> None:  # noqa: F811
    store = await shop.store()
    async with shop.pool.connection() as conn:
        await stores.attempted(conn, store, at(1), None)
        await stores.attempted(conn, store, at(2), "HTTP 500")
        row = await (await conn.execute("SELECT last_fetch_at, last_attempt_at FROM dispensaries")).fetchone()
    assert row == (at(1), at(2))


CALLS: list[tuple[str, str, dict[str, Any] | None, int, str]] = [
    # method, path, body, status, a field of the answer
    ("GET", "/api/tasks?role=product_resync&status=pending", None, 200, "items"),
    ("GET", "/api/tasks/counts", None, 200, "pending"),
    ("GET", "/api/tasks/capacity", None, 200, ""),
    ("GET", "/api/tasks/capacity/product_resync", None, 200, "workers_needed"),
    ("POST", "/api/tasks/recover-stale", {"threshold_minutes": 10}, 200, ""),
    ("POST", "/api/tasks/generate/resync", {"batches_per_day": 6}, 200, ""),
    ("POST", "/api/tasks/generate/discovery", {}, 200, ""),
    ("GET", "/api/tasks/role/product_resync/last-completion", None, 200, ""),
    ("GET", "/api/tasks/role/payload_fetch/recent", None, 200, ""),
    ("GET", "/api/tasks/store/1/active", None, 200, ""),
    ("POST", "/api/job-queue/enqueue", {"role": "product_resync", "dispensary_id": 1}, 200, ""),
    ("POST", "/api/job-queue/enqueue-state", {"state_code": "AZ", "role": "payload_fetch"}, 200, ""),
    ("GET", "/api/schedules", None, 200, ""),
    ("GET", "/api/payloads", None, 200, ""),
    ("GET", "/api/payloads/store/1", None, 200, ""),
    ("GET", "/api/payloads/store/1/latest", None, 200, ""),
    ("GET", "/api/payloads/1", None, 200, ""),
    ("GET", "/api/payloads/1/data", None, 200, "pages"),
    ("GET", "/api/payloads/store/1/diff?from=1&to=2", None, 200, "diff"),
    ("GET", "/api/worker-registry", None, 200, ""),
    ("GET", "/api/worker-registry/roles", None, 200, ""),
    ("GET", "/api/workers/k8s/replicas", None, 200, ""),
    ("GET", "/api/tasks/migration/status", None, 200, ""),
    ("POST", "/api/tasks/migration/disable-old-schedules", {}, 200, ""),
    ("POST", "/api/tasks/migration/full-migrate", {}, 200, ""),
]


async def test_former_calls(shop: Shop) -> None:  # noqa: F811
    """One installation, all calls, each with its status and a field that programs read."""
    store = await shop.store(state="AZ")
    assert store == 1
    await shop.crawl(store, 0, [item("a")])
    await shop.crawl(store, 4, [item("a", options=(("1/8oz", 30, 5),))])
    wrong = []
    for method, path, body, status, field in CALLS:
        answer = await shop.http.request(method, path, json=body)
        if answer.status_code // 100 != status // 100 or field not in answer.text:
            wrong.append((method, path, answer.status_code, answer.text[:200]))
    assert wrong == []
    diff = (await shop.http.get("/api/payloads/store/1/diff?from=1&to=2")).json()
    assert diff["success"] is True
    assert diff["diff"].items() >= {"added": 0, "removed": 0, "priceChanges": 1, "stockChanges": 0}.items()


async def test_former_calls_ask_for_a_login(shop: Shop) -> None:  # noqa: F811
    """The former API took calls from anyone; here each needs a token (decision 0015)."""
    answer = await shop.http.post("/api/tasks/recover-stale", json={}, headers={"authorization": ""})
    assert answer.status_code == 401
