"""The queue over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.api.shop import Shop


async def _add(shop: Shop, status: int = 201, **body: Any) -> Any:
    return await shop.ask("/api/tasks", method="POST", status=status, json=body)


async def _finish(shop: Shop, verb: str = "done") -> None:
    """A worker claims the next task and ends it."""
    await shop.execute(
        "SELECT finish_tasks('w1', array_agg(id), array_agg(attempt), array_agg(%s::text), array_agg('why'::text), "
        "array_agg('{\"n\": 1.50}'::jsonb), array_agg(0::float8), array_agg(now()), array_agg(1::float8)) FROM claim_task(NULL, 'w1')",
        [verb],
    )


async def test_enqueue_once_however_often_it_is_asked_for(shop: Shop) -> None:
    store = await shop.store()
    first = await _add(shop, role="product_resync", dispensary_id=store)
    assert (first["created"], first["task"]["role"], first["task"]["priority"]) == (True, "payload_fetch", 10)
    assert (first["task"]["status"], first["task"]["platform"], first["task"]["payload"]) == ("pending", "dutchie", {})
    again = await _add(shop, 200, role="payload_fetch", dispensary_id=store, priority=30)
    assert (again["created"], again["task"]["id"], again["task"]["priority"]) == (False, first["task"]["id"], 30)
    later = datetime.now(UTC) + timedelta(hours=3)
    discovery = await _add(
        shop, role="store_discovery", scheduled_for=later.isoformat(), payload={"state_code": "az", "city": "Phönix"}
    )
    assert discovery["task"]["scheduled_for"] == later.isoformat().replace("+00:00", "Z")
    assert discovery["task"]["payload"] == {"state": "AZ", "city": "Phönix"}
    answer = await shop.http.post("/api/tasks", json={"role": "entry_point_discovery", "dispensary_id": store})
    assert answer.headers["location"] == f"/api/tasks/{answer.json()['task']['id']}"
    for number in [await shop.archived(store, hours, b"{}") for hours in (1, 2)]:
        refresh = await _add(shop, role="product_refresh", dispensary_id=store, payload={"payload_id": number})
        assert refresh["created"], "a refresh of another payload is other work"
    assert (await shop.ask("/api/tasks/counts"))["pending"] == 5


# fmt: off
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({}, "#/role", "required"),
    ({"role": "sweep"}, "#/role", "payload_fetch, product_refresh, analytics_refresh, product_resync"),
    ({"role": 7}, "#/role", "unknown role '7'"),
    ({"role": None}, "#/role", "needs a role: one of store_discovery"),
    ({"role": "payload_fetch", "dispensary_id": True}, "#/dispensary_id", "whole number"),
    ({"role": "store_discovery", "priority": True}, "#/priority", "whole number"),
    ({"role": "payload_fetch"}, "#/dispensary_id", "needs a store"),
    ({"role": "payload_fetch", "dispensary_id": 999}, "#/dispensary_id", "store 999 does not exist"),
    ({"role": "payload_fetch", "dispensary_id": 2**40}, "#/dispensary_id", "at most 2147483647"),
    ({"role": "payload_fetch", "dispensary_id": "x"}, "#/dispensary_id", "whole number"),
    ({"role": "store_discovery", "dispensary_id": 1}, "#/dispensary_id", "does not take a store"),
    ({"role": "store_discovery", "priority": -1001}, "#/priority", "between -1000 and 1000"),
    ({"role": "store_discovery", "priority": 10**30}, "#/priority", "between -1000 and 1000"),
    ({"role": "store_discovery", "platform": "nowhere"}, "#/platform", "use one of: dutchie"),
    ({"role": "store_discovery", "scheduled_for": "2026-01-01T00:00:00"}, "#/scheduled_for", "UTC offset"),
    ({"role": "store_discovery", "scheduled_for": "0001-01-01T00:00:00+14:00"}, "#/scheduled_for", "years 2000 and 2100"),
    ({"role": "store_discovery", "scheduled_for": "tomorrow"}, "#/scheduled_for", "date and time"),
    ({"role": "store_discovery", "payload": [1]}, "#/payload", "an object"),
    ({"role": "store_discovery", "payload": {"a": ["\x00"]}}, "#/payload", "NUL"),
    ({"role": "product_refresh", "dispensary_id": 1, "payload": {"payload_id": "1"}}, "#/payload", '{"payload_id": number}'),
    ({"role": "product_refresh", "dispensary_id": 1, "payload": {"payload_id": True}}, "#/payload", '{"payload_id": number}'),
    ({"role": "product_refresh", "dispensary_id": 1, "payload": {"payload_id": 2**70}}, "#/payload", '{"payload_id": number}'),
    ({"role": "product_refresh", "dispensary_id": 1, "payload": {"payload_id": 99}}, "#/payload", "payload 99 does not exist"),
    ({"role": "product_refresh", "dispensary_id": 1, "payload": {"payload_id": 1}}, "#/payload", "belongs to store 2, not to store 1"),
    ({"role": "payload_fetch", "dispensary_id": 2}, "#/dispensary_id", "enable it first (PATCH /api/stores/2 with"),
    ({"role": "entry_point_discovery", "dispensary_id": 2}, "#/dispensary_id", "is disabled (crawl_enabled is false)"),
    ({"role": "product_discovery", "dispensary_id": 3}, "#/dispensary_id", "enqueue entry_point_discovery for it first"),
    ({"role": "store_discovery", "payload": {"states": "AZ"}}, "#/payload", "for store_discovery; use one of: state_code"),
    ({"role": "store_discovery", "payload": {"state_code": "ZZ"}}, "#/payload", "unknown state 'ZZ'"),
    ({"role": "store_discovery", "payload": {"state_code": 5}}, "#/payload", "must be a string, for example AZ"),
    ({"role": "store_discovery", "payload": {"state_code": "AZ", "state": "AZ"}}, "#/payload", "omit state"),
    ({"role": "store_discovery", "prio": 1}, "#/prio", "unknown"),
]
# fmt: on


async def test_what_cannot_be_enqueued_is_named(shop: Shop) -> None:
    await shop.store()
    assert await shop.archived(await shop.store("off"), 1, b"{}") == 1
    await shop.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = 2")
    await shop.execute("INSERT INTO dispensaries (platform, slug, name, name_raw) VALUES ('dutchie', 'new', 'n', 'n')")
    for body, pointer, says in REFUSED:
        answer = await shop.http.post("/api/tasks", json=body)
        assert answer.status_code in (400, 422), body
        problem = await shop.refused("/api/tasks", answer.status_code, method="POST", json=body)
        (error,) = problem["errors"]
        assert error["pointer"] == pointer, body
        assert says in error["detail"], body
    assert (await shop.ask("/api/tasks/counts"))["total"] == 0


async def test_lists_follow_their_filters_and_so_do_counts(shop: Shop) -> None:
    one, two = await shop.store("one"), await shop.store("two")
    await _add(shop, role="payload_fetch", dispensary_id=one, priority=30)
    await _finish(shop)
    await _add(shop, role="payload_fetch", dispensary_id=one, priority=30)
    await _finish(shop, "fail")
    await _add(shop, role="payload_fetch", dispensary_id=two)
    await _add(shop, role="store_discovery")

    tasks = await shop.walk("/api/tasks", limit=1)
    assert [(t["role"], t["status"], t["dispensary_id"]) for t in tasks] == [
        ("store_discovery", "pending", None),
        ("payload_fetch", "pending", two),
        ("payload_fetch", "failed", one),
        ("payload_fetch", "completed", one),
    ]
    assert (tasks[2]["error_message"], tasks[3]["result"], tasks[3]["attempt"]) == ("why", {"n": 1.5}, 1)
    assert '"result":{"n": 1.50}' in (await shop.http.get(f"/api/tasks/{tasks[3]['id']}")).text, (
        "numbers keep their digits"
    )

    async def ids(**params: Any) -> list[int]:
        found = await shop.walk("/api/tasks", **params)
        counted = await shop.ask("/api/tasks/counts", params=params)
        assert counted["total"] == len(found), "counts follow the filters"
        return [t["id"] for t in found]

    everything = [t["id"] for t in tasks]
    assert await ids() == everything
    assert await ids(status=["failed", "completed"]) == everything[2:]
    assert await ids(role="product_resync", status="pending") == [everything[1]]
    assert await ids(dispensary_id=one) == everything[2:]
    assert await ids(platform="dutchie") == everything
    assert await ids(created_after=tasks[1]["created_at"]) == everything[:2]
    assert await ids(created_before=tasks[1]["created_at"]) == everything[2:]
    counts = await shop.ask("/api/tasks/counts")
    assert (counts["pending"], counts["completed"], counts["failed"], counts["running"]) == (2, 1, 1, 0)
    assert counts["by_role"] == {
        "payload_fetch": {"completed": 1, "failed": 1, "pending": 1},
        "store_discovery": {"pending": 1},
    }


async def test_a_filter_that_nothing_could_ever_pass(shop: Shop) -> None:
    await shop.store()
    for where, field, says in (
        ({"dispensary_id": 9999}, "dispensary_id", "store 9999 does not exist"),
        ({"dispensary_id": 1, "platform": "nowhere"}, "platform", "unknown platform 'nowhere'; use one of: dutchie"),
    ):
        for path in ("/api/tasks", "/api/tasks/counts"):
            problem = await shop.refused(path, 422, params=where)
            assert problem["errors"] == [{"parameter": field, "in": "query", "detail": problem["errors"][0]["detail"]}]
            assert says in problem["detail"]
        for path in ("/api/tasks/bulk/retry", "/api/tasks/bulk/cancel"):
            problem = await shop.refused(path, 422, method="POST", json=where)
            assert problem["errors"][0]["pointer"] == f"#/{field}"
            assert says in problem["detail"]
    assert await shop.walk("/api/tasks", dispensary_id=1) == []


async def test_per_role_and_per_store(shop: Shop) -> None:
    store = await shop.store()
    nothing = await shop.ask("/api/tasks/role/payload_fetch/last-completion")
    assert nothing == {"role": "payload_fetch", "completed_at": None, "task": None}
    first = await _add(shop, role="payload_fetch", dispensary_id=store)
    await _finish(shop)
    await _add(shop, role="payload_fetch", dispensary_id=store)
    last = await shop.ask("/api/tasks/role/product_resync/last-completion")
    assert (last["role"], last["task"]["id"]) == ("payload_fetch", first["task"]["id"])
    assert last["completed_at"] == last["task"]["completed_at"]
    problem = await shop.refused("/api/tasks/role/sweep/recent", 422)
    assert (problem["errors"][0]["parameter"], "product_resync" in problem["detail"]) == ("role", True)

    assert await shop.ask(f"/api/tasks/store/{store}/active") == {"dispensary_id": store, "active": False, "task": None}
    await shop.execute("SELECT claim_task(NULL, 'w1')")
    active = await shop.ask(f"/api/tasks/store/{store}/active")
    assert (active["active"], active["task"]["status"], active["task"]["worker_id"]) == (True, "claimed", "w1")
    await shop.refused("/api/tasks/store/99/active", 404)
    await shop.refused("/api/tasks/99", 404)


async def test_recent_tasks_of_a_role_are_completions_by_their_end(shop: Shop) -> None:
    ids = []
    for verb in ("done", "done", "fail", "done"):
        ids.append(
            (await _add(shop, role="payload_fetch", dispensary_id=await shop.store(f"s{len(ids)}")))["task"]["id"]
        )
        await _finish(shop, verb)
    # The first one was retried for long: it completed last.
    await shop.execute("UPDATE task_history SET completed_at = now() + interval '1 minute' WHERE id = %s", [ids[0]])
    await _add(shop, role="analytics_refresh")
    await _finish(shop)
    await _add(shop, role="payload_fetch", dispensary_id=await shop.store("waits"))
    path = "/api/tasks/role/product_resync/recent"
    assert [task["id"] for task in await shop.walk(path, limit=1)] == [ids[0], ids[3], ids[1]]
    assert [task["id"] for task in await shop.walk(path, status=["failed"])] == [ids[2]]
    both = await shop.walk(path, status=["failed", "completed"])
    assert [task["id"] for task in both] == [ids[0], ids[3], ids[2], ids[1]]
    problem = await shop.refused(path, 422, params={"status": "pending"})
    assert (problem["errors"][0]["parameter"].split(".")[0], "completed" in problem["detail"]) == ("status", True)


async def test_recovery_takes_tasks_from_the_silent(shop: Shop) -> None:
    store = await shop.store()
    task = (await _add(shop, role="payload_fetch", dispensary_id=store))["task"]["id"]
    await shop.execute("SELECT claim_task(NULL, 'w1')")
    assert await shop.ask("/api/tasks/recover-stale", method="POST") == {"recovered": 0, "threshold_minutes": 10}
    await shop.execute("UPDATE task_live SET claimed_at = now() - interval '7 minutes', last_heartbeat_at = NULL")
    found = await shop.ask("/api/tasks/recover-stale", method="POST", json={"threshold_minutes": 5})
    assert found == {"recovered": 1, "threshold_minutes": 5}
    now = await shop.ask(f"/api/tasks/{task}")
    assert (now["status"], now["retry_count"], now["worker_id"]) == ("pending", 1, None)
    await shop.execute("SELECT claim_task(NULL, 'w1')")
    for bad, says in ((0, "at least 1: workers send a heartbeat every 30 seconds"), (0.99, "at least 1"), (-1, "at least 1"),
                      (1e9, "at most 1440"), ("soon", "number")):  # fmt: skip
        problem = await shop.refused("/api/tasks/recover-stale", 422, method="POST", json={"threshold_minutes": bad})
        (error,) = problem["errors"]
        assert (error["pointer"], says in error["detail"]) == ("#/threshold_minutes", True), bad
    assert (await shop.ask(f"/api/tasks/{task}"))["retry_count"] == 1, "nothing was taken from a healthy worker"


async def test_cancel_what_is_not_over(shop: Shop) -> None:
    store = await shop.store()
    waiting = (await _add(shop, role="payload_fetch", dispensary_id=store))["task"]["id"]
    assert (await shop.ask(f"/api/tasks/{waiting}/cancel", method="POST"))["status"] == "cancelled"
    problem = await shop.refused(f"/api/tasks/{waiting}/cancel", 409, method="POST")
    assert problem["detail"] == f"task {waiting} is cancelled and can no longer be cancelled"
    await shop.refused("/api/tasks/99/cancel", 404, method="POST")


async def test_retry_what_is_over_and_what_waits(shop: Shop) -> None:
    store = await shop.store()
    old = (await _add(shop, role="payload_fetch", dispensary_id=store, priority=2, payload={"n": 1}))["task"]["id"]
    problem = await shop.refused(f"/api/tasks/{old + 99}/retry", 404, method="POST")
    assert problem["detail"] == f"task {old + 99} does not exist"
    await shop.execute("SELECT claim_task(NULL, 'w1')")
    problem = await shop.refused(f"/api/tasks/{old}/retry", 409, method="POST")
    assert f"task {old} is claimed: cancel it first" in problem["detail"]
    await shop.execute("SELECT cancel_tasks(ARRAY[%s::bigint])", [old])
    before = await shop.ask(f"/api/tasks/{old}")

    answer = await shop.http.post(f"/api/tasks/{old}/retry")
    new = answer.json()
    assert (answer.status_code, new["created"], new["retried"]) == (201, True, old)
    assert answer.headers["location"] == f"/api/tasks/{new['task']['id']}"
    assert (new["task"]["status"], new["task"]["priority"], new["task"]["payload"]) == ("pending", 10, {"n": 1})
    assert await shop.ask(f"/api/tasks/{old}") == before

    again = await shop.ask(f"/api/tasks/{old}/retry", method="POST", json={"priority": 40})
    assert (again["created"], again["task"]["id"], again["task"]["priority"]) == (False, new["task"]["id"], 40)
    later = (datetime.now(UTC) + timedelta(hours=5)).isoformat()
    assert again["outcome"] == "joined"
    for priority, outcome, now in ((40, "waiting", 40), (60, "raised", 60), (10, "waiting", 60)):
        same = await shop.ask(f"/api/tasks/{new['task']['id']}/retry", method="POST", json={"priority": priority})
        assert (same["task"]["id"], same["outcome"], same["task"]["priority"]) == (new["task"]["id"], outcome, now)
    planned = (await _add(shop, role="store_discovery", scheduled_for=later))["task"]["id"]
    pulled = await shop.ask(f"/api/tasks/{planned}/retry", method="POST")
    assert (pulled["created"], pulled["task"]["id"], pulled["outcome"]) == (False, planned, "pulled")
    assert datetime.fromisoformat(pulled["task"]["scheduled_for"]) <= datetime.now(UTC)
    for body, pointer in (({"priority": 1001}, "#/priority"), ({"when": "now"}, "#/when")):
        problem = await shop.refused(f"/api/tasks/{old}/retry", 422, method="POST", json=body)
        assert problem["errors"][0]["pointer"] == pointer


# fmt: off
BAD_BULK: list[tuple[dict[str, Any], str, str]] = [
    ({}, "#", "give `ids` or a filter (role, status, dispensary_id"),
    ({"dry_run": True}, "#", "or `all: true`"),
    ({"all": True, "role": ["payload_fetch"]}, "#", "omit role"),
    ({"ids": [1], "status": ["failed"]}, "#", "cannot be combined with status"),
    ({"ids": [1], "all": True}, "#", "cannot be combined with all"),
    ({"ids": []}, "#/ids", "at least 1"),
    ({"ids": [0]}, "#/ids/0", "at least 1"),
    ({"ids": list(range(1, 10_002))}, "#/ids", "at most 10000"),
    ({"role": ["sweep"]}, "#/role/0", "payload_fetch, product_refresh, analytics_refresh, product_resync"),
    ({"status": ["asleep"]}, "#/status/0", "stale, cancelled, ready, blocked, scheduled"),
    ({"dispensary_id": "x"}, "#/dispensary_id", "whole number"),
    ({"created_after": "yesterday"}, "#/created_after", "date and time"),
    ({"all": "yes"}, "#/all", "true or false"),
    ({"error": ""}, "#/error", "at least 1 character"),
    ({"roles": ["payload_fetch"]}, "#/roles", "unknown"),
]
# fmt: on


async def test_a_bulk_request_says_what_it_means(shop: Shop) -> None:
    await _add(shop, role="store_discovery")
    for action in ("retry", "cancel"):
        for body, pointer, says in BAD_BULK:
            problem = await shop.refused(f"/api/tasks/bulk/{action}", 422, method="POST", json=body)
            found = {error["pointer"]: error["detail"] for error in problem["errors"]}
            assert pointer in found, (body, problem)
            assert says in found[pointer], (body, problem)
    assert (await shop.ask("/api/tasks/counts"))["pending"] == 1


async def test_bulk_by_filter_and_by_ids(shop: Shop) -> None:
    one, two = await shop.store("one"), await shop.store("two")
    for store in (one, two):
        await _add(shop, role="payload_fetch", dispensary_id=store)
        await _finish(shop, "fail")
    await _add(shop, role="store_discovery")
    failed = await shop.walk("/api/tasks", status="failed")
    assert await shop.walk("/api/tasks", error="WH") == failed
    assert await shop.walk("/api/tasks", worker_id="w1") == failed
    refused = await shop.ask("/api/tasks", params={"worker_id": "w2"}, status=422)
    assert "worker 'w2' does not exist" in refused["detail"]
    assert (await shop.ask("/api/tasks/counts", params={"error": "why", "worker_id": "w1"}))["total"] == 2

    wanted = {"role": ["product_resync"], "status": ["failed"], "dry_run": True}
    dry = await shop.ask("/api/tasks/bulk/retry", method="POST", json=wanted)
    assert dry == {"matched": 2, "done": 0, "would": 2, "skipped": {}, "dry_run": True}
    assert (await shop.ask("/api/tasks/counts"))["pending"] == 1
    real = await shop.ask("/api/tasks/bulk/retry", method="POST", json={**wanted, "dry_run": False, "priority": 50})
    assert real == {"matched": 2, "done": 2, "would": 0, "skipped": {}, "dry_run": False}
    waiting = await shop.walk("/api/tasks", status="pending", role="payload_fetch")
    assert {(t["dispensary_id"], t["priority"]) for t in waiting} == {(one, 50), (two, 50)}

    ids = [t["id"] for t in waiting]
    would = await shop.ask("/api/tasks/bulk/cancel", method="POST", json={"ids": ids, "dry_run": True})
    assert would == {"matched": 2, "done": 0, "would": 2, "skipped": {}, "dry_run": True}
    gone = await shop.ask("/api/tasks/bulk/cancel", method="POST", json={"ids": [*ids, failed[0]["id"], 12345]})
    assert gone == {"matched": 3, "done": 2, "would": 0, "skipped": {"finished": 1, "missing": 1}, "dry_run": False}
    rest = await shop.ask("/api/tasks/bulk/cancel", method="POST", json={"all": True, "reason": "closing down"})
    assert (rest["matched"], rest["done"]) == (5, 1)
    assert [t["role"] for t in await shop.walk("/api/tasks", error="closing DOWN")] == ["store_discovery"]


async def test_change_the_priority_of_a_pending_task(shop: Shop) -> None:
    store = await shop.store()
    task = (await _add(shop, role="payload_fetch", dispensary_id=store, priority=30))["task"]["id"]
    changed = await shop.ask(f"/api/tasks/{task}", method="PATCH", json={"priority": -5})
    assert (changed["id"], changed["priority"]) == (task, -5)
    await shop.refused(f"/api/tasks/{task}", 422, method="PATCH", json={"priority": 1001})
    await shop.refused(f"/api/tasks/{task}", 422, method="PATCH", json={})
    await shop.refused("/api/tasks/999", 404, method="PATCH", json={"priority": 1})
    await _finish(shop)
    problem = await shop.refused(f"/api/tasks/{task}", 409, method="PATCH", json={"priority": 1})
    assert "is completed" in problem["detail"]


async def test_clone_a_task(shop: Shop) -> None:
    one, two = await shop.store("one"), await shop.store("two")
    payload = await shop.archived(one, 1, b"{}")
    task = (await _add(shop, role="product_refresh", dispensary_id=one, priority=20, payload={"payload_id": payload}))[
        "task"
    ]
    copy = await shop.ask(f"/api/tasks/{task['id']}/clone", method="POST", status=201)
    assert copy["created"]
    assert {name: copy["task"][name] for name in ("role", "dispensary_id", "priority", "payload")} == {
        "role": "product_refresh", "dispensary_id": one, "priority": 20, "payload": {"payload_id": payload},
    }  # fmt: skip
    fetch = (await _add(shop, role="payload_fetch", dispensary_id=one, priority=0))["task"]["id"]
    other = await shop.ask(
        f"/api/tasks/{fetch}/clone",
        method="POST",
        status=201,
        json={"dispensary_id": two, "scheduled_for": "2099-01-01T00:00:00Z"},
    )
    assert (other["task"]["dispensary_id"], other["task"]["priority"], other["task"]["scheduled_for"]) == (
        two, 10, "2099-01-01T00:00:00Z",
    )  # fmt: skip
    again = await shop.ask(f"/api/tasks/{fetch}/clone", method="POST", status=200)
    assert (again["created"], again["task"]["id"]) == (False, fetch)
    await shop.refused(f"/api/tasks/{fetch}/clone", 400, method="POST", json={"dispensary_id": 999})
    await shop.refused("/api/tasks/999/clone", 404, method="POST")


async def test_failures_by_cause(shop: Shop) -> None:
    assert await shop.ask("/api/tasks/failures") == {"items": []}
    for name in ("one", "two"):
        await _add(shop, role="payload_fetch", dispensary_id=await shop.store(name))
        await _finish(shop, "fail")
    (group,) = (await shop.ask("/api/tasks/failures", params={"window": "1h", "role": "product_resync"}))["items"]
    assert (group["role"], group["kind"], group["count"], group["stores"]) == ("payload_fetch", "why", 2, 2)
    assert (len(group["histogram"]), sum(group["histogram"])) == (24, 2)
    assert len(await shop.walk("/api/tasks", q=group["search"])) == 2
    await shop.refused("/api/tasks/failures", 422, params={"window": "2h"})
    assert (group["status"], group["open"], {one["name"] for one in group["affected"]}) == ("open", 2, {"One", "Two"})

    key = {name: group[name] for name in ("cause", "role", "platform")}
    await shop.refused("/api/tasks/failures/mute", 422, method="POST", json=key)
    await shop.refused("/api/tasks/failures/mute", 404, method="POST", json={**key, "cause": "0" * 12, "reason": "x"})
    await shop.refused(
        "/api/tasks/failures/mute", 400, method="POST", json={**key, "reason": "x", "until": "2020-01-01T00:00:00Z"}
    )
    muted = await shop.ask("/api/tasks/failures/mute", method="POST", json={**key, "reason": "known"})
    assert (muted["reason"], muted["until"], muted["muted_by"]) == ("known", None, "tester")
    (group,) = (await shop.ask("/api/tasks/failures", params={"status": "muted"}))["items"]
    assert group["mute"] == muted
    assert await shop.ask("/api/tasks/failures", params={"status": "open"}) == {"items": []}
    assert await shop.ask("/api/tasks/failures/unmute", method="POST", json=key) == muted
    await shop.refused("/api/tasks/failures/unmute", 404, method="POST", json=key)


async def test_blocked_tasks_by_status(shop: Shop) -> None:
    blocked = (await _add(shop, role="payload_fetch", dispensary_id=await shop.store("one")))["task"]["id"]
    ready = (await _add(shop, role="analytics_refresh"))["task"]["id"]
    await shop.execute('UPDATE queue_settings SET platform_hosts = \'{"dutchie": ["menus.test"]}\'')
    await shop.ask("/api/hosts/menus.test/pause", method="POST")
    (task,) = await shop.walk("/api/tasks", status="blocked")
    assert (task["id"], task["status"], task["wait_state"], task["blocked_by"]) == (
        blocked, "pending", "blocked", "menus.test",
    )  # fmt: skip
    assert [one["id"] for one in await shop.walk("/api/tasks", status="ready")] == [ready]
    assert [one["id"] for one in await shop.walk("/api/tasks", q="state:blocked,ready")] == [ready, blocked]
    counts = await shop.ask("/api/tasks/counts")
    assert [counts[name] for name in ("pending", "ready", "blocked", "scheduled")] == [2, 1, 1, 0]
    capacity = await shop.ask("/api/tasks/capacity/payload_fetch")
    assert (capacity["ready_tasks"], capacity["blocked_tasks"], capacity["blocked_by"]) == (0, 1, ["menus.test"])
    assert (await shop.ask("/api/hosts/menus.test"))["host"]["blocked_tasks"] == 1
    await shop.ask("/api/hosts/menus.test/resume", method="POST")
    assert await shop.walk("/api/tasks", status="blocked") == []
