"""The rows of hosts: what is written of them, by several at once; and tasks that wait for a host without that being counted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from menuwatch.core.errors import Refused
from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Pool
from menuwatch.hosts import service
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import Accepted, Delays, HostSignal, IdentityBlocked, RateLimited, ServerError
from menuwatch.queue.ending import ending
from menuwatch.queue.model import NewTask, Role, Status
from menuwatch.queue.outcome import Postpone
from tests.db.queue_calls import claim, end, look, put
from tests.host_rows import change_limits, pause, read_host

HOST = "menus.invalid"
FETCH = Role.PAYLOAD_FETCH


async def record(pool: Pool, *signals: HostSignal, host: str = HOST) -> None:
    async with pool.connection() as conn, conn.transaction():
        await hosts.record(conn, {host: list(signals)}, Delays())


async def get(pool: Pool, host: str = HOST) -> SimpleNamespace:
    async with pool.connection() as conn:
        return await read_host(conn, host)


async def kinds(pool: Pool, host: str = HOST) -> list[str]:
    async with pool.connection() as conn:
        return [event.kind for event in reversed(await service.list_events(conn, host))]


@pytest.fixture
async def host(pool: Pool) -> str:
    async with pool.connection() as conn:
        await hosts.add(conn, HOST, Limits(rate=2.0, burst=4, concurrency=6, min_gap=0.5))
    return HOST


async def test_a_host_is_added_once_and_keeps_its_limits(pool: Pool, host: str) -> None:
    async with pool.connection() as conn:
        await hosts.add(conn, host, Limits(rate=99.0))
    assert ((row := await get(pool)).rate, row.current_rate, row.burst, row.concurrency, row.min_gap) == (
        2.0,
        2.0,
        4,
        6,
        0.5,
    )


async def test_many_that_hear_429_at_the_same_moment_slow_it_down_once(pool: Pool, host: str) -> None:
    await asyncio.gather(*(record(pool, RateLimited(5.0, "HTTP 429, wait 5 s")) for _ in range(8)))
    row = await get(pool)
    assert (row.current_rate, row.consecutive_throttles) == (1.0, 1)
    assert row.cooldown_reason == "HTTP 429, wait 5 s"
    assert row.cooldown_until is not None
    assert timedelta(seconds=3) < row.cooldown_until - datetime.now(UTC) <= timedelta(seconds=5)


async def test_refusals_of_several_workers_are_added_up(pool: Pool, host: str) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO proxies (protocol, host, port) SELECT 'http', 'p.invalid', n FROM generate_series(1, 20) n"
        )
    await asyncio.gather(*(record(pool, IdentityBlocked(n, "p", "HTTP 403")) for n in range(1, 6)))
    assert ((row := await get(pool)).circuit, row.blocked_identities) == ("closed", 5)
    await record(pool, IdentityBlocked(6, "p", "HTTP 403"))
    row = await get(pool)
    assert (row.circuit, row.consecutive_opens) == ("open", 1)
    assert "6 identities on 6 proxies" in (row.circuit_reason or "")
    assert await kinds(pool) == ["circuit_opened"]
    await record(pool, Accepted())
    assert ((row := await get(pool)).circuit, row.blocked_identities, row.circuit_until) == ("closed", 0, None)
    assert await kinds(pool) == ["circuit_opened", "circuit_closed"]


async def test_a_wait_of_years_can_be_kept(pool: Pool, host: str) -> None:
    await record(pool, RateLimited(100 * 365 * 86_400.0, "HTTP 429"))
    row = await get(pool)
    assert row.cooldown_until is not None
    assert row.cooldown_until.year >= 2125


async def test_a_reset_forgets_everything_but_what_an_operator_set(pool: Pool, host: str) -> None:
    async with pool.connection() as conn:
        await pause(conn, host, "ask the lawyers")
        await record(
            pool,
            RateLimited(3600.0, "x"),
            *[IdentityBlocked(n, f"b{n}", "x") for n in range(9)],
            *[ServerError("x")] * 4,
        )
        assert (await get(pool)).circuit == "open"
        await service.reset(conn, host)
    row = await get(pool)
    assert (row.circuit, row.cooldown_until, row.current_rate, row.consecutive_throttles, row.blocked_identities) == (
        "closed",
        None,
        2.0,
        0,
        0,
    )
    assert (row.rate, row.burst, row.min_gap, row.paused_reason) == (2.0, 4, 0.5, "ask the lawyers")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": -1.0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": float("inf")}, "rate"),
        ({"burst": 0}, "burst"),
        ({"burst": 10_001}, "burst"),
        ({"concurrency": 0}, "concurrency"),
        ({"min_gap": -0.1}, "min_gap"),
        ({"min_gap": 86_401.0}, "min_gap"),
    ],
)
async def test_limits_that_mean_nothing_are_refused_by_name(
    given: dict[str, Any], named: str, pool: Pool, host: str
) -> None:
    async with pool.connection() as conn:
        with pytest.raises(Refused, match=rf"^{named} must be between .*, not "):
            await change_limits(conn, host, **given)
    assert await kinds(pool) == []


async def test_the_pace_follows_a_lower_rate_at_once_and_grows_into_a_higher_one(pool: Pool, host: str) -> None:
    async with pool.connection() as conn:
        await change_limits(conn, host, rate=0.5)
        assert ((row := await get(pool)).rate, row.current_rate) == (0.5, 0.5)
        await change_limits(conn, host, rate=50.0)
        assert ((row := await get(pool)).rate, row.current_rate) == (50.0, 0.5)
        # Its floor is above its pace now; it slows down all the same.
        await record(pool, *[ServerError("x")] * 3)
        assert (await get(pool)).current_rate <= 0.5
        await conn.execute("UPDATE hosts SET rate_changed_at = clock_timestamp() - interval '2 minutes'")
        await record(pool, Accepted())
        assert (await get(pool)).current_rate == pytest.approx(0.5 + 10, rel=0.05)


async def test_news_of_hosts_that_nobody_knows_is_dropped(pool: Pool) -> None:
    await record(pool, Accepted(), RateLimited(5.0, "x"), host="unknown.invalid")
    async with pool.connection() as conn:
        assert await service.list_hosts(conn) == []


async def test_a_host_in_good_health_is_written_down_now_and_then(pool: Pool, host: str) -> None:
    """Its row is everybody's: a thousand answers are no reason for a thousand versions of it."""
    await record(pool, Accepted())
    first = (await get(pool)).updated_at
    for _ in range(5):
        await record(pool, Accepted(10))
    assert (await get(pool)).updated_at == first
    await record(pool, ServerError("x"))
    assert (await get(pool)).updated_at > first
    second = (await get(pool)).updated_at
    await record(pool, Accepted())
    assert (await get(pool)).updated_at > second, "the trouble is over"


