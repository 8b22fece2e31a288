"""Schedules, generated work and capacity over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.queue.schedules import store as schedules
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
    assert (two["name"], two["role"], two["interval_hours"], two["priority"], two["enabled"]) == (
        "store_discovery_dutchie", "store_discovery", 24, 5, False,
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
    ({"interval_hours": 0}, "#/interval_hours", "must be between 0.01 and 8760"),
    ({"interval_hours": -4}, "#/interval_hours", "must be between 0.01 and 8760"),
    ({"interval_hours": 1e9}, "#/interval_hours", "must be between 0.01 and 8760"),
    ({"interval_hours": "NaN"}, "#/interval_hours", "finite"),
    ({"interval_hours": "often"}, "#/interval_hours", "must be a number"),
    ({"state_code": "ZZ"}, "#/state_code", "unknown state 'ZZ'"),
    ({"state_code": "ZZ"}, "#/state_code", "use two letters such as AZ or ON"),
    ({"state_code": ""}, "#/state_code", "as AZ or ON"),
    ({"state_code": "Arizona"}, "#/state_code", "two letters"),
    ({"role": "sweep"}, "#/role", "payload_fetch, product_refresh, analytics_refresh, product_resync"),
    ({"role": "product_refresh"}, "#/role", "one of: payload_fetch, store_discovery, analytics_refresh"),
    ({"interval_hours": "Infinity"}, "#/interval_hours", "finite"),
    ({"interval_hours": 0.009}, "#/interval_hours", "must be between 0.01 and 8760"),
    ({"interval_hours": None, "state_code": "CA"}, "#/interval_hours", "must not be null: omit it"),
    ({"enabled": None}, "#/enabled", "must not be null"),
    ({"priority": None}, "#/priority", "must not be null"),
    ({"role": None}, "#/role", "must not be null"),
    ({"platform": None}, "#/platform", "must not be null"),
    ({}, "#", "nothing to change: give at least one of enabled, interval_hours, cron, timezone, priority, state_code, role, platform"),
    ({"enabled": "yes"}, "#/enabled", "true or false"),
    ({"enabled": 1}, "#/enabled", "true or false"),
    ({"priority": True}, "#/priority", "whole number"),
    ({"platform": "nowhere"}, "#/platform", "one of: dutchie"),
    ({"priority": -1001}, "#/priority", "must be between -1000 and 1000"),
    ({"priority": 10**30}, "#/priority", "must be between -1000 and 1000"),
    ({"enabled": "perhaps"}, "#/enabled", "true or false"),
    ({"intervall": 4}, "#/intervall", "unknown"),
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


NEW = {"name": "fetch_az", "role": "product_resync", "interval_hours": 2.5, "state_code": "az", "priority": 3}


async def test_one_schedule_per_state(stocked: Shop) -> None:
    in_state = await stocked.store("one", state="AZ")
    await stocked.store("two", state="NV")
    made = await stocked.ask("/api/schedules", method="POST", status=201, json=NEW)
    assert [made[key] for key in ("name", "role", "platform", "interval_hours", "state_code", "priority", "enabled")] == [
        "fetch_az", "payload_fetch", "dutchie", 2.5, "AZ", 3, True,
    ]  # fmt: skip
    assert made["next_run_at"] <= datetime.now(UTC).isoformat()
    path = f"/api/schedules/{made['id']}"
    assert (await stocked.ask(f"{path}/trigger", method="POST"))["tasks_created"] == 1
    tasks = await stocked.walk("/api/tasks")
    assert [(task["dispensary_id"], task["priority"]) for task in tasks] == [(in_state, 3)]
    deleted = await stocked.ask(path, method="DELETE")
    assert (deleted["id"], deleted["name"], deleted["last_task_count"]) == (made["id"], "fetch_az", 1)
    await stocked.refused(path, 404)
    await stocked.refused(path, 404, method="DELETE")
    assert len(await stocked.walk("/api/tasks")) == 1, "its tasks stay"
    assert (await stocked.ask("/api/schedules", method="POST", status=201, json=NEW))["last_run_at"] is None


async def test_default_schedules_are_not_deleted(stocked: Shop) -> None:
    problem = await stocked.refused("/api/schedules/1", 409, method="DELETE")
    assert "payload_fetch_all is a default schedule" in problem["detail"]
    assert "disable it" in problem["detail"]
    assert len((await stocked.ask("/api/schedules"))["items"]) == 3


async def test_what_cannot_be_created_is_named(stocked: Shop) -> None:
    for changed, pointer, says in (
        ({"name": None}, "#/name", "must be text, not null"),
        ({"name": ""}, "#/name", "at least 1 character"),
        ({"name": " x"}, "#/name", "printable characters, without leading"),
        ({"name": "x" * 81}, "#/name", "at most 80"),
        ({"name": "12"}, "#/name", "could be mistaken for the id"),
        ({"role": "product_refresh"}, "#/role", "one of: payload_fetch, store_discovery, analytics_refresh"),
        ({"role": "sweep"}, "#/role", "product_resync"),
        ({"interval_hours": 0}, "#/interval_hours", "between 0.01 and 8760"),
        ({"state_code": "ZZ"}, "#/state_code", "unknown state 'ZZ'"),
        ({"role": "analytics_refresh"}, "#/state_code", "covers all states"),
        ({"platform": "nowhere"}, "#/platform", "one of: dutchie"),
        ({"next_run_at": "2026-01-01T00:00:00Z"}, "#/next_run_at", "unknown"),
    ):
        body = {**NEW, **changed}
        answer = await stocked.http.post("/api/schedules", json=body)
        assert answer.status_code in (400, 422), changed
        problem = await stocked.refused("/api/schedules", answer.status_code, method="POST", json=body)
        (error,) = problem["errors"]
        assert (error["pointer"], says in error["detail"]) == (pointer, True), (changed, error)
    problem = await stocked.refused("/api/schedules", 409, method="POST", json={**NEW, "name": "payload_fetch_all"})
    assert "'payload_fetch_all' exists already" in problem["detail"]


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
        ({"batches_per_day": 0}, "#/batches_per_day", "at least 1"),
        ({"batches_per_day": 100_000}, "#/batches_per_day", "at most 1440"),
        ({"timezone": "Mars/Olympus"}, "#/timezone", "unknown time zone 'Mars/Olympus'"),
        ({"batches": 6}, "#/batches", "unknown"),
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


async def test_a_cron_line_is_created_previewed_and_replaced(stocked: Shop) -> None:
    body = {"cron": "0 2 * * *", "timezone": "America/Phoenix", "count": 2}
    runs = [
        datetime.fromisoformat(at)
        for at in (await stocked.ask("/api/schedules/preview", method="POST", json=body))["runs"]
    ]
    assert [(at.hour, at.minute) for at in runs] == [(9, 0), (9, 0)]
    assert runs[1] - runs[0] == timedelta(days=1)
    new = {"name": "night", "role": "payload_fetch", "cron": "02:00", "timezone": "America/Phoenix"}
    made = await stocked.ask("/api/schedules", method="POST", status=201, json=new)
    assert (made["cron"], made["timezone"], made["interval_hours"]) == ("0 2 * * *", "America/Phoenix", 24)
    assert datetime.fromisoformat(made["next_run_at"]) == runs[0]
    ahead = await stocked.ask(f"/api/schedules/{made['id']}/runs/upcoming")
    assert [datetime.fromisoformat(at) for at in ahead["runs"][:2]] == runs
    local = await _put(stocked, made["id"], timezone="store")
    assert local["timezone"] == "store"
    plain = await _put(stocked, made["id"], cron=None, interval_hours=6)
    assert (plain["cron"], plain["timezone"], plain["interval_hours"]) == (None, None, 6)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"cron": "0 25 * * *"}, "#/cron"),
        ({"cron": "0 2 * * *", "timezone": "Mars/Olympus"}, "#/timezone"),
        ({"cron": "0 2 * * *", "interval_hours": 4}, "#/interval_hours"),
        ({}, "#/interval_hours"),
        ({"interval_hours": 4, "timezone": "UTC"}, "#/timezone"),
        ({"role": "analytics_refresh", "cron": "0 2 * * *", "timezone": "store"}, "#/timezone"),
    ],
)
async def test_a_timing_that_means_nothing_is_refused(stocked: Shop, body: dict[str, Any], pointer: str) -> None:
    new = {"name": "night", "role": "payload_fetch", **body}
    problem = await stocked.refused("/api/schedules", 400, method="POST", json=new)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


async def test_all_schedules_are_paused_and_resumed(stocked: Shop) -> None:
    await _put(stocked, 1, enabled=False)
    paused = (await stocked.ask("/api/schedules/pause", method="POST"))["items"]
    assert [(one["enabled"], one["paused_at"] is not None) for one in paused] == [
        (False, False),
        (False, False),
        (False, True),
    ]
    await _put(stocked, 2, enabled=True)
    resumed = (await stocked.ask("/api/schedules/resume", method="POST"))["items"]
    assert [(one["enabled"], one["paused_at"]) for one in resumed] == [(False, None), (True, None), (True, None)]


async def test_choose_states_for_discovery(stocked: Shop) -> None:
    """Stores 4 and 6 crawls a day, and menus of 2 and 4 pages."""
    await stocked.execute("DELETE FROM dispensaries")
    await stocked.execute(
        "INSERT INTO dispensaries (id, name, name_raw, platform_dispensary_id, state, crawl_interval_hours)"
        " OVERRIDING SYSTEM VALUE VALUES (901, 'a', 'a', 'a', 'AZ', 4), (902, 'b', 'b', 'b', 'AZ', 6), (903, 'c', 'c', 'c', 'NV', 4)"
    )
    before = await stocked.ask("/api/discovery")
    assert (before["platform"], before["all_states"], before["measured"]) == ("dutchie", False, False)
    assert before["requests_per_store"] == 30, "six crawls of five pages"
    assert not any(state["chosen"] for state in before["states"])
    await stocked.execute(
        "INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, page_count, fetched_at, path, bytes, raw_bytes, sha256,"
        " content_sha256) SELECT 901, 'dutchie', 'ok', n, now() - n * interval '1 hour', '', 1, 1, '', '' FROM unnest(ARRAY[2, 4]) n"
    )
    chosen = await stocked.ask("/api/discovery", method="PUT", json={"states": ["az", "ON"]})
    known = {state["code"]: state for state in chosen["states"]}
    assert [code for code, state in known.items() if state["chosen"]] == ["AZ", "ON"]
    assert (known["AZ"]["stores"], known["AZ"]["requests_per_day"]) == (2, (6 + 4) * 3)
    assert (known["ON"]["stores"], known["ON"]["requests_per_day"]) == (0, 0)
    assert (chosen["measured"], chosen["requests_per_store"]) == (True, 18)
    # Another choice turns the first one off, and an existing schedule is used again.
    await stocked.ask("/api/discovery", method="PUT", json={"states": ["NV"]})
    await stocked.ask("/api/discovery", method="PUT", json={"states": ["AZ"]})
    rows = {
        one["name"]: one for one in (await stocked.ask("/api/schedules"))["items"] if one["role"] == "store_discovery"
    }
    assert {name: (one["state_code"], one["enabled"], float(one["interval_hours"])) for name, one in rows.items()} == {
        "store_discovery_dutchie": (None, False, 24),
        "store_discovery_dutchie_az": ("AZ", True, 24),
        "store_discovery_dutchie_on": ("ON", False, 24),
        "store_discovery_dutchie_nv": ("NV", False, 24),
    }
    everywhere = await stocked.ask("/api/discovery", method="PUT", json={"all_states": True})
    assert (everywhere["all_states"], any(state["chosen"] for state in everywhere["states"])) == (True, False)
    for wrong in ({"states": ["ZZ"]}, {"states": ["AZ"], "all_states": True}, {"platform": "nowhere"}):
        await stocked.ask("/api/discovery", method="PUT", status=400, json=wrong)
    assert (await stocked.ask("/api/discovery"))["all_states"], "what is refused changes nothing"


async def test_a_choice_of_states_during_a_pause_lasts(stocked: Shop) -> None:
    await stocked.ask("/api/discovery", method="PUT", json={"states": ["AZ"]})
    await stocked.ask("/api/schedules/pause", method="POST")
    await stocked.ask("/api/discovery", method="PUT", json={"states": ["NV"]})
    await _put(stocked, 3, enabled=False)
    resumed = (await stocked.ask("/api/schedules/resume", method="POST"))["items"]
    assert {one["name"]: one["enabled"] for one in resumed} == {
        "payload_fetch_all": True,
        "store_discovery_dutchie": False,
        "analytics_refresh": False,
        "store_discovery_dutchie_az": False,
        "store_discovery_dutchie_nv": True,
    }


async def test_states_are_chosen_although_a_name_is_taken(stocked: Shop) -> None:
    await _put(stocked, 2, state_code="AZ")
    assert (await stocked.ask("/api/discovery", method="PUT", json={"all_states": True}))["all_states"]
    found = {one["name"]: one for one in (await stocked.ask("/api/schedules"))["items"]}
    assert (found["store_discovery_dutchie_2"]["state_code"], found["store_discovery_dutchie_2"]["enabled"]) == (
        None,
        True,
    )


async def test_reports_cover_all_states(stocked: Shop) -> None:
    await _put(stocked, 3, state_code="AZ", status=400)
    await _put(stocked, 1, state_code="AZ")
    problem = await _put(stocked, 1, role="analytics_refresh", status=400)
    assert [error["pointer"] for error in problem["errors"]] == ["#/state_code"]
    await _put(stocked, 1, role="analytics_refresh", state_code=None)
