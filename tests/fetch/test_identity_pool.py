"""Identities that are kept: how many, how long, whose, and that they are closed when they are put out."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from menuwatch.fetch import identity_pool as wardrobes
from menuwatch.fetch.identity import Identity
from menuwatch.fetch.identity_pool import (
    MAX_AGE_SECONDS,
    MAX_IDLE,
    MAX_USES,
    IdleIdentityPool,
    PooledIdentity,
    credentials_key,
)
from menuwatch.fetch.profiles import PROFILES
from menuwatch.fetch.transport import Transport
from menuwatch.proxies.model import Proxy
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.conftest import as_row
from tests.fetch.target import Reply, Seen, Target

HOST = "menus.invalid"
Maker = Callable[..., PooledIdentity]


@pytest.fixture
async def make(farm: ProxyFarm) -> AsyncIterator[Maker]:
    """A worn identity behind proxy `index` of the farm, as the profile of that place."""
    created_at: list[Transport] = []

    def wear(
        index: int = 0, profile: int = 0, *, host: str = HOST, number: int | None = None, locale: str = "en-US"
    ) -> PooledIdentity:
        row = as_row(farm.infos[index], number=index + 1 if number is None else number)
        transport = Transport(
            Identity(proxy=row, profile=PROFILES[profile], locale=locale), timeout_seconds=5.0, max_bytes=10_000
        )
        created_at.append(transport)
        return PooledIdentity(host, transport, time.monotonic(), credentials_key(row))

    yield wear
    for transport in created_at:
        await transport.close()


def row(farm: ProxyFarm, index: int = 0) -> Proxy:
    return as_row(farm.infos[index], number=index + 1)


def closed(pooled: PooledIdentity) -> bool:
    return pooled.transport._closed


async def test_the_browser_changes_between_tasks_and_comes_back_later(make: Maker, farm: ProxyFarm) -> None:
    kept = IdleIdentityPool()
    first, second = make(profile=0), make(profile=1)
    await kept.put(first)
    assert kept.take(HOST, row(farm), "en-US", avoid=()) is None, "it was there last"
    await kept.put(second)
    assert kept.last(HOST, 1) == PROFILES[1].name
    assert kept.take(HOST, row(farm), "en-US", avoid=()) is first
    assert kept.take(HOST, row(farm), "en-US", avoid=()) is None
    await kept.put(first)
    assert kept.take(HOST, row(farm), "en-US", avoid={PROFILES[1].name}) is None
    assert kept.take(HOST, row(farm), "en-US", avoid={PROFILES[0].name}) is second


async def test_nobody_gets_what_is_not_for_him(make: Maker, farm: ProxyFarm) -> None:
    kept = IdleIdentityPool()
    await kept.put(make())
    await kept.put(make(profile=1))
    mine = row(farm)
    assert kept.take("other.invalid", mine, "en-US", avoid=()) is None
    assert kept.take(HOST, row(farm, 1), "en-US", avoid=()) is None
    assert kept.take(HOST, mine, "fr-CA", avoid=()) is None
    for changed in (
        replace(mine, password="new"),
        replace(mine, username="new"),
        replace(mine, port=mine.port + 1),
        replace(mine, host="127.0.0.2"),
        replace(mine, protocol="socks5"),
        replace(mine, id=77),
    ):
        assert kept.take(HOST, changed, "en-US", avoid=()) is None
    assert kept.take(HOST, mine, "en-US", avoid=()) is not None


async def test_it_serves_fifty_sessions_and_is_closed(make: Maker, farm: ProxyFarm) -> None:
    kept = IdleIdentityPool()
    pooled, other = make(profile=0), make(profile=1)
    sessions = 1
    await kept.put(pooled)
    while True:
        other.uses = 1
        await kept.put(other)
        taken = kept.take(HOST, row(farm), "en-US", avoid={PROFILES[1].name})
        if taken is None:
            break
        assert taken is pooled
        sessions += 1
        kept._idle.clear()
        await kept.put(pooled)
    assert sessions == MAX_USES
    assert closed(pooled)
    assert not closed(other)


async def test_an_old_one_is_not_worn_and_is_closed_though_nobody_asks_for_it(make: Maker, farm: ProxyFarm) -> None:
    kept = IdleIdentityPool()
    old, young = make(0, 0), make(1, 0)
    await kept.put(old)
    old.created_at -= MAX_AGE_SECONDS
    assert kept.take(HOST, row(farm), "en-US", avoid=()) is None
    await kept.put(young)
    assert closed(old)
    assert not closed(young)
    assert len(kept) == 1


async def test_too_many_put_out_the_one_that_was_idle_longest(make: Maker) -> None:
    kept = IdleIdentityPool()
    many = [make(n % 4, n % len(PROFILES), host=f"h{n}.invalid") for n in range(MAX_IDLE + 5)]
    for pooled in many:
        await kept.put(pooled)
    assert len(kept) == MAX_IDLE
    assert [closed(pooled) for pooled in many] == [True] * 5 + [False] * MAX_IDLE
    await kept.clear(exclude={pooled.proxy_id for pooled in many} - {2})
    assert all(closed(pooled) for pooled in many if pooled.proxy_id == 2)
    assert len(kept) == sum(not closed(pooled) for pooled in many)
    await kept.clear()
    assert all(closed(pooled) for pooled in many)
    assert len(kept) == 0


async def test_what_is_remembered_of_the_last_is_bounded(make: Maker) -> None:
    kept = IdleIdentityPool()
    for n in range(5 * MAX_IDLE):
        pooled = make(0, 0, host=f"h{n}.invalid")
        pooled.uses = MAX_USES
        await kept.put(pooled)
    assert len(kept) == 0
    assert len(kept._last) <= 4 * MAX_IDLE
    assert kept.last(f"h{5 * MAX_IDLE - 1}.invalid", 1) == PROFILES[0].name


def sockets() -> int:
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open sockets are counted in /proc")
async def test_what_is_put_out_leaves_no_socket_behind(
    make: Maker, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Farm and target live in this process as well, so what is closed here is closed there in a moment."""
    monkeypatch.setattr(wardrobes, "MAX_IDLE", 3)
    kept = IdleIdentityPool()

    async def use(number: int) -> None:
        pooled = make(number % 4, number % len(PROFILES), host=f"h{number}.invalid")
        assert (await pooled.transport.send("GET", target.url())).answer is not None
        await kept.put(pooled)

    async def settle(most: int) -> int:
        """The sockets, once they are no more than that, or after two seconds."""
        for _ in range(200):
            if (now := sockets()) <= most:
                break
            await asyncio.sleep(0.01)
        return now

    for n in range(3):
        await use(n)
    full = sockets()
    for n in range(3, 20):
        await use(n)
    assert await settle(full) <= full
    await kept.clear()
    none = await settle(0 if full == 0 else full // 2)
    assert none < full


async def test_cookies_stay_with_their_identity(make: Maker, target: Target) -> None:
    """Each visitor keeps its own, also where two have the same browser or the same proxy, and however they take turns."""

    def script(seen: Seen) -> Reply:
        return Reply(headers={"Set-Cookie": f"visitor={seen.path.strip('/')}; Path=/"})

    target.script = script
    pooled = [make(index, profile) for index in (0, 1) for profile in (0, 1)]
    rng = random.Random(8)
    for number in [0, 1, 2, 3, *(rng.randrange(4) for _ in range(30))]:
        await pooled[number].transport.send("GET", target.url(f"/{number}"))
    known: set[str] = set()
    for seen in target.seen:
        mine = seen.path.strip("/")
        cookies = [value for name, value in seen.headers if name.lower() == "cookie"]
        assert cookies == ([f"visitor={mine}"] if mine in known else [])
        known.add(mine)