async def test_events_are_pruned_by_age(pool: Pool, host: str) -> None:
    await record(pool, RateLimited(5.0, "x"))
    async with pool.connection() as conn:
        await conn.execute("UPDATE host_events SET happened_at = now() - interval '8 days'")
        await service.reset(conn, host)
        assert await hosts.prune(conn, datetime.now(UTC) - timedelta(days=7)) == 1
    assert await kinds(pool) == ["changed"]


# Tasks that wait for a host.


async def test_two_hundred_waits_in_a_row_fail_nothing_and_count_for_nothing(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=0))
    past = datetime.now(UTC) - timedelta(seconds=1)
    for _ in range(200):
        (task,) = await claim(pool)
        assert await end(
            pool,
            ending(
                task,
                Postpone(code=PostponeCode.THROTTLED, until=past, reason="circuit open", counted=False),
                backoff=timedelta(0),
            ),
        ) == {task_id: Status.PENDING}
    task = await look(pool, task_id)
    assert (task.retry_count, task.postpone_count, task.attempt) == (0, 0, 200)
    assert (task.error_message, task.worker_id) == ("circuit open", None)
    # What is counted still is.
    (task,) = await claim(pool)
    await end(
        pool, ending(task, Postpone(code=PostponeCode.THROTTLED, until=past, reason="HTTP 429"), backoff=timedelta(0))
    )
    task = await look(pool, task_id)
    assert (task.retry_count, task.postpone_count) == (0, 1)


async def test_waits_do_not_give_back_postponements_that_are_used_up(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=0))
    past = datetime.now(UTC) - timedelta(seconds=1)
    for _ in range(50):
        for counted in (True, False):
            (task,) = await claim(pool)
            assert await end(
                pool,
                ending(
                    task,
                    Postpone(code=PostponeCode.THROTTLED, until=past, reason="x", counted=counted),
                    backoff=timedelta(0),
                ),
            ) == {task_id: Status.PENDING}
    (task,) = await claim(pool)
    assert await end(
        pool,
        ending(
            task, Postpone(code=PostponeCode.THROTTLED, until=past, reason="x", counted=False), backoff=timedelta(0)
        ),
    ) == {task_id: Status.PENDING}
    (task,) = await claim(pool)
    assert await end(
        pool, ending(task, Postpone(code=PostponeCode.THROTTLED, until=past, reason="x"), backoff=timedelta(0))
    ) == {task_id: Status.FAILED}


async def test_a_wait_of_a_task_that_somebody_else_has_changes_nothing(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (task,) = await claim(pool)
    late = ending(
        task,
        Postpone(code=PostponeCode.THROTTLED, until=datetime.now(UTC), reason="x", counted=False),
        backoff=timedelta(0),
    )
    assert await end(pool, late, worker="another") == {}
    assert (await look(pool, task_id)).worker_id == "w"


async def test_while_one_waits_the_next_of_its_store_goes_on(pool: Pool) -> None:
    first, second = await put(
        pool, *[NewTask(role=FETCH, dispensary_id=1, payload={"n": n}, unique=False) for n in (1, 2)]
    )
    (task,) = await claim(pool, 5)
    assert task.id == first
    soon = datetime.now(UTC) + timedelta(hours=1)
    await end(
        pool,
        ending(
            task, Postpone(code=PostponeCode.THROTTLED, until=soon, reason="x", counted=False), backoff=timedelta(0)
        ),
    )
    (task,) = await claim(pool, 5)
    assert task.id == second, "what is due goes on"
    waiting = await look(pool, first)
    assert waiting.scheduled_for is not None
    assert abs(waiting.scheduled_for - soon) < timedelta(milliseconds=1)
