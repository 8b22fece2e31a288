"""The protocol of workers written in any language, over HTTP. Its rules: tests/workers/test_protocol_sql.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from tests.api.shop import Shop
from tests.users_fixture import bearer

BASE = "/api/worker-registry"
ENDS: dict[str, dict[str, Any]] = {
    "start": {},
    "complete": {},
    "retry": {"reason": "x"},
    "postpone": {"reason": "x", "after_seconds": 60},
    "fail": {"reason": "x"},
}


async def _post(shop: Shop, path: str, expected: int = 200, /, **body: Any) -> Any:
    return await shop.ask(f"{BASE}/{path}", method="POST", status=expected, json=body)


async def _enqueue(shop: Shop, n: int = 1, **fields: Any) -> list[int]:
    new = [NewTask(**{"role": Role.ANALYTICS_REFRESH, "payload": {"n": k}, **fields}) for k in range(n)]
    async with shop.pool.connection() as conn:
        return [task.id for task in await tasks.enqueue(conn, new)]


async def _working(shop: Shop, n: int = 1, worker: str = "w", **fields: Any) -> list[int]:
    """The ids of tasks that the worker has claimed."""
    ids = await _enqueue(shop, n, **fields)
    await shop.http.post(f"{BASE}/register", json={"worker_id": worker, "host": "box"})
    claimed = await _post(shop, f"{worker}/claim", count=n)
    assert sorted(task["id"] for task in claimed["tasks"]) == ids
    return ids


async def test_a_whole_life(shop: Shop) -> None:
    store = await shop.store()
    done, again, later, broken = await _enqueue(shop, 4)
    await _post(shop, "register", 201, worker_id="w", host="box", roles=["analytics_refresh"])
    claimed = await _post(shop, "w/claim", count=10, roles=["analytics_refresh"], current_task_ids=[])
    assert (claimed["reason"], claimed["commands"]) == (None, [])
    assert [(task["id"], task["attempt"], task["payload"]) for task in claimed["tasks"]] == [
        (id_, 1, {"n": n}) for n, id_ in enumerate((done, again, later, broken))
    ]
    assert (await _post(shop, f"w/tasks/{done}/start", attempt=1))["status"] == "running"
    body = {
        "attempt": 1,
        "result": {"ok": True},
        "follow_ups": [
            {"role": "payload_fetch", "dispensary_id": store},
            {"role": "store_discovery", "payload": {"state_code": "AZ"}, "priority": 25},
        ],
    }
    ended = await _post(shop, f"w/tasks/{done}/complete", **body)
    assert (ended["status"], ended["result"], ended["worker_id"]) == ("completed", {"ok": True}, "w")
    waits = await _post(shop, f"w/tasks/{again}/retry", attempt=1, reason="HTTP 500", after_seconds=60, ran_seconds=3)
    assert (waits["status"], waits["retry_count"], waits["error_message"]) == ("pending", 1, "HTTP 500")
    put = await _post(
        shop,
        f"w/tasks/{later}/postpone",
        attempt=1,
        reason="HTTP 429",
        until="2090-01-01T00:00:00Z",
        code="throttled",
        host="h.test",
    )
    assert (put["status"], put["wait_state"], put["scheduled_for"], put["postpone_code"]) == (
        "pending",
        "scheduled",
        "2090-01-01T00:00:00Z",
        "throttled",
    )
    failed = await _post(shop, f"w/tasks/{broken}/fail", attempt=1, reason="no such menu", result={"seen": 3})
    assert (failed["status"], failed["error_message"], failed["result"]) == ("failed", "no such menu", {"seen": 3})
    followed = {task["role"]: task for task in (await shop.ask("/api/tasks"))["items"] if task["id"] > broken}
    assert (followed["payload_fetch"]["dispensary_id"], followed["payload_fetch"]["priority"]) == (store, 10)
    assert (followed["store_discovery"]["payload"], followed["store_discovery"]["priority"]) == ({"state": "AZ"}, 25)
    assert (await _post(shop, "deregister", worker_id="w"))["status"] == "stopped"
    # A lost response: each end is answered as before, also after the worker left; nothing is added.
    assert await _post(shop, f"w/tasks/{done}/complete", **body) == ended
    assert await _post(shop, f"w/tasks/{broken}/fail", attempt=1, reason="no such menu") == failed
    assert len((await shop.ask("/api/tasks"))["items"]) == 6


async def test_what_is_not_its_own_is_refused_and_stays_as_it_is(shop: Shop) -> None:
    (task,) = await _working(shop)
    await _post(shop, "register", 201, worker_id="other", host="box")

    async def all_refused(path: str, attempt: int, status: int, says: str) -> None:
        before = (await shop.ask("/api/tasks"))["items"]
        for end, body in ENDS.items():
            problem = await shop.refused(
                f"{BASE}/{path}/{end}", status, method="POST", json={"attempt": attempt, **body}
            )
            assert says in problem["detail"], problem
        assert (await shop.ask("/api/tasks"))["items"] == before

    await all_refused("w/tasks/999999", 1, 404, "task 999999 does not exist")
    await all_refused(f"other/tasks/{task}", 1, 409, "worker w runs it")
    await all_refused(f"w/tasks/{task}", 2, 409, "there was no attempt 2 yet")
    # It fell silent; another worker has the task now.
    await shop.execute("UPDATE task_live SET claimed_at = now() - interval '1 hour'")
    await shop.ask("/api/tasks/recover-stale", method="POST")
    await all_refused(f"w/tasks/{task}", 1, 409, "attempt 1 has ended, and the task is pending")
    (claimed,) = (await _post(shop, "other/claim"))["tasks"]
    assert (claimed["id"], claimed["attempt"]) == (task, 2)
    await all_refused(f"w/tasks/{task}", 1, 409, "worker other runs attempt 2")
    beat = await _post(shop, "heartbeat", worker_id="other", current_task_ids=[task], attempts=[1])
    assert beat["lost_task_ids"] == [task]
    beat = await _post(shop, "heartbeat", worker_id="other", current_task_ids=[task], attempts=[2])
    assert beat["lost_task_ids"] == []
    await shop.ask(f"/api/tasks/{task}/cancel", method="POST")
    await all_refused(f"other/tasks/{task}", 2, 409, "the task is cancelled")


async def test_follow_ups_and_the_end_come_together_or_not_at_all(shop: Shop) -> None:
    (task,) = await _working(shop)
    good = {"role": "store_discovery"}
    for bad, says in (
        ({"role": "payload_fetch", "dispensary_id": 99}, "store 99 does not exist"),
        ({"role": "payload_fetch"}, "needs a store"),
    ):
        problem = await shop.refused(
            f"{BASE}/w/tasks/{task}/complete", 400, method="POST", json={"attempt": 1, "follow_ups": [good, bad]}
        )
        assert problem["errors"][0]["pointer"] == "#/follow_ups/1/dispensary_id"
        assert says in problem["detail"]
    (left,) = (await shop.ask("/api/tasks"))["items"]
    assert (left["id"], left["status"]) == (task, "claimed")
    await _post(shop, f"w/tasks/{task}/complete", attempt=1, follow_ups=[good])
    assert len((await shop.ask("/api/tasks"))["items"]) == 2


# fmt: off
INVALID: list[tuple[str, dict[str, Any], str, str]] = [
    ("w/claim", {"count": 0}, "#/count", "at least 1"),
    ("w/claim", {"count": 101}, "#/count", "at most 100"),
    ("w/claim", {"roles": ["dance"]}, "#/roles/0", "store_discovery"),
    ("w/claim", {"role": "payload_fetch"}, "#/role", "the fields are roles, count, current_task_ids"),
    ("w/tasks/1/start", {}, "#/attempt", "required"),
    ("w/tasks/1/complete", {"attempt": 0}, "#/attempt", "at least 1"),
    ("w/tasks/1/complete", {"attempt": 1, "result": []}, "#/result", "an object"),
    ("w/tasks/1/complete", {"attempt": 1, "result": {"a": "\x00"}}, "#/result", "NUL"),
    ("w/tasks/1/complete", {"attempt": 1, "follow_ups": [{"role": "dance"}]}, "#/follow_ups/0/role", "store_discovery"),
    ("w/tasks/1/complete", {"attempt": 1, "ran_seconds": -1}, "#/ran_seconds", "at least 0"),
    ("w/tasks/1/retry", {"attempt": 1}, "#/reason", "required"),
    ("w/tasks/1/retry", {"attempt": 1, "reason": ""}, "#/reason", "at least 1"),
    ("w/tasks/1/postpone", {"attempt": 1, "reason": "x"}, "#", "either `until` or `after_seconds`"),
    ("w/tasks/1/postpone", {"attempt": 1, "reason": "x", "after_seconds": 1, "code": "tired"}, "#/code", "paused, "),
    ("heartbeat", {"worker_id": "w", "current_task_ids": [1, 2], "attempts": [1]}, "#", "one number for each of the 2 running tasks"),
]
# fmt: on


async def test_what_cannot_be_used_is_named(shop: Shop) -> None:
    await _post(shop, "register", 201, worker_id="w", host="box")
    for path, body, pointer, says in INVALID:
        problem = await shop.refused(f"{BASE}/{path}", 422, method="POST", json=body)
        (error,) = problem["errors"]
        assert (error["pointer"], says in error["detail"]) == (pointer, True), (body, error)
    problem = await shop.refused(f"{BASE}/nobody/claim", 404, method="POST", json={})
    assert "register it first" in problem["detail"]
    await _post(shop, "register", 200, worker_id="w", host="box", roles=["payload_fetch"])
    problem = await shop.refused(f"{BASE}/w/claim", 400, method="POST", json={"roles": ["store_discovery"]})
    assert "registered only for payload_fetch" in problem["detail"]
    await _post(shop, "deregister", worker_id="w")
    problem = await shop.refused(f"{BASE}/w/claim", 409, method="POST", json={})
    assert "register it again" in problem["detail"]


async def test_a_paused_worker_and_blocked_hosts(shop: Shop) -> None:
    store = await shop.store()
    await _enqueue(shop, role=Role.PAYLOAD_FETCH, dispensary_id=store)
    await _post(shop, "register", 201, worker_id="w", host="box")
    hosts = sorted(shop.platforms["dutchie"].hosts)
    for host in hosts:
        await shop.execute(
            "INSERT INTO hosts (host, rate, burst, concurrency, current_rate, paused_at, paused_reason)"
            " VALUES (%s, 1, 1, 1, 1, now(), 'x')",
            [host],
        )
    claimed = await _post(shop, "w/claim")
    assert (claimed["tasks"], claimed["reason"]) == ([], "; ".join(f"{host} is blocked: x" for host in hosts))
    await shop.execute("UPDATE hosts SET paused_at = NULL, paused_reason = NULL")
    told = await _post(shop, "w/pause")
    claimed = await _post(shop, "w/claim")
    assert (claimed["tasks"], claimed["reason"]) == ([], "the command pause is not acknowledged")
    assert claimed["commands"] == [told["command"]]
    await _post(shop, "w/resume")
    assert len((await _post(shop, "w/claim"))["tasks"]) == 1


@pytest.mark.parametrize(
    ("scopes", "may"), [(["workers:run"], True), (["read", "workers:write", "tasks:write"], False)]
)
async def test_a_token_for_workers_works_and_does_nothing_else(shop: Shop, scopes: Sequence[str], may: bool) -> None:
    (task,) = await _working(shop)
    headers = await bearer(shop.pool, name="robot", role="operator", scopes=scopes)
    for path, body in (
        ("register", {"worker_id": "x", "host": "box"}),
        ("heartbeat", {"worker_id": "x"}),
        ("x/claim", {}),
        (f"w/tasks/{task}/complete", {"attempt": 1}),
        ("deregister", {"worker_id": "x"}),
    ):
        answer = await shop.http.post(f"{BASE}/{path}", json=body, headers=headers)
        assert (answer.status_code < 300) == may, answer.text
        if not may:
            assert (answer.status_code, answer.json()["permission"]) == (403, "workers:run")
    if may:
        for method, path in (("GET", "/api/tasks"), ("POST", f"{BASE}/w/pause"), ("POST", f"/api/tasks/{task}/retry")):
            assert (await shop.http.request(method, path, headers=headers)).status_code == 403
