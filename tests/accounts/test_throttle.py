"""How often a login may be tried."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from menuwatch.db.pool import Pool
from tests.accounts.conftest import Make, add_user, browser, log_in


async def _statuses(http: httpx.AsyncClient, name: str, times: int) -> list[int]:
    return [(await log_in(http, name, "wrong")).status_code for _ in range(times)]


async def _later(pool: Pool, seconds: float) -> None:
    async with pool.connection() as conn:
        await conn.execute("UPDATE login_failures SET failed_at = failed_at - make_interval(secs => %s)", [seconds])


@pytest.mark.parametrize("name", ["anna", "nobody"])
async def test_after_five_failures_a_user_waits(http: httpx.AsyncClient, pool: Pool, name: str) -> None:
    await add_user(pool)
    assert await _statuses(http, name, 5) == [401] * 5
    waits = []
    for _ in range(10):
        answer = await log_in(http, name.upper())
        assert (answer.status_code, answer.json()["type"]) == (429, "/problems/too-many-logins"), (
            "also with the right one"
        )
        wait = int(answer.headers["retry-after"])
        waits.append(wait)
        await _later(pool, wait)
        assert await _statuses(http, name, 1) == [401], "one try, and the next wait is twice as long"
    # 5 s and twice that each time, up to a quarter of an hour; a second more, so that who waits as told has waited.
    for wait, doubled in zip(waits, [5, 10, 20, 40, 80, 160, 320, 640, 900, 900], strict=True):
        assert doubled - 1 <= wait <= doubled + 1
    await _later(pool, 901)
    assert (await log_in(http, name)).status_code == (200 if name == "anna" else 401)
    if name == "anna":
        assert await _statuses(http, name, 5) == [401] * 5, "who got in begins anew"


async def test_many_at_once_are_not_one(http: httpx.AsyncClient, pool: Pool) -> None:
    await add_user(pool)
    answers = await asyncio.gather(*(log_in(http, "anna", "wrong") for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [401] * 5 + [429] * 7


async def test_after_twenty_failures_an_address_waits(make: Make, pool: Pool) -> None:
    await add_user(pool)
    app = make()
    async with browser(app, client=("192.0.2.1", 1)) as one, browser(app, client=("192.0.2.2", 1)) as other:
        for number in range(20):
            assert await _statuses(one, f"user{number}", 1) == [401]
            if number == 10:
                assert (await log_in(one)).status_code == 200, "a login that succeeds is no failure, and forgives none"
        assert (await log_in(one)).status_code == 429
        assert (await log_in(other)).status_code == 200


async def test_whose_address_it_is(make: Make, pool: Pool) -> None:
    async with browser(make(), client=("192.0.2.1", 1)) as http:
        for number in range(20):
            http.headers["X-Forwarded-For"] = f"198.51.100.{number}"
            assert await _statuses(http, f"a{number}", 1) == [401]
        assert await _statuses(http, "last", 1) == [429], "anybody may say that they are somebody else"
    async with browser(make(), client=("2001:db8:1:2::1", 1)) as http:
        assert await _statuses(http, "b", 1) == [401]
    async with pool.connection() as conn:
        await conn.execute("UPDATE login_failures SET failures = 20 WHERE kind = 'address'")
    async with browser(make(), client=("2001:db8:1:2:ffff::9", 1)) as http:
        assert await _statuses(http, "c", 1) == [429], "one network, one address"
    async with browser(make(), client=("2001:db8:1:3::1", 1)) as http:
        assert await _statuses(http, "d", 1) == [401]


async def test_neither_names_nor_addresses_are_stored(make: Make, pool: Pool) -> None:
    async with browser(make(), client=("192.0.2.77", 1)) as http:
        await log_in(http, "my-password-typed-too-soon", "x")
    async with pool.connection() as conn:
        rows = await (await conn.execute("SELECT to_jsonb(f)::text FROM login_failures f")).fetchall()
    assert len(rows) == 2
    assert not any("192.0.2" in row[0] or "typed" in row[0] for row in rows)
