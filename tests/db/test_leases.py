"""Leases: exclusive on a host, bounded in number, taken over when left behind; one identity tries an open circuit."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from menuwatch.db.pool import Pool
from menuwatch.fetch import leases
from menuwatch.fetch.leases import Denied, Lease
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import Accepted, Delays, IdentityBlocked
from menuwatch.proxies import store as proxies
from menuwatch.proxies.model import NewProxy
from tests.host_rows import pause, read_host

HOST = "menus.invalid"
_tasks = itertools.count(1)
WIDE = Limits(rate=100_000, burst=1000, concurrency=100)


async def prepare(pool: Pool, many: int, limits: Limits = WIDE) -> list[int]:
    async with pool.connection() as conn:
        await hosts.add(conn, HOST, limits)
        return [
            (await proxies.add(conn, NewProxy(protocol="http", host="proxy.invalid", port=8000 + n)))[0]
            for n in range(many)
        ]


async def ask(
    pool: Pool, ranked: list[int], *, lease_seconds: float = 60.0, release_lease_id: int | None = None
) -> Lease:
    async with pool.connection() as conn:
        return await leases.lease(
            conn,
            HOST,
            ranked,
            task_id=next(_tasks),
            lease_seconds=lease_seconds,
            max_wait=1.0,
            release_lease_id=release_lease_id,
        )


async def code(pool: Pool, ranked: list[int]) -> str:
    with pytest.raises(Denied) as caught:
        await ask(pool, ranked)
    return caught.value.code


async def turn_away(pool: Pool, *pairs: tuple[int, str]) -> None:
    async with pool.connection() as conn, conn.transaction():
        await hosts.record(conn, {HOST: [IdentityBlocked(proxy, name, "HTTP 403") for proxy, name in pairs]}, Delays())


async def set_circuit_due(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("UPDATE hosts SET circuit_until = clock_timestamp() - interval '1 ms'")


async def circuit(pool: Pool) -> tuple[str, float | None, int]:
    async with pool.connection() as conn:
        host = await read_host(conn, HOST)
        row = await (
            await conn.execute("SELECT extract(epoch FROM circuit_until - clock_timestamp())::float8 FROM hosts")
        ).fetchone()
    assert row is not None
    return host.circuit, row[0], host.consecutive_opens


async def test_the_first_that_is_free_active_and_known_is_leased(pool: Pool) -> None:
    ids = await prepare(pool, 4)
    async with pool.connection() as conn:
        await conn.execute("UPDATE proxies SET is_active = false WHERE id = %s", (ids[2],))
    assert (await ask(pool, [ids[2], 999_999, ids[1], ids[0]])).proxy_id == ids[1]
    assert (await ask(pool, [ids[2], 999_999, ids[1], ids[0]])).proxy_id == ids[0]
    assert await code(pool, [ids[2], 999_999, ids[1], ids[0]]) == "no_free_proxy"
    assert await code(pool, []) == "no_free_proxy"


async def test_who_is_denied_uses_up_no_turn(pool: Pool) -> None:
    ids = await prepare(pool, 1, Limits(rate=0.01, burst=2, concurrency=5))
    first = await ask(pool, ids)
    for _ in range(5):
        assert await code(pool, ids) == "no_free_proxy"
    async with pool.connection() as conn:
        await leases.end(conn, [first.id])
    await ask(pool, ids)
    async with pool.connection() as conn:
        assert await (await conn.execute("SELECT count(*) FROM identity_leases")).fetchone() == (1,)
        await conn.execute("DELETE FROM identity_leases")
    assert await code(pool, ids) == "pace"
    async with pool.connection() as conn:
        assert await (await conn.execute("SELECT count(*) FROM identity_leases")).fetchone() == (0,)


async def test_a_lease_that_lapsed_is_taken_over_and_its_holder_hears_of_it(pool: Pool) -> None:
    ids = await prepare(pool, 1)
    old = await ask(pool, ids, lease_seconds=0.001)
    new = await ask(pool, ids)
    assert (new.proxy_id, new.id != old.id) == (old.proxy_id, True)
    async with pool.connection() as conn:
        assert not await leases.renew(conn, old.id, lease_seconds=60)
        assert await leases.renew(conn, new.id, lease_seconds=60)
        # The former holder gives back what is no longer its own: nothing happens to the new one.
        await leases.end(conn, [old.id])
        assert await (await conn.execute("SELECT id FROM identity_leases")).fetchall() == [(new.id,)]


async def test_a_lease_that_lapsed_and_that_nobody_took_is_kept_by_renewing(pool: Pool) -> None:
    ids = await prepare(pool, 1)
    old = await ask(pool, ids, lease_seconds=0.001)
    async with pool.connection() as conn:
        assert await leases.renew(conn, old.id, lease_seconds=60)
    assert await code(pool, ids) == "no_free_proxy"


async def test_a_task_that_begins_again_finds_no_lease_of_its_own_in_its_way(pool: Pool) -> None:
    ids = await prepare(pool, 1)
    async with pool.connection() as conn:
        for _ in range(3):
            lease = await leases.lease(conn, HOST, ids, task_id=7, lease_seconds=60, max_wait=1.0)
        assert await (await conn.execute("SELECT id FROM identity_leases")).fetchall() == [(lease.id,)]


async def test_tasks_without_a_number_do_not_take_each_others_leases(pool: Pool) -> None:
    ids = await prepare(pool, 1)
    async with pool.connection() as conn:
        await leases.lease(conn, HOST, ids, task_id=None, lease_seconds=60, max_wait=1.0)
        with pytest.raises(Denied, match="no free proxy"):
            await leases.lease(conn, HOST, ids, task_id=None, lease_seconds=60, max_wait=1.0)


async def test_a_lease_is_given_back_whatever_comes_of_the_next(pool: Pool) -> None:
    ids = await prepare(pool, 2)
    first = await ask(pool, ids[:1])
    second = await ask(pool, ids, release_lease_id=first.id)
    assert second.proxy_id == ids[0], "given back first, so it is free again"
    async with pool.connection() as conn:
        await pause(conn, HOST)
    with pytest.raises(Denied, match="paused by an operator"):
        await ask(pool, ids, release_lease_id=second.id)
    async with pool.connection() as conn:
        assert await (await conn.execute("SELECT count(*) FROM identity_leases")).fetchone() == (0,)


async def test_hosts_that_go_take_their_leases_with_them_and_so_do_proxies(pool: Pool) -> None:
    ids = await prepare(pool, 2)
    kept = await ask(pool, ids)
    await ask(pool, ids)
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM proxies WHERE id = %s", (ids[1],))
        assert await (await conn.execute("SELECT id FROM identity_leases")).fetchall() == [(kept.id,)]
        await conn.execute("DELETE FROM hosts")
        assert await (await conn.execute("SELECT id FROM identity_leases")).fetchall() == []


async def test_of_an_open_circuit_exactly_one_identity_tries(pool: Pool) -> None:
    ids = await prepare(pool, 8)
    await turn_away(pool, *[(proxy, "p") for proxy in ids[:6]])
    assert await code(pool, ids) == "circuit"
    await set_circuit_due(pool)
    probe = await ask(pool, ids)
    assert probe.probing
    assert [await code(pool, ids) for _ in range(3)] == ["circuit"] * 3
    # It is given back without an answer: another one may try.
    async with pool.connection() as conn:
        await leases.end(conn, [probe.id])
    probe = await ask(pool, ids)
    assert probe.probing
    # Refused: shut for twice as long.
    await turn_away(pool, (probe.proxy_id, "q"))
    state, left, opens = await circuit(pool)
    assert (state, opens) == ("open", 2)
    assert left == pytest.approx(1800, abs=5)
    async with pool.connection() as conn:
        await leases.end(conn, [probe.id])
    assert await code(pool, ids) == "circuit"
    # Let in: everybody may.
    await set_circuit_due(pool)
    probe = await ask(pool, ids)
    async with pool.connection() as conn, conn.transaction():
        await hosts.record(conn, {HOST: [Accepted()]}, Delays())
    assert await circuit(pool) == ("closed", None, 0)
    assert not (await ask(pool, ids)).probing


async def test_the_time_of_an_open_circuit_ends_at_six_hours(pool: Pool) -> None:
    ids = await prepare(pool, 8)
    await turn_away(pool, *[(proxy, "p") for proxy in ids[:6]])
    times = []
    for n in range(7):
        times.append((await circuit(pool))[1])
        await set_circuit_due(pool)
        await turn_away(pool, (ids[0], f"again{n}"))
    assert times == [pytest.approx(60 * minutes, abs=5) for minutes in (15, 30, 60, 120, 240, 360, 360)]


def holders(
    database_url: str, ids: list[int], *, many: int, seconds: float, lapse: bool
) -> tuple[list[str], Counter[str], int]:
    """So many connections lease, hold for a moment, and give back or leave behind: what was wrong, what was said, how many were
    granted."""
    wrong: list[str] = []
    said: Counter[str] = Counter()
    held: dict[int, int] = {}
    lock = threading.Lock()
    granted = 0
    stop_at = time.monotonic() + seconds

    def work(number: int) -> None:
        nonlocal granted
        rng = random.Random(number)
        try:
            with psycopg.connect(database_url, autocommit=True) as conn:
                while time.monotonic() < stop_at:
                    ranked = ids[:]
                    rng.shuffle(ranked)
                    row = conn.execute(
                        "SELECT lease, proxy_id, code, probing FROM lease_identity(%s, %s, %s, %s, 1, 5, 0, NULL)",
                        (HOST, ranked, next(_tasks), 0.002 if lapse else 60.0),
                    ).fetchone()
                    assert row is not None
                    lease, proxy, code, _ = row
                    said[str(code)] += 1
                    if code is not None:
                        continue
                    with lock:
                        granted += 1
                        if not lapse and proxy in held:
                            wrong.append(f"{proxy} was leased twice at once")
                        held[proxy] = number
                        if not lapse and len(held) > LIMIT:
                            wrong.append(f"{len(held)} leases at once")
                    if lapse and rng.random() < 0.5:
                        continue  # left behind
                    time.sleep(rng.uniform(0, 0.002))
                    with lock:
                        held.pop(proxy, None)
                    conn.execute("DELETE FROM identity_leases WHERE id = %s", (lease,))
        except BaseException as error:
            wrong.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong, said, granted


LIMIT = 3


@pytest.mark.parametrize("lapse", [False, True])
async def test_eight_at_once_never_share_a_proxy_nor_are_more_than_may_be(
    lapse: bool, pool: Pool, database_url: str
) -> None:
    ids = await prepare(pool, 5, Limits(rate=100_000, burst=1000, concurrency=LIMIT))
    wrong, said, granted = holders(database_url, ids, many=8, seconds=1.0, lapse=lapse)
    assert wrong == []
    assert granted > 20
    assert set(said) <= {"None", "busy"}, "with five proxies for three there is always a free one"


async def test_of_eight_at_once_one_tries_an_open_circuit(pool: Pool, database_url: str) -> None:
    ids = await prepare(pool, 8)
    await turn_away(pool, *[(proxy, "p") for proxy in ids[:6]])
    await set_circuit_due(pool)
    found: list[Any] = []
    start = threading.Barrier(8)

    def work() -> None:
        with psycopg.connect(database_url, autocommit=True) as conn:
            start.wait()
            found.append(
                conn.execute(
                    "SELECT code, probing FROM lease_identity(%s, %s, %s, 60, 1, 5, 0, NULL)", (HOST, ids, next(_tasks))
                ).fetchone()
            )

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(found) == Counter({(None, True): 1, ("circuit", True): 7})


def test_giving_back_a_lapsed_lease_waits_for_nobody_who_waits_for_it(database_url: str) -> None:
    """One holds the host and clears away what lapsed; another gives its lapsed lease back on the way to the host."""
    with psycopg.connect(database_url, autocommit=True) as one, psycopg.connect(database_url, autocommit=True) as two:
        one.execute(
            "INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES (%s, 1000, 100, 9, 1000)", (HOST,)
        )
        ids = [
            one.execute(
                "INSERT INTO proxies (protocol, host, port) VALUES ('http', 'p.invalid', %s) RETURNING id", (n,)
            ).fetchone()
            for n in (1, 2)
        ]
        numbers = [row[0] for row in ids if row is not None]
        asking = "SELECT lease, code FROM lease_identity(%s, %s, %s, %s, 1, 5, 0, %s)"
        lapsed = one.execute(asking, (HOST, numbers, 1, 0.0, None)).fetchone()
        assert lapsed is not None
        errors: list[BaseException] = []

        def release_lease_id() -> None:
            try:
                two.execute(asking, (HOST, numbers, 1, 60, lapsed[0]))
            except psycopg.Error as error:
                errors.append(error)

        other = threading.Thread(target=release_lease_id)
        with one.transaction():
            one.execute("SELECT FROM hosts FOR NO KEY UPDATE")
            other.start()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
            with psycopg.connect(database_url, autocommit=True) as watch:
                until = time.monotonic() + 5
                while watch.execute(waiting, (two.info.backend_pid,)).fetchone() != (1,):
                    assert time.monotonic() < until
                    time.sleep(0.005)
            one.execute(asking, (HOST, numbers, 2, 60, None))
        other.join()
        assert errors == []


def test_the_shortest_time_is_a_time(database_url: str) -> None:
    """A host that may be asked again in a moment says so with a wait above nothing."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES (%s, 1000, 1, 9, 1000)", (HOST,)
        )
        conn.execute(
            "UPDATE hosts SET cooldown_until = clock_timestamp() + %s, cooldown_reason = 'x'", (timedelta(seconds=5),)
        )
        row = conn.execute("SELECT code, wait FROM acquire_slots(%s, 1, 0, 0)", (HOST,)).fetchone()
        assert row is not None
        assert row[0] == "cooling"
        assert 0 < row[1] <= 5
