"""Sessions that share hosts, proxies and turns: through real proxies, against a real target."""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import Blocked, NotNow, Throttled, Transient
from menuwatch.db.pool import Pool
from menuwatch.fetch.leases import Denied
from menuwatch.fetch.robots import Policy
from menuwatch.fetch.rotator import Rotator
from menuwatch.fetch.session import FetchSession
from menuwatch.hosts import store as hosts
from menuwatch.proxies import store
from menuwatch.proxies.model import NewProxy, Proxy
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.sim.proxies import ProxyFarm, start_proxies
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.worker import Worker
from tests.fetch.target import NAME, Reply, Target, serving

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_tasks = itertools.count(1)


class Crew:
    """A rotator, as one process has it, on the farm's proxies; `ids[n]` is the row of proxy `n`."""

    def __init__(self, pool: Pool, farm: ProxyFarm, ca_file: str | None = None, **given: Any) -> None:
        self.pool = pool
        self.farm = farm
        values: dict[str, Any] = {
            "fetch_retry_base_seconds": 0,
            "fetch_timeout_seconds": 1.5,
            "host_rate": 100_000,
            "host_burst": 1000,
            "host_concurrency": 100,
            **given,
        }
        self.settings = Settings(**values)
        self.ca_file = ca_file
        self.rotator = self.another()
        self.ids: list[int] = []

    def another(self) -> Rotator:
        return Rotator(
            self.pool,
            self.settings,
            clock=ManualClock(NOW),
            rng=random.Random(11),
            ca_file=self.ca_file,
            robots=lambda _: Policy(respect=False),
        )

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

    def session(self, rotator: Rotator | None = None, **given: Any) -> AbstractAsyncContextManager[FetchSession]:
        return (rotator or self.rotator).open(task_id=next(_tasks), dispensary_id=6, state="AZ", **given)

    async def all(self, query: str, *values: Any) -> list[Any]:
        async with self.pool.connection() as conn:
            return await (await conn.execute(query, values)).fetchall()  # type: ignore[arg-type]

    async def counters(self) -> list[tuple[int, int]]:
        return await self.all("SELECT failure_count, consecutive_403_count FROM proxies ORDER BY id")


@pytest.fixture
async def crew(pool: Pool, farm: ProxyFarm) -> AsyncIterator[Crew]:
    made = Crew(pool, farm)
    await made.register(0, 1, 2, 3)
    yield made
    await made.rotator.close()


# Who is blamed.


