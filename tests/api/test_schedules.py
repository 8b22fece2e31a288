"""Schedules, generated work and capacity over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.schedules import store as schedules
from tests.api.shop import Shop

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def stocked(shop: Shop) -> Shop:
    """With the default schedules."""
    async with shop.pool.connection() as conn:
        await schedules.create_missing(conn, START)
    return shop


async def _put(shop: Shop, number: int, status: int = 200, **body: Any) -> Any:
    return await shop.ask(f"/api/schedules/{number}", method="PUT", status=status, json=body)


async def test_list(stocked: Shop) -> None:
    one, two, _ = (await stocked.ask("/api/schedules"))["items"]
    assert (one["name"], one["role"], one["interval_hours"], one["priority"], one["enabled"]) == (
        "payload_fetch_all", "payload_fetch", 4, 0, True,
    )  # fmt: skip
    assert (two["name"], two["role"], two["interval_hours"], two["priority"]) == (
        "store_discovery_dutchie", "store_discovery", 24, 5,
    )  # fmt: skip
    assert (one["next_run_at"], one["last_run_at"], one["catch_up"]) == ("2026-01-01T00:00:00Z", None, "once")


async def test_change_what_is_named(stocked: Shop) -> None:
    ahead = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=20)
    await stocked.execute("UPDATE task_schedules SET next_run_at = %s", [ahead])
    changed = await _put(stocked, 1, interval_hours=2.5, priority=3, state_code="az")
    assert (changed["interval_hours"], changed["priority"], changed["state_code"]) == (2.5, 3, "AZ")
    assert changed["next_run_at"] == (ahead + timedelta(hours=-1.5)).isoformat().replace("+00:00", "Z")
    off = await _put(stocked, 1, enabled=False)
    assert (off["enabled"], off["state_code"], off["priority"]) == (False, "AZ", 3), "the rest stays"
    everywhere = await _put(stocked, 1, state_code=None, role="product_resync")
    assert (everywhere["state_code"], everywhere["role"]) == (None, "payload_fetch")
    listed = (await stocked.ask("/api/schedules"))["items"][0]
    assert {**listed, "late_seconds": 0} == {**everywhere, "late_seconds": 0}


async def test_lateness_and_errors_are_shown(stocked: Shop) -> None:
    now = datetime.now(UTC)
    await stocked.execute(
        "UPDATE task_schedules SET next_run_at = %s, last_error = 'Boom: why' WHERE id = 1", [now - timedelta(hours=3)]
    )
    await stocked.execute("UPDATE task_schedules SET next_run_at = %s WHERE id = 2", [now - timedelta(seconds=90)])
    one, two, _ = (await stocked.ask("/api/schedules"))["items"]
    assert 10_800 <= one["late_seconds"] < 10_830
    assert (one["last_error"], two["last_error"], two["late_seconds"]) == ("Boom: why", None, 0), (
        "90 s: somebody looks every minute"
    )
    assert (await _put(stocked, 1, enabled=False))["late_seconds"] == 0


# fmt: off
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"interval_hours": 0}, "#/interval_hours", "must lie between 0.01 and 8760"),
    ({"interval_hours": -4}, "#/interval_hours", "must lie between 0.01 and 8760"),
    ({"interval_hours": 1e9}, "#/interval_hours", "must lie between 0.01 and 8760"),
    ({"interval_hours": "NaN"}, "#/interval_hours", "finite"),
    ({"interval_hours": "often"}, "#/interval_hours", "decimal"),
    ({"state_code": "ZZ"}, "#/state_code", "'ZZ' does not exist"),
    ({"state_code": "ZZ"}, "#/state_code", "it is one of AB, AK, AL,"),
    ({"state_code": ""}, "#/state_code", "as AZ or ON"),
    ({"state_code": "Arizona"}, "#/state_code", "two letters"),
    ({"role": "sweep"}, "#/role", "payload_fetch, product_refresh, analytics_refresh, product_resync"),
    ({"role": "product_refresh"}, "#/role", "one of payload_fetch, store_discovery, analytics_refresh"),
    ({"interval_hours": "Infinity"}, "#/interval_hours", "finite"),
    ({"interval_hours": 0.009}, "#/interval_hours", "must lie between 0.01 and 8760"),
    ({"interval_hours": None, "state_code": "CA"}, "#/interval_hours", "cannot be null: leave it out"),
    ({"enabled": None}, "#/enabled", "cannot be null"),
    ({"priority": None}, "#/priority", "cannot be null"),
    ({"role": None}, "#/role", "cannot be null"),
    ({"platform": None}, "#/platform", "cannot be null"),
    ({}, "#", "names nothing to change: it takes enabled, interval_hours, priority, state_code, role, platform"),
    ({"enabled": "yes"}, "#/enabled", "boolean"),
    ({"enabled": 1}, "#/enabled", "boolean"),
    ({"priority": True}, "#/priority", "integer"),
    ({"platform": "nowhere"}, "#/platform", "one of dutchie"),
    ({"priority": -1001}, "#/priority", "must lie between -1000 and 1000"),
    ({"priority": 10**30}, "#/priority", "must lie between -1000 and 1000"),
    ({"enabled": "perhaps"}, "#/enabled", "boolean"),
    ({"intervall": 4}, "#/intervall", "not known"),
]
# fmt: on


async def test_what_cannot_be_changed_is_named(stocked: Shop) -> None:
    before = await stocked.ask("/api/schedules")
    for body, pointer, says in REFUSED:
        answer = await stocked.http.put("/api/schedules/1", json=body)
        assert answer.status_code in (400, 422), body
        problem = await stocked.refused("/api/schedules/1", answer.status_code, method="PUT", json=body)
        (error,) = problem["errors"]
        assert error["pointer"] == pointer, body
        assert says in error["detail"], (body, error)
    await stocked.refused("/api/schedules/99", 404, method="PUT", json={"enabled": True})
    await stocked.refused("/api/schedules/0", 422, method="PUT", json={"enabled": True})
    await stocked.refused("/api/schedules/99/trigger", 404, method="POST")
    after = await stocked.ask("/api/schedules")
    for one in (*before["items"], *after["items"]):
        one.pop("late_seconds")
    assert after == before, "nothing half changed"


async def test_trigger(stocked: Shop) -> None:
    for slug in ("one", "two"):
        await stocked.store(slug)
    await _put(stocked, 1, enabled=False)
    first = await stocked.ask("/api/schedules/1/trigger", method="POST")
    assert (first["tasks_created"], first["schedule"]["last_task_count"]) == (2, 2)
    assert first["schedule"]["last_run_at"] is not None
    assert first["schedule"]["next_run_at"] == "2026-01-01T00:00:00Z", "its own times stay"
    again = await stocked.ask("/api/schedules/1/trigger", method="POST")
    assert again["tasks_created"] == 0, "both have one waiting"
    assert (await stocked.ask("/api/tasks/counts"))["by_role"] == {"payload_fetch": {"pending": 2}}


async def test_plan_a_day(shop: Shop) -> None:
    for n in range(12):
        await shop.store(f"store-{n}", timezone="America/Phoenix")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    body = {"batches_per_day": 6, "date": tomorrow}
    made = await shop.ask("/api/tasks/generate/resync", method="POST", json=body)
    assert made == {"tasks_created": 12, "batches_per_day": 6, "date": tomorrow, "timezone": None}
    assert (await shop.ask("/api/tasks/generate/resync", method="POST", json=body))["tasks_created"] == 0
    planned = {task["scheduled_for"] for task in await shop.walk("/api/tasks")}
    assert len(planned) == 12
    today = await shop.ask("/api/tasks/generate/resync", method="POST")
    assert (today["batches_per_day"], today["date"], today["tasks_created"]) == (
        6,
        datetime.now(UTC).date().isoformat(),
        0,
    )


async def test_what_cannot_be_planned_is_named(shop: Shop) -> None:
    await shop.store()
    for body, pointer, says in (
        ({"date": "2026-02-30"}, "#/date", "date"),
        ({"date": "soon"}, "#/date", "date"),
        ({"date": "2001-01-01"}, "#/date", "not for 2001-01-01"),
        ({"date": "2999-01-01"}, "#/date", "can be planned from"),
        ({"batches_per_day": 0}, "#/batches_per_day", "greater than or equal to 1"),
        ({"batches_per_day": 100_000}, "#/batches_per_day", "less than or equal to 1440"),
        ({"timezone": "Mars/Olympus"}, "#/timezone", "'Mars/Olympus' does not exist"),
        ({"batches": 6}, "#/batches", "not known"),
    ):
        answer = await shop.http.post("/api/tasks/generate/resync", json=body)
        assert answer.status_code in (400, 422), body
        problem = await shop.refused("/api/tasks/generate/resync", answer.status_code, method="POST", json=body)
        assert problem["errors"][0]["pointer"] == pointer, body
        assert says in problem["errors"][0]["detail"], (body, problem)
    assert (await shop.ask("/api/tasks/counts"))["total"] == 0


async def test_search_for_stores(shop: Shop) -> None:
    path = "/api/tasks/generate/discovery"
    whole = await shop.ask(path, method="POST")
    assert (whole["tasks_created"], whole["task"]["role"], whole["task"]["priority"]) == (1, "store_discovery", 5)
    again = await shop.ask(path, method="POST")
    assert (again["tasks_created"], again["task"]["id"]) == (0, whole["task"]["id"])
    one = await shop.ask(path, method="POST", json={"state_code": "on", "priority": 20})
    assert (one["tasks_created"], one["task"]["payload"], one["task"]["priority"]) == (1, {"state": "ON"}, 20)
    for body, pointer in (
        ({"state_code": "XX"}, "#/state_code"),
        ({"platform": "nowhere"}, "#/platform"),
        ({"priority": -1}, "#/priority"),
    ):
        answer = await shop.http.post(path, json=body)
        assert answer.status_code in (400, 422), body
        assert answer.json()["errors"][0]["pointer"] == pointer


async def test_capacity(shop: Shop) -> None:
    await shop.execute("SELECT ensure_task_history_partition(now() - interval '2 hours')")
    # 30 s each: 120 an hour. 1000 of them: 8.3 workers for an hour, 2.1 for four, 1.04 for eight.
    await shop.execute(
        "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count,"
        " max_retries, postpone_count, role, platform, status, worker_id, payload) VALUES (nextval('task_ids'), now(),"
        " now() - interval '31 s', now() - interval '31 s', now() - interval '1 s', 0, 1, 0, 3, 0, 'payload_fetch', 'dutchie',"
        " 'completed', 'w', '{}')"
    )
    await shop.execute(
        "INSERT INTO worker_tasks (role, dispensary_id) SELECT 'payload_fetch', n FROM generate_series(1, 1000) n"
    )
    one = await shop.ask("/api/tasks/capacity/product_resync")
    assert (one["role"], one["pending_tasks"], one["tasks_per_worker_hour"]) == ("payload_fetch", 1000, 120)
    assert one["workers_needed"] == {"for_1_hour": 9, "for_4_hours": 3, "for_8_hours": 2}
    everything = (await shop.ask("/api/tasks/capacity"))["items"]
    assert len(everything) == 6
    assert one in everything
    idle = await shop.ask("/api/tasks/capacity/analytics_refresh")
    assert idle["workers_needed"] == {"for_1_hour": 0, "for_4_hours": 0, "for_8_hours": 0}
    problem = await shop.refused("/api/tasks/capacity/sweep", 422)
    assert "payload_fetch" in problem["detail"]
