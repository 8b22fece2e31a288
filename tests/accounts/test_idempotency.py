"""A POST that is sent twice with one key is carried out once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from menuwatch.accounts import idempotency
from menuwatch.db.pool import Pool
from tests.accounts.conftest import PASSWORD, Make, add_user, browser, log_in
from tests.users_fixture import bearer

DISCOVER = {"role": "store_discovery"}


@pytest.fixture
async def http(make: Make, pool: Pool) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(make()) as client:
        client.headers.update(await bearer(pool))
        yield client


def _key(text: str) -> dict[str, str]:
    return {"Idempotency-Key": text}


async def _tasks(pool: Pool) -> int:
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT count(*) FROM audit_log WHERE action = 'task_enqueued'")).fetchone()
    assert row is not None
    return int(row[0])


async def test_the_same_again(http: httpx.AsyncClient, pool: Pool) -> None:
    first = await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))
    again = await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    for name in ("location", "content-type", "content-length"):
        assert again.headers[name] == first.headers[name]
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert await _tasks(pool) == 1
    # Without the key it is another request, which finds the task waiting.
    assert (await http.post("/api/tasks", json=DISCOVER)).status_code == 200
    assert (await http.post("/api/tasks", json=DISCOVER, headers=_key("two"))).status_code == 200


async def test_another_request_with_the_same_key(http: httpx.AsyncClient, pool: Pool) -> None:
    await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))
    for path, body in (
        ("/api/tasks", {**DISCOVER, "priority": 5}),
        ("/api/job-queue/enqueue", DISCOVER),
        ("/api/tasks?x=1", DISCOVER),
    ):
        answer = await http.post(path, json=body, headers=_key("one"))
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/key-of-another"), path
    assert await _tasks(pool) == 1


async def test_keys_are_ones_own(http: httpx.AsyncClient, pool: Pool) -> None:
    await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))
    other = await http.post("/api/tasks", json=DISCOVER, headers={**_key("one"), **await bearer(pool, name="other")})
    assert (other.status_code, "idempotent-replayed" in other.headers) == (200, False)


async def test_at_once(http: httpx.AsyncClient, pool: Pool) -> None:
    answers = await asyncio.gather(*(http.post("/api/tasks", json=DISCOVER, headers=_key("one")) for _ in range(6)))
    assert await _tasks(pool) == 1
    assert {answer.status_code for answer in answers} <= {201, 409}
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["type"] == "/problems/still-under-way"
            assert answer.headers["retry-after"] == "2"
    assert (await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))).status_code == 201


async def test_what_was_refused_is_refused_again_and_what_failed_may_be_tried_again(
    http: httpx.AsyncClient, pool: Pool
) -> None:
    for _ in range(2):
        answer = await http.post("/api/tasks/999/cancel", headers=_key("one"))
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.headers["idempotent-replayed"] == "true"
    viewer = await bearer(pool, name="v", role="viewer")
    assert (await http.post("/api/tasks", json=DISCOVER, headers={**_key("two"), **viewer})).status_code == 403
    async with pool.connection() as conn:
        await conn.execute("UPDATE users SET role = 'operator' WHERE name = 'v'")
        assert (await http.post("/api/tasks", json=DISCOVER, headers={**_key("two"), **viewer})).status_code == 201
        # A fault of ours: what it began was undone.
        await conn.execute("ALTER TABLE task_live RENAME TO gone")
        assert (
            await http.post("/api/tasks", json={"role": "analytics_refresh"}, headers=_key("three"))
        ).status_code == 500
        await conn.execute("ALTER TABLE gone RENAME TO task_live")
    assert (await http.post("/api/tasks", json={"role": "analytics_refresh"}, headers=_key("three"))).status_code == 201


async def test_permission_is_checked_before_an_answer_is_sent_again(make: Make, pool: Pool) -> None:
    await add_user(pool, role="operator")
    async with browser(make()) as http, pool.connection() as conn:
        await log_in(http)
        assert (await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))).status_code == 201
        for change, wanted in (
            ("role = 'viewer'", (403, "forbidden")),
            ("role = 'operator', must_change_password = true", (403, "password-change-due")),
            ("must_change_password = false", (201, None)),
        ):
            await conn.execute(f"UPDATE users SET {change}")
            answer = await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))
            kind = answer.json()["type"].rpartition("/")[2] if answer.status_code == 403 else None
            assert (answer.status_code, kind) == wanted
            assert ("idempotent-replayed" in answer.headers) == (wanted[0] == 201)
        crossing = {**_key("one"), "Sec-Fetch-Site": "cross-site"}
        assert (await http.post("/api/tasks", json=DISCOVER, headers=crossing)).status_code == 403


async def test_an_answer_with_a_secret_is_not_kept(http: httpx.AsyncClient, pool: Pool) -> None:
    wish = {"name": "t", "scopes": ["read"]}
    made = await http.post("/api/tokens", json=wish, headers=_key("one"))
    again = await http.post("/api/tokens", json=wish, headers=_key("one"))
    assert (again.status_code, again.json()["type"]) == (409, "/problems/already-done")
    async with pool.connection() as conn:
        kept = await (
            await conn.execute("SELECT to_jsonb(k)::text, convert_from(body, 'utf8') FROM idempotency_keys k")
        ).fetchall()
    assert made.json()["secret"].split("_")[2] not in str(kept)
    assert len((await http.get("/api/tokens")).json()["items"]) == 2


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "ü"])
async def test_what_is_no_key(http: httpx.AsyncClient, key: str) -> None:
    answer = await http.post("/api/tasks", json=DISCOVER, headers={"Idempotency-Key": key.encode()})  # type: ignore[dict-item]
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/bad-idempotency-key")


async def test_a_key_is_good_for_a_day(http: httpx.AsyncClient, pool: Pool) -> None:
    await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))
    async with pool.connection() as conn:
        assert await idempotency.prune(conn) == 0
        await conn.execute("UPDATE idempotency_keys SET created_at = now() - interval '1 day 1 second'")
        assert (await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))).status_code == 200, "it is a new one"
        await conn.execute("UPDATE idempotency_keys SET created_at = now() - interval '1 day 1 second'")
        assert await idempotency.prune(conn) == 1


async def test_a_server_that_died_in_the_middle_does_not_hold_a_key_for_ever(
    http: httpx.AsyncClient, pool: Pool
) -> None:
    await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))
    async with pool.connection() as conn:
        await conn.execute("UPDATE idempotency_keys SET status = NULL, headers = NULL, body = NULL")
        assert (await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))).status_code == 409
        await conn.execute("UPDATE idempotency_keys SET created_at = now() - interval '11 minutes'")
        assert (await http.post("/api/tasks", json={}, headers=_key("one"))).status_code == 422, (
            "it is still not another's"
        )
        assert (await http.post("/api/tasks", json=DISCOVER, headers=_key("one"))).status_code == 200


async def test_a_body_that_is_too_large_stays_so(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/tasks", content=b" " * 1_100_000, headers=_key("one"))
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/body-too-large")


async def test_of_a_password_no_quick_hash_is_kept(make: Make, pool: Pool) -> None:
    await add_user(pool)
    async with browser(make()) as client:
        await log_in(client)
        change = {"current": PASSWORD, "new": "one of my own choice"}
        assert (await client.post("/api/session/password", json=change, headers=_key("one"))).status_code == 200
        await client.post("/api/session", json={"name": "anna", "password": change["new"]}, headers=_key("two"))
    async with pool.connection() as conn:
        assert await (await conn.execute("SELECT count(*) FROM idempotency_keys")).fetchone() == (0,)
