"""Sessions against real proxies, a real target and the real report writer: who is tried, who is blamed, what is written."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from menuwatch.config.settings import Settings
from menuwatch.core import logging as telemetry
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import Blocked, Permanent, Throttled, Transient
from menuwatch.db.pool import Pool
from menuwatch.fetch import attempts
from menuwatch.fetch.leases import Denied
from menuwatch.fetch.robots import Policy
from menuwatch.fetch.rotator import Rotator
from menuwatch.fetch.session import FetchSession
from menuwatch.proxies import store
from menuwatch.proxies.model import NewProxy, NoProxy, Proxy
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.target import NAME, Reply, Seen, Target
from tests.proxy_reports import stored_proxy

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Bench:
    """A rotator over the farm, and the rows behind it; proxy `n` of the farm is row `ids[n]`."""

    def __init__(
        self,
        pool: Pool,
        farm: ProxyFarm,
        ca_file: str | None = None,
        *,
        robots: Policy | None = Policy(respect=False),  # noqa: B008 - it cannot be changed
        **settings: Any,
    ) -> None:
        self.pool = pool
        self.farm = farm
        self.settings = Settings(
            fetch_retry_base_seconds=0,
            fetch_timeout_seconds=0.8,
            fetch_max_bytes=100_000,
            host_rate=100_000,
            host_burst=1000,
            **settings,
        )
        self.rotator = Rotator(
            pool,
            self.settings,
            clock=ManualClock(NOW),
            rng=random.Random(11),
            ca_file=ca_file,
            robots=lambda _: robots,
        )
        self.ids: list[int] = []

    async def register(self, *indexes: int) -> None:
        async with self.pool.connection() as conn:
            for index in indexes:
                info = self.farm.infos[index]
                new = NewProxy(
                    protocol=info.protocol,
                    host=info.host,
                    port=info.port,
                    username=info.username,
                    password=info.password,
                    state=info.state,
                )
                self.ids.append((await store.add(conn, new))[0])

    async def row(self, position: int) -> Proxy:
        async with self.pool.connection() as conn:
            proxy = await stored_proxy(conn, self.ids[position])
        assert proxy is not None
        return proxy


@pytest.fixture
async def bench(pool: Pool, farm: ProxyFarm) -> AsyncIterator[Bench]:
    made = Bench(pool, farm)
    await made.register(0, 1, 2, 3)
    yield made
    async with pool.connection() as conn:
        left = await (await conn.execute("SELECT count(*) FROM identity_leases")).fetchone()
    assert left == (0,), "every identity is given back with its session"
    await made.rotator.close()


def session(bench: Bench) -> AbstractAsyncContextManager[FetchSession]:
    return bench.rotator.open(task_id=5, dispensary_id=6, state="AZ")


def story(asked: FetchSession) -> list[tuple[str, bool]]:
    return [(str(attempt.verdict), attempt.rotated) for attempt in asked.attempts]


async def test_one_identity_serves_every_request_of_a_task(bench: Bench, target: Target) -> None:
    async with session(bench) as asked:
        for page in range(5):
            answer = await asked.request("GET", target.url(f"/{page}"))
            assert answer.status == 200
    assert {(seen.proxy, seen["user-agent"]) for seen in target.seen} == {(0, target.seen[0]["user-agent"])}
    row = await bench.row(0)
    assert (row.success_count, row.failure_count) == (5, 0)
    assert row.avg_response_time_ms is not None
    assert row.avg_response_time_ms > 0
    assert row.last_used_at is not None
    assert asked.figures == {"requests": 5, "blocked": 0, "rotations": 0, "bytes": 5 * len(b'{"ok": true}')}


async def test_sessions_spread_over_the_pool(bench: Bench, target: Target) -> None:
    async with session(bench) as one, session(bench) as two, session(bench) as three:
        for asked in (one, two, three):
            await asked.request("GET", target.url())
    assert [seen.proxy for seen in target.seen] == [0, 1, 2]


async def test_a_refusal_changes_proxy_and_browser_and_is_counted_against_the_refused(
    bench: Bench, target: Target
) -> None:
    target.script = lambda seen: Reply(403 if seen.proxy in (0, 1) else 200)
    async with session(bench) as asked:
        assert (await asked.request("GET", target.url())).status == 200
        assert (await asked.request("GET", target.url())).status == 200
    assert story(asked) == [("blocked", True), ("blocked", True), ("ok", False), ("ok", False)]
    assert [seen.proxy for seen in target.seen] == [0, 1, 2, 2]
    assert len({seen["user-agent"] for seen in target.seen[:3]}) == 3
    assert asked.figures["blocked"] == 2
    assert asked.figures["rotations"] == 2
    rows = [await bench.row(n) for n in range(3)]
    assert [row.consecutive_403_count for row in rows] == [1, 1, 0]
    assert [row.failure_count for row in rows] == [0, 0, 0]
    assert rows[0].last_error == "refused with HTTP 403"


async def test_a_proxy_that_alone_is_refused_five_times_is_deactivated(bench: Bench, target: Target) -> None:
    target.script = lambda seen: Reply(403 if seen.proxy == 0 else 200)
    # The more often it was refused, the less it is tried.
    for _ in range(300):
        async with session(bench) as asked:
            assert (await asked.request("GET", target.url())).status == 200
        if not (row := await bench.row(0)).is_active:
            break
    assert (row.is_active, row.consecutive_403_count) == (False, 5)
    assert sum(seen.proxy == 0 for seen in target.seen) == 5


async def test_a_host_that_refuses_everybody_burns_no_proxy(bench: Bench, target: Target) -> None:
    target.script = lambda _seen: Reply(403)
    async with session(bench) as asked:
        with pytest.raises(Blocked, match=rf"{NAME}:{target.port} refused every identity.*403.*4 requests"):
            await asked.request("GET", target.url())
        assert story(asked) == [("blocked", True)] * 3 + [("blocked", False)]
    assert {seen.proxy for seen in target.seen} == {0, 1, 2, 3}, "four different proxies met it"
    # The sixth identity that is refused opens the circuit: from then on nobody asks.
    for _ in range(20):
        async with session(bench) as asked:
            with pytest.raises(Denied, match="circuit open"):
                await asked.request("GET", target.url())
    assert len(target.seen) == 6
    rows = [await bench.row(n) for n in range(4)]
    assert all(row.is_active for row in rows)
    assert [row.consecutive_403_count for row in rows] == [0, 0, 0, 0]


async def test_a_challenge_page_is_a_refusal(bench: Bench, target: Target) -> None:
    page = b'<html><script src="/cdn-cgi/challenge-platform/x.js"></script></html>'
    target.replies(Reply(200, page), Reply(503, page))
    async with session(bench) as asked:
        assert (await asked.request("GET", target.url())).body == b'{"ok": true}'
    assert story(asked) == [("challenge", True), ("challenge", True), ("ok", False)]


async def test_with_a_single_proxy_the_browser_alone_is_changed(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    bench = Bench(pool, farm)
    await bench.register(0)
    target.replies(Reply(403), Reply(403))
    async with session(bench) as asked:
        assert (await asked.request("GET", target.url())).status == 200
    assert [seen.proxy for seen in target.seen] == [0, 0, 0]
    assert len({seen["user-agent"] for seen in target.seen}) == 3
    # It was let in with another browser, so it was not the proxy that was refused.
    assert (await bench.row(0)).consecutive_403_count == 0


@pytest.mark.parametrize(
    ("reply", "wait"),
    [
        (Reply(429, headers={"Retry-After": "7200"}), 7200.0),
        (
            Reply(429, headers={"Retry-After": (NOW + timedelta(minutes=5)).strftime("%a, %d %b %Y %H:%M:%S GMT")}),
            300.0,
        ),
        (Reply(429), None),
        (Reply(429, headers={"Retry-After": "-3"}), None),
        (Reply(503, headers={"Retry-After": "9"}), 9.0),
    ],
    ids=["seconds", "date", "none", "negative", "503"],
)
async def test_asked_to_slow_down_nothing_is_tried_again_and_nobody_is_blamed(
    reply: Reply, wait: float | None, bench: Bench, target: Target
) -> None:
    target.replies(reply)
    async with session(bench) as asked:
        with pytest.raises(Throttled) as caught:
            await asked.request("GET", target.url())
    assert caught.value.retry_after == wait
    assert len(target.seen) == 1
    row = await bench.row(0)
    assert (row.failure_count, row.consecutive_403_count, row.last_error) == (0, 0, None)


async def test_a_target_that_is_down_is_asked_three_times_by_the_same_identity(bench: Bench, target: Target) -> None:
    target.replies(Reply(500), Reply(502))
    async with session(bench) as asked:
        assert (await asked.request("GET", target.url())).status == 200
        target.replies(*[Reply(503)] * 9)
        with pytest.raises(Transient, match=r"HTTP 503 \(3 requests\)"):
            await asked.request("GET", target.url())
    assert story(asked) == [("target_down", False)] * 2 + [("ok", False)] + [("target_down", False)] * 3
    assert {seen.proxy for seen in target.seen} == {0}
    row = await bench.row(0)
    assert (row.failure_count, row.success_count, row.is_active) == (0, 1, True)


async def test_a_target_that_never_answers_is_not_the_proxys_fault(bench: Bench, target: Target) -> None:
    target.replies(*[Reply(how="hang")] * 3)
    async with session(bench) as asked:
        with pytest.raises(Transient, match="timeout before the response was complete"):
            await asked.request("GET", target.url())
    assert (await bench.row(0)).failure_count == 0


async def test_a_dead_proxy_is_left_for_another_and_deactivated_at_the_fifth_time(
    bench: Bench, farm: ProxyFarm, target: Target
) -> None:
    await farm.fault(0, "dead")
    await farm.fault(1, "auth")
    async with session(bench) as asked:
        assert (await asked.request("GET", target.url())).status == 200
    assert story(asked) == [("proxy_down", True), ("proxy_config", True), ("ok", False)]
    assert [seen.proxy for seen in target.seen] == [2]
    rows = [await bench.row(n) for n in range(4)]
    assert [row.failure_count for row in rows] == [1, 1, 0, 0]
    assert rows[0].last_failure_at is not None
    for _ in range(16):
        async with session(bench) as asked:
            await asked.request("GET", target.url())
    rows = [await bench.row(n) for n in range(4)]
    assert [(row.is_active, row.failure_count) for row in rows] == [(False, 5), (False, 5), (True, 0), (True, 0)]
    assert "rejected the credentials" in (rows[1].last_error or "")


async def test_whether_proxy_or_target_was_down_is_decided_by_the_others(
    bench: Bench, farm: ProxyFarm, target: Target
) -> None:
    await farm.fault(0, "connect_502")
    async with session(bench) as asked:
        await asked.request("GET", target.url())
    assert story(asked) == [("proxy_down", True), ("ok", False)]
    assert (await bench.row(0)).failure_count == 1
    # Now nobody reaches it: no proxy is to blame for that.
    async with session(bench) as asked:
        with pytest.raises(Transient, match="no other proxy is active"):
            await asked.request("GET", f"http://{NAME}:1/")
    assert {attempt.proxy_id for attempt in asked.attempts} == set(bench.ids)
    assert [(await bench.row(n)).failure_count for n in range(4)] == [1, 0, 0, 0]


async def test_a_connection_that_breaks_off_is_tried_once_more_by_the_same_identity(
    bench: Bench, farm: ProxyFarm, target: Target
) -> None:
    target.script = lambda _seen: Reply(body=b"[" + b"x" * 4999)
    await farm.fault(0, "cut", times=1, after_bytes=1000)
    async with session(bench) as asked:
        assert len((await asked.request("GET", target.url())).body) == 5000
        assert story(asked) == [("path_reset", False), ("ok", False)]
        assert [seen.proxy for seen in target.seen] == [0, 0]
    await farm.fault(1, "cut", after_bytes=1000)
    async with session(bench) as asked:
        await asked.request("GET", target.url())
    assert story(asked) == [("path_reset", False), ("path_reset", True), ("ok", False)]
    assert [seen.proxy for seen in target.seen[2:]] == [1, 1, 2]


async def test_an_untrusted_certificate_is_never_accepted(
    pool: Pool, farm: ProxyFarm, secure_target: Target, certificate: tuple[Path, Path]
) -> None:
    bench = Bench(pool, farm)
    await bench.register(0, 1)
    async with session(bench) as asked:
        with pytest.raises(Transient, match="no other proxy is active: the certificate is not trusted"):
            await asked.request("POST", secure_target.url(), json={"secret": 1})
    assert secure_target.seen == []
    assert [(await bench.row(n)).failure_count for n in range(2)] == [0, 0]
    trusting = Bench(pool, farm, ca_file=str(certificate[0]))
    async with session(trusting) as asked:
        assert (await asked.request("GET", secure_target.url())).status == 200


async def test_an_answer_that_is_too_large_fails_at_once(bench: Bench, target: Target) -> None:
    target.replies(Reply(body=b"x" * 200_000))
    async with session(bench) as asked:
        with pytest.raises(Permanent, match="FETCH_MAX_BYTES"):
            await asked.request("GET", target.url())
    assert len(target.seen) == 1


@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 404, 422])
async def test_answers_that_refuse_nobody_are_returned_as_they_are(status: int, bench: Bench, target: Target) -> None:
    target.replies(Reply(status, b"<html>what?</html>" if status != 204 else b""))
    async with session(bench) as asked:
        assert (await asked.request("POST", target.url(), json={})).status == status
    assert len(target.seen) == 1
    assert (await bench.row(0)).success_count == 1


async def test_without_an_active_proxy_nothing_starts(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    bench = Bench(pool, farm)
    async with session(bench) as asked:
        with pytest.raises(NoProxy, match="menuwatch proxies add"):
            await asked.request("GET", target.url())
    assert target.peers == []


async def test_when_the_last_proxy_goes_the_task_is_postponed(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    bench = Bench(pool, farm)
    await bench.register(0)
    await farm.fault(0, "dead")
    for _ in range(4):
        async with session(bench) as asked:
            with pytest.raises(Transient):
                await asked.request("GET", target.url())
    async with session(bench) as asked:
        with pytest.raises(NoProxy):
            await asked.request("GET", target.url())
    assert not (await bench.row(0)).is_active
    assert target.peers == []


async def test_attempts_are_written_whatever_becomes_of_the_task(bench: Bench, pool: Pool, target: Target) -> None:
    target.script = lambda seen: Reply(403 if seen.proxy == 0 else 200)
    async with session(bench) as asked:
        await asked.request("GET", target.url())
    async with pool.connection() as conn:
        rows = await (
            await conn.execute(
                "SELECT task_id, dispensary_id, host, proxy_id, verdict, status, rotated, bytes, error, attempted_at"
                " FROM fetch_attempts ORDER BY id"
            )
        ).fetchall()
        profiles = await (await conn.execute("SELECT profile, elapsed_ms FROM fetch_attempts ORDER BY id")).fetchall()
        traffic = await attempts.traffic(conn)
    host = f"{NAME}:{target.port}"
    assert rows == [
        (5, 6, host, bench.ids[0], "blocked", 403, True, 12, "refused with HTTP 403", NOW),
        (5, 6, host, bench.ids[1], "ok", 200, False, 12, None, NOW),
    ]
    assert profiles[0][0] != profiles[1][0]
    assert all(elapsed > 0 for _, elapsed in profiles)
    assert traffic == {"requests": 2, "blocked": 1, "rotations": 1, "bytes": 24}


async def test_requests_of_one_session_wait_for_each_other(bench: Bench, target: Target) -> None:
    """An identity is changed only between requests, so none is closed under another's feet."""
    target.script = lambda seen: Reply(403 if seen.proxy == 0 else 200)
    async with session(bench) as asked:
        answers = await asyncio.gather(*(asked.request("GET", target.url(f"/{n}")) for n in range(10)))
    assert [answer.status for answer in answers] == [200] * 10
    assert asked.figures["rotations"] == 1


