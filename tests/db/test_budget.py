"""The moments at which a host may be asked, held against an account of windows that knows nothing of how they are computed."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from menuwatch.db.pool import Pool
from menuwatch.hosts import service
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import Accepted, Delays, RateLimited, ServerError
from tests.host_rows import change_limits, pause, read_host

START = datetime(2026, 6, 1, tzinfo=UTC)
_serial = itertools.count()
EPS = 1e-4
"""Seconds by which the database's microseconds may add up."""

many_examples = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def add(conn: psycopg.Connection[Any], limits: Limits, crawl_delay: float | None = None) -> str:
    host = f"h{next(_serial)}.invalid"
    conn.execute(
        "INSERT INTO hosts (host, rate, burst, concurrency, min_gap, current_rate, crawl_delay)"
        " VALUES (%(host)s, %(rate)s, %(burst)s, %(concurrency)s, %(min_gap)s, %(rate)s, %(delay)s)",
        {"host": host, "delay": crawl_delay, **asdict(limits)},
    )
    return host


def give(
    conn: psycopg.Connection[Any], host: str, at: float, *, want: int = 1, patience: float = 0.0, ahead: float = 0.0
) -> tuple[list[float], float | None]:
    """The moments given away, in seconds from START; else how long to wait. `at` is the time that it is taken to be."""
    row = conn.execute(
        "SELECT g.slots, g.wait FROM hosts h, allocate_slots(h, %s, %s, %s, %s) g WHERE h.host = %s",
        (START + timedelta(seconds=at), want, patience, ahead, host),
    ).fetchone()
    assert row is not None
    return [at + seconds for seconds in row[0]], row[1]


class Account:
    """Everything that was given away, and the earliest moment that a next one may be.

    In each window from one moment to another, both included, at most burst + rate · length.
    """

    def __init__(self, rate: float, burst: int, gap: float) -> None:
        self.rate, self.burst, self.gap = rate, burst, gap
        self.moments: list[float] = []

    def earliest(self, now: float) -> float:
        bounds = [now]
        if self.moments:
            bounds.append(self.moments[-1] + self.gap)
        for back, moment in enumerate(reversed(self.moments)):
            bounds.append(moment + (back + 2 - self.burst) / self.rate)
        return max(bounds)


asking = st.tuples(
    st.floats(0, 3) | st.just(0.0),  # since the last time
    st.integers(1, 8),  # want
    st.sampled_from([0.0, 0.5, 5.0, 86_400.0]),  # patience
    st.sampled_from([0.0, 0.1, 1.0]),  # ahead
)


@given(
    rate=st.floats(0.05, 200),
    burst=st.integers(1, 12),
    gap=st.sampled_from([0.0, 0.0, 0.25, 2.0]),
    delay=st.sampled_from([None, None, 0.0, 1.5]),
    asked=st.lists(asking, min_size=1, max_size=15),
)
@many_examples
def test_each_moment_is_the_earliest_that_no_window_forbids(
    rate: float,
    burst: int,
    gap: float,
    delay: float | None,
    asked: list[tuple[float, int, float, float]],
    conn: psycopg.Connection[Any],
) -> None:
    host = add(conn, Limits(rate=rate, burst=burst, min_gap=gap), delay)
    account = Account(rate, burst, max(gap, delay or 0.0))
    now = 0.0
    for since, want, patience, ahead in asked:
        now += since
        first = account.earliest(now)
        got, wait = give(conn, host, now, want=want, patience=patience, ahead=ahead)
        if abs(first - now - patience) < EPS:
            account.moments += got  # on the very edge either is right
            continue
        if first > now + patience:
            assert got == []
            assert wait == pytest.approx(first - now, abs=EPS)
            continue
        assert wait is None
        for place, moment in enumerate(got):
            due = account.earliest(now)
            assert moment == pytest.approx(due, abs=EPS)
            assert place == 0 or moment <= now + ahead + EPS
            account.moments.append(moment)
        assert 1 <= len(got) <= want
        if len(got) < want:
            assert account.earliest(now) > now + ahead - EPS
    assert account.moments == sorted(account.moments)


@given(
    burst=st.integers(1, 10),
    steps=st.lists(st.tuples(st.floats(0, 4), st.floats(0.02, 1.0)), min_size=2, max_size=12),
)
@many_examples
def test_a_host_that_was_left_alone_is_owed_no_more_than_its_burst(
    burst: int, steps: list[tuple[float, float]], conn: psycopg.Connection[Any]
) -> None:
    host = add(conn, Limits(rate=2.0, burst=burst))
    now, given_away = 0.0, []
    for since, _ in steps:
        now += since * 100
        got, _ = give(conn, host, now, want=50)
        given_away.append(len(got))
    assert max(given_away) <= burst
    assert given_away[0] == burst


SLOWER = {
    "an operator": "change",
    "trouble": "trouble",
}