async def test_a_proxy_that_puts_itself_between_is_at_fault_once_another_reaches_the_target(
    pool: Pool, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(*certificate)
    foreign = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    foreign.load_cert_chain(*another_certificate(tmp_path))
    farm = await start_proxies(3, seed=7, names={NAME: "127.0.0.1"}, mitm=foreign)
    async with serving(farm, own) as secure_target:
        await between(Crew(pool, farm, ca_file=str(certificate[0])), farm, secure_target)
    await farm.close()


def another_certificate(folder: Path) -> tuple[Path, Path]:
    """For the same name, of somebody else."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


async def between(crew: Crew, farm: ProxyFarm, secure_target: Target) -> None:
    await crew.register(0, 1, 2)
    await farm.fault(0, "mitm")
    async with crew.session() as asked:
        assert (await asked.request("GET", secure_target.url())).status == 200
    assert [str(attempt.verdict) for attempt in asked.attempts] == ["tls_untrusted", "ok"]
    assert await crew.counters() == [(1, 0), (0, 0), (0, 0)]
    # All of them do: then it may as well be the target.
    await farm.fault(1, "mitm")
    await farm.fault(2, "mitm")
    async with crew.session() as asked:
        with pytest.raises(Transient, match="certificate is not trusted"):
            await asked.request("GET", secure_target.url())
    assert await crew.counters() == [(1, 0), (0, 0), (0, 0)]
    await crew.rotator.close()


async def test_the_identity_that_tries_an_open_circuit_is_not_to_blame_when_it_is_refused(
    crew: Crew, target: Target
) -> None:
    target.script = lambda _seen: Reply(403)
    for _ in range(3):
        async with crew.session() as asked:
            with suppress(Blocked, Denied):
                await asked.request("GET", target.url())
    assert await crew.all("SELECT circuit FROM hosts") == [("open",)]
    assert await crew.counters() == [(0, 0)] * 4
    for _ in range(6):
        await crew.all("UPDATE hosts SET circuit_until = clock_timestamp() RETURNING 1")
        before = len(target.seen)
        async with crew.session() as asked:
            with pytest.raises(Denied, match="circuit open"):
                await asked.request("GET", target.url())
        assert len(target.seen) == before + 1, "one identity tries, once"
    assert await crew.counters() == [(0, 0)] * 4
    assert await crew.all("SELECT count(*) FROM proxies WHERE NOT is_active") == [(0,)]
    target.script = lambda _seen: Reply()
    await crew.all("UPDATE hosts SET circuit_until = clock_timestamp() RETURNING 1")
    async with crew.session() as asked:
        assert (await asked.request("GET", target.url())).status == 200
    assert await crew.all("SELECT circuit, consecutive_opens, blocked_identities FROM hosts") == [("closed", 0, [])]


async def test_the_refusal_that_opens_the_circuit_is_not_the_proxys(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    """A pool of one: the sixth browser behind it opens the circuit, and the proxy stays."""
    crew = Crew(pool, farm)
    await crew.register(0)
    target.script = lambda _seen: Reply(403)
    for _ in range(2):
        async with crew.session() as asked:
            with suppress(Blocked, Denied):
                await asked.request("GET", target.url())
    assert await crew.all("SELECT circuit FROM hosts") == [("open",)]
    ((failures, refusals),) = await crew.counters()
    assert (failures, refusals <= 1) == (0, True)
    for _ in range(6):
        await crew.all("UPDATE hosts SET circuit_until = clock_timestamp() RETURNING 1")
        async with crew.session() as asked:
            with pytest.raises(Denied):
                await asked.request("GET", target.url())
    assert await crew.counters() == [(failures, refusals)]
    await crew.rotator.close()


async def test_a_host_that_lets_sessions_in_is_not_closed_because_others_are_refused_first(pool: Pool) -> None:
    """Both sessions are under way yet when six identities of six proxies have been refused."""
    farm = await start_proxies(8, seed=7, names={NAME: "127.0.0.1"})
    async with serving(farm) as target:
        crew = Crew(pool, farm)
        await crew.register(*range(8))
        target.script = lambda seen: Reply(200 if seen.proxy in (3, 7) else 403)
        async with crew.session() as one, crew.session() as two:
            assert (await one.request("GET", target.url())).status == 200
            assert (await two.request("GET", target.url())).status == 200
            assert [seen.proxy for seen in target.seen] == list(range(8))
            assert await crew.all("SELECT circuit, blocked_identities FROM hosts") == [("closed", [])]
        assert await crew.all("SELECT kind FROM host_events") == []
        await crew.rotator.close()
    await farm.close()


# Leases.


async def test_who_lost_its_lease_goes_on_as_somebody_else(crew: Crew, target: Target) -> None:
    async with crew.session() as asked:
        await asked.request("GET", target.url("/1"))
        # It lapses, and another task takes the proxy over.
        await crew.all(
            "UPDATE identity_leases SET task_id = 999999, id = DEFAULT, expires_at = now() + interval '1 hour' RETURNING 1"
        )
        asked._leased.renewed -= 1000  # type: ignore[union-attr]
        await asked.request("GET", target.url("/2"))
        await asked.request("GET", target.url("/3"))
    proxies = [seen.proxy for seen in target.seen]
    assert proxies[0] != proxies[1]
    assert proxies[1] == proxies[2]
    assert len(crew.rotator._idle) == 1, "the lost identity is not kept"
    assert await crew.all("SELECT task_id FROM identity_leases") == [(999999,)], "the other's lease is untouched"


async def test_two_processes_never_use_one_proxy_on_a_host_at_once(crew: Crew, target: Target) -> None:
    using: list[int | None] = []
    twice: list[int | None] = []

    async def visit(rotator: Rotator) -> None:
        for _ in range(4):
            with suppress(NotNow):
                async with crew.session(rotator) as asked:
                    await asked.request("GET", target.url())
                    mine = asked.attempts[-1].proxy_id
                    if mine in using:
                        twice.append(mine)
                    using.append(mine)
                    await asked.request("GET", target.url())
                    using.remove(mine)

    rotators = [crew.another(), crew.another()]
    await asyncio.gather(*(visit(rotators[n % 2]) for n in range(8)))
    assert twice == []
    assert await crew.all("SELECT count(*) FROM identity_leases") == [(0,)]
    for rotator in rotators:
        await rotator.close()


async def test_a_session_that_is_cancelled_leaves_no_lease(crew: Crew, target: Target) -> None:
    target.replies(Reply(how="hang"))

    async def work() -> None:
        async with crew.session() as asked:
            await asked.request("GET", target.url())

    running = asyncio.create_task(work())
    await asyncio.wait_for(target.arrived.wait(), 5)
    assert await crew.all("SELECT count(*) FROM identity_leases") == [(1,)]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await crew.all("SELECT count(*) FROM identity_leases") == [(0,)]


async def test_sessions_that_are_cancelled_at_any_moment_leave_no_lease(crew: Crew, target: Target) -> None:
    """Also while they get theirs: the database may have given it away when nobody listens any more."""
    rng = random.Random(5)

    async def work() -> None:
        async with crew.session() as asked:
            await asked.request("GET", target.url())

    for _ in range(60):
        running = [asyncio.create_task(work()) for _ in range(2)]
        await asyncio.sleep(rng.uniform(0, 0.02))
        for each in running:
            each.cancel()
        ends = await asyncio.gather(*running, return_exceptions=True)
        assert not [end for end in ends if isinstance(end, Denied)], "nobody finds all proxies in use"
        # What was told by whoever is gone is written a moment later.
        await asyncio.gather(*crew.rotator._orphaned_leases)
        await crew.rotator._writer.close()
    await crew.rotator.close()
    assert await crew.all("SELECT count(*) FROM identity_leases") == [(0,)]


async def test_an_identity_that_cannot_be_made_leaves_no_lease(crew: Crew, target: Target) -> None:
    def broken(_proxy: Proxy) -> Proxy:
        raise RuntimeError("no identity")

    crew.rotator._unseal = broken
    with pytest.raises(RuntimeError, match="no identity"):
        async with crew.session() as asked:
            await asked.request("GET", target.url())
    assert await crew.all("SELECT count(*) FROM identity_leases") == [(0,)]


# One budget for each host.


async def test_a_redirect_to_another_host_keeps_to_that_hosts_budget(
    crew: Crew, farm: ProxyFarm, target: Target
) -> None:
    async with serving(farm) as other:
        there = f"{NAME}:{other.port}"
        target.script = lambda _seen: Reply(302, headers={"Location": other.url("/there")})
        async with crew.session(hosts=[there]) as asked:
            assert (await asked.request("GET", target.url())).status == 200
        assert await crew.all("SELECT last_slot_at IS NOT NULL FROM hosts WHERE host = %s", there) == [(True,)]
        # Closed, it is not asked, though the first host may be.
        await crew.all(
            "UPDATE hosts SET cooldown_until = now() + interval '1 hour', cooldown_reason = 'x' WHERE host = %s RETURNING 1",
            there,
        )
        before = len(other.seen)
        async with crew.session(hosts=[there]) as asked:
            with pytest.raises(Denied, match=there):
                await asked.request("GET", target.url())
        assert len(other.seen) == before
    assert await crew.all("SELECT count(*) FROM identity_leases") == [(0,)]


async def test_two_hosts_in_turn_are_asked_by_one_identity_each(crew: Crew, farm: ProxyFarm, target: Target) -> None:
    """Also where a session goes from one to the other and back: cookies and connections stay."""
    async with serving(farm) as other:
        async with crew.session() as asked:
            for n in range(3):
                await asked.request("GET", target.url(f"/{n}"))
                await asked.request("GET", other.url(f"/{n}"))
        for each in (target, other):
            assert len({(seen.proxy, seen["user-agent"]) for seen in each.seen}) == 1
            assert len(each.peers) == 1, "one connection"


@pytest.mark.parametrize("processes", [1, 3])
async def test_the_targets_own_clock_sees_no_more_than_the_budget(
    processes: int, pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    rate, burst = 40.0, 3
    crew = Crew(pool, farm, host_rate=rate, host_burst=burst, host_concurrency=4)
    await crew.register(0, 1, 2, 3)
    arrivals: list[float] = []

    def script(_seen: Any) -> Reply:
        arrivals.append(time.monotonic())
        return Reply()

    target.script = script
    rotators = [crew.rotator, *(crew.another() for _ in range(processes - 1))]
    stop_at = time.monotonic() + 1.5

    async def visit(rotator: Rotator) -> None:
        while time.monotonic() < stop_at:
            try:
                async with crew.session(rotator) as asked:
                    for _ in range(5):
                        await asked.request("GET", target.url())
            except NotNow:
                await asyncio.sleep(0.02)

    await asyncio.gather(*(visit(rotators[n % processes]) for n in range(6)))
    arrivals.sort()
    # A turn may be used up to a tenth of a second late (leases.STALE): so much may a window be squeezed.
    late = 0.25
    for first in range(len(arrivals)):
        for last in range(first + burst, len(arrivals)):
            length = arrivals[last] - arrivals[first]
            assert last - first + 1 <= burst + rate * (length + late) + 1
    assert len(arrivals) >= 0.6 * rate * 1.5, "and it is made use of"
    for rotator in rotators:
        await rotator.close()


async def test_turns_that_a_busy_worker_came_too_late_for_are_not_made_up_for_all_at_once(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    """Sessions wait for their turns without a slot, and get their slots back together, long after: the host is not to feel it."""
    rate = 5.0
    crew = Crew(pool, farm, host_rate=rate, host_burst=1, host_concurrency=4)
    await crew.register(0, 1, 2, 3)
    arrivals: list[float] = []
    opened = asyncio.Event()
    waiting = 0

    def script(_seen: Any) -> Reply:
        arrivals.append(time.monotonic())
        return Reply()

    target.script = script

    async def pause(seconds: float) -> None:
        """All slots are in use until `opened`."""
        nonlocal waiting
        if not opened.is_set():
            waiting += 1
            await opened.wait()
        else:
            await asyncio.sleep(seconds)

    async def visit() -> None:
        async with crew.session(pause=pause) as asked:
            await asked.request("GET", target.url())
            await asked.request("GET", target.url())

    running = [asyncio.create_task(visit()) for _ in range(4)]
    until = time.monotonic() + 5
    while waiting < 3 and time.monotonic() < until:
        await asyncio.sleep(0.01)
    assert waiting >= 3
    await asyncio.sleep(1.0)
    opened.set()
    await asyncio.wait_for(asyncio.gather(*running), 10)
    arrivals.sort()
    gaps = [after - before for before, after in itertools.pairwise(arrivals)]
    # Two may come together where one was just in time; three together are a burst that nobody allowed.
    assert all(one + two >= 0.6 / rate for one, two in itertools.pairwise(gaps)), gaps
    await crew.rotator.close()


# Being told to wait.


async def test_who_waits_for_a_turn_when_another_process_is_asked_to_slow_down_does_not_take_it(
    crew: Crew, target: Target
) -> None:
    slow = Crew(crew.pool, crew.farm, host_rate=4, host_burst=1)
    late: list[float] = []

    def script(seen: Any) -> Reply:
        late.append(time.monotonic())
        return Reply(429, headers={"Retry-After": "3600"}) if len(late) == 4 else Reply()

    target.script = script

    async def visit(rotator: Rotator) -> None:
        with suppress(Throttled):
            async with crew.session(rotator) as asked:
                for _ in range(10):
                    await asked.request("GET", target.url())

    rotators = [slow.another() for _ in range(3)]
    await asyncio.gather(*(visit(rotator) for rotator in rotators))
    assert len(late) == 4
    for rotator in rotators:
        await rotator.close()


async def test_a_host_that_cools_down_is_not_asked_and_nothing_is_counted(crew: Crew, target: Target) -> None:
    target.replies(Reply(429, headers={"Retry-After": "600"}))
    async with crew.session() as asked:
        with pytest.raises(Throttled) as caught:
            await asked.request("GET", target.url())
    assert not isinstance(caught.value, NotNow), "this one did ask"
    for rotator in (crew.rotator, crew.another()):
        async with crew.session(rotator) as asked:
            with pytest.raises(NotNow) as denied:
                await asked.request("GET", target.url())
        assert denied.value.retry_after == pytest.approx(600, abs=5)
    assert len(target.seen) == 1
    assert await crew.counters() == [(0, 0)] * 4


@pytest.mark.parametrize("closed", ["cooling", "slow"])
async def test_tasks_of_a_host_that_may_not_be_asked_are_left_alone(
    closed: str, pool: Pool, database_url: str, farm: ProxyFarm, target: Target
) -> None:
    """They are claimed, told when to come again, and not touched before: no claim a second for nothing."""
    many = 30
    slow = closed == "slow"
    crew = Crew(pool, farm, host_rate=10 if slow else 1000, host_burst=1 if slow else 100, host_concurrency=4)
    await crew.register(0, 1, 2, 3)
    host = f"{NAME}:{target.port}"

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        async with crew.rotator.open(task_id=task.id, dispensary_id=6, state="AZ", pause=ctx.pause) as asked:
            await asked.request("GET", target.url())
        return Done()

    async with pool.connection() as conn:
        await hosts.add(conn, host, crew.rotator._limits)
        if not slow:
            await conn.execute(
                "UPDATE hosts SET cooldown_until = now() + interval '1.5 s', cooldown_reason = 'HTTP 429'"
            )
        fetch = Role.PAYLOAD_FETCH
        await tasks.enqueue(conn, [NewTask(role=fetch, dispensary_id=n, max_retries=0) for n in range(1, many + 1)])
    options = WorkerConfig(slots=4, poll_interval=0.1, backoff=Backoff(base=0.01), grace=5.0)
    began = time.monotonic()
    await Worker(pool, database_url, {fetch: handler}, options).run_until_idle(timeout=30)
    took = time.monotonic() - began
    done = await crew.all("SELECT status, attempt, retry_count, postpone_count FROM task_history")
    assert [(status, retries, postponed) for status, _, retries, postponed in done] == [("completed", 0, 0)] * many
    assert len(target.seen) == many
    claims = sum(attempt for _, attempt, _, _ in done)
    assert claims <= many * 5, f"{claims} claims in {took:.1f} s"
    assert took >= (many - 1) / 10 if slow else took >= 1.2
    await crew.rotator.close()


async def test_cookies_stay_with_their_identity(crew: Crew, target: Target) -> None:
    def script(seen: Any) -> Reply:
        return Reply(headers={"Set-Cookie": f"who={len(target.seen)}; Path=/"})

    target.script = script
    for _ in range(20):
        async with crew.session() as asked:
            await asked.request("GET", target.url())
            await asked.request("GET", target.url())
    identities: dict[str, set[tuple[int | None, str]]] = {}
    for number, seen in enumerate(target.seen, 1):
        given = [value for name, value in seen.headers if name.lower() == "cookie"]
        mine = (seen.proxy, seen["user-agent"])
        for value in given:
            # Whoever shows the cookie of answer n is who got answer n.
            answered = target.seen[int(value.removeprefix("who=")) - 1]
            assert (answered.proxy, answered["user-agent"]) == mine
        identities.setdefault(str(number), set()).add(mine)
    second = target.seen[1::2]
    assert all(any(name.lower() == "cookie" for name in seen.names) for seen in second), (
        "within a session they are sent"
    )
    # Between two tasks behind one proxy the browser changes.
    for proxy in range(4):
        browsers = [seen["user-agent"] for seen in target.seen[::2] if seen.proxy == proxy]
        assert all(one != two for one, two in itertools.pairwise(browsers))


async def test_a_new_password_is_used_at_once(crew: Crew, farm: ProxyFarm, target: Target) -> None:
    """Identities that were kept know the old one."""
    for _ in range(8):
        async with crew.session() as asked:
            await asked.request("GET", target.url())
    assert len(crew.rotator._idle) > 0
    await crew.all("UPDATE proxies SET password = 'wrong' RETURNING 1")
    crew.rotator._views.clear()
    async with crew.session() as asked:
        with pytest.raises(Transient):
            await asked.request("GET", target.url())
    for index, number in enumerate(crew.ids):
        await crew.all(
            "UPDATE proxies SET password = %s, failure_count = 0, is_active = true WHERE id = %s RETURNING 1",
            farm.infos[index].password,
            number,
        )
    crew.rotator._views.clear()
    for _ in range(12):
        async with crew.session() as asked:
            await asked.request("GET", target.url())
        assert [str(attempt.verdict) for attempt in asked.attempts] == ["ok"]
