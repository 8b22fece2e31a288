"""Odd values in every parameter of every operation: answers stay as described, and none is the server's fault."""

from __future__ import annotations

import os
import random
from typing import Any

from tests.api import schema_conformance
from tests.api.shop import Shop, item

ROUNDS = int(os.environ.get("ODD_ROUNDS", "4"))
"""Requests to each operation; `make proofs` sends more."""

ODD = (
    "", " ", "0", "1", "2", "-1", "1.5", "1e9", "9" * 30, "2147483647", "2147483648", "9223372036854775807", "NaN", "Infinity",
    "-0", "true", "null", "[]", "{}", "%", "_", "\\", "'", '"', "a\x00b", "é", "\U0001f600", "\u202e", "../..", "name", "price", "ok",
    "pending", "payload_fetch", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
    "2026-02-30T00:00:00Z",
    "x" * 5000,
)  # fmt: skip


async def test_no_odd_value_is_the_servers_fault(shop: Shop) -> None:
    chance = random.Random(7)
    store = await shop.store()
    for hour in range(3):
        await shop.crawl(store, hour, [item(str(n), f"Name {n}", options=[("1g", 5 + n + hour, n)]) for n in range(5)])
    operations: list[tuple[str, str, dict[str, Any]]] = [
        (method, path, operation)
        for path, methods in shop.description["paths"].items()
        for method, operation in methods.items()
        if path not in ("/readyz", "/metrics", "/api/events")  # no JSON
    ]
    seen: set[int] = set()
    for _ in range(ROUNDS):
        for method, path, operation in operations:
            filled = path
            query: list[tuple[str, Any]] = []
            for parameter in operation.get("parameters", ()):
                value = chance.choice(ODD) if chance.random() < 0.5 else str(chance.randint(1, 3))
                if parameter["in"] == "path":
                    value = value.replace("/", "").replace(".", "").replace("\x00", "") or "1"
                    filled = filled.replace(
                        "{" + parameter["name"] + "}", value.replace("%", "%25").replace("\\", "%5C")
                    )
                elif parameter["in"] == "query" and chance.random() < 0.4:
                    query.append((parameter["name"], value))
            body: dict[str, Any] | None = None
            if "requestBody" in operation:
                fields = (
                    "role",
                    "priority",
                    "dispensary_id",
                    "payload",
                    "scheduled_for",
                    "menu_url",
                    "crawl_enabled",
                    "threshold_minutes",
                )
                body = {
                    chance.choice(fields): chance.choice([*ODD, 1, -1, None, True, [], {}, 1.5, 10**20])
                    for _ in range(3)
                }
            answer = await shop.http.request(method, filled, params=query, json=body)
            seen.add(answer.status_code)
            assert answer.status_code < 500, (method, filled, query, body, answer.text)
            media = answer.headers["content-type"].partition(";")[0]
            if answer.status_code not in (304, 307) and not (
                answer.status_code == 200 and (filled.endswith("/data") or filled.startswith("/api/export/"))
            ):
                schema_conformance.check(
                    shop.description, method, answer.request.url.path, answer.status_code, media, answer.json()
                )
    assert {200, 400, 404, 422} <= seen, "the story reaches more than one kind of answer"


async def test_a_parameter_without_a_name_is_refused_as_one(shop: Shop) -> None:
    answer = await shop.http.get("/api/analytics/stores?=3")
    assert answer.status_code == 422
    assert "a parameter without a name" in answer.json()["detail"]


async def test_an_offset_that_no_place_has_is_the_same_moment(shop: Shop) -> None:
    odd = await shop.http.get("/api/export/snapshots?since=0512-10-18T11:42:44%2B21:37&format=csv")
    assert odd.status_code == 200, odd.text
    early = await shop.http.get("/api/export/snapshots?since=0001-01-01T00:00:00%2B20:00&format=csv")
    assert early.status_code == 422
    assert "out of range" in early.json()["detail"]
