"""Hosts over HTTP: state, limits, pause, resume, reset, events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from menuwatch.hosts.model import State
from tests.api.shop import Shop

BASE = "/api/hosts"


async def _host(shop: Shop, name: str = "dutchie.com", **more: object) -> None:
    await shop.execute(
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES (%s, 2, 4, 6, 2) ON CONFLICT DO NOTHING",
        [name],
    )
    for column, value in more.items():
        await shop.execute(f"UPDATE hosts SET {column} = {value} WHERE host = %s", [name])


COOL = {
    "cooldown_until": "now() + interval '1 hour', cooldown_reason = 'HTTP 429', rate_reduced_at = now(), current_rate = 1"
}
CIRCUIT = {
    "circuit": "'open', circuit_opened_at = now(), circuit_until = now() + interval '15 minutes', circuit_reason = 'refused'"
}
STATES: list[tuple[State, dict[str, str], str | None, str | None]] = [
    (State.HEALTHY, {}, None, None),
    (State.THROTTLED, {"current_rate": "0.5, rate_reduced_at = now()"}, None, "the rate recovers"),
    (State.COOLING, COOL, "HTTP 429", "hosts reset dutchie.com"),
    (State.CIRCUIT, CIRCUIT, "refused", "open the site in your own browser"),
    (State.HALF_OPEN, {**CIRCUIT, "circuit_until": "now()"}, "refused", "one identity is probing"),
    (State.PAUSED, {**CIRCUIT, "paused_at": "now(), paused_reason = 'lawyers'"}, "lawyers", "hosts resume dutchie.com"),
]


@pytest.mark.parametrize(("state", "given", "reason", "advice"), STATES, ids=[row[0] for row in STATES])
async def test_every_state(
    shop: Shop, state: State, given: dict[str, str], reason: str | None, advice: str | None
) -> None:
    await _host(shop, **given)
    (host,) = (await shop.ask(BASE))["items"]
    assert (host["state"], host["reason"]) == (state, reason)
    assert (host["advice"] or "None").count(advice or "None") == 1
    assert (host["since"] is None) == (state == "healthy")
    assert (host["until"] is None) == (state not in ("cooling", "circuit"))
    assert (await shop.ask(f"{BASE}/DUTCHIE.com"))["host"] == host


async def test_limits(shop: Shop) -> None:
    new = await shop.ask(f"{BASE}/a.example:8443", method="PATCH", json={"rate": 0.5, "burst": 1})
    assert (new["rate"], new["current_rate"], new["burst"], new["concurrency"], new["state"]) == (
        0.5,
        0.5,
        1,
        6,
        "healthy",
    )
    up = await shop.ask(f"{BASE}/a.example:8443", method="PATCH", json={"rate": 5})
    assert (up["rate"], up["current_rate"], up["state"]) == (5, 0.5, "healthy"), "a higher rate is grown into"
    await shop.execute("UPDATE hosts SET rate_reduced_at = now() WHERE host = 'a.example:8443'")
    up = await shop.ask(f"{BASE}/a.example:8443", method="PATCH", json={"rate": 6})
    assert (up["state"], up["since"] is None) == ("throttled", False), "it was reduced before"
    down = await shop.ask(f"{BASE}/a.example:8443", method="PATCH", json={"rate": 0.25, "min_gap": 3})
    assert (down["rate"], down["current_rate"], down["min_gap"], down["burst"]) == (0.25, 0.25, 3, 1)
    said = [one["reason"] for one in await shop.walk(f"{BASE}/a.example:8443/events", limit=2)]
    assert said == ["set: rate 0.25, min_gap 3", "set: rate 6", "set: rate 5", "set: rate 0.5, burst 1"]


@pytest.mark.parametrize(
    ("body", "pointer", "says"),
    [
        ({"rate": 0}, "#/rate", "at least"),
        ({"rate": -1}, "#/rate", "at least"),
        ({"rate": 1e7}, "#/rate", "at most 1000000"),
        ({"rate": "2"}, "#/rate", "must be a number"),
        ({"rate": True}, "#/rate", "must be a number"),
        ({"burst": 1.5}, "#/burst", "must be a whole number"),
        ({"burst": 10**40}, "#/burst", "at most 10000"),
        ({"concurrency": 0}, "#/concurrency", "at least 1"),
        ({"min_gap": 86401}, "#/min_gap", "at most 86400"),
        ({"colour": 1}, "#/colour", "unknown"),
        ({}, "#", "nothing to change: give at least one of rate, burst, concurrency, min_gap"),
        ({"rate": None}, "#", "nothing to change: give at least one of"),
    ],
)
async def test_limits_that_mean_nothing(shop: Shop, body: dict[str, object], pointer: str, says: str) -> None:
    problem = await shop.refused(f"{BASE}/a.example", 422, method="PATCH", json=body)
    (error,) = problem["errors"]
    assert (error["pointer"], says in error["detail"]) == (pointer, True), error
    assert (await shop.ask(BASE))["items"] == []


async def test_not_a_number(shop: Shop) -> None:
    for text in ('{"rate": NaN}', '{"min_gap": Infinity}', '{"rate": 1e999}'):
        answer = await shop.http.patch(f"{BASE}/a", content=text, headers={"content-type": "application/json"})
        assert answer.status_code == 422, answer.text


async def test_pause_resume_reset(shop: Shop) -> None:
    await _host(shop, **COOL)
    path = f"{BASE}/dutchie.com"
    assert (await shop.ask(f"{path}/pause", method="POST"))["reason"] == "paused by an operator"
    found = await shop.ask(f"{path}/pause", method="POST", json={"reason": "holidays"})
    assert (found["state"], found["reason"]) == ("paused", "holidays")
    assert (await shop.ask(f"{path}/reset", method="POST"))["state"] == "paused"
    assert (await shop.ask(f"{path}/resume", method="POST"))["state"] == "healthy", "the cool-down went with the reset"
    assert (await shop.ask(f"{path}/resume", method="POST"))["state"] == "healthy"
    reasons = [one["reason"] for one in (await shop.ask(f"{path}/events"))["items"]]
    assert reasons.count("resumed by an operator") == 1, "what was not paused is not resumed"
    found = await shop.ask(f"{BASE}/never.example/pause", method="POST")
    assert (found["host"], found["state"], found["requests"]) == ("never.example", "paused", 0)
    problem = await shop.refused(f"{path}/pause", 422, method="POST", json={"reason": ""})
    assert problem["errors"][0]["pointer"] == "#/reason"


async def test_a_resumed_host_makes_due_what_its_pause_postponed(shop: Shop) -> None:
    await _host(shop)
    path = f"{BASE}/dutchie.com"
    await shop.ask(f"{path}/pause", method="POST", json={"seconds": 3600})
    await _host(shop, "other.example")
    rows = [
        (1, "paused", "dutchie.com"),
        (2, "paused", "dutchie.com"),
        (3, "cooling", "dutchie.com"),
        (4, "paused", "other.example"),
    ]
    for n, code, host in rows:
        await shop.execute(
            "INSERT INTO worker_tasks (role, payload) VALUES ('store_discovery', jsonb_build_object('n', %s::integer))",
            [n],
        )
        await shop.execute(
            "UPDATE task_live SET state = 's', attempt = 1, scheduled_for = now() + interval '1 hour', postpone_code = %s,"
            " postpone_host = %s WHERE payload ->> 'n' = %s::text",
            [code, host, n],
        )
    await shop.execute(
        "UPDATE hosts SET cooldown_until = now() + interval '1 hour', cooldown_reason = 'HTTP 429' WHERE host = 'dutchie.com'"
    )
    assert await _soon(shop) == []
    await shop.ask(f"{path}/resume", method="POST")
    assert await _soon(shop) == [], "the host cools down"
    await shop.execute("UPDATE hosts SET cooldown_until = NULL, cooldown_reason = NULL")
    await shop.ask(f"{path}/resume", method="POST")
    assert await _soon(shop) == [1, 2]


async def _soon(shop: Shop) -> list[int]:
    """The tasks that are due within a minute."""
    async with shop.pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT (payload ->> 'n')::integer FROM task_live WHERE scheduled_for < now() + interval '1 minute' ORDER BY 1"
        )
        return [row[0] for row in await cursor.fetchall()]


async def test_a_pause_with_an_end_ends_by_itself(shop: Shop) -> None:
    await _host(shop)
    path = f"{BASE}/dutchie.com"
    for end, seconds in (({"seconds": 900}, 900), ({"until": "2026-01-01T00:00:00+14:00"}, None)):
        if seconds is None:
            end, seconds = {"until": (datetime.now(UTC) + timedelta(hours=2)).isoformat()}, 7200
        paused = await shop.ask(f"{path}/pause", method="POST", json={"reason": "maintenance", **end})
        left = datetime.fromisoformat(paused["until"]) - datetime.now(UTC)
        assert (paused["state"], paused["reason"]) == ("paused", "maintenance")
        assert timedelta(seconds=seconds - 60) < left <= timedelta(seconds=seconds)
    event = (await shop.ask(f"{path}/events?limit=1"))["items"][0]
    assert (event["reason"], event["until"]) == ("paused: maintenance", paused["until"])
    done = (await shop.ask("/api/audit?action=host_paused"))["items"][0]
    assert datetime.fromisoformat(done["details"]["until"]) == datetime.fromisoformat(paused["until"])
    await shop.execute("UPDATE hosts SET paused_at = now() - interval '3 hours', paused_until = now() - interval '1 s'")
    (host,) = (await shop.ask(BASE))["items"]
    assert (host["state"], host["reason"], host["since"], host["until"]) == ("healthy", None, None, None)
    again = await shop.ask(f"{path}/pause", method="POST")
    assert (again["state"], again["until"]) == ("paused", None)
    assert datetime.now(UTC) - datetime.fromisoformat(again["since"]) < timedelta(minutes=1), "a new pause"


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"until": "2020-01-01T00:00:00Z"}, 400, "#/until"),
        ({"until": "2099-01-01T00:00:00Z"}, 400, "#/until"),
        ({"until": "2099-01-01T00:00:00"}, 422, "#/until"),
        ({"seconds": 0}, 422, "#/seconds"),
        ({"seconds": 60, "until": "2099-01-01T00:00:00Z"}, 422, "#"),
    ],
)
async def test_a_pause_that_ends_at_no_time(shop: Shop, body: dict[str, object], status: int, pointer: str) -> None:
    await _host(shop)
    problem = await shop.refused(f"{BASE}/dutchie.com/pause", status, method="POST", json=body)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert (await shop.ask(BASE))["items"][0]["state"] == "healthy"


async def test_hosts_that_are_none(shop: Shop) -> None:
    await _host(shop)
    for act in ("", "/events"):
        problem = await shop.refused(f"{BASE}/dutchy.com{act}", 404)
        assert "did you mean dutchie.com?" in problem["detail"]
    for act in ("resume", "reset"):
        await shop.refused(f"{BASE}/dutchy.com/{act}", 404, method="POST")
    for name in ("a%20b", "a%00b", "-", "x" * 260, "caf%C3%A9", "a@b"):
        problem = await shop.refused(f"{BASE}/{name}", 422)
        assert problem["errors"][0]["parameter"] == "host"
    await shop.refused(f"{BASE}?limit=5", 422)


async def test_events_page_by_page(shop: Shop) -> None:
    """Of one moment as well as of many: nothing is lost and nothing comes twice."""
    await _host(shop)
    await _host(shop, "other.example")
    await shop.execute(
        "INSERT INTO host_events (host, kind, reason, happened_at) SELECT 'dutchie.com', 'rate_reduced', n::text,"
        " '2026-11-01'::timestamptz + (n / 4) * interval '1 minute' FROM generate_series(1, 23) n"
    )
    found = await shop.walk(f"{BASE}/dutchie.com/events", limit=3)
    assert [int(one["reason"]) for one in found] == list(range(23, 0, -1))
    times = [datetime.fromisoformat(one["happened_at"]) for one in found]
    assert times == sorted(times, reverse=True)
    cursor = (await shop.ask(f"{BASE}/dutchie.com/events?limit=1"))["next"]
    await shop.refused(f"{BASE}/other.example/events", 400, params={"cursor": cursor})
    assert len((await shop.ask(f"{BASE}/dutchie.com"))["events"]) == 20
