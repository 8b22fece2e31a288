"""Proxies that their health took out come back once one real request gets through, and not before."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg.rows import dict_row
from structlog.testing import capture_logs

from menuwatch.config.settings import Settings
from menuwatch.core.encryption import new_key
from menuwatch.db.pool import Pool
from menuwatch.fetch.probe import ProbeResponse
from menuwatch.proxies import bulk, store
from menuwatch.proxies import passwords as proxy_passwords
from menuwatch.proxies import service as operations
from menuwatch.proxies.bulk import ProxyAction
from menuwatch.proxies.health import ProxyOutcome
from menuwatch.proxies.prober import Prober
from menuwatch.proxies.service import ProxyFilter
from menuwatch.sim.proxies import ProxyFarm, start_proxies
from tests.fetch.target import NAME, Reply, Target, serving
from tests.proxy_reports import befalls
from tests.workers.waiting import until


@pytest.fixture
async def farm() -> AsyncIterator[ProxyFarm]:
    """Three proxies: 0 and 2 speak HTTP, 1 SOCKS5."""
    started = await start_proxies(3, seed=11, names={NAME: "127.0.0.1"})
    yield started
    await started.close()


@pytest.fixture
async def target(farm: ProxyFarm) -> AsyncIterator[Target]:
    async with serving(farm) as started:
        yield started


@pytest.fixture
def settings(target: Target) -> Settings:
    return Settings(
        fetch_timeout_seconds=2,
        dutchie_base_url=target.url().rstrip("/"),
        proxy_probe_seconds=8,
        host_rate=1000,
        host_burst=100,
    )


@pytest.fixture
async def ids(pool: Pool, farm: ProxyFarm) -> list[int]:
    """The farm's proxies, all taken out by five faults each, their probes due."""
    numbers = [(await operations.add(pool, info.url)).id for info in farm.infos]
    async with pool.connection() as conn:
        for number in numbers:
            for _ in range(5):
                await befalls(conn, number, ProxyOutcome.FAULT, error="the proxy does not respond")
    await _due(pool)
    return numbers


async def _rows(pool: Pool) -> list[dict[str, Any]]:
    """Each proxy, with `wait`: seconds until its probe."""
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(
            "SELECT *, extract(epoch FROM probe_at - clock_timestamp())::double precision AS wait FROM proxies ORDER BY id"
        )
        return await cur.fetchall()


