"""Hosts over HTTP: state, limits, pause, resume, reset, events."""

from __future__ import annotations

from datetime import datetime

import pytest

from menuwatch.operations.hosts import State
from tests.api.shop import Shop

BASE = "/api/hosts"


async def _host(shop: Shop, name: str = "dutchie.com", **more: object) -> None:
    await shop.execute(
        "INSERT INTO hosts (host, rate, burst, concurrency, pace) VALUES (%s, 2, 4, 6, 2) ON CONFLICT DO NOTHING",
        [name],
    )
    for column, value in more.items():
        await shop.execute(f"UPDATE hosts SET {column} = {value} WHERE host = %s", [name])


COOL = {"cooldown_until": "now() + interval '1 hour', cooldown_reason = 'HTTP 429', slowed_at = now(), pace = 1"}
CIRCUIT = {
    "circuit": "'open', circuit_opened_at = now(), circuit_until = now() + interval '15 minutes', circuit_reason = 'refused'"
}
STATES: list[tuple[State, dict[str, str], str | None, str | None]] = [
    ("open", {}, None, None),
    ("slow", {"pace": "0.5, slowed_at = now()"}, None, "the pace grows"),
    ("cooling", COOL, "HTTP 429", "hosts reset dutchie.com"),
    ("circuit", CIRCUIT, "refused", "open the site in a browser of your own"),
    ("trying", {**CIRCUIT, "circuit_until": "now()"}, "refused", "one identity finds out"),
    ("paused", {**CIRCUIT, "paused_at": "now(), paused_reason = 'lawyers'"}, "lawyers", "hosts resume dutchie.com"),
]


@pytest.mark.parametrize(("state", "given", "reason", "advice"), STATES, ids=[row[0] for row in STATES])
async def test_every_state(
    shop: Shop, state: State, given: dict[str, str], reason: str | None, advice: str | None
) -> None:
    await _host(shop, **given)
    (host,) = (await shop.ask(BASE))["items"]
    assert (host["state"], host["reason"]) == (state, reason)
    assert (host["advice"] or "None").count(advice or "None") == 1
    assert (host["since"] is None) == (state == "open")
    assert (host["until"] is None) == (state not in ("cooling", "circuit"))
    assert (await shop.ask(f"{BASE}/DUTCHIE.com"))["host"] == host


async def test_limits(shop: Shop) -> None:
    new = await shop.ask(f"{BASE}/a.example:8443", method="PATCH", json={"rate": 0.5, "burst": 1})
    assert (new["rate"], new["pace"], new["burst"], new["concurrency"], new["state"]) == (0.5, 0.5, 1, 6, "open")
    up = await shop.ask(f"{BASE}/a.example:8443", method="PATCH", json={"rate": 5})
    assert (up["rate"], up["pace"], up["state"]) == (5, 0.5, "slow"), "a higher rate is grown into"
    down = await shop.ask(f"{BASE}/a.example:8443", method="PATCH", json={"rate": 0.25, "min_gap": 3})
    assert (down["rate"], down["pace"], down["min_gap"], down["burst"]) == (0.25, 0.25, 3, 1)
    said = [one["reason"] for one in await shop.walk(f"{BASE}/a.example:8443/events", limit=2)]
    assert said == ["set: rate 0.25, min_gap 3", "set: rate 5", "set: rate 0.5, burst 1"]


@pytest.mark.parametrize(
    ("body", "pointer", "says"),
    [
        ({"rate": 0}, "#/rate", "greater than or equal to"),
        ({"rate": -1}, "#/rate", "greater than or equal to"),
        ({"rate": 1e7}, "#/rate", "less than or equal to 1000000"),
        ({"rate": "2"}, "#/rate", "valid number"),
        ({"rate": True}, "#/rate", "valid number"),
        ({"burst": 1.5}, "#/burst", "valid integer"),
        ({"burst": 10**40}, "#/burst", "less than or equal to 10000"),
        ({"concurrency": 0}, "#/concurrency", "greater than or equal to 1"),
        ({"min_gap": 86401}, "#/min_gap", "less than or equal to 86400"),
        ({"colour": 1}, "#/colour", "not known"),
        ({}, "#", "name what to set: rate, burst, concurrency, min_gap"),
        ({"rate": None}, "#", "name what to set"),
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
    assert (await shop.ask(f"{path}/resume", method="POST"))["state"] == "open", "the cool-down went with the reset"
    assert (await shop.ask(f"{path}/resume", method="POST"))["state"] == "open"
    reasons = [one["reason"] for one in (await shop.ask(f"{path}/events"))["items"]]
    assert reasons.count("resumed by an operator") == 1, "what was not paused is not resumed"
    found = await shop.ask(f"{BASE}/never.example/pause", method="POST")
    assert (found["host"], found["state"], found["requests"]) == ("never.example", "paused", 0)
    problem = await shop.refused(f"{path}/pause", 422, method="POST", json={"reason": ""})
    assert problem["errors"][0]["pointer"] == "#/reason"


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
        "INSERT INTO host_events (host, kind, reason, happened_at) SELECT 'dutchie.com', 'slower', n::text,"
        " '2026-11-01'::timestamptz + (n / 4) * interval '1 minute' FROM generate_series(1, 23) n"
    )
    found = await shop.walk(f"{BASE}/dutchie.com/events", limit=3)
    assert [int(one["reason"]) for one in found] == list(range(23, 0, -1))
    times = [datetime.fromisoformat(one["happened_at"]) for one in found]
    assert times == sorted(times, reverse=True)
    cursor = (await shop.ask(f"{BASE}/dutchie.com/events?limit=1"))["next"]
    await shop.refused(f"{BASE}/other.example/events", 400, params={"cursor": cursor})
    assert len((await shop.ask(f"{BASE}/dutchie.com"))["events"]) == 20
