"""What sessions report is written together, once, whole, and whatever becomes of who reported it."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from menuwatch.db.pool import Pool, open_pool
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.classify import Blame, Verdict
from menuwatch.fetch.reports import Report, ReportWriter
from menuwatch.fetch.retry_policy import Action
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import Accepted, IdentityBlocked, RateLimited, ServerError
from menuwatch.hosts.scores import HALF_LIFE, Observation, Score
from menuwatch.proxies import store as proxies
from menuwatch.proxies.health import ProxyEvent, ProxyOutcome
from menuwatch.proxies.model import NewProxy

HOSTS = ["a.invalid", "b.invalid", "c.invalid"]


async def prepare(pool: Pool, many: int = 4) -> list[int]:
    async with pool.connection() as conn:
        for host in HOSTS:
            await hosts.add(conn, host, Limits())
        return [
            (await proxies.add(conn, NewProxy(protocol="http", host="proxy.invalid", port=8000 + n)))[0]
            for n in range(many)
        ]


def attempt(proxy_id: int, host: str = HOSTS[0], *, error: str | None = None, at: datetime | None = None) -> Attempt:
    return Attempt(
        task_id=1, dispensary_id=2, host=host, proxy_id=proxy_id, profile="p", verdict=Verdict.OK, blame=Blame.NONE,
        reaction=Action.RETURN, status=200, rotated=False, waited_ms=1.0, bytes=10, elapsed_ms=2.0, error=error,
        attempted_at=at or datetime.now(UTC),
    )  # fmt: skip


def report(proxy_id: int, host: str = HOSTS[0], **given: Any) -> Report:
    return Report(
        attempts=[attempt(proxy_id, host, **given)],
        signals=[(host, Accepted())],
        proxies=[ProxyEvent(proxy_id=proxy_id, event=ProxyOutcome.SUCCESS, elapsed_ms=2.0)],
        observations=[Observation(host, proxy_id, "p", proxy_good=1.0, profile_good=1.0)],
    )


async def one(pool: Pool, query: str, *values: Any) -> Any:
    async with pool.connection() as conn:
        row = await (await conn.execute(query, values)).fetchone()  # type: ignore[arg-type]
    return row if row is None or len(row) > 1 else row[0]


async def test_everything_of_a_report_is_written(pool: Pool) -> None:
    ids = await prepare(pool)
    lease = await one(
        pool,
        "INSERT INTO identity_leases (host, proxy_id, leased_at, expires_at)"
        " VALUES (%s, %s, now(), now() + interval '1 hour') RETURNING id",
        HOSTS[0],
        ids[0],
    )
    told = report(ids[0])
    told.leases.append(lease)
    await ReportWriter(pool).write(told)
    assert await one(pool, "SELECT host, proxy_id, verdict, bytes FROM fetch_attempts") == (HOSTS[0], ids[0], "ok", 10)
    assert await one(pool, "SELECT requests, bytes FROM fetch_totals") == (1, 10)
    assert await one(pool, "SELECT success_count FROM proxies WHERE id = %s", ids[0]) == 1
    assert await one(pool, "SELECT good, bad FROM proxy_scores") == (1.0, 0.0)
    assert await one(pool, "SELECT good, bad FROM profile_scores") == (1.0, 0.0)
    assert await one(pool, "SELECT last_ok_at IS NOT NULL FROM hosts WHERE host = %s", HOSTS[0])
    assert await one(pool, "SELECT count(*) FROM identity_leases") == 0


async def test_nothing_to_tell_costs_nothing(pool: Pool) -> None:
    written: list[Report] = []
    await ReportWriter(pool, on_written=written.append).write(Report())
    assert written == []


async def test_many_at_once_share_few_transactions(pool: Pool) -> None:
    ids = await prepare(pool)
    batches: list[int] = []
    writer = ReportWriter(pool, on_written=lambda together: batches.append(len(together.attempts)))
    await asyncio.gather(*(writer.write(report(ids[n % 4], HOSTS[n % 3])) for n in range(200)))
    assert sum(batches) == 200
    assert len(batches) <= 3
    assert await one(pool, "SELECT sum(requests)::int FROM fetch_totals") == 200
    assert await one(pool, "SELECT sum(success_count)::int FROM proxies") == 200
    assert await one(pool, "SELECT sum(good) FROM proxy_scores") == pytest.approx(200, rel=1e-3)
    # Afterwards it is ready for the next.
    await writer.write(report(ids[0]))
    assert sum(batches) == 201


async def test_who_waits_hears_after_the_commit_and_not_before(pool: Pool) -> None:
    ids = await prepare(pool)
    writer = ReportWriter(pool)

    async def tell(n: int) -> None:
        await writer.write(report(ids[n % 4], error=f"number {n}"))
        assert await one(pool, "SELECT count(*) FROM fetch_attempts WHERE error = %s", f"number {n}") == 1

    await asyncio.gather(*(tell(n) for n in range(30)))


async def blocked(pool: Pool, conn: Any) -> None:
    """Until somebody waits for what that connection has locked."""
    deadline = time.monotonic() + 5
    query = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
    while not await one(pool, query, conn.info.backend_pid):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_the_report_of_one_who_is_cancelled_is_written_all_the_same(pool: Pool) -> None:
    ids = await prepare(pool)
    writer = ReportWriter(pool)
    async with pool.connection() as other:
        async with other.transaction():
            await other.execute("SELECT FROM hosts WHERE host = %s FOR UPDATE", (HOSTS[0],))
            first = asyncio.create_task(writer.write(report(ids[0])))
            await blocked(pool, other)
            gathering = asyncio.create_task(writer.write(report(ids[1])))
            await asyncio.sleep(0)
            for each in (first, gathering):
                each.cancel()
            for each in (first, gathering):
                with pytest.raises(asyncio.CancelledError):
                    await each
        await writer.write(report(ids[2]))
    assert await one(pool, "SELECT count(*) FROM fetch_attempts") == 3


async def test_an_error_reaches_its_own_report_alone_and_nothing_of_it_is_written(pool: Pool) -> None:
    ids = await prepare(pool)
    written: list[Report] = []
    writer = ReportWriter(pool, on_written=written.append)
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE fetch_totals ADD CONSTRAINT broken CHECK (host <> 'b.invalid')")
    told = [report(ids[0]), report(ids[1], HOSTS[1]), report(ids[2])]
    found = await asyncio.gather(*(writer.write(each) for each in told), return_exceptions=True)
    assert [type(one) for one in found] == [type(None), psycopg.errors.CheckViolation, type(None)]
    assert len(written) == 2
    assert await one(pool, "SELECT count(*) FROM fetch_attempts") == 2
    for table in ("fetch_attempts", "fetch_totals"):
        assert await one(pool, f"SELECT count(*) FROM {table} WHERE host = 'b.invalid'") == 0
    assert await one(pool, "SELECT sum(success_count)::int FROM proxies") == 2


async def test_proxies_and_hosts_that_are_gone_spoil_nothing_for_others(pool: Pool) -> None:
    ids = await prepare(pool)
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM proxies WHERE id = %s", (ids[0],))
        await conn.execute("DELETE FROM hosts WHERE host = %s", (HOSTS[1],))
    writer = ReportWriter(pool)
    told = [report(ids[0]), report(ids[1], HOSTS[1]), report(ids[2])]
    told[0].leases.append(12345)
    await asyncio.gather(*(writer.write(each) for each in told))
    assert await one(pool, "SELECT count(*) FROM fetch_attempts") == 3, "what was asked was asked"
    assert await one(pool, "SELECT array_agg(proxy_id ORDER BY proxy_id) FROM proxy_scores") == ids[1:3]


async def test_a_proxy_that_is_removed_while_it_is_reported_on_spoils_nothing(pool: Pool) -> None:
    ids = await prepare(pool)
    writer = ReportWriter(pool)
    async with pool.connection() as other, other.transaction():
        await other.execute("DELETE FROM proxies WHERE id = %s", (ids[0],))
        writing = asyncio.create_task(writer.write(report(ids[0])))
        await blocked(pool, other)
    await writing
    assert await one(pool, "SELECT count(*) FROM fetch_attempts") == 1
    assert await one(pool, "SELECT count(*) FROM proxy_scores") == 0


async def test_a_deadlock_is_tried_again(pool: Pool) -> None:
    """Somebody locks against the order: one of both has to yield, and the report is written in the end."""
    ids = await prepare(pool)
    writer = ReportWriter(pool)
    async with pool.connection() as other:
        await other.execute("SET deadlock_timeout = '30s'")  # so that it is the writer which is told to yield
        async with other.transaction():
            await other.execute("SELECT FROM proxies WHERE id = %s FOR UPDATE", (ids[0],))
            writing = asyncio.create_task(writer.write(report(ids[0])))
            await blocked(pool, other)
            await other.execute("SELECT FROM hosts WHERE host = %s FOR UPDATE", (HOSTS[0],))
    await writing
    assert await one(pool, "SELECT count(*), min(bytes) FROM fetch_attempts") == (1, 10)
    assert await one(pool, "SELECT success_count FROM proxies WHERE id = %s", ids[0]) == 1


async def test_days_make_their_partitions(pool: Pool) -> None:
    ids = await prepare(pool)
    writer = ReportWriter(pool)
    days = [
        datetime(2026, 2, 27, 23, 59, 59, 999_999, tzinfo=UTC) + timedelta(days=n, microseconds=n) for n in range(6)
    ]
    await asyncio.gather(*(writer.write(report(ids[0], at=day)) for day in days))
    assert await one(pool, "SELECT count(*) FROM fetch_attempts") == 6


async def test_scores_decay_in_the_database_as_the_rule_says(pool: Pool) -> None:
    ids = await prepare(pool)
    rng = random.Random(9)
    writer = ReportWriter(pool)
    good, bad = rng.uniform(0, 50), rng.uniform(0, 50)
    ago = rng.uniform(0, 48) * 3600
    async with pool.connection() as conn:
        for table, key, value in (("proxy_scores", "proxy_id", ids[0]), ("profile_scores", "profile", "p")):
            await conn.execute(
                f"INSERT INTO {table} (host, {key}, good, bad, as_of)"
                " VALUES (%s, %s, %s, %s, clock_timestamp() - make_interval(secs => %s))",
                (HOSTS[0], value, good, bad, ago),
            )
    await writer.write(
        Report(
            observations=[
                Observation(HOSTS[0], ids[0], "p", proxy_good=1, proxy_bad=0.25, profile_good=2, profile_bad=0.75)
            ]
        )
    )
    then = datetime(2026, 6, 1, tzinfo=UTC)
    due = Score(good, bad, then).at(then + timedelta(seconds=ago))
    assert HALF_LIFE == 6 * 3600
    assert await one(pool, "SELECT good, bad FROM proxy_scores") == (
        pytest.approx(due.good + 1, rel=1e-3),
        pytest.approx(due.bad + 0.25, rel=1e-3),
    )
    assert await one(pool, "SELECT good, bad FROM profile_scores") == (
        pytest.approx(due.good + 2, rel=1e-3),
        pytest.approx(due.bad + 0.75, rel=1e-3),
    )


async def test_a_score_from_the_future_does_not_grow(pool: Pool) -> None:
    ids = await prepare(pool)
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO proxy_scores VALUES (%s, %s, 4, 2, clock_timestamp() + interval '1 day')", (HOSTS[0], ids[0])
        )
    await ReportWriter(pool).write(report(ids[0]))
    assert await one(pool, "SELECT good, bad FROM proxy_scores") == (5.0, 2.0)


# Run by the test below, in processes of its own: reports over the same rows in every order.
WRITER = """
import asyncio, sys
import structlog
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
from tests.fetch.test_report_writer import turmoil
asyncio.run(turmoil(sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3].split(",")], float(sys.argv[4])))
"""


async def turmoil(url: str, seed: int, ids: list[int], seconds: float) -> None:
    """Reports as sessions have them, as fast as may be; prints how many were written."""
    rng = random.Random(seed)
    wrote = 0
    stop_at = time.monotonic() + seconds
    async with open_pool(url) as pool:
        writers = [ReportWriter(pool) for _ in range(3)]

        async def session(writer: ReportWriter) -> None:
            nonlocal wrote
            while time.monotonic() < stop_at:
                told = Report()
                for _ in range(rng.randrange(1, 5)):
                    host, proxy = rng.choice(HOSTS), rng.choice(ids)
                    told.add(report(proxy, host))
                    told.signals.append(
                        (
                            host,
                            rng.choice(
                                [Accepted(), IdentityBlocked(proxy, "p", "x"), RateLimited(0.0, "x"), ServerError("x")]
                            ),
                        )
                    )
                    told.proxies.append(
                        ProxyEvent(
                            proxy_id=rng.choice(ids),
                            event=rng.choice([ProxyOutcome.FAULT, ProxyOutcome.HOST_REFUSES]),
                            error="x",
                        )
                    )
                if rng.random() < 0.3:
                    told.signals.clear()  # of a proxy that does not connect there is no news of the host
                if rng.random() < 0.5:
                    # A lease that lapses before it is given back: somebody else may be clearing it away.
                    async with pool.connection() as conn:
                        leased = await conn.execute(
                            "SELECT lease FROM lease_identity(%s, %s, %s, 0.001, 1, 5, 0, NULL) WHERE lease IS NOT NULL",
                            (rng.choice(HOSTS), rng.sample(ids, len(ids)), rng.randrange(10**9)),
                        )
                        told.leases += [row[0] for row in await leased.fetchall()]
                await writer.write(told)
                wrote += 1

        await asyncio.gather(*(session(writers[n % 3]) for n in range(9)))
    sys.stdout.write(f"{wrote}")


async def test_processes_that_write_in_opposite_orders_never_deadlock(pool: Pool, database_url: str) -> None:
    ids = await prepare(pool, 6)
    async with pool.connection() as conn:
        for host in HOSTS:
            await conn.execute(
                "UPDATE hosts SET rate = 100000, current_rate = 100000, burst = 1000, concurrency = 4 WHERE host = %s",
                (host,),
            )
    orders = [ids, ids[::-1]]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, database_url, str(n), ",".join(map(str, orders[n])), "1.5"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    # Leases come and go meanwhile.
    rng = random.Random(3)
    task = 0
    while any(process.poll() is None for process in running):
        task += 1
        async with pool.connection() as conn:
            await conn.execute(
                "SELECT * FROM lease_identity(%s, %s, %s, 0.01, 1, 5, 0, NULL)",
                (rng.choice(HOSTS), rng.sample(ids, 6), task),
            )
        await asyncio.sleep(0.001)
    wrote = [int(process.communicate()[0]) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert min(wrote) > 10
    await asyncio.sleep(0)
    async with pool.connection() as conn:
        await conn.execute("SELECT pg_stat_force_next_flush()")
    assert await one(pool, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0
    totals = await one(
        pool, "SELECT (SELECT sum(requests)::int FROM fetch_totals), (SELECT count(*)::int FROM fetch_attempts)"
    )
    assert totals[0] == totals[1]


# A database that goes.


async def end_its_connection(other: Any, pool: Pool) -> None:
    """Of whoever waits for what that connection has locked."""
    await blocked(pool, other)
    await other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
        (other.info.backend_pid,),
    )


async def test_a_database_that_goes_for_a_moment_loses_no_report(pool: Pool) -> None:
    ids = await prepare(pool)
    written: list[Report] = []
    writer = ReportWriter(pool, on_written=written.append)
    async with pool.connection() as other, other.transaction():
        await other.execute("SELECT FROM hosts WHERE host = %s FOR UPDATE", (HOSTS[0],))
        writing = asyncio.create_task(writer.write(report(ids[0])))
        await end_its_connection(other, pool)
    await writing
    assert len(written) == 1
    assert await one(pool, "SELECT (SELECT count(*) FROM fetch_attempts), requests FROM fetch_totals") == (1, 1)


async def test_a_report_whose_commit_was_not_answered_is_written_once(pool: Pool) -> None:
    """The connection breaks when COMMIT has been carried out but its answer has not arrived."""
    ids = await prepare(pool)
    broken: list[Any] = []

    class Breaking(ReportWriter):
        async def _write(self, conn: Any, report: Report) -> str:
            number = await super()._write(conn, report)
            if not broken:
                broken.append(conn)
                commit = conn.wait

                async def wait(generator: Any, *args: Any, **kwargs: Any) -> Any:
                    answer = await commit(generator, *args, **kwargs)
                    if conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                        conn.pgconn.finish()
                        raise psycopg.OperationalError("the answer did not arrive")
                    return answer

                conn.wait = wait
            return number

    await Breaking(pool).write(report(ids[0]))
    assert len(broken) == 1
    assert await one(pool, "SELECT (SELECT count(*) FROM fetch_attempts), requests FROM fetch_totals") == (1, 1)
    assert await one(pool, "SELECT success_count FROM proxies WHERE id = %s", ids[0]) == 1


async def test_a_database_that_stays_away_is_an_error_in_the_end(pool: Pool) -> None:
    ids = await prepare(pool)
    writer = ReportWriter(pool, patience=0)
    async with pool.connection() as other, other.transaction():
        await other.execute("SELECT FROM hosts WHERE host = %s FOR UPDATE", (HOSTS[0],))
        writing = asyncio.create_task(writer.write(report(ids[0])))
        await end_its_connection(other, pool)
        with pytest.raises(psycopg.errors.AdminShutdown):
            await writing


async def test_closing_waits_for_what_was_told_by_somebody_who_is_gone(pool: Pool) -> None:
    ids = await prepare(pool)
    writer = ReportWriter(pool)
    async with pool.connection() as other, other.transaction():
        await other.execute("SELECT FROM hosts WHERE host = %s FOR UPDATE", (HOSTS[0],))
        writing = asyncio.create_task(writer.write(report(ids[0])))
        await blocked(pool, other)
        writing.cancel()
        closing = asyncio.create_task(writer.close())
    await closing
    assert await one(pool, "SELECT count(*) FROM fetch_attempts") == 1
