"""The proxies' ledger on a real database."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from menuwatch.db.pool import Pool
from menuwatch.proxies import store
from menuwatch.proxies.health import ProxyEvent, ProxyOutcome
from menuwatch.proxies.model import NewProxy, ProbeState, TestFailure
from tests.proxy_reports import befalls, stored_proxy


async def add(pool: Pool, count: int) -> list[int]:
    async with pool.connection() as conn:
        return [
            (await store.add(conn, NewProxy(protocol="http", host="127.0.0.1", port=9000 + n, username=f"u{n}")))[0]
            for n in range(count)
        ]


async def test_the_same_address_again_brings_a_new_password_and_keeps_the_record(pool: Pool) -> None:
    first = NewProxy(protocol="socks5", host="gate.example", port=1080, username="u", password="old", state="AZ")
    again = NewProxy(protocol="socks5", host="gate.example", port=1080, username="u", password="S3cret", city="Phoenix")
    other = NewProxy(protocol="socks5", host="gate.example", port=1080, username="v", password="x")
    async with pool.connection() as conn:
        number, created = await store.add(conn, first)
        assert created
        await befalls(conn, number, ProxyOutcome.SUCCESS, elapsed_ms=50)
        assert await store.add(conn, again) == (number, False)
        assert (await store.add(conn, other))[1]
        proxy = await stored_proxy(conn, number)
        assert await store.count_active(conn) == 2
    assert proxy is not None
    assert (proxy.password, proxy.state, proxy.city, proxy.success_count) == ("S3cret", "AZ", "Phoenix", 1)
    assert "S3cret" not in repr(proxy)


async def test_five_faults_deactivate_and_say_when_and_why(pool: Pool) -> None:
    (number,) = await add(pool, 1)
    async with pool.connection() as conn:
        for n in range(5):
            await befalls(conn, number, ProxyOutcome.FAULT, error=f"the proxy is down ({n})")
        proxy = await stored_proxy(conn, number)
        assert proxy is not None
        assert not proxy.is_active
        assert proxy.failure_count == 5
        assert proxy.last_error == "the proxy is down (4)"
        assert proxy.last_failure_at is not None
        assert proxy.deactivated_at is not None
        assert await store.count_active(conn) == 0
        assert [row.id for row in await store.all_of(conn, active=False)] == [number]
        assert await store.all_of(conn, active=True) == []


async def test_events_of_many_workers_are_all_counted(pool: Pool) -> None:
    (number,) = await add(pool, 1)

    async def one(event: ProxyOutcome) -> None:
        async with pool.connection() as conn:
            await befalls(conn, number, event, elapsed_ms=10.0)

    await asyncio.gather(*(one(ProxyOutcome.SUCCESS) for _ in range(40)))
    await asyncio.gather(*(one(ProxyOutcome.REFUSED) for _ in range(4)))
    async with pool.connection() as conn:
        proxy = await stored_proxy(conn, number)
        assert await befalls(conn, number + 1000, ProxyOutcome.SUCCESS) is None
    assert proxy is not None
    assert (proxy.success_count, proxy.consecutive_403_count, proxy.is_active) == (40, 4, True)
    assert proxy.avg_response_time_ms == pytest.approx(10.0)


async def test_the_same_address_again_puts_a_deactivated_proxy_back_to_work(pool: Pool) -> None:
    async with pool.connection() as conn:
        number, _ = await store.add(conn, NewProxy(protocol="http", host="gate.example", port=8080))
        for _ in range(5):
            await befalls(conn, number, ProxyOutcome.REFUSED)
        assert await store.count_active(conn) == 0
        assert await store.add(conn, NewProxy(protocol="http", host="gate.example", port=8080)) == (number, False)
        assert await store.count_active(conn) == 1


async def test_many_are_put_in_at_once_and_told_apart(pool: Pool) -> None:
    known = NewProxy(protocol="http", host="gate.example", port=8080, username="u", password="old", city="Phoenix")
    async with pool.connection() as conn:
        number, _ = await store.add(conn, known)
        for _ in range(5):
            await befalls(conn, number, ProxyOutcome.FAULT, error="down")
        again = replace(known, password="new", city=None, state="AZ")
        bare = NewProxy(protocol="http", host="gate.example", port=8080)
        bad = NewProxy(protocol="socks5", host="gate.example", port=8080, username="u", password="x")
        found = await store.put(
            conn, [bad, again, bare], failed={bad.key: TestFailure(ProbeState.FAILED, "it does not answer")}
        )
        assert [(found[one.key].created, found[one.key].is_active) for one in (again, bare, bad)] == [
            (False, True),
            (True, True),
            (True, False),
        ]
        kept = await stored_proxy(conn, number)
        failed = await stored_proxy(conn, found[bad.key].id)
    assert kept is not None
    assert (kept.password, kept.city, kept.state, kept.failure_count) == ("new", "Phoenix", "AZ", 0)
    assert (kept.probe_at, kept.deactivated_at, kept.last_error) == (None, None, "down")
    assert failed is not None
    assert (failed.last_error, failed.failure_count) == ("it does not answer", 0)
    assert failed.probe_at is not None


async def test_a_disabled_proxy_stays_so_whoever_puts_it_in_again(pool: Pool) -> None:
    new = NewProxy(protocol="http", host="gate.example", port=8080)
    async with pool.connection() as conn:
        number, _ = await store.add(conn, new)
        assert await store.disable(conn, [number], "too dear") == {number}
        put = (await store.put(conn, [new]))[new.key]
        assert (put.created, put.is_active, put.disabled_reason) == (False, False, "too dear")
        assert not await store.reactivate(conn, number)
        assert await store.enable(conn, [number, 999]) == {number}
        assert await store.count_active(conn) == 1


async def test_whoever_puts_in_and_whoever_counts_do_not_wait_in_a_ring(pool: Pool) -> None:
    numbers = await add(pool, 30)
    new = [NewProxy(protocol="http", host="127.0.0.1", port=9000 + n, username=f"u{n}") for n in range(30)]

    async def count(order: int) -> None:
        async with pool.connection() as conn, conn.transaction():
            happened = [ProxyEvent(proxy_id=number, event=ProxyOutcome.SUCCESS) for number in numbers[::order]]
            await store.record_all(conn, happened)

    async def put(order: int) -> None:
        async with pool.connection() as conn, conn.transaction():
            await store.put(conn, new[::order])

    for _ in range(5):
        await asyncio.gather(put(1), count(-1), put(-1), count(1))
