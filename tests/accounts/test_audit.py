"""Every write by a person is on record: each route of the API that changes something, and commands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from menuwatch.accounts import audit
from menuwatch.cli import stores as stores_cli
from menuwatch.db.pool import Pool
from tests.api.conftest import app, archive, description, platforms, shop  # noqa: F401
from tests.api.shop import Shop, item
from tests.matching.match_rows import MatchRows

NOT_RECORDED = {
    ("POST", "/api/worker-registry/heartbeat"): "a machine's sign of life, every few seconds",
    **{
        ("POST", f"/api/worker-registry/{{worker_id}}/{part}"): "a machine's work: the queue has it"
        for part in (
            "claim",
            *(f"tasks/{{task_id}}/{end}" for end in ("start", "complete", "retry", "postpone", "fail")),
        )
    },
    ("POST", "/api/workers/k8s/scale"): "takes something that runs workers: the tests of scaling",
    ("POST", "/api/alerts/preview"): "it changes nothing",
    ("POST", "/api/schedules/preview"): "it changes nothing",
    ("POST", "/api/session"): "of a browser: test_sessions",
    ("DELETE", "/api/session"): "of a browser: test_sessions",
    ("POST", "/api/session/password"): "of a browser: test_sessions",
    ("POST", "/api/crawl/webhook/{secret}"): "a service's call, not a person's: the log has it",
}

Row = dict[str, Any]


async def _trail(pool: Pool) -> list[Row]:
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT id, actor, actor_kind, via, action, subject_kind, subject_id, details, request_id FROM audit_log ORDER BY id"
        )
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]


def _matched(database_url: str) -> dict[str, int]:
    """A pair of products to review, and two brands."""
    with psycopg.connect(database_url, autocommit=True) as conn:

        def run(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
            cursor = conn.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

        rows = MatchRows(run)
        a, b = rows.written("one", "two")
        rows.review(1, 2)
        rows.brand("Acme")
        rows.brand("Other")
    return {"a": a, "b": b}


async def _state(shop: Shop, database_url: str) -> Mapping[str, Any]:  # noqa: F811
    """One of everything that can be changed."""
    store = await shop.store()
    payload = await shop.crawl(store, 0, [item("a")])
    bad = await shop.archived(store, 1, b"{}", status="quarantined", reason="it shrank")
    await shop.execute(
        "INSERT INTO task_schedules (name, role, platform, interval_hours, priority, next_run_at)"
        " VALUES ('s', 'store_discovery', 'dutchie', 24, 0, now())"
    )
    for name in ("w1", "w2"):
        await shop.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, host, status) VALUES (%s, %s, 'h', 'active')",
            [name, name],
        )
    await shop.execute("UPDATE dispensaries SET state = 'AZ'")
    await shop.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9), ('127.0.0.1', 10)")
    await shop.execute("INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES ('h.test', 1, 1, 1, 1)")
    await shop.execute(
        "INSERT INTO task_history (id, role, platform, status, attempt, retry_count, max_retries, postpone_count, priority,"
        " created_at, completed_at, error_message, payload)"
        " VALUES (900, 'payload_fetch', 'dutchie', 'failed', 1, 0, 3, 0, 0, now(), now(), 'it broke', '{}')"
    )
    async with shop.pool.connection() as conn:
        (cause,) = await (await conn.execute("SELECT error_fingerprint('it broke')")).fetchone() or ("",)
    twin, extra = await shop.store("twin"), await shop.store("extra")
    await shop.execute("INSERT INTO locations (name) VALUES ('one'), ('two'), ('three')")
    await shop.execute(
        "INSERT INTO location_links (location_id, dispensary_id, confidence, reasons)"
        " VALUES (1, %s, 1, '[]'), (2, %s, 1, '[]'), (2, %s, 1, '[]')",
        [store, twin, extra],
    )
    return {
        "pair": _matched(database_url),
        "store": store,
        "payload": payload,
        "bad": bad,
        "worse": await shop.archived(store, 2, b"{}", status="quarantined", reason="it shrank again"),
        "twin": twin,
        "extra": extra,
        "failure": {"cause": cause, "role": "payload_fetch"},
    }


async def test_every_route_that_changes_something(shop: Shop, database_url: str) -> None:  # noqa: F811
    has = await _state(shop, database_url)
    store = has["store"]
    hook = {
        "kind": "webhook",
        "url": "https://example.com/hook-with-a-secret-inside",
        "secret": "hunter2-hunter2-hunter2",
    }
    register = {"state": "NY", "content": "number,holder\nA-1,Green Leaf LLC\n"}
    table: list[tuple[str, str, str, Any, str]] = [
        ("POST", "/api/licences/import", "/api/licences/import", register, "licences_imported"),
        *(
            ("POST", f"/api/locations/{{location_id}}/{act}", f"/api/locations/2/{act}", {"store_id": store}, action)
            for act, action in (
                ("link", "location_linked"), ("release", "location_decision_released"), ("unlink", "location_unlinked"),
            )
        ),
        ("POST", "/api/locations/{location_id}/merge", "/api/locations/3/merge", {"into": 2}, "locations_merged"),
        ("POST", "/api/stores/{store_id}/merge", f"/api/stores/{has['twin']}/merge", {"into": store}, "store_merged"),
        ("DELETE", "/api/stores/{store_id}", f"/api/stores/{has['extra']}", None, "store_removed"),
        ("POST", "/api/tasks/failures/mute", "/api/tasks/failures/mute", {**has["failure"], "reason": "known"}, "failure_muted"),
        ("POST", "/api/tasks/failures/unmute", "/api/tasks/failures/unmute", has["failure"], "failure_unmuted"),
        ("POST", "/api/tasks", "/api/tasks", {"role": "payload_fetch", "dispensary_id": store}, "task_enqueued"),
        ("POST", "/api/job-queue/enqueue", "/api/job-queue/enqueue", {"role": "store_discovery"}, "task_enqueued"),
        (
            "POST", "/api/job-queue/enqueue-batch", "/api/job-queue/enqueue-batch",
            {"tasks": [{"role": "product_discovery", "dispensary_id": store}]}, "tasks_enqueued",
        ),
        (
            "POST", "/api/job-queue/enqueue-state", "/api/job-queue/enqueue-state",
            {"state_code": "AZ", "role": "payload_fetch"}, "state_enqueued",
        ),
        ("PATCH", "/api/tasks/{task_id}", "/api/tasks/1", {"priority": 30}, "task_priority_changed"),
        ("POST", "/api/tasks/{task_id}/cancel", "/api/tasks/1/cancel", None, "task_cancelled"),
        ("POST", "/api/tasks/{task_id}/clone", "/api/tasks/1/clone", {"priority": 20}, "task_enqueued"),
        ("POST", "/api/tasks/{task_id}/retry", "/api/tasks/1/retry", None, "task_retried"),
        ("POST", "/api/tasks/recover-stale", "/api/tasks/recover-stale", None, "tasks_recovered"),
        ("POST", "/api/tasks/bulk/retry", "/api/tasks/bulk/retry", {"ids": [1]}, "tasks_retried"),
        ("POST", "/api/tasks/bulk/cancel", "/api/tasks/bulk/cancel", {"ids": [1]}, "tasks_cancelled"),
        ("POST", "/api/tasks/generate/resync", "/api/tasks/generate/resync", None, "resync_planned"),
        ("POST", "/api/tasks/generate/discovery", "/api/tasks/generate/discovery", None, "discovery_asked"),
        (
            "POST",
            "/api/tasks/migration/disable-old-schedules",
            "/api/tasks/migration/disable-old-schedules",
            None,
            "legacy_schedules_disabled",
        ),
        (
            "POST",
            "/api/tasks/migration/cancel-pending-crawl-jobs",
            "/api/tasks/migration/cancel-pending-crawl-jobs",
            None,
            "legacy_jobs_cancelled",
        ),
        (
            "POST",
            "/api/tasks/migration/create-resync-tasks",
            "/api/tasks/migration/create-resync-tasks",
            None,
            "legacy_resync_created",
        ),
        ("POST", "/api/tasks/migration/full-migrate", "/api/tasks/migration/full-migrate", None, "legacy_migrated"),
        (
            "POST", "/api/schedules", "/api/schedules",
            {"name": "az", "role": "payload_fetch", "interval_hours": 4}, "schedule_created",
        ),
        ("DELETE", "/api/schedules/{schedule_id}", "/api/schedules/2", None, "schedule_removed"),
        ("PUT", "/api/schedules/{schedule_id}", "/api/schedules/1", {"priority": 3}, "schedule_changed"),
        ("POST", "/api/schedules/pause", "/api/schedules/pause", None, "schedules_paused"),
        ("PUT", "/api/discovery", "/api/discovery", {"all_states": True}, "schedule_changed"),
        ("POST", "/api/schedules/resume", "/api/schedules/resume", None, "schedules_resumed"),
        ("POST", "/api/schedules/{schedule_id}/trigger", "/api/schedules/1/trigger", None, "schedule_triggered"),
        ("POST", "/api/worker-registry/register", "/api/worker-registry/register", {"host": "h"}, "worker_registered"),
        ("POST", "/api/worker-registry/{worker_id}/pause", "/api/worker-registry/w1/pause", None, "worker_told"),
        ("POST", "/api/worker-registry/{worker_id}/resume", "/api/worker-registry/w1/resume", None, "worker_told"),
        ("POST", "/api/worker-registry/{worker_id}/decommission", "/api/worker-registry/w1/decommission", None, "worker_told"),
        ("POST", "/api/worker-registry/deregister", "/api/worker-registry/deregister", {"worker_id": "w2"}, "worker_deregistered"),
        ("POST", "/api/payloads/{payload_id}/release", f"/api/payloads/{has['bad']}/release", None, "payload_released"),
        ("POST", "/api/payloads/{payload_id}/reject", f"/api/payloads/{has['worse']}/reject", None, "payload_rejected"),
        (
            "POST", "/api/quality/rules", "/api/quality/rules", {"measure": "null.price", "condition": "ignore"},
            "quality_rule_added",
        ),
        ("DELETE", "/api/quality/rules/{rule_id}", "/api/quality/rules/1", None, "quality_rule_removed"),
        (
            "PUT", "/api/quality/stores/{store_id}/point-of-sale", f"/api/quality/stores/{store}/point-of-sale",
            {"name": "Till"}, "point_of_sale_set",
        ),
        (
            "POST", "/api/stores", "/api/stores", {"menu_url": "https://dutchie.com/dispensary/another-one"}, "store_added",
        ),
        ("PATCH", "/api/stores/{store_id}", f"/api/stores/{store}", {"crawl_enabled": False}, "store_disabled"),
        ("POST", "/api/stores/{store_id}/resume", f"/api/stores/{store}/resume", None, "store_enabled"),
        ("POST", "/api/stores/{store_id}/crawl", f"/api/stores/{store}/crawl", None, "task_enqueued"),
        ("POST", "/api/stores/{store_id}/pause", f"/api/stores/{store}/pause", None, "store_disabled"),
        (
            "POST", "/api/proxies", "/api/proxies",
            {"proxies": ["http://u:hunter2@proxy.test:8080"], "force": True}, "proxies_imported",
        ),
        ("PATCH", "/api/proxies/{proxy_id}", "/api/proxies/1", {"city": "Tucson"}, "proxy_placed"),
        ("POST", "/api/proxies/bulk/{action}", "/api/proxies/bulk/tag", {"all": True, "new_tag": "a"}, "proxies_tagged"),
        ("POST", "/api/proxies/{proxy_id}/enable", "/api/proxies/1/enable", {"force": True}, "proxy_enabled"),
        ("POST", "/api/proxies/{proxy_id}/disable", "/api/proxies/1/disable", {"reason": "slow"}, "proxy_disabled"),
        ("POST", "/api/proxies/{proxy_id}/test", "/api/proxies/1/test", None, "proxies_tested"),
        ("DELETE", "/api/proxies/{proxy_id}", "/api/proxies/1", None, "proxy_removed"),
        ("PATCH", "/api/hosts/{host}", "/api/hosts/h.test", {"rate": 2}, "host_changed"),
        ("POST", "/api/hosts/{host}/pause", "/api/hosts/h.test/pause", {"reason": "they asked"}, "host_paused"),
        ("POST", "/api/hosts/{host}/resume", "/api/hosts/h.test/resume", None, "host_resumed"),
        ("POST", "/api/hosts/{host}/reset", "/api/hosts/h.test/reset", None, "host_reset"),
        ("DELETE", "/api/hosts/{host}", "/api/hosts/h.test", None, "host_forgotten"),
        (
            "POST", "/api/alerts", "/api/alerts",
            {"name": "r", "condition": "out_of_stock", "store_id": store, "channels": [hook]}, "alert_rule_created",
        ),
        ("PATCH", "/api/alerts/{rule_id}", "/api/alerts/1", {"channels": [hook]}, "alert_rule_changed"),
        ("POST", "/api/alerts/{rule_id}/mute", "/api/alerts/1/mute", {"until": None}, "alert_rule_unmuted"),
        ("POST", "/api/alerts/{rule_id}/test", "/api/alerts/1/test", None, "alert_tested"),
        ("POST", "/api/alerts/deliveries/{delivery_id}/replay", "/api/alerts/deliveries/1/replay", None, "alert_replayed"),
        ("DELETE", "/api/alerts/{rule_id}", "/api/alerts/1", None, "alert_rule_removed"),
        ("POST", "/api/users", "/api/users", {"name": "bob", "role": "viewer"}, "user_added"),
        ("PATCH", "/api/users/{user_id}", "/api/users/2", {"role": "operator"}, "user_role_changed"),
        ("POST", "/api/users/{user_id}/password", "/api/users/2/password", None, "user_password_reset"),
        ("DELETE", "/api/users/{user_id}", "/api/users/2", None, "user_removed"),
        ("POST", "/api/tokens", "/api/tokens", {"name": "mine", "scopes": ["read"]}, "token_created"),
        ("DELETE", "/api/tokens/{token_id}", "/api/tokens/2", None, "token_revoked"),
        ("POST", "/api/views", "/api/views", {"screen": "/tasks", "name": "Failed", "query": "q=x"}, "view_saved"),
        ("DELETE", "/api/views/{view_id}", "/api/views/1", None, "view_removed"),
        (
            "POST", "/api/matching/reviews/skip", "/api/matching/reviews/skip", has["pair"], "match_review_skipped",
        ),
        (
            "POST", "/api/matching/corrections", "/api/matching/corrections", {**has["pair"], "same": True}, "match_corrected",
        ),
        (
            "POST", "/api/matching/corrections/{correction_id}/withdraw", "/api/matching/corrections/1/withdraw", None,
            "match_correction_withdrawn",
        ),
        (
            "POST", "/api/matching/brands/spellings", "/api/matching/brands/spellings", {"spelling": "Akme", "brand_id": 1},
            "brand_spelling_moved",
        ),
        ("PATCH", "/api/matching/brands/{brand_id}", "/api/matching/brands/1", {"name": "Acme Farms"}, "brand_renamed"),
        ("POST", "/api/matching/brands/{brand_id}/merge", "/api/matching/brands/1/merge", {"into": 2}, "brand_merged"),
        ("POST", "/api/matching/brands/{brand_id}/unmerge", "/api/matching/brands/1/unmerge", None, "brand_unmerged"),
        ("POST", "/api/crawl/jobs", "/api/crawl/jobs", {"keywords": ["lamp"]}, "crawl_started"),
        ("POST", "/api/crawl/jobs/{job_id}/cancel", "/api/crawl/jobs/1/cancel", None, "crawl_cancelled"),
        ("POST", "/api/crawl/jobs/{job_id}/retry", "/api/crawl/jobs/1/retry", None, "crawl_retried"),
            ("POST", "/api/crawl/jobs/{job_id}/reparse", "/api/crawl/jobs/1/reparse", {}, "crawl_reparsed"),
    ]  # fmt: skip
    described = {
        (method.upper(), path)
        for path, methods in description()["paths"].items()
        for method in methods
        if method != "get"
    }
    assert {(method, path) for method, path, *_ in table} | NOT_RECORDED.keys() == described
    secrets = ["hunter2", "with-a-secret-inside"]
    for number, (method, pattern, path, body, action) in enumerate(table):
        if action == "alert_replayed":
            await shop.execute("UPDATE alert_deliveries SET status = 'delivered', delivered_at = now()")
        before = len(await _trail(shop.pool))
        answer = await shop.http.request(method, path, json=body, headers={"X-Request-Id": f"r{number}"})
        assert answer.status_code < 300, (method, path, answer.text)
        if answer.headers.get("cache-control") == "no-store":
            secrets += [value for value in answer.json().values() if isinstance(value, str)]
        (row,) = (await _trail(shop.pool))[before:]
        assert row["action"] == action, pattern
        assert (row["actor"], row["actor_kind"], row["via"], row["request_id"]) == (
            "tester",
            "token",
            "api",
            f"r{number}",
        )
        if "{" in pattern:
            assert row["subject_id"] is not None or row["details"], pattern
    assert len(secrets) == 5
    text = str(await _trail(shop.pool))
    assert [secret for secret in secrets if secret in text] == []


async def test_what_is_refused_is_not_on_record(shop: Shop) -> None:  # noqa: F811
    assert (await shop.http.post("/api/tasks/999/cancel")).status_code == 404
    assert (await shop.http.post("/api/tasks", json={"role": "payload_fetch", "dispensary_id": 999})).status_code == 400
    assert (await shop.http.delete("/api/users/1")).status_code == 409, "the last admin"
    assert await _trail(shop.pool) == []


async def test_looking_back(shop: Shop) -> None:  # noqa: F811
    for _ in range(3):
        await shop.http.post("/api/tasks/recover-stale")
    await shop.http.post("/api/tokens", json={"name": "x", "scopes": ["read"]})
    first = await shop.ask("/api/audit", params={"limit": 2})
    assert [row["action"] for row in first["items"]] == ["token_created", "tasks_recovered"]
    rest = await shop.ask("/api/audit", params={"limit": 2, "cursor": first["next"]})
    assert (len(rest["items"]), rest["next"]) == (2, None)
    assert [one["id"] for one in (await shop.ask("/api/audit", params={"action": "token_created"}))["items"]] == [4]
    assert len((await shop.ask("/api/audit", params={"actor": "TESTER"}))["items"]) == 4
    assert (await shop.ask("/api/audit", params={"actor": "somebody"}))["items"] == []
    assert (await shop.ask("/api/audit", params={"subject_kind": "token", "subject_id": "2"}))["items"][0]["id"] == 4
    assert (await shop.ask("/api/audit", params={"since": "2999-01-01T00:00:00Z"}))["items"] == []
    for wrong in (
        {"action": "user added"},
        {"subject_kind": "Token"},
        {"since": "2026-11-21T00:00:00Z", "until": "2026-11-20T00:00:00Z"},
    ):
        answer = await shop.http.get("/api/audit", params=wrong)
        assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, list(wrong)[-1])


async def test_a_command_is_on_record(
    database_url: str, pool: Pool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody at a terminal, whatever the environment says of who that is."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "somebody-else")
    with audit.actor_context(audit.Actor.at_terminal()):
        await asyncio.to_thread(stores_cli.add, ["https://dutchie.com/dispensary/one"])
    (row,) = await _trail(pool)
    assert (row["action"], row["actor_kind"], row["via"], row["subject_kind"]) == ("store_added", "cli", "cli", "store")
    assert row["actor"].startswith("cli:")
    assert "somebody-else" not in row["actor"]