async def _due(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("UPDATE proxies SET probe_at = now() WHERE probe_at IS NOT NULL")


async def test_one_that_is_taken_out_waits_a_minute_or_as_the_caller_says(pool: Pool) -> None:
    numbers = [(await operations.add(pool, f"203.0.113.{n}:80")).id for n in range(1, 3)]
    async with pool.connection() as conn:
        for _ in range(5):
            await befalls(conn, numbers[0], ProxyOutcome.FAULT, error="down")
        for _ in range(4):
            await befalls(conn, numbers[1], ProxyOutcome.FAULT, error="down")
    out, still = await _rows(pool)
    assert 47 < out["wait"] <= 60
    assert (still["is_active"], still["probe_at"]) == (True, None)


async def test_a_whole_answer_brings_it_back_with_its_counters_cleared(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    recorded: list[ProbeResponse] = []

    async def record(probed: ProbeResponse) -> None:
        recorded.append(probed)

    with capture_logs() as logs:
        await Prober(pool, settings, record=record).step()
    for row in await _rows(pool):
        assert row["is_active"]
        assert (row["failure_count"], row["probe_failures"], row["probe_at"], row["deactivated_at"]) == (
            0,
            0,
            None,
            None,
        )
    assert sorted(seen.proxy or 0 for seen in target.seen) == [0, 1, 2], "each with one real request"
    assert {one.proxy_id for one in recorded} == set(ids)
    assert {(one.host, one.status, one.answered) for one in recorded} == {(f"{NAME}:{target.port}", 200, True)}
    assert sorted(line["proxy_id"] for line in logs if line["action"] == "proxy_reactivated") == ids


async def test_a_probe_that_fails_doubles_the_wait_and_keeps_the_reason(
    pool: Pool, ids: list[int], settings: Settings, farm: ProxyFarm, target: Target
) -> None:
    await farm.fault(0, "dead")
    await farm.fault(1, "auth")
    target.script = lambda seen: Reply(403)
    prober = Prober(pool, settings)
    waits = []
    for _ in range(3):
        await prober.step()
        rows = await _rows(pool)
        waits.append([row["wait"] for row in rows])
        await _due(pool)
    assert not any(row["is_active"] for row in rows)
    assert [row["probe_failures"] for row in rows] == [3, 3, 3]
    for row, why in zip(rows, ("does not respond", "rejected the credentials", "HTTP 403"), strict=True):
        assert why in row["last_error"]
    # Of the first wait of 8 s: 16, 32, 64, less a fifth at most by chance and what the test took.
    for found, longest in zip(waits, (16, 32, 64), strict=True):
        assert all(longest * 0.8 - 3 < wait <= longest for wait in found)


async def test_the_wait_ends_at_six_hours(pool: Pool, ids: list[int], settings: Settings, farm: ProxyFarm) -> None:
    for index in range(3):
        await farm.fault(index, "dead")
    async with pool.connection() as conn:
        await conn.execute("UPDATE proxies SET probe_failures = 1000000")
    await Prober(pool, settings).step()
    assert all(0.79 * 21_600 < row["wait"] <= 21_600 for row in await _rows(pool))


async def test_a_target_that_is_down_or_wants_a_pause_says_nothing_of_the_proxy(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    nothing = [(False, 0, "the proxy does not respond")] * 3
    prober = Prober(pool, dataclasses.replace(settings, fetch_timeout_seconds=0.3))
    target.script = lambda seen: Reply(how="hang")
    await prober.step()
    rows = await _rows(pool)
    assert [(row["is_active"], row["probe_failures"], row["last_error"]) for row in rows] == nothing
    assert all(3 < row["wait"] <= 8 for row in rows)
    await _due(pool)
    # Those that come after the first answer find the host closed for as long.
    target.script = lambda seen: Reply(429, headers={"Retry-After": "1000"})
    await prober.step()
    rows = await _rows(pool)
    assert [(row["is_active"], row["probe_failures"], row["last_error"]) for row in rows] == nothing
    assert all(row["wait"] <= 60 for row in rows), "an operator may resume the host at any time"


async def test_the_hosts_budget_is_asked_first(pool: Pool, ids: list[int], settings: Settings, target: Target) -> None:
    answers: list[float | None] = [None, 500.0, None]

    async def permit(host: str) -> float | None:
        assert host == f"{NAME}:{target.port}"
        return answers.pop()

    await Prober(pool, settings, permit=permit).step()
    rows = await _rows(pool)
    assert sorted(row["is_active"] for row in rows) == [False, True, True]
    (waiting,) = [row for row in rows if not row["is_active"]]
    assert waiting["probe_failures"] == 0
    assert 50 < waiting["wait"] <= 60
    assert len(target.seen) == 2


async def test_a_host_that_is_closed_for_years_is_looked_at_within_a_minute(
    pool: Pool, ids: list[int], settings: Settings
) -> None:
    async def permit(host: str) -> float | None:
        return 1e9

    await Prober(pool, settings, permit=permit).step()
    assert all(50 < row["wait"] <= 60 for row in await _rows(pool)), (
        "not at the end of a pause that may be ended before"
    )


async def test_while_an_open_circuit_is_on_trial_probes_wait_for_its_end(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    """One identity tries, and not every proxy that is due beside it. Where no proxy is left but those, they do."""
    await Prober(pool, settings).step()
    assert len(target.seen) == 3
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE hosts SET circuit = 'open', circuit_until = now(), circuit_opened_at = now(), circuit_reason = 'refused'"
        )
        out = "UPDATE proxies SET is_active = false, deactivated_at = now(), probe_at = now() WHERE id = ANY (%s)"
        await conn.execute(out, (ids[:2],))
    await Prober(pool, settings).step()
    assert len(target.seen) == 3
    async with pool.connection() as conn:
        await conn.execute(out, (ids,))
    await Prober(pool, settings).step()
    assert len(target.seen) == 6


async def test_many_probers_ask_once_through_each(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    await asyncio.gather(*(Prober(pool, settings).step() for _ in range(6)))
    assert len(target.seen) == 3
    assert all(row["is_active"] for row in await _rows(pool))


async def test_one_that_dies_at_it_costs_a_while(
    pool: Pool, ids: list[int], settings: Settings, farm: ProxyFarm
) -> None:
    for index in range(3):
        await farm.fault(index, "hang")
    patient = dataclasses.replace(settings, fetch_timeout_seconds=60)  # no probe ends by a timeout before it is cut off
    dying = asyncio.create_task(Prober(pool, patient).step())

    async def taken() -> bool:
        return all(row["wait"] > 1 for row in await _rows(pool))

    await until(taken)
    while not dying.done():  # as a killed process would: a cancellation that a library swallows is repeated
        dying.cancel()
        await asyncio.wait({dying}, timeout=0.1)
    rows = await _rows(pool)
    assert all(row["wait"] <= 90 and row["probe_failures"] == 0 for row in rows)


async def test_what_an_operator_takes_out_meanwhile_stays_out(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    async def record(probed: ProbeResponse) -> None:
        async with pool.connection() as conn:
            await operations.disable(conn, [probed.proxy_id], "enough")

    await Prober(pool, settings, record=record).step()
    assert [(row["is_active"], row["disabled_reason"], row["probe_at"]) for row in await _rows(pool)] == [
        (False, "enough", None)
    ] * 3
    await Prober(pool, settings).step()
    assert len(target.seen) == 3, "and is not tried again"


async def test_a_password_that_cannot_be_opened_is_a_probe_that_fails(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    await proxy_passwords.encrypt_all(pool, dataclasses.replace(settings, secret_key=(new_key(),)))
    await Prober(pool, settings).step()
    for row in await _rows(pool):
        assert (row["is_active"], row["probe_failures"]) == (False, 1)
        assert "SECRET_KEY is not set" in row["last_error"]
    assert target.seen == []


async def test_it_comes_again_when_the_next_is_due(pool: Pool, ids: list[int], settings: Settings) -> None:
    short = Prober(pool, settings)
    assert short.interval == pytest.approx(2.0)
    assert Prober(pool, Settings()).interval == pytest.approx(15.0)
    assert await short.step() is None, "none is left"
    async with pool.connection() as conn:
        for _ in range(5):
            await befalls(conn, ids[0], ProxyOutcome.FAULT)
        await conn.execute("UPDATE proxies SET probe_at = now() + interval '700 ms' WHERE NOT is_active")
    pause = await short.step()
    assert pause is not None
    assert 0.3 < pause <= 0.7


async def test_it_keeps_to_the_hosts_budget_and_goes_on_record(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    slow = dataclasses.replace(settings, host_rate=0.01, host_burst=2)
    target.script = lambda seen: Reply(403) if seen.proxy == 0 else Reply()
    await Prober(pool, slow).step()
    rows = await _rows(pool)
    assert len(target.seen) == 2, "as many as may follow each other at once"
    (late,) = [row for row in rows if row["probe_failures"] == 0 and not row["is_active"]]
    assert 50 < late["wait"] <= 60
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT host, proxy_id, verdict, status, task_id FROM fetch_attempts")
        attempts = {row[1]: row for row in await cursor.fetchall()}
        cursor = await conn.execute("SELECT blocked_identities FROM hosts")
        assert await cursor.fetchall() == [([],)], "a tired proxy that is refused is not the host refusing"
    assert set(attempts) == set(ids) - {late["id"]}
    for proxy_id, row in attempts.items():
        verdict, status = ("blocked", 403) if proxy_id == ids[0] else ("ok", 200)
        assert row == (f"{NAME}:{target.port}", proxy_id, verdict, status, None)


async def test_no_probe_runs_while_the_host_is_blocked(
    pool: Pool, ids: list[int], settings: Settings, target: Target
) -> None:
    target.script = lambda _: Reply(429, headers={"Retry-After": "500"})
    async with pool.connection() as conn:
        await conn.execute("UPDATE proxies SET probe_at = now() + interval '1 h' WHERE id <> %s", [ids[0]])
    await Prober(pool, settings).step()
    await _due(pool)
    await Prober(pool, settings).step()
    assert len(target.seen) == 1
    assert all(row["wait"] <= 60 and row["probe_failures"] == 0 for row in await _rows(pool))


async def test_active_ones_are_tested_when_an_operator_asks(
    pool: Pool, ids: list[int], settings: Settings, farm: ProxyFarm, target: Target
) -> None:
    async with pool.connection() as conn, conn.transaction():
        await conn.execute("UPDATE proxies SET is_active = true, probe_at = NULL, deactivated_at = NULL")
        assert (await bulk.apply(conn, ProxyAction.TEST, ProxyFilter())).done == 3
    await farm.fault(0, "dead")
    await Prober(pool, settings).step()
    failed, *passed = await _rows(pool)
    assert (failed["is_active"], failed["probe_state"], failed["probe_failures"]) == (False, "failed", 1)
    assert failed["deactivated_at"] is not None
    assert failed["wait"] > 0
    assert [(row["is_active"], row["probe_at"], row["failure_count"]) for row in passed] == [(True, None, 5)] * 2
    assert sorted(seen.proxy or 0 for seen in target.seen) == [1, 2]


async def test_one_enabled_while_it_is_tested_stays_active(pool: Pool, ids: list[int]) -> None:
    async with pool.connection() as conn:
        (due, *_) = await store.take_due(conn, 1, hold=60)
        await store.enable(conn, [due.id])
        await store.probe_failed(conn, due.id, wait=60, error="too slow")
        await store.postpone_probe(conn, due.id, wait=60)
    row = next(row for row in await _rows(pool) if row["id"] == due.id)
    assert (row["is_active"], row["probe_at"], row["probe_failures"]) == (True, None, 0)
