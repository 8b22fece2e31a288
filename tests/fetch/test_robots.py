"""robots.txt over real proxies, a real target and real rows: who asks for it, how often, and what becomes of requests meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from psycopg.rows import dict_row

from menuwatch.core.errors import Blocked, NotNow, Permanent, Throttled, Transient
from menuwatch.db.pool import Pool
from menuwatch.fetch.robots import Policy
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.target import NAME, Reply, Seen, Target
from tests.fetch.test_session import Bench, session

FORBIDS_API = "User-agent: *\nDisallow: /api-3/\n"
PLAIN = {"Content-Type": "text/plain"}


@pytest.fixture
async def bench(pool: Pool, farm: ProxyFarm) -> AsyncIterator[Bench]:
    made = Bench(pool, farm, robots=Policy())
    await made.register(0, 1, 2, 3)
    yield made
    async with pool.connection() as conn:
        left = await (await conn.execute("SELECT count(*) FROM identity_leases")).fetchone()
    assert left == (0,), "every identity is given back with its session"
    await made.rotator.close()


def robots(reply: Reply | str, elsewhere: Callable[[Seen], Reply] = lambda _: Reply()) -> Callable[[Seen], Reply]:
    """What the target does: that at /robots.txt."""
    answer = Reply(200, reply.encode(), PLAIN) if isinstance(reply, str) else reply
    return lambda seen: answer if seen.path == "/robots.txt" else elsewhere(seen)


def paths(target: Target) -> list[str]:
    return [seen.path for seen in target.seen]


async def row(bench: Bench, target: Target) -> dict[str, Any]:
    async with bench.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute("SELECT * FROM hosts WHERE host = %s", (f"{NAME}:{target.port}",))
        found = await cur.fetchone()
    assert found is not None
    return found


async def events(bench: Bench) -> list[tuple[str, bool]]:
    """(reason, has an end) of each event of this kind, the oldest first."""
    async with bench.pool.connection() as conn:
        cur = await conn.execute("SELECT reason, until IS NOT NULL FROM host_events WHERE kind = 'robots' ORDER BY id")
        return [(reason, ends) for reason, ends in await cur.fetchall()]


async def later(bench: Bench, **times: str) -> None:
    """As if so much time had gone by: intervals by column, and the process knows nothing of it any more."""
    async with bench.pool.connection() as conn:
        for column, interval in times.items():
            await conn.execute(f"UPDATE hosts SET {column} = clock_timestamp() - %s::interval", (interval,))
    bench.rotator._robots_guard._views.clear()


async def fetch(bench: Bench, target: Target, path: str = "/api-3/graphql") -> int:
    async with session(bench) as asked:
        return (await asked.request("GET", target.url(path))).status


async def test_it_is_asked_for_once_by_the_sessions_own_identity_as_a_page_is(bench: Bench, target: Target) -> None:
    target.script = robots("User-agent: *\nDisallow: /admin\n")
    for _ in range(3):
        async with session(bench) as asked:
            for _ in range(2):
                await asked.request("GET", target.url("/api-3/graphql"))
    assert paths(target) == ["/robots.txt", *["/api-3/graphql"] * 6]
    first, second = target.seen[:2]
    assert (first.proxy, first["user-agent"]) == (second.proxy, second["user-agent"])
    assert first["accept"].startswith("text/html")
    assert not second["accept"].startswith("text/html")
    async with bench.pool.connection() as conn:
        cur = await conn.execute("SELECT task_id, verdict, status FROM fetch_attempts ORDER BY id LIMIT 1")
        assert await cur.fetchone() == (5, "ok", 200), "it is on record as any other request"
    kept = await row(bench, target)
    assert (kept["robots_status"], kept["robots_body"]) == (200, "User-agent: *\nDisallow: /admin\n")
    assert kept["crawl_delay"] is None
    assert await events(bench) == [("its robots.txt forbids 1 path", False)]


async def test_what_it_forbids_is_not_asked_and_the_task_fails_for_good(bench: Bench, target: Target) -> None:
    target.script = robots(FORBIDS_API)
    async with session(bench) as asked:
        with pytest.raises(Permanent) as caught:
            await asked.request("POST", target.url("/api-3/graphql"), json={})
        assert (await asked.request("GET", target.url("/other"))).status == 200
    assert str(caught.value) == (
        f"{NAME}:{target.port} forbids /api-3/graphql to crawlers: 'Disallow: /api-3/' in its robots.txt. "
        "DUTCHIE_ROBOTS=ignore overrides this and requires the site's permission"
    )
    assert paths(target) == ["/robots.txt", "/other"]


async def test_parameters_count_as_part_of_the_address(bench: Bench, target: Target) -> None:
    target.script = robots("User-agent: *\nDisallow: /*?operationName=Menu\n")
    async with session(bench) as asked:
        with pytest.raises(Permanent, match="operationName=Menu"):
            await asked.request("GET", target.url("/g"), params={"operationName": "Menu"})
        await asked.request("GET", target.url("/g"), params={"operationName": "Stores"})
    assert paths(target) == ["/robots.txt", "/g?operationName=Stores"]


async def test_a_redirect_leads_to_nothing_that_is_forbidden(bench: Bench, target: Target) -> None:
    target.script = robots(FORBIDS_API, lambda _: Reply(302, headers={"Location": "/api-3/graphql"}))
    async with session(bench) as asked:
        with pytest.raises(Permanent, match="forbids /api-3/graphql"):
            await asked.request("GET", target.url("/menu"))
    assert paths(target) == ["/robots.txt", "/menu"]


@pytest.mark.parametrize("status", [400, 401, 404, 410])
async def test_without_one_everything_is_allowed(status: int, bench: Bench, target: Target) -> None:
    target.script = robots(Reply(status, b"<html>no</html>"))
    assert await fetch(bench, target) == await fetch(bench, target) == 200
    assert paths(target) == ["/robots.txt", *["/api-3/graphql"] * 2]
    assert (await row(bench, target))["robots_body"] == ""
    assert await events(bench) == [(f"it has no robots.txt (HTTP {status}): everything is allowed", False)]


async def test_one_that_is_refused_to_every_identity_is_none(bench: Bench, target: Target) -> None:
    target.script = robots(Reply(403))
    assert await fetch(bench, target) == await fetch(bench, target) == 200
    assert paths(target) == [*["/robots.txt"] * 4, *["/api-3/graphql"] * 2]
    counted = [(await bench.row(n)).consecutive_403_count for n in range(4)]
    assert counted == [0] * 4, "it was not the proxies"


async def test_a_challenge_says_nothing_of_what_is_allowed(bench: Bench, target: Target) -> None:
    target.script = robots(Reply(403, headers={"cf-mitigated": "challenge"}))
    with pytest.raises(Blocked):
        await fetch(bench, target)
    assert set(paths(target)) == {"/robots.txt"}
    kept = await row(bench, target)
    assert (kept["robots_checked_at"], kept["robots_claimed_until"]) == (None, None)


async def test_asked_to_slow_down_the_task_waits_and_nothing_is_known(bench: Bench, target: Target) -> None:
    target.script = robots(Reply(429, headers={"Retry-After": "77"}))
    async with session(bench) as asked:
        with pytest.raises(Throttled) as caught:
            await asked.request("GET", target.url())
    assert caught.value.retry_after == 77.0
    assert paths(target) == ["/robots.txt"]
    assert (await row(bench, target))["robots_claimed_until"] is None


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(500), "HTTP 500"),
        (Reply(503, b"<html>"), "HTTP 503"),
        (Reply(how="close"), "no usable answer"),
        (Reply(302, headers={"Location": "http://elsewhere.invalid/robots.txt"}), "no usable answer"),
        (Reply(301, headers={"Location": "/robots.txt"}), "no usable answer"),
        (Reply(200, b"#" * 200_000), "no usable answer"),
    ],
    ids=["500", "503", "close", "elsewhere", "for ever", "too large"],
)
async def test_where_it_cannot_be_read_nothing_is_asked_for_now(
    reply: Reply, said: str, bench: Bench, target: Target
) -> None:
    target.script = robots(reply)
    for _ in range(3):
        with pytest.raises(NotNow, match=f"could not be read \\({said}\\)$") as caught:
            await fetch(bench, target)
        assert caught.value.retry_after is not None
        assert 290 < caught.value.retry_after <= 300
        tries = len(target.seen)
        assert set(paths(target)) == {"/robots.txt"}
        assert tries <= 6, "not asked for again before its time"
    assert [ends for _, ends in await events(bench)] == [True]
    # Once it can be read, work goes on.
    target.script = robots("")
    await later(bench, robots_due_at="1 second")
    assert await fetch(bench, target) == 200
    assert paths(target)[tries:] == ["/robots.txt", "/api-3/graphql"]
    assert [ends for _, ends in await events(bench)] == [True, False]


async def test_what_is_the_proxies_fault_is_not_the_hosts(bench: Bench, farm: ProxyFarm, target: Target) -> None:
    for index in range(4):
        await farm.fault(index, "dead")
    with pytest.raises(Transient):
        await fetch(bench, target)
    kept = await row(bench, target)
    assert (kept["robots_checked_at"], kept["robots_claimed_until"]) == (None, None)


async def test_a_redirect_is_followed_five_times(bench: Bench, target: Target) -> None:
    def script(seen: Seen) -> Reply:
        if seen.path == "/robots.txt":
            return Reply(302, headers={"Location": "/1"})
        if seen.path in {"/1", "/2", "/3", "/4"}:
            return Reply(302, headers={"Location": f"/{int(seen.path[1:]) + 1}"})
        return Reply(200, FORBIDS_API.encode(), PLAIN) if seen.path == "/5" else Reply()

    target.script = script
    with pytest.raises(Permanent, match="forbids /api-3/graphql"):
        await fetch(bench, target)
    assert paths(target) == ["/robots.txt", "/1", "/2", "/3", "/4", "/5"]


async def test_after_a_day_it_is_asked_for_again_and_new_rules_hold(bench: Bench, target: Target) -> None:
    target.script = robots("")
    assert await fetch(bench, target) == 200
    left = (await row(bench, target))["robots_due_at"] - (await row(bench, target))["robots_checked_at"]
    assert left.total_seconds() == pytest.approx(86_400, abs=1)
    target.script = robots(FORBIDS_API)
    assert await fetch(bench, target) == 200
    await later(bench, robots_due_at="1 second")
    with pytest.raises(Permanent):
        await fetch(bench, target)
    assert paths(target) == ["/robots.txt", "/api-3/graphql", "/api-3/graphql", "/robots.txt"]
    assert [reason for reason, _ in await events(bench)] == [
        "its robots.txt forbids nothing",
        "its robots.txt forbids 1 path",
    ]


async def test_an_old_copy_holds_for_thirty_days_while_it_cannot_be_read(bench: Bench, target: Target) -> None:
    target.script = robots("User-agent: *\nDisallow: /admin\nCrawl-delay: 0.01\n")
    assert await fetch(bench, target) == 200
    target.script = robots(Reply(503))
    await later(bench, robots_due_at="1 second", robots_body_at="29 days 23 hours")
    assert await fetch(bench, target) == 200
    with pytest.raises(Permanent, match="forbids /admin"):
        await fetch(bench, target, "/admin")
    kept = await row(bench, target)
    assert (kept["robots_status"], kept["crawl_delay"]) == (503, 0.01)
    await later(bench, robots_body_at="30 days")
    with pytest.raises(NotNow, match="could not be read"):
        await fetch(bench, target)


async def test_its_delay_is_kept_between_all_requests(bench: Bench, target: Target) -> None:
    arrived: list[float] = []

    def script(seen: Seen) -> Reply:
        arrived.append(time.monotonic())
        return robots("User-agent: *\nCrawl-delay: 0.2\n")(seen)

    target.script = script
    assert await fetch(bench, target) == 200
    assert (await row(bench, target))["crawl_delay"] == 0.2
    await asyncio.gather(*(fetch(bench, target) for _ in range(3)))
    assert len(arrived) == 5
    # One that arrives late comes closer to the next: only the first takes part in how long all of them took.
    assert arrived[-1] - arrived[0] > 4 * 0.2 - 0.1
    assert min(after - before for before, after in itertools.pairwise(arrived)) > 0.05


async def test_one_of_many_workers_asks_for_it_and_the_others_wait_for_its_answer(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    benches = [Bench(pool, farm, robots=Policy()) for _ in range(4)]
    await benches[0].register(0, 1, 2, 3)
    target.script = robots("User-agent: *\nDisallow: /admin\n")
    found = await asyncio.gather(*(fetch(bench, target) for bench in benches for _ in range(3)), return_exceptions=True)
    assert paths(target).count("/robots.txt") == 1
    assert paths(target)[0] == "/robots.txt"
    # Four proxies, twelve sessions: whoever found none free was told so at once.
    assert {type(one) for one in found} <= {int, *NotNow.__subclasses__()}
    assert paths(target).count("/api-3/graphql") == sum(one == 200 for one in found) >= 4
    for bench in benches:
        await bench.rotator.close()


async def test_whoever_claimed_it_and_died_holds_nobody_up_for_long(bench: Bench, target: Target) -> None:
    target.script = robots("")
    assert await fetch(bench, target) == 200
    async with bench.pool.connection() as conn:
        await conn.execute(
            "UPDATE hosts SET robots_due_at = NULL, robots_claimed_until = clock_timestamp() + interval '1 h'"
        )
    bench.rotator._robots_guard._views.clear()
    assert await fetch(bench, target) == 200, "the old copy holds while somebody asks"
    async with bench.pool.connection() as conn:
        await conn.execute("UPDATE hosts SET robots_body = NULL, robots_body_at = NULL")
        await conn.execute("UPDATE hosts SET robots_claimed_until = clock_timestamp() + interval '0.6 s'")
    bench.rotator._robots_guard._views.clear()
    assert await fetch(bench, target) == 200, "the claim has run out"
    assert paths(target).count("/robots.txt") == 2


async def test_a_task_that_is_cancelled_while_it_asks_gives_the_claim_back(bench: Bench, target: Target) -> None:
    target.script = robots(Reply(how="hang"))
    asking = asyncio.ensure_future(fetch(bench, target))
    await asyncio.wait_for(target.arrived.wait(), 5)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    kept = await row(bench, target)
    assert (kept["robots_checked_at"], kept["robots_claimed_until"]) == (None, None)
    target.script = robots("")
    assert await fetch(bench, target) == 200


async def test_the_session_decides_for_hosts_without_a_policy_of_their_own(
    pool: Pool, farm: ProxyFarm, bench: Bench, target: Target
) -> None:
    target.script = robots(FORBIDS_API)
    shared = Bench(pool, farm, robots=None)

    async def status(policy: Policy | None) -> int:
        async with shared.rotator.open(task_id=None, dispensary_id=None, state=None, robots=policy) as session:
            return (await session.request("GET", target.url("/api-3/graphql"))).status

    with pytest.raises(Permanent, match="JOINT_ROBOTS=ignore overrides this"):
        await status(Policy(setting="JOINT_ROBOTS"))
    with pytest.raises(Permanent):
        await status(None)
    assert await status(Policy(respect=False, setting="JOINT_ROBOTS")) == 200
    await shared.rotator.close()


async def test_where_it_is_ignored_it_is_not_asked_for_and_its_delay_is_forgotten(
    bench: Bench, pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    target.script = robots(FORBIDS_API + "Crawl-delay: 3600\n")
    with pytest.raises(Permanent):
        await fetch(bench, target)
    assert (await row(bench, target))["crawl_delay"] == 3600.0
    ignoring = Bench(pool, farm, robots=Policy(respect=False))
    assert await fetch(ignoring, target) == 200
    assert paths(target) == ["/robots.txt", "/api-3/graphql"]
    kept = await row(bench, target)
    assert (kept["crawl_delay"], kept["robots_body"], kept["robots_due_at"]) == (None, None, None)
    await ignoring.rotator.close()