@pytest.mark.parametrize("who", sorted(SLOWER))
async def test_a_slower_pace_gives_no_second_burst(who: str, pool: Pool) -> None:
    """The burst was used up at the old pace; that the pace falls is no reason to let another one go."""
    async with pool.connection() as conn:
        await hosts.add(conn, "slow.invalid", Limits(rate=2.0, burst=10))
        taken = "SELECT cardinality(slots), wait FROM acquire_slots('slow.invalid', 10, 0, 0)"
        assert (await (await conn.execute(taken)).fetchone()) == (10, None)
        if who == "trouble":
            async with conn.transaction():
                await hosts.record(conn, {"slow.invalid": [ServerError("HTTP 500")] * 3}, Delays())
        else:
            await change_limits(conn, "slow.invalid", rate=0.5)
        host = await read_host(conn, "slow.invalid")
        pace = {"trouble": 1.0, "an operator": 0.5}[who]
        assert host.current_rate == pace
        row = await (await conn.execute(taken)).fetchone()
    assert row is not None
    slots, wait = row
    assert slots in (0, None)
    # Full at the old pace is full at the new one: the next comes a whole step later, less what has passed.
    assert wait == pytest.approx(1 / pace, abs=0.3)


async def test_a_pace_that_has_grown_again_is_kept_at_once(pool: Pool) -> None:
    """What was put off at a fiftieth of the rate is not waited for at the full one."""
    async with pool.connection() as conn:
        await hosts.add(conn, "quick.invalid", Limits(rate=2.0, burst=4))
        await conn.execute("UPDATE hosts SET current_rate = 0.04, rate_changed_at = now() - interval '1 hour'")
        taken = "SELECT cardinality(slots), wait FROM acquire_slots('quick.invalid', 4, 0, 0)"
        assert (await (await conn.execute(taken)).fetchone()) == (4, None)
        async with conn.transaction():
            await hosts.record(conn, {"quick.invalid": [Accepted()]}, Delays())
        host = await read_host(conn, "quick.invalid")
        assert host.current_rate == 2.0
        row = await (await conn.execute(taken)).fetchone()
    assert row is not None
    assert row[1] is None or row[1] <= 0.5


async def test_nothing_is_given_while_the_host_is_closed_and_everything_after(pool: Pool) -> None:
    async with pool.connection() as conn:
        await hosts.add(conn, "shut.invalid", Limits())

        async def take() -> tuple[Any, ...]:
            row = await (
                await conn.execute("SELECT slots, code, wait FROM acquire_slots('shut.invalid', 3, 86400, 10)")
            ).fetchone()
            assert row is not None
            return row

        async with conn.transaction():
            await hosts.record(conn, {"shut.invalid": [RateLimited(7200.0, "HTTP 429")]}, Delays())
        slots, code, wait = await take()
        assert (slots, code) == (None, "cooling")
        assert 7190 < wait <= 7200
        # A cool-down that began is not ended by time alone within a transaction, but by the clock.
        await conn.execute("UPDATE hosts SET cooldown_until = clock_timestamp() + interval '30 ms'")
        while (row := await take())[1] == "cooling":
            assert 0 < row[2] <= 0.03
        assert row[1] is None
        await pause(conn, "shut.invalid")
        assert (await take())[1:] == ("paused", None)
        await service.resume(conn, "shut.invalid")
        assert (await take())[1] is None


def test_many_connections_share_one_budget(database_url: str, conn: psycopg.Connection[Any]) -> None:
    """Eight at once for a second, each as greedy as it can: the windows of all moments together hold."""
    rate, burst, workers = 200.0, 5, 8
    host = add(conn, Limits(rate=rate, burst=burst))
    (began,) = conn.execute("SELECT clock_timestamp()").fetchone() or (None,)
    assert began is not None
    moments: list[float] = []
    errors: list[BaseException] = []
    stop_at = time.monotonic() + 1.0

    def work(number: int) -> None:
        try:
            with psycopg.connect(database_url, autocommit=True) as own:
                while time.monotonic() < stop_at:
                    # The time is read while the row is locked, so the moments are absolute ones.
                    row = own.execute(
                        "SELECT t.slots, t.code, h.last_slot_at FROM acquire_slots(%s, %s, 0.05, 0.02) t, hosts h WHERE h.host = %s",
                        (host, 1 + number, host),
                    ).fetchone()
                    assert row is not None
                    assert row[1] in (None, "pace")
                    if row[0]:
                        moments.extend([len(row[0])])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    (last,) = conn.execute("SELECT last_slot_at FROM hosts WHERE host = %s", (host,)).fetchone() or (None,)
    assert last is not None
    length = (last - began).total_seconds()
    total = sum(moments)
    assert total <= burst + rate * length + 1e-3
    assert total >= rate * length * 0.9, "greedy as they are, they leave nothing over"


@pytest.mark.parametrize(("rate", "burst"), [(1e-6, 1), (1e-6, 10_000), (1_000_000, 10_000)])
def test_the_widest_limits_an_operator_may_set_work(rate: float, burst: int, conn: psycopg.Connection[Any]) -> None:
    """At a pace that has fallen to its floor as well."""
    host = add(conn, Limits(rate=rate, burst=burst))
    conn.execute("UPDATE hosts SET current_rate = rate * 0.02 WHERE host = %s", (host,))
    got, wait = give(conn, host, 0.0, want=1)
    assert (got, wait) == ([0.0], None)
    got, wait = give(conn, host, 0.0, want=1)
    assert (got == [0.0]) is (burst > 1)