async def test_a_request_that_is_cancelled_leaves_the_session_in_order(bench: Bench, target: Target) -> None:
    target.replies(Reply(how="hang"))
    async with session(bench) as asked:
        running = asyncio.ensure_future(asked.request("GET", target.url()))
        await asyncio.wait_for(target.arrived.wait(), 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await asked.request("GET", target.url())).status == 200


async def test_passwords_are_in_no_log_no_error_and_no_row(
    bench: Bench, farm: ProxyFarm, target: Target, pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    telemetry.configure("json", "debug")
    said: list[str] = []
    for index, kind in enumerate(("auth", "auth", "dead", "connect_403")):
        await farm.fault(index, kind)  # type: ignore[arg-type]
    for _ in range(6):
        try:
            async with session(bench) as asked:
                await asked.request("GET", target.url())
        except (Transient, NoProxy) as error:
            said.append(f"{error!r} {error} {error.__cause__!r} {error.__context__!r}")
        said.append(repr(asked.attempts))
    async with pool.connection() as conn:
        rows = await (await conn.execute("SELECT last_error FROM proxies")).fetchall()
    said.append(str(rows))
    log = capsys.readouterr().err
    structlog.reset_defaults()
    assert '"action": "fetch_attempt"' in log
    assert '"action": "proxy_deactivated"' in log
    said.append(log)
    text = "\n".join(said)
    for info in farm.infos:
        assert info.password not in text
        assert info.url not in text


async def test_work_goes_on_behind_a_pool_that_misbehaves_at_random(
    bench: Bench, farm: ProxyFarm, target: Target
) -> None:
    """Every request ends in an answer or in an error that asks for a reaction, and the target hears of proxies only."""
    rng = random.Random(23)
    answered = 0

    def script(_seen: Seen) -> Reply:
        return rng.choice([Reply(), Reply(), Reply(), Reply(403), Reply(500), Reply(how="close")])

    target.script = script
    for _ in range(30):
        await farm.fault(rng.randrange(4), rng.choice([None, None, "reset", "connect_503", "cut"]))
        async with session(bench) as asked:
            with suppress(Blocked, Transient):
                answered += (await asked.request("GET", target.url())).status == 200
        async with bench.pool.connection() as conn:
            await conn.execute("UPDATE proxies SET is_active = true, failure_count = 0, consecutive_403_count = 0")
    assert answered >= 20
    assert None not in {seen.proxy for seen in target.seen}
