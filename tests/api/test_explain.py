"""Explain a task: the rules on facts made by hand, then each reason on a real queue."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from menuwatch.core.format import duration
from menuwatch.core.postpone import PostponeCode
from menuwatch.queue.explain.model import BlockingTask, Code, Facts, HostFacts, WorkerFacts
from menuwatch.queue.explain.rules import explanation
from tests.api.shop import Shop
from tests.conftest import ROOT

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PAST = NOW - timedelta(minutes=3, seconds=5)


def _facts(**given: Any) -> Facts:
    return Facts(**{"id": 7, "role": "payload_fetch", "status": "pending", "now": NOW, "state": "r", **given})


def _worker(**given: Any) -> WorkerFacts:
    return WorkerFacts(
        **{
            "worker_id": "w1",
            "friendly_name": "Kryll",
            "roles": None,
            "status": "active",
            "silent": 5.0,
            "alive": given.get("silent", 0.0) <= 120,
            "slots": 3,
            "active": 0,
            **given,
        }
    )


RUNNING = {"state": "a", "status": "running", "worker_id": "w1", "claimed_at": PAST, "started_at": PAST}


def _task(number: int, role: str, **given: Any) -> BlockingTask:
    return BlockingTask(
        **{"id": number, "role": role, "worker_id": None, "worker_name": None, "claimed_at": None, **given}
    )


AHEAD = _task(5, "payload_fetch", worker_id="w2", claimed_at=PAST)
OVER: dict[str, Any] = {"state": None, "completed_at": PAST, "worker_id": "w1", "attempt": 2}
HEARD = " Based on heartbeats, the oldest 5 s old."
LONE = "Ready, but the only online worker that runs payload_fetch does not claim now: "
RESUME = "1 paused. Resume one with `menuwatch workers resume`." + HEARD
START = "1 stopping. Start another one with `menuwatch worker`." + HEARD
BARRED = _worker(paused_roles=["payload_fetch"], reason="no proxy is active", paused_roles_code="no_proxy")
NO_PROXY = (
    "Ready, but none of the 2 online workers that run payload_fetch claims now: 1 does not claim this role, 1 paused (no proxy "
    "is active). Add a working proxy with `menuwatch proxies add`, or see why none is active: `menuwatch proxies list`."
)
FULL, HOT = _worker(active=3), _worker(status="backing_off", reason="memory 91 %")
SILENT = (
    " since 2026-11-21 11:56:55 UTC, but has sent no heartbeat for 3 min 5 s: "
    "the task is recovered in 6 min 55 s if that continues."
)
WHY = "1 backing off, 1 paused, 1 stopping (memory 91 %). They resume when CPU and memory are free again."
ONE = "11:56:55 UTC; only one task per store runs at a time."
LATE: dict[str, Any] = {"state": "s", "scheduled_for": NOW + timedelta(minutes=5), "attempt": 1}
STAYS_CLOSED = "It stays blocked until an operator resumes it"
NOT_NOW = "requests to d are blocked"
COLD = f"{NOT_NOW} (cooling down): HTTP 429"
COOLING: dict[str, Any] = {**LATE, "postpone_code": PostponeCode.COOLING, "postpone_host": "d", "error_message": COLD}
DUE = "in 5 min, at 2026-11-21 12:05:00 UTC"
WAITS = f"Postponed by d, due {DUE}: {COLD}"
RESUME_D = "resume it with `menuwatch hosts resume d`"
PACE = "wait; the task runs within its rate limit. `menuwatch hosts set d --rate …` raises the limit"
THEN = ", then run this task now with `menuwatch tasks retry 7`"
AGAIN = "They check again automatically"
WAIT = (
    "wait; requests continue automatically at a lower rate. If it cools down often, lower it (`menuwatch hosts set d --rate …`); "
    "`menuwatch hosts reset d` resumes requests immediately"
)


def _host(code: str, seconds: float | None) -> HostFacts:
    until = None if seconds is None else NOW + timedelta(seconds=seconds)
    return HostFacts(host="d", code=PostponeCode(code), reason="HTTP 429", until=until)


# fmt: off
TABLE: list[tuple[str, dict[str, Any], Code, str]] = [
    ("completed", {**OVER, "status": "completed"}, Code.COMPLETED,
     "Completed at 2026-11-21 11:56:55 UTC by worker w1, on attempt 2."),
    ("failed", {**OVER, "status": "failed", "error_message": "403 from host."}, Code.FAILED,
     "Failed at 2026-11-21 11:56:55 UTC, on attempt 2: 403 from host."),
    ("cancelled", {**OVER, "status": "cancelled", "worker_id": None, "attempt": 0, "error_message": "wrong day"}, Code.CANCELLED,
     "Cancelled at 2026-11-21 11:56:55 UTC: wrong day."),
    ("running", {**RUNNING, "last_heartbeat_at": NOW - timedelta(seconds=12)}, Code.RUNNING,
     "Worker w1 has been running it for 3 min 5 s, since 2026-11-21 11:56:55 UTC; its last heartbeat was 12 s ago."),
    ("claimed", {**RUNNING, "started_at": None, "claimed_at": NOW - timedelta(seconds=1)}, Code.RUNNING,
     "Worker w1 has claimed it but not started it for 1 s, since 2026-11-21 11:59:59 UTC; its last heartbeat was 1 s ago."),
    ("silent, at the very limit", {**RUNNING, "last_heartbeat_at": NOW - timedelta(seconds=90)}, Code.RUNNING,
     "Worker w1 has been running it for 3 min 5 s, since 2026-11-21 11:56:55 UTC; its last heartbeat was 1 min 30 s ago."),
    ("running, by a worker with a name", {**RUNNING, "worker_name": "Kryll", "last_heartbeat_at": NOW - timedelta(seconds=12)},
     Code.RUNNING,
     "Worker Kryll has been running it for 3 min 5 s, since 2026-11-21 11:56:55 UTC; its last heartbeat was 12 s ago."),
    ("silent", {**RUNNING, "last_heartbeat_at": PAST}, Code.SILENT,
     "Worker w1 has been running it for 3 min 5 s," + SILENT),
    ("stale", {**RUNNING, "status": "stale", "last_heartbeat_at": NOW - timedelta(minutes=11)}, Code.STALE,
     "Worker w1 has sent no heartbeat for 11 min: the task is about to be recovered for another worker."),
    ("later", {"state": "s", "scheduled_for": NOW + timedelta(hours=2, minutes=5, seconds=30)}, Code.LATER,
     "Scheduled: due in 2 h 5 min, at 2026-11-21 14:05:30 UTC."),
    ("backing off", {"state": "s", "scheduled_for": NOW + timedelta(seconds=65), "attempt": 2, "retry_count": 2,
                     "error_message": "timeout"}, Code.BACKING_OFF,
     "Retry 2 of 3 due in 1 min 5 s, at 2026-11-21 12:01:05 UTC, after: timeout."),
    ("postponed", {"state": "s", "scheduled_for": NOW + timedelta(minutes=5), "attempt": 1, "postpone_count": 1,
                   "postpone_code": PostponeCode.REFRESH_RUNNING, "error_message": "another refresh is running"},
     Code.POSTPONED, "Postponed, due in 5 min, at 2026-11-21 12:05:00 UTC: another refresh is running."),
    ("put off after a retry, by who refused everybody",
     {**LATE, "retry_count": 1, "postpone_code": PostponeCode.BLOCKED, "postpone_host": "d",
      "error_message": "d refused every identity: HTTP 403"}, Code.POSTPONED,
     f"Postponed, due {DUE}: d refused every identity: HTTP 403."),
    ("put off, uncounted, for want of a proxy", {**LATE, "postpone_code": PostponeCode.NO_FREE_PROXY, "postpone_host": "d",
                                                   "error_message": f"{NOT_NOW} (no free proxy): all are in use"},
     Code.POSTPONED, f"Postponed, due {DUE}: requests to d are blocked (no free proxy): all are in use."),
    ("put off by a cool-down that lasts", {**COOLING, "postpone_code": PostponeCode.THROTTLED,
                                           "error_message": "d rate-limited us: HTTP 429, wait 300 s",
                                           "postponed_by": _host("cooling", 300)}, Code.HOST_CLOSED,
     f"Postponed by d, due {DUE}: d rate-limited us: HTTP 429, wait 300 s. Fix: {WAIT}{THEN}."),
    ("put off by a cool-down that has grown", {**COOLING, "postponed_by": _host("cooling", 3600)}, Code.HOST_CLOSED,
     f"{WAITS}; the host is blocked until 2026-11-21 13:00:00 UTC. Fix: {WAIT}{THEN}."),
    ("put off, and the host was paused since", {**COOLING, "postponed_by": _host("paused", None)}, Code.HOST_CLOSED,
     f"{WAITS}; the host stays blocked until an operator resumes it. Fix: {RESUME_D}{THEN}."),
    ("put off by a pause that lasts", {**COOLING, "postpone_code": PostponeCode.PAUSED, "postponed_by": _host("paused", None)},
     Code.HOST_CLOSED, f"{WAITS}; the host stays blocked until an operator resumes it. Fix: {RESUME_D}."),
    ("put off, and the host is open by now", {**COOLING, "postponed_by": HostFacts(host="d")}, Code.HOST_CLOSED,
     f"{WAITS}; the host is available again: `menuwatch tasks retry 7` runs the task now."),
    ("put off by the budget", {**COOLING, "postpone_code": PostponeCode.PACE,
                              "error_message": f"{NOT_NOW} (rate limit reached): used up for the next 300 s"}, Code.HOST_CLOSED,
     f"Postponed by d, due {DUE}: requests to d are blocked (rate limit reached): used up for the next 300 s. Fix: {PACE}."),
    ("closed host", {"workers": [_worker(), BARRED], "blocked": _host("cooling", 300)}, Code.HOST_CLOSED,
     f"Blocked: d gets no requests (cooling down: HTTP 429). Requests resume {DUE}. Fix: {WAIT}."),
    ("paused host", {"workers": [_worker(status="paused")], "blocked": _host("paused", None)}, Code.HOST_CLOSED,
     f"Blocked: d gets no requests (paused by an operator: HTTP 429). {STAYS_CLOSED}. Fix: {RESUME_D}."),
    ("closed host, by what workers say", {"workers": [_worker(paused_roles=["payload_fetch"], reason="d is blocked: HTTP 429",
                                                              paused_roles_code="cooling")]}, Code.HOST_CLOSED,
     f"{LONE}1 does not claim this role (d is blocked: HTTP 429). {AGAIN}; `menuwatch hosts list` shows the host." + HEARD),
    ("workers have not looked since", {"workers": [BARRED]}, Code.WORKERS_BACKING_OFF,
     f"{LONE}1 does not claim this role (no proxy is active). {AGAIN}." + HEARD),
    ("a closed host, and no proxy either", {"workers": [BARRED, _worker(status="paused")], "blocked": _host("cooling", 300),
                                            "active_proxies": 0}, Code.NO_PROXY, NO_PROXY + HEARD),
    ("a closed host, and nobody alive", {"blocked": _host("paused", None)}, Code.HOST_CLOSED,
     f"Blocked: d gets no requests (paused by an operator: HTTP 429). {STAYS_CLOSED}. Fix: {RESUME_D}."),
    ("a closed host, behind another task", {"state": "p", "head": _task(5, "payload_fetch"), "blocked": _host("paused", None)},
     Code.HOST_CLOSED, f"Blocked: d gets no requests (paused by an operator: HTTP 429). {STAYS_CLOSED}. Fix: {RESUME_D}."),
    ("scheduled, and due by now", {"state": "s", "scheduled_for": NOW, "attempt": 1, "retry_count": 1, "workers": [_worker()]},
     Code.READY, "Ready and next in line: 3 slots free." + HEARD),
    ("behind one that runs", {"state": "p", "head": AHEAD, "ahead": 1, "holder": AHEAD}, Code.BEHIND,
     "Waiting behind task #5 of the same role and store, which worker w2 has run since 2026-11-21 11:56:55 UTC."),
    ("behind several", {"state": "p", "head": _task(5, "payload_fetch"), "ahead": 3}, Code.BEHIND,
     "Waiting behind task #5 of the same role and store, which is also waiting; 3 tasks of this role and store run before it."),
    ("store busy", {"holder": _task(6, "product_refresh", worker_id="w2", worker_name="Zog", claimed_at=PAST), "workers": [_worker()]},
     Code.STORE_BUSY, "Its store is in use by task #6 (product_refresh), which worker Zog has run since 2026-11-21 " + ONE),
    ("nobody", {}, Code.NO_WORKER, "Ready, but no worker is online. Start one with `menuwatch worker`."),
    ("nobody any more", {"workers": [_worker(silent=120.5), _worker(silent=1e6)]}, Code.NO_WORKER,
     "Ready, but no worker is online; 2 workers without a heartbeat. Start one with `menuwatch worker`."),
    ("nobody for it", {"workers": [_worker(roles=["product_refresh", "store_discovery"]), _worker(silent=121)]},
     Code.NO_WORKER_FOR_ROLE,
     "Ready, but no online worker runs payload_fetch: 1 worker runs product_refresh, store_discovery."),
    ("nobody for it, of two", {"workers": [_worker(roles=["product_refresh"]), _worker(roles=["store_discovery"])]},
     Code.NO_WORKER_FOR_ROLE,
     "Ready, but no online worker runs payload_fetch: 2 workers run product_refresh, store_discovery."),
    ("paused", {"workers": [_worker(status="paused"), _worker(roles=["product_refresh"])]}, Code.WORKERS_PAUSED, LONE + RESUME),
    ("no proxy", {"workers": [BARRED, _worker(status="paused")], "active_proxies": 0}, Code.NO_PROXY, NO_PROXY + HEARD),
    ("stopping", {"workers": [_worker(status="stopping", paused_roles=["payload_fetch"])]}, Code.WORKERS_STOPPING, LONE + START),
    ("backing off workers", {"workers": [HOT, _worker(status="paused"), _worker(status="stopping")]}, Code.WORKERS_BACKING_OFF,
     "Ready, but none of the 3 online workers that run payload_fetch claims now: " + WHY + HEARD),
    ("one full", {"workers": [FULL], "before": 1}, Code.NO_FREE_SLOT,
     "The only online worker that runs payload_fetch has no free slot (3 of 3 busy); 1 task is before it." + HEARD),
    ("all full", {"workers": [FULL, _worker(active=1, slots=None), _worker(silent=900)], "before": 10_000}, Code.NO_FREE_SLOT,
     "All 2 online workers that run payload_fetch have no free slot (4 of 4 busy); 10,000 or more tasks are before it." + HEARD),
    ("a paused one does not count", {"workers": [FULL, _worker(status="paused")]}, Code.NO_FREE_SLOT,
     "The only online worker that runs payload_fetch has no free slot (3 of 3 busy); 0 tasks are before it." + HEARD),
    ("next", {"workers": [_worker(active=2)]}, Code.READY, "Ready and next in line: 1 slot free." + HEARD),
    ("soon", {"workers": [_worker(active=2), _worker(active=0, slots=None)], "before": 12}, Code.READY,
     "Ready; 12 tasks are before it, 2 slots free." + HEARD),
]
# fmt: on


@pytest.mark.parametrize(("given", "code", "says"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_rules(given: dict[str, Any], code: Code, says: str) -> None:
    found = explanation(_facts(**given))
    assert (found.code, found.reason) == (code, says)
    assert found.task_id == 7


def test_every_reason_is_in_the_table() -> None:
    assert {row[2] for row in TABLE} == set(Code) - {Code.NO_HANDLER}, "this version does every role"


def test_every_reason_is_documented() -> None:
    page = (ROOT / "docs/explanation/task-lifecycle.md").read_text(encoding="utf-8")
    table = page.partition("| code | what it means | what to do |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == {str(code) for code in Code}


def test_lengths_of_time() -> None:
    said = {
        0: "0 s",
        0.4: "400 ms",
        59.6: "1 min",
        61: "1 min 1 s",
        3600: "1 h",
        3661: "1 h 1 min",
        90_000: "1 d 1 h",
        -5: "0 s",
    }
    assert {seconds: duration(seconds) for seconds in said} == said


async def test_a_closed_host_holds_back_who_asks_it(shop: Shop) -> None:
    store = await shop.store()
    task = await _add(shop, role="payload_fetch", dispensary_id=store)
    await shop.execute("INSERT INTO proxies (protocol, host, port, is_active) VALUES ('http', '10.0.0.1', 80, true)")
    host = "menus.test"
    await shop.execute('UPDATE queue_settings SET platform_hosts = \'{"dutchie": ["menus.test"]}\'')
    await _register(
        shop, "w1", paused_roles=["payload_fetch"], paused_roles_reason="HTTP 429", paused_roles_code="cooling"
    )
    await shop.execute(
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate, cooldown_until, cooldown_reason)"
        " VALUES (%s, 2, 4, 6, 1, now() + interval '10 minutes', 'HTTP 429, wait 600 s')",
        [host],
    )
    found = await _why(shop, task)
    assert (found["code"], found["details"]["host"], found["details"]["host_code"]) == ("host_closed", host, "cooling")
    assert 590 < found["seconds"] <= 600
    assert f"{host} gets no requests (cooling down: HTTP 429, wait 600 s)" in found["reason"]
    await shop.execute("UPDATE hosts SET paused_at = now(), paused_reason = 'lawyers'")
    found = await _why(shop, task)
    assert (found["code"], found["until"], found["details"]["host_code"]) == ("host_closed", None, "paused")
    await shop.execute("UPDATE proxies SET is_active = false")
    assert (await _why(shop, task))["code"] == "no_proxy", "that comes first: no host helps without one"
    await shop.execute("UPDATE proxies SET is_active = true")
    await shop.execute("DELETE FROM hosts")
    assert (await _why(shop, task))["code"] == "host_closed", "its worker says so still"
    await _register(shop, "w1")
    assert (await _why(shop, task))["code"] == "ready"


async def _add(shop: Shop, **body: Any) -> int:
    answer = await shop.http.post("/api/tasks", json=body)
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["task"]["id"]
    return number


async def _register(
    shop: Shop, worker: str, *, roles: list[str] | None = None, status: str = "active", **body: Any
) -> None:
    await shop.execute(
        "INSERT INTO worker_registry (worker_id, friendly_name, host, roles, status, heartbeat) VALUES (%s, 'Kryll', 'h', %s, %s, %s)"
        " ON CONFLICT (worker_id) DO UPDATE SET status = excluded.status, roles = excluded.roles, heartbeat = excluded.heartbeat,"
        " last_heartbeat_at = now()",
        [worker, roles, status, msgspec.json.encode(body).decode()],
    )


async def _why(shop: Shop, task: int) -> dict[str, Any]:
    found: dict[str, Any] = await shop.ask(f"/api/tasks/{task}/explain")
    page = await shop.ask(f"/api/tasks/{task}")
    assert (page["explanation"]["code"], page["explanation"]["task_id"]) == (found["code"], task), (
        "the task's page says it too"
    )
    assert page["status"] == found["status"]
    return found


async def test_from_nobody_to_done(shop: Shop) -> None:
    store = await shop.store()
    task = await _add(shop, role="payload_fetch", dispensary_id=store)
    assert (await _why(shop, task))["code"] == "no_worker"
    await _register(shop, "w1", roles=["product_refresh"])
    assert (await _why(shop, task))["code"] == "no_worker_for_role"
    await _register(shop, "w1", status="paused")
    assert (await _why(shop, task))["code"] == "workers_paused"
    await _register(shop, "w1", paused_roles=["payload_fetch"], paused_roles_reason="no proxy is active")
    found = await _why(shop, task)
    assert (found["code"], "no proxy is active" in found["reason"]) == ("no_proxy", True)
    await _register(shop, "w1", status="stopping")
    assert (await _why(shop, task))["code"] == "workers_stopping"
    await _register(shop, "w1", status="backing_off", resources={"backoff_reason": "memory 91 %"})
    found = await _why(shop, task)
    assert (found["code"], "memory 91 %" in found["reason"]) == ("workers_backing_off", True)
    await _register(shop, "w1", max_concurrent_tasks=1)
    found = await _why(shop, task)
    assert (found["code"], found["ahead"], found["workers"]["slots"], found["workers"]["busy"]) == ("ready", 0, 1, 0)

    other = await _add(shop, role="store_discovery", priority=30)
    assert (await _why(shop, task))["ahead"] == 1
    await shop.execute("SELECT claim_task('store_discovery', 'w1')")
    found = await _why(shop, task)
    assert (found["code"], found["workers"]["busy"], found["ahead"]) == ("no_free_slot", 1, 0)
    assert (await _why(shop, other))["worker_id"] == "w1"
    await shop.execute("UPDATE worker_registry SET last_heartbeat_at = now() - interval '121 seconds'")
    found = await _why(shop, task)
    assert (found["code"], found["workers"]["silent"]) == ("no_worker", 1)

    await shop.execute("SELECT claim_task('payload_fetch', 'w2')")
    assert (await _why(shop, task))["code"] == "running"
    await shop.execute("UPDATE task_live SET claimed_at = now() - interval '5 minutes' WHERE id = %s", [task])
    found = await _why(shop, task)
    assert (found["code"], 290 < found["details"]["stale_in_seconds"] < 300) == ("silent", True)
    await shop.execute("UPDATE task_live SET claimed_at = now() - interval '11 minutes' WHERE id = %s", [task])
    assert (await _why(shop, task))["code"] == "stale"
    await shop.execute(
        "SELECT finish_tasks('w2', ARRAY[%s::bigint], ARRAY[1], ARRAY['fail'], ARRAY['403'], ARRAY[NULL::jsonb], ARRAY[0::float8],"
        " ARRAY[now()], ARRAY[1::float8])",
        [task],
    )
    found = await _why(shop, task)
    assert (found["code"], found["reason"].endswith(": 403.")) == ("failed", True)
    await shop.execute("SELECT cancel_tasks(ARRAY[%s::bigint])", [other])
    assert (await _why(shop, other))["code"] == "cancelled"
    await shop.refused("/api/tasks/999/explain", 404)


async def test_who_stands_before_it(shop: Shop) -> None:
    """As claims will take them: by effective priority, also what has come due and was not claimed since."""
    await _register(shop, "w1", max_concurrent_tasks=5)
    task = await _add(shop, role="store_discovery", priority=10, payload={"city": "Phoenix"})
    store, other = await shop.store("one"), await shop.store("two")

    async def put(role: str, **more: Any) -> None:
        row = {"role": role, "priority": 0, "aged": 0, "state": "r", "dispensary_id": None, "due": 0, **more}
        await shop.execute(
            "INSERT INTO task_live (role, priority, aged, state, dispensary_id, scheduled_for)"
            " VALUES (%(role)s, %(priority)s, %(aged)s, %(state)s, %(dispensary_id)s, now() + %(due)s * interval '1 minute')",
            row,
        )

    async def ahead() -> Any:
        return (await _why(shop, task))["ahead"]

    await put("store_discovery", priority=9)
    await put("store_discovery", priority=10)
    assert await ahead() == 0, "less urgent, and younger"
    await put("store_discovery", priority=9, aged=2)
    assert await ahead() == 1, "it has risen above it"
    await put("product_refresh", priority=20, state="s", due=-1)
    assert await ahead() == 2, "due, and taken up by the next claim"
    await put("product_refresh", priority=20, state="s", due=5)
    await put("product_refresh", priority=9, state="s", due=-1)
    assert await ahead() == 2, "not due; less urgent"
    for _ in range(3):
        await put("payload_fetch", priority=20, state="s", due=-1, dispensary_id=store)
    assert await ahead() == 3, "of one store and role one stands in the line"
    await put("payload_fetch", priority=20, dispensary_id=other)
    assert await ahead() == 4
    await put("payload_fetch", priority=20, state="s", due=-1, dispensary_id=other)
    assert await ahead() == 4, "it will be parked"
    await shop.execute(
        "UPDATE task_live SET state = 's', scheduled_for = now() - interval '1 hour' WHERE id = %s", [task]
    )
    found = await _why(shop, task)
    assert (found["code"], found["ahead"]) == ("ready", 4), "it is due itself, and nobody has claimed since"


async def test_its_store_and_its_turn(shop: Shop) -> None:
    store = await shop.store()
    await _register(shop, "w1", max_concurrent_tasks=5)
    first = await _add(shop, role="payload_fetch", dispensary_id=store)
    refreshes = [
        await _add(shop, role="product_refresh", dispensary_id=store, payload={"payload_id": n})
        for n in [await shop.archived(store, hours, b"{}") for hours in (1, 2, 3)]
    ]
    await shop.execute("SELECT claim_task('payload_fetch', 'w1')")
    found = await _why(shop, refreshes[0])
    assert (found["code"], found["blocked_by"]["id"], found["blocked_by"]["worker_id"]) == ("store_busy", first, "w1")
    found = await _why(shop, refreshes[2])
    assert (found["code"], found["blocked_by"]["id"], found["ahead"]) == ("behind", refreshes[0], 2)
    assert found["blocked_by"]["worker_id"] is None

    later = datetime.now(UTC) + timedelta(hours=3)
    planned = await _add(shop, role="store_discovery", scheduled_for=later.isoformat())
    found = await _why(shop, planned)
    assert (found["code"], datetime.fromisoformat(found["until"]), 10_700 < found["seconds"] <= 10_800) == (
        "later",
        later,
        True,
    )


@pytest.mark.parametrize(("verb", "code"), [("retry", "backing_off"), ("postpone", "postponed")])
async def test_what_was_tried_before(shop: Shop, verb: str, code: str) -> None:
    task = await _add(shop, role="store_discovery")
    await shop.execute(
        "SELECT finish_tasks('w1', array_agg(id), array_agg(attempt), array_agg(%s::text), array_agg('host cooling down'::text),"
        " array_agg(NULL::jsonb), array_agg(600::float8), array_agg(now() + interval '10 minutes'), array_agg(1::float8))"
        " FROM claim_task(NULL, 'w1')",
        [verb],
    )
    found = await _why(shop, task)
    assert (found["code"], "host cooling down" in found["reason"], 590 < found["seconds"] <= 600) == (code, True, True)
    assert found["details"]["last_error"] == "host cooling down"
    await shop.ask(f"/api/tasks/{task}/retry", method="POST")
    assert (await _why(shop, task))["code"] == "no_worker", "it is due now"
