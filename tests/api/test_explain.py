"""Why a task is where it is: the rules on facts made by hand, then each reason on a real queue."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from menuwatch.operations.explanation import Code
from menuwatch.operations.facts import Facts, HostFacts, Other, WorkerFacts
from menuwatch.operations.reasons import explanation
from menuwatch.operations.wording import span
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
            "slots": 3,
            "active": 0,
            **given,
        }
    )


RUNNING = {"state": "a", "status": "running", "worker_id": "w1", "claimed_at": PAST, "started_at": PAST}
AHEAD = Other(id=5, role="payload_fetch", worker_id="w2", claimed_at=PAST)
OVER: dict[str, Any] = {"state": None, "completed_at": PAST, "worker_id": "w1", "attempt": 2}
HEARD = " That is known from heartbeats, the oldest 5 s old."
LONE = "It is ready, but the one live worker that takes payload_fetch does not claim now: "
RESUME = "1 paused. `menuwatch workers resume` has a worker claim again." + HEARD
START = "1 stopping. Start another one with `menuwatch worker`." + HEARD
BARRED = _worker(paused_roles=["payload_fetch"], reason="no proxy is active")
NO_PROXY = (
    "It is ready, but none of the 2 live workers that take payload_fetch claims now: 1 does not claim this role, 1 paused (no proxy "
    "is active). Add a working proxy with `menuwatch proxies add`, or see why none is active: `menuwatch proxies list`."
)
FULL, HOT = _worker(active=3), _worker(status="backing_off", reason="memory 91 %")
SILENT = " since 2026-11-21 11:56:55 UTC, but has been silent for 3 min 5 s: the task is taken back in 6 min 55 s if that lasts."
WHY = "1 backing off, 1 paused, 1 stopping (memory 91 %). They go on when the machine has room again."
ONE = "11:56:55 UTC; of one store only one task runs at a time."
LATE: dict[str, Any] = {"state": "s", "scheduled_for": NOW + timedelta(minutes=5), "attempt": 1}
NOT_NOW = "d is not asked now"
COLD = f"{NOT_NOW} (it cools down): HTTP 429"
DUE = "in 5 min, at 2026-11-21 12:05:00 UTC"
WAITS = f"It waits for d (it cools down: HTTP 429), and is due {DUE}"
RESUME_D = "`menuwatch hosts resume d` has it asked again"
PACE = "wait; its turn comes; `menuwatch hosts set d --rate …` lets more be asked"
THEN = ", and `menuwatch tasks retry 7` then has this task due at once"
AGAIN = "They look again by themselves"
WAIT = (
    "wait; it is asked again by itself, more slowly. If it cools down often, ask less often (`menuwatch hosts set d --rate …`); "
    "`menuwatch hosts reset d` asks at once"
)


def _host(code: str, seconds: float | None) -> HostFacts:
    until = None if seconds is None else NOW + timedelta(seconds=seconds)
    return HostFacts(host="d", code=code, reason="HTTP 429", until=until)


# fmt: off
TABLE: list[tuple[str, dict[str, Any], Code, str]] = [
    ("completed", {**OVER, "status": "completed"}, Code.COMPLETED,
     "It was completed at 2026-11-21 11:56:55 UTC by worker w1, at attempt 2."),
    ("failed", {**OVER, "status": "failed", "error_message": "403 from host."}, Code.FAILED,
     "It failed for good at 2026-11-21 11:56:55 UTC, at attempt 2: 403 from host."),
    ("cancelled", {**OVER, "status": "cancelled", "worker_id": None, "attempt": 0, "error_message": "wrong day"}, Code.CANCELLED,
     "It was cancelled at 2026-11-21 11:56:55 UTC: wrong day."),
    ("running", {**RUNNING, "last_heartbeat_at": NOW - timedelta(seconds=12)}, Code.RUNNING,
     "Worker w1 has been running it for 3 min 5 s, since 2026-11-21 11:56:55 UTC; its last heartbeat was 12 s ago."),
    ("claimed", {**RUNNING, "started_at": None, "claimed_at": NOW - timedelta(seconds=1)}, Code.RUNNING,
     "Worker w1 has claimed it and not started for 1 s, since 2026-11-21 11:59:59 UTC; its last heartbeat was 1 s ago."),
    ("silent, at the very limit", {**RUNNING, "last_heartbeat_at": NOW - timedelta(seconds=90)}, Code.RUNNING,
     "Worker w1 has been running it for 3 min 5 s, since 2026-11-21 11:56:55 UTC; its last heartbeat was 1 min 30 s ago."),
    ("silent", {**RUNNING, "last_heartbeat_at": PAST}, Code.SILENT,
     "Worker w1 has been running it for 3 min 5 s," + SILENT),
    ("stale", {**RUNNING, "status": "stale", "last_heartbeat_at": NOW - timedelta(minutes=11)}, Code.STALE,
     "Worker w1 has been silent for 11 min: the task is about to be taken back and to wait for another worker."),
    ("later", {"state": "s", "scheduled_for": NOW + timedelta(hours=2, minutes=5, seconds=30)}, Code.LATER,
     "It is planned for later: it is due in 2 h 5 min, at 2026-11-21 14:05:30 UTC."),
    ("backing off", {"state": "s", "scheduled_for": NOW + timedelta(seconds=65), "attempt": 2, "retry_count": 2,
                     "error_message": "timeout"}, Code.BACKING_OFF,
     "It waits for retry 2 of 3, due in 1 min 5 s, at 2026-11-21 12:01:05 UTC, after: timeout."),
    ("postponed", {"state": "s", "scheduled_for": NOW + timedelta(minutes=5), "attempt": 1, "postpone_count": 1,
                   "error_message": "host dutchie.com is cooling down"},
     Code.POSTPONED, "It was put off and is due in 5 min, at 2026-11-21 12:05:00 UTC: host dutchie.com is cooling down."),
    ("put off after a retry, by who refused everybody",
     {**LATE, "retry_count": 1, "error_message": "d refused every identity: HTTP 403"}, Code.POSTPONED,
     f"It was put off and is due {DUE}: d refused every identity: HTTP 403."),
    ("put off, uncounted, for want of a proxy", {**LATE, "error_message": f"{NOT_NOW} (no proxy is free for it): all are in use"},
     Code.POSTPONED, f"It was put off and is due {DUE}: d is not asked now (no proxy is free for it): all are in use."),
    ("put off by a cool-down that lasts", {**LATE, "error_message": "d asked to slow down: HTTP 429, wait 300 s",
                                           "denier": _host("cooling", 300)}, Code.HOST_CLOSED,
     f"It waits for d (it asked to slow down: HTTP 429, wait 300 s), and is due {DUE}. To do: {WAIT}{THEN}."),
    ("put off by a cool-down that has grown", {**LATE, "error_message": COLD, "denier": _host("cooling", 3600)}, Code.HOST_CLOSED,
     f"{WAITS}; the host is closed until 2026-11-21 13:00:00 UTC. To do: {WAIT}{THEN}."),
    ("put off, and the host was paused since", {**LATE, "error_message": COLD, "denier": _host("paused", None)}, Code.HOST_CLOSED,
     f"{WAITS}; the host is closed until somebody opens it. To do: {RESUME_D}{THEN}."),
    ("put off, and the host is open by now", {**LATE, "error_message": COLD, "denier": HostFacts(host="d")}, Code.HOST_CLOSED,
     f"{WAITS}; the host may be asked again by now: `menuwatch tasks retry 7` has the task due at once."),
    ("put off by the budget", {**LATE, "error_message": f"{NOT_NOW} (its budget): used up for the next 300 s"}, Code.HOST_CLOSED,
     f"It waits for d (its budget: used up for the next 300 s), and is due {DUE}. To do: {PACE}."),
    ("closed host", {"workers": [_worker(), BARRED], "hosts": [_host("cooling", 300)]}, Code.HOST_CLOSED,
     f"It is ready, but d is not asked (it cools down: HTTP 429). It is asked again {DUE}. To do: {WAIT}."),
    ("paused host", {"workers": [_worker(status="paused")], "hosts": [_host("paused", None)]}, Code.HOST_CLOSED,
     f"It is ready, but d is not asked (an operator closed it: HTTP 429). It is closed until somebody opens it. To do: {RESUME_D}."),
    ("closed host, by what workers say", {"workers": [_worker(paused_roles=["payload_fetch"], reason="d is not asked: HTTP 429")],
                                          "hosts": [HostFacts(host="d")]}, Code.HOST_CLOSED,
     f"{LONE}1 does not claim this role (d is not asked: HTTP 429). {AGAIN}; `menuwatch hosts list` shows the host." + HEARD),
    ("workers have not looked since", {"workers": [BARRED]}, Code.WORKERS_BACKING_OFF,
     f"{LONE}1 does not claim this role (no proxy is active). {AGAIN}." + HEARD),
    ("one of two hosts is open", {"workers": [_worker()], "hosts": [_host("cooling", 300), HostFacts(host="e")]}, Code.READY,
     "It is ready and will be taken next: 3 slots are free." + HEARD),
    ("a closed host, and no proxy either", {"workers": [BARRED, _worker(status="paused")], "hosts": [_host("cooling", 300)],
                                            "active_proxies": 0}, Code.NO_PROXY, NO_PROXY + HEARD),
    ("a closed host, and nobody alive", {"hosts": [_host("cooling", 300)]}, Code.NO_WORKER,
     "It is ready, but no worker is alive to take it. Start one with `menuwatch worker`."),
    ("a closed host, and work that asks none", {"role": "product_refresh", "workers": [_worker()], "hosts": [_host("cooling", 300)]},
     Code.READY, "It is ready and will be taken next: 3 slots are free." + HEARD),
    ("scheduled, and due by now", {"state": "s", "scheduled_for": NOW, "attempt": 1, "retry_count": 1, "workers": [_worker()]},
     Code.READY, "It is ready and will be taken next: 3 slots are free." + HEARD),
    ("behind one that runs", {"state": "p", "head": AHEAD, "ahead": 1, "holder": AHEAD}, Code.BEHIND,
     "It is behind task #5 of the same role and store, which worker w2 has had since 2026-11-21 11:56:55 UTC."),
    ("behind several", {"state": "p", "head": Other(id=5, role="payload_fetch"), "ahead": 3}, Code.BEHIND,
     "It is behind task #5 of the same role and store, which is waiting as well; 3 tasks of this role and store go before it."),
    ("store busy", {"holder": Other(id=6, role="product_refresh", worker_id="w2", claimed_at=PAST), "workers": [_worker()]},
     Code.STORE_BUSY, "Its store is busy with task #6 (product_refresh), which worker w2 has had since 2026-11-21 " + ONE),
    ("nobody", {}, Code.NO_WORKER, "It is ready, but no worker is alive to take it. Start one with `menuwatch worker`."),
    ("nobody any more", {"workers": [_worker(silent=90.5), _worker(silent=1e6)]}, Code.NO_WORKER,
     "It is ready, but no worker is alive to take it; 2 workers fell silent. Start one with `menuwatch worker`."),
    ("nobody for it", {"workers": [_worker(roles=["product_refresh", "store_discovery"]), _worker(silent=91)]},
     Code.NO_WORKER_FOR_ROLE,
     "It is ready, but no live worker takes payload_fetch: 1 worker takes product_refresh, store_discovery."),
    ("nobody for it, of two", {"workers": [_worker(roles=["product_refresh"]), _worker(roles=["store_discovery"])]},
     Code.NO_WORKER_FOR_ROLE,
     "It is ready, but no live worker takes payload_fetch: 2 workers take product_refresh, store_discovery."),
    ("paused", {"workers": [_worker(status="paused"), _worker(roles=["product_refresh"])]}, Code.WORKERS_PAUSED, LONE + RESUME),
    ("no proxy", {"workers": [BARRED, _worker(status="paused")], "active_proxies": 0}, Code.NO_PROXY, NO_PROXY + HEARD),
    ("stopping", {"workers": [_worker(status="stopping", paused_roles=["payload_fetch"])]}, Code.WORKERS_STOPPING, LONE + START),
    ("backing off workers", {"workers": [HOT, _worker(status="paused"), _worker(status="stopping")]}, Code.WORKERS_BACKING_OFF,
     "It is ready, but none of the 3 live workers that take payload_fetch claims now: " + WHY + HEARD),
    ("one full", {"workers": [FULL], "before": 1}, Code.NO_FREE_SLOT,
     "The one live worker that takes payload_fetch has no free slot (3 of 3 are taken); 1 task stands before it." + HEARD),
    ("all full", {"workers": [FULL, _worker(active=1, slots=None), _worker(silent=900)], "before": 10_000}, Code.NO_FREE_SLOT,
     "All 2 live workers that take payload_fetch have no free slot (4 of 4 are taken); 10,000 tasks or more stand before it." + HEARD),
    ("a paused one does not count", {"workers": [FULL, _worker(status="paused")]}, Code.NO_FREE_SLOT,
     "The one live worker that takes payload_fetch has no free slot (3 of 3 are taken); 0 tasks stand before it." + HEARD),
    ("next", {"workers": [_worker(active=2)]}, Code.READY, "It is ready and will be taken next: 1 slot is free." + HEARD),
    ("soon", {"workers": [_worker(active=2), _worker(active=0, slots=None)], "before": 12}, Code.READY,
     "It is ready; 12 tasks stand before it, and 2 slots are free." + HEARD),
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
        0.4: "0 s",
        59.6: "1 min",
        61: "1 min 1 s",
        3600: "1 h",
        3661: "1 h 1 min",
        90_000: "1 d 1 h",
        -5: "0 s",
    }
    assert {seconds: span(seconds) for seconds in said} == said


async def test_a_closed_host_holds_back_who_asks_it(shop: Shop) -> None:
    store = await shop.store()
    task = await _add(shop, role="payload_fetch", dispensary_id=store)
    await shop.execute("INSERT INTO proxies (protocol, host, port, is_active) VALUES ('http', '10.0.0.1', 80, true)")
    (host,) = shop.platforms["dutchie"].hosts
    await _register(shop, "w1", paused_roles=["payload_fetch"], paused_roles_reason=f"{host} is not asked: HTTP 429")
    await shop.execute(
        "INSERT INTO hosts (host, rate, burst, concurrency, pace, cooldown_until, cooldown_reason)"
        " VALUES (%s, 2, 4, 6, 1, now() + interval '10 minutes', 'HTTP 429, wait 600 s')",
        [host],
    )
    found = await _why(shop, task)
    assert (found["code"], found["details"]["host"], found["details"]["host_code"]) == ("host_closed", host, "cooling")
    assert 590 < found["seconds"] <= 600
    assert f"{host} is not asked (it cools down: HTTP 429, wait 600 s)" in found["reason"]
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
    await shop.execute("UPDATE worker_registry SET last_heartbeat_at = now() - interval '91 seconds'")
    found = await _why(shop, task)
    assert (found["code"], found["workers"]["silent"]) == ("no_worker", 1), "three heartbeats of 30 s"

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
